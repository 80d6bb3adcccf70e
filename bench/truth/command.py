"""Plays recorded sessions turn by turn and prints what their notes say, by agent.

    python bench/truth [FOLDER] [--window N …] [--sessions N] [--held-out]

FOLDER has the recorded transcripts (default: TRIMTAB_DATA).  Half of the sessions, by a digest of
their ids, is held out.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

from room import fitted_turns, folder, sample

from trimtab import formats
from trimtab.logs.recording import Recording
from trimtab_lab.replay.truth.history import RecordedHistory
from trimtab_lab.replay.truth.judge import (
    CALLS,
    EDITED,
    EDITS,
    ELSEWHERE,
    PLACED,
    QUOTED,
    SHOWN,
    STALE,
    NoteJudge,
    pooled,
)

WINDOWS = (32_000, 60_000)


def judged(recording: Recording, window: int) -> Counter[str]:
    """The counts of one session at one window."""
    judge = NoteJudge(RecordedHistory(recording.views))
    for arrived, fitted in fitted_turns(recording, window):
        if fitted.report.edits:
            format = formats.find(fitted.request, recording.format)[0]
            sent = formats.read(fitted.request, format, model=recording.model)
            judge.read(sent.messages, arrived)
    return judge.tally


def share(part: int, whole: int) -> str:
    """``99.2 % of 1,204``; – where there is nothing."""
    return f"{100 * part / whole:.1f} % of {whole:,}" if whole else "–"


def told(name: str, tally: Counter[str]) -> str:
    """One row of the table."""
    lines, edits = tally[EDITED], tally[EDITS]
    cells = [
        name, f"{tally['notes']:,}", f"{tally[QUOTED]:,}", f"{tally[ELSEWHERE]:,}",
        share(tally[PLACED], lines),
        f"{tally['under another file']:,}", f"{tally['under none']:,}", f"{tally[STALE]:,}",
        f"{tally['without a sign']:,}", f"{tally['old text without a sign']:,}",
        share(tally[SHOWN], edits),
        share(tally["edits whose file is named"], edits),
        f"{tally[CALLS]:,}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


HEAD = (
    "| sessions of | notes | quoted lines | under another step "
    "| edited lines under their file | under another | under none | stale "
    "| without a sign | old text without a sign | edits that show new lines "
    "| edits whose file is named | call-like rows in the model's text |"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table of each window."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--window", type=int, nargs="+", default=WINDOWS)
    parser.add_argument("--sessions", type=int, default=30)
    parser.add_argument("--held-out", action="store_true")
    args = parser.parse_args(arguments)
    recordings = sample(folder(args.folder), args.held_out, args.sessions)
    for window in args.window:
        tallies: dict[str, list[Counter[str]]] = {}
        for one in recordings:
            tallies.setdefault(one.source, []).append(judged(one, window))
        print(f"\nWindow {window:,}, {len(recordings)} sessions\n{HEAD}")
        print("|---" * HEAD.count(" | ") + "|---|")
        for source, own in sorted(tallies.items()):
            print(told(source.partition("@")[0], pooled(iter(own))))
        print(told("all", pooled(t for own in tallies.values() for t in own)))
    return 0
