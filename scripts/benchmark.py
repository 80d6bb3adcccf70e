"""Prints the measured figures of README and docs, and fails where a page says otherwise.

    python scripts/benchmark.py                 quick commands anew, long ones from bench/results
    python scripts/benchmark.py --full [NAME …] run the long ones too, and keep what they print
    python scripts/benchmark.py --uncovered     lines of figures that no command is named for

A page marks what a command printed:

    <!-- measured: NAME -->
    | a table | 12.5 % |
    <!-- end of NAME -->

Every number between the marks must occur in the output of NAME (``COMMANDS``).  This script does
not know what the numbers mean.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
JUDGES = os.environ.get("TRIMTAB_JUDGES", "judges")
"""A folder with what bench/counts.py asks for."""
DATA = os.environ.get("TRIMTAB_DATA", str(ROOT.parent / "shared" / "data"))
BLOCK = re.compile(r"<!-- measured: ([\w-]+) -->\n(.*?)<!-- end of \1 -->", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?")
FIGURES = re.compile(r"^\|.*\|.*\d.*\|", re.MULTILINE)


class Command(NamedTuple):
    """What prints figures.  ``quick``: seconds, so that it is run each time; others are kept in
    bench/results with the commit and the day they were run at.  {data}: the transcripts."""

    words: str
    quick: bool = False


REPLAY = "-m trimtab replay {data}"
OURS = f"{REPLAY} --above 1.3 --policy trimtab --prices claude-1h --columns all --window"
OTHERS = (
    "OwnCompaction", "LangChainClear", "LangChainSummarize", "DeepAgents", "Headroom",
)  # fmt: skip
SLOW = ("LiteLLMCompress", "StrandsSliding", "StrandsSummarizing")
"""More than a tenth of a second a call: at two windows."""


def _policies(*own: str, others: tuple[str, ...]) -> str:
    return ",".join([*own, *(f"bench/peers/policies.py:{name}" for name in others)])


PLAYED = _policies("none", "trimtab", "trimtab:economy", others=OTHERS)
WINDOWS = f"{REPLAY} --window 32k,60k,100k,200k --each 2 --policy {PLAYED} --prices"
COMMANDS = {
    "windows": Command(f"{WINDOWS} claude-5m"),
    "windows-1h": Command(f"{WINDOWS} claude-1h"),
    "windows-pooled": Command(f"{WINDOWS} claude-5m --columns all --by all"),
    "windows-slow": Command(
        f"{REPLAY} --window 32k,100k --each 2 --policy {_policies(others=SLOW)} --prices claude-5m"
    ),
    "replay-32k": Command(f"{OURS} 32k --each 5"),
    "replay-100k": Command(f"{OURS} 100k"),
    "pooled-32k": Command(f"{OURS} 32k --each 5 --by all"),
    "pooled-100k": Command(f"{OURS} 100k --by all"),
    "fleet": Command("bench/fleet figures", quick=True),
    "peers": Command("bench/peers/run.py"),
    "kits": Command("bench/kits"),
    "proxy": Command("bench/proxy.py"),
    "transport": Command("bench/transport.py"),
    "peers-load": Command("bench/load.py --only peers --streams 200 --requests 400 --rounds 2"),
    "long": Command("bench/long.py --every 20"),
    "outages": Command("bench/outages.py --seconds 15"),
    "corpus": Command("bench/batch.py --killed --megabytes 90"),
    "structure": Command("bench/structure.py cut"),
    "turns": Command("bench/turns.py"),
    "retrieval": Command("bench/retrieval.py {data}"),
    "cache-bounds": Command("bench/cache_bounds.py {data}"),
    "control-arm": Command("bench/control_arm.py", quick=True),
    "pruning": Command("bench/immediate_pruning.py", quick=True),
    "images": Command("bench/images.py"),
    "counts": Command(
        "bench/counts.py --all --npm {judges}/node_modules --pygments {judges}/pygments-2.21.0"
    ),
    "answerable": Command("bench/answerable"),
    "answerable-held-out": Command(
        "bench/answerable --held-out --window 32000 --policy head-tail trimtab:balanced"
    ),
    "small-windows": Command(
        "bench/answerable --paired --window 1000 2000 --steps 20 --tokens 4000 --each 1 "
        "--seed 1 2 3 4 --policy trimtab:balanced head-tail oldest-out"
    ),
    "lookup": Command("bench/lookup.py"),
    "truth": Command("bench/truth {data} --window 32000 --sessions 16"),
    "truth-held-out": Command("bench/truth {data} --window 32000 --sessions 16 --held-out"),
    "asked": Command("bench/asked"),
    "asked-held-out": Command("bench/asked --held-out"),
    "own-prose": Command("bench/own_prose"),
    "own-prose-held-out": Command("bench/own_prose --held-out"),
    "small-model": Command(
        "bench/answerable/small_model.py --worlds 2 --policy trimtab:balanced head-tail oldest-out"
    ),
    "when-to-cut": Command("bench/when_to_cut.py {data}"),
}


def pages() -> list[Path]:
    """The pages that have figures."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks() -> Iterator[tuple[Path, str, str]]:
    """(page, name, text) of every marked part."""
    for page in pages():
        for found in BLOCK.finditer(page.read_text("utf-8")):
            yield page, found[1], found[2]


def numbers(text: str) -> set[str]:
    """Every number as written, without thousands separators; ``[67,100]`` has two."""
    text = re.sub(r"\[([\d.]+),(?=\d)", r"[\1, ", text)
    return {found.replace(",", "").rstrip(".") for found in NUMBER.findall(text)}


def run(name: str) -> str:
    """Run a command; return its output.  Raises RuntimeError if it fails."""
    words = COMMANDS[name].words.format(data=DATA, judges=JUDGES).split()
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TRIMTAB_DATA": DATA}
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, cwd=ROOT, env=env
    )
    if done.returncode:
        raise RuntimeError(f"{name}: {' '.join(words)} ends with {done.returncode}:\n{done.stderr}")
    return done.stdout


def kept(name: str) -> str:
    """The output of a long command's last run."""
    file = RESULTS / f"{name}.txt"
    if not file.exists():
        raise RuntimeError(f"{name}: never run; python scripts/benchmark.py --full {name}")
    return file.read_text("utf-8").partition("\n\n")[2]


def keep(name: str, output: str) -> None:
    """Store a command's output, with the commit and the day of the run."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT
    ).stdout.strip()
    head = (
        f"# python {COMMANDS[name].words}\n# {commit or 'no commit'}, {datetime.now(UTC):%Y-%m-%d}"
    )
    (RESULTS / f"{name}.txt").write_text(f"{head}\n\n{output}", "utf-8")


def disagreements(name: str, text: str, output: str) -> list[str]:
    """Lines of a page with numbers that the command did not print."""
    printed = numbers(output)
    return [
        f"{line.strip()}   <- not printed: {', '.join(sorted(missing))}"
        for line in text.splitlines()
        if (missing := numbers(line) - printed)
    ]


def uncovered() -> Iterator[tuple[Path, int]]:
    """(page, lines of tables with numbers outside of any mark)."""
    for page in pages():
        left = BLOCK.sub("", page.read_text("utf-8"))
        if many := len(FIGURES.findall(left)):
            yield page, many


def main(arguments: list[str]) -> int:
    """Run, compare, print."""
    if arguments == ["--uncovered"]:
        for page, many in uncovered():
            print(f"{many:4}  {page.relative_to(ROOT)}")
        return 0
    full = arguments[:1] == ["--full"]
    wanted = set(arguments[1:]) if full else set[str]()
    outputs, bad = dict[str, str](), 0
    if full:
        for name in sorted(wanted or {n for n, one in COMMANDS.items() if not one.quick}):
            keep(name, run(name))
    for page, name, text in blocks():
        try:
            if name not in outputs:
                outputs[name] = run(name) if COMMANDS[name].quick else kept(name)
                print(f"== {name}: python {COMMANDS[name].words}\n{outputs[name]}")
        except (KeyError, RuntimeError) as error:
            print(f"{page.relative_to(ROOT)}: {error}")
            bad += 1
            continue
        for line in disagreements(name, text, outputs[name]):
            print(f"{page.relative_to(ROOT)}: {line}")
            bad += 1
    print(f"{len(outputs)} commands, {bad} lines that say otherwise")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
