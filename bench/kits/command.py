"""Runs other people's measuring kits on trimtab, and prints what comes out.

    python bench/kits                make the environment if it is missing, run all kits
    python bench/kits --only NAME    one part: conformance, constraints, audits

The kits are installed with pip at the versions of ``PINS``, in an environment of their own under
~/.cache/trimtab/kits (TRIMTAB_KITS).  Transcripts are those of TRIMTAB_DATA or ../shared/data.
Other libraries run in the environments of bench/peers.  No model is asked: conpact's judge and
probe and its summarizer are left out, and each summary is a fixed text.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

PINS = (
    "compaction-conformance-kit==0.8.0", "conpact==0.1.0", "compact-audit==0.1.0",
    "ctxdrift==0.1.0", "splintr-rs",
)  # fmt: skip
PARTS = ("conformance", "constraints", "audits")


def python() -> Path:
    """The interpreter of the kits' environment."""
    named = os.environ.get("TRIMTAB_KITS")
    home = Path(named) if named else Path.home() / ".cache" / "trimtab" / "kits"
    return home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def install() -> None:
    """Make the environment.  Raises CalledProcessError."""
    if not python().exists():
        subprocess.run([sys.executable, "-m", "venv", str(python().parents[1])], check=True)
    subprocess.run([str(python()), "-m", "pip", "install", "-q", *PINS], check=True)


def parts(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(title, table) of each; in the kits' environment."""
    if "conformance" in names:
        from kits import conformance

        yield "compaction-conformance-kit 0.8.0, benchmark", conformance.leaderboard()
        yield "compaction-conformance-kit 0.8.0, check", conformance.checked()
        yield "compaction-conformance-kit 0.8.0, generated sessions", conformance.rotating()
    if not {"constraints", "audits"} & set(names):
        return
    from kits import sessions

    found, libraries = sessions.sessions(), list(sessions.libraries())
    about = f"{len(found)} recorded sessions into {sessions.WINDOW:,} tokens"
    if "constraints" in names:
        from kits import constraints

        yield f"conpact 0.1.0, {about}", constraints.measured(libraries, found)
    if "audits" in names:
        from kits import audits

        outputs = [
            (one.name, [one(session.messages).messages for session in found]) for one in libraries
        ]
        yield f"compact-audit 0.1.0, {about}", audits.dropped_lines(found, outputs)
        yield f"ctxdrift 0.1.0, {about}", audits.missing(found, outputs)


def main(argv: Sequence[str] | None = None) -> int:
    """Run it and print the tables."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--only", choices=PARTS)
    args = options.parse_args(argv)
    if importlib.util.find_spec("compaction_kit") is None:
        install()
        return beside([args.only] if args.only else PARTS)
    for title, table in parts((args.only,) if args.only else PARTS):
        print(f"### {title}\n\n{table}\n", flush=True)
    return 0


def beside(names: Sequence[str]) -> int:
    """Run the parts at the same time in the kits' environment; print them in order."""
    started = [
        subprocess.Popen(
            [str(python()), str(Path(__file__).parent), "--only", name],
            stdout=subprocess.PIPE, text=True, encoding="utf-8",
        )
        for name in names
    ]  # fmt: skip
    for one in started:
        print(one.communicate()[0], end="", flush=True)
    return int(any(one.returncode for one in started))
