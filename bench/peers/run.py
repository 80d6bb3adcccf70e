"""One scoreboard of other libraries and of trimtab, each in a clean environment of its own.

    python bench/peers/run.py                        make what is missing, run all, print the table
    python bench/peers/run.py --only litellm strands
    python bench/peers/run.py --json results.json --markdown table.md

Environments are made with pip under ~/.cache/trimtab/peers (TRIMTAB_PEERS), at the versions that
pip finds on that day.  No model is asked: where a library summarizes, a program answers.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
TARGETS = Path(__file__).with_name("targets")
SECONDS = 1_800
"""For one target."""


class Peer(NamedTuple):
    """A row of the table: what is installed (its first package gives the version) and run."""

    name: str
    environment: str
    packages: tuple[str, ...]
    target: str
    options: tuple[str, ...] = ("--format", "openai-chat")
    least: tuple[int, int] = (3, 11)
    """The oldest Python it runs with."""


CHAT = ("--format", "openai-chat")
MADE = ("--factory", *CHAT)
_LANGCHAIN = ("langchain", "langgraph")
_PYDANTIC = ("summarization-pydantic-ai", "pydantic-ai-slim")

PEERS = (
    Peer("trimtab", "trimtab", (), "trimtab:Session", ("--factory",)),
    Peer("LangChain trim_messages", "langchain", ("langchain-core", *_LANGCHAIN),
         "langchain_targets:trim"),
    Peer("LangChain ClearToolUsesEdit", "langchain", _LANGCHAIN,
         "langchain:langchain_targets:clear"),
    Peer("LangChain SummarizationMiddleware", "langchain", _LANGCHAIN,
         "langchain:langchain_targets:summarize"),
    Peer("deepagents summarization", "deepagents", ("deepagents",),
         "langchain:deepagents_targets:middlewares"),
    Peer("LiteLLM trim_messages", "litellm", ("litellm", "mcp"), "litellm_targets:trim"),
    Peer("LiteLLM compress", "litellm", ("litellm", "mcp"), "litellm_targets:Compress", MADE),
    Peer("Strands sliding window", "strands", ("strands-agents",), "strands_targets:sliding",
         ("--factory", "--format", "bedrock")),
    Peer("Strands summarizing", "strands", ("strands-agents",), "strands_targets:summarizing",
         ("--factory", "--format", "bedrock")),
    Peer("MAF context window", "agent-framework", ("agent-framework-core",),
         "agent_framework_targets:context_window", MADE),
    Peer("MAF summarization", "agent-framework", ("agent-framework-core",),
         "agent_framework_targets:summarize", MADE),
    Peer("Pydantic AI, no processor", "pydantic-ai", ("pydantic-ai-slim", *_PYDANTIC),
         "pydantic_ai_targets:plain", MADE),
    Peer("Pydantic AI sliding window", "pydantic-ai", _PYDANTIC, "pydantic_ai_targets:sliding",
         MADE),
    Peer("Pydantic AI summaries", "pydantic-ai", _PYDANTIC, "pydantic_ai_targets:summarizing",
         MADE),
    Peer("OpenHands condenser", "openhands", ("openhands-sdk",), "openhands_targets:condenser",
         MADE, (3, 12)),
    Peer("headroom compress", "headroom", ("headroom-ai",), "small_targets:headroom"),
    Peer("distil", "distil", ("distil-llm",), "small_targets:distil"),
    Peer("ctxfit aggressive", "ctxfit", ("ctxfit",), "small_targets:ctxfit"),
    Peer("contextgc", "contextgc", ("contextgc",), "small_targets:contextgc"),
    Peer("leantokens smart", "leantokens", ("leantokens",), "small_targets:leantokens"),
)  # fmt: skip


def home() -> Path:
    """Where the environments are."""
    named = os.environ.get("TRIMTAB_PEERS")
    return Path(named) if named else Path.home() / ".cache" / "trimtab" / "peers"


def python_of(peer: Peer) -> Path:
    """The interpreter of its environment, apart from those of ``trimtab replay``."""
    place = "Scripts/python.exe" if sys.platform == "win32" else "bin/python"
    return home() / f"conform-{peer.environment}" / place


def interpreter(peer: Peer) -> str:
    """This Python where it is new enough for a peer, else its oldest on the path; "" if none."""
    if sys.version_info >= peer.least:
        return sys.executable
    return shutil.which("python{}.{}".format(*peer.least)) or ""


@functools.cache
def install(peer: Peer) -> str:
    """Make its environment; "" or the end of what pip says."""
    python = python_of(peer)
    if not python.exists():
        maker = interpreter(peer)
        if not maker:
            return "no Python {}.{} on the path".format(*peer.least)
        made = subprocess.run(
            [maker, "-m", "venv", str(python.parents[1])],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if made.returncode:
            return (made.stderr or made.stdout).strip()[-300:] or "venv fails"
    if all(version(peer, package) for package in peer.packages) and version(peer, "splintr-rs"):
        return ""
    done = subprocess.run(
        [str(python), "-m", "pip", "install", "-q", "splintr-rs", *peer.packages],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    version.cache_clear()
    return "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1][-300:]


@functools.cache
def version(peer: Peer, package: str) -> str:
    """What is installed of a package; "" where it is not."""
    if not python_of(peer).exists():
        return ""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    done = subprocess.run(
        [str(python_of(peer)), "-c", code], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def run(peer: Peer, window: str, cases: str) -> dict[str, Any]:
    """Its scoreboard, or {"error": …}."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "board.json"
        env = {
            **os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{TARGETS}",
            "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore",
        }  # fmt: skip
        command = [
            str(python_of(peer)), "-m", "trimtab", "conform", peer.target, *peer.options,
            "--window", window, "--cases", cases, "--json", str(out),
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, env=env, cwd=folder,
                timeout=SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"error": f"not done within {SECONDS} s"}
        if not out.exists():
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            return {"error": lines[-1][-300:]}
        board: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return board


def cells(board: dict[str, Any]) -> list[str]:
    """The share of each property in percent; – where nothing was asked."""
    return [
        "–" if row["share"] is None else str(int(100 * row["share"]))  # 100 only where all passed
        for row in board["properties"]
    ]


def rows(results: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    """The table: head, then a row for each that ran, then those that did not."""
    boards = [one for one in results if "error" not in one["board"]]
    names = [row["name"] for row in boards[0]["board"]["properties"]] if boards else []
    yield ["", "version", *names]
    for one in boards:
        yield [one["name"], one["version"], *cells(one["board"])]
    for one in results:
        if "error" in one["board"]:
            yield [one["name"], one["version"] or "–", "not run: " + one["board"]["error"]]


def plain(table: Sequence[Sequence[str]]) -> str:
    """In columns."""
    wide = [row for row in table if len(row) == len(table[0])]
    widths = [max(len(row[n]) for row in wide) for n in range(len(table[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip()
        for row in table
    )


def markdown(table: Sequence[Sequence[str]]) -> str:
    """As a table of a page; what did not run stands below it."""
    wide = [row for row in table if len(row) == len(table[0])]
    lines = ["| " + " | ".join(row) + " |" for row in wide]
    lines.insert(1, "|---|---|" + "---:|" * (len(wide[0]) - 2))
    lines += ["", *(f"{row[0]}: {row[2]}." for row in table if len(row) != len(table[0]))]
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """Run them one after the other."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", metavar="ENVIRONMENT")
    parser.add_argument("--window", default="16k")
    parser.add_argument("--cases", default="35")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    args = parser.parse_args()
    results = []
    for peer in PEERS:
        if args.only and peer.environment not in args.only:
            continue
        failed = install(peer)
        board = {"error": failed} if failed else run(peer, args.window, args.cases)
        found = version(peer, peer.packages[0]) if peer.packages else "this clone"
        results.append({"name": peer.name, "version": found, "board": board})
        print(plain(list(rows(results))).splitlines()[-1], file=sys.stderr, flush=True)
        if args.json:
            day = datetime.datetime.now(datetime.UTC).date().isoformat()
            whole = {"date": day, "window": args.window, "cases": args.cases, "peers": results}
            args.json.write_text(json.dumps(whole, indent=1), encoding="utf-8")
    table = list(rows(results))
    print(plain(table))
    if args.markdown:
        args.markdown.write_text(markdown(table), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
