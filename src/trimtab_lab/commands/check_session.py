"""``trimtab check --session``: is what the notes of a recorded session say true?"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trimtab.amounts import many
from trimtab.cli.exit_codes import DONE, UNREADABLE, USAGE, VIOLATIONS, ExitWith
from trimtab.cli.logs import read_logs
from trimtab.cli.options import setting
from trimtab.cli.terminal import clean
from trimtab_lab.commands.replay import WINDOW

if TYPE_CHECKING:
    from trimtab_lab.replay.session_truth import SessionTruth

SHOWN_CHARS, SHOWN_LINES = 100, 20
"""Chars of a quoted line, and lines of one session, that are printed; --json has all."""


def run(args: Namespace) -> int:
    """Fit each session in FILE turn by turn and print every line of its notes that is untrue."""
    from trimtab_lab.replay.session_truth import judged

    if args.file == "-" or args.turn is not None:
        raise ExitWith(USAGE, "--session takes a FILE or a folder with logs, and no --turn")
    window = setting(args, "window")
    if window is None:
        window = WINDOW
        print(f"no --window given: {WINDOW:,} tokens", file=sys.stderr)
    recordings = [one for one in read_logs([args.file]).recordings if one.turns]
    if not recordings:
        raise ExitWith(UNREADABLE, f"{args.file}: no model call of a session in it: give a "
                       "log of a coding agent, as in ~/.claude/projects")  # fmt: skip
    sessions = [judged(one, window) for one in recordings]
    if args.json:
        print(json.dumps({"window": window, "sessions": [*map(_row, sessions)]}, indent=2))
    else:
        for line in (line for one in sessions for line in told(one, window)):
            print(clean(line))
    return VIOLATIONS if any(one.untrue for one in sessions) else DONE


def told(session: SessionTruth, window: int) -> Iterator[str]:
    """The findings of one session in words, a line each."""
    from trimtab_lab.replay.truth import judge

    counts, recording = session.counts, session.recording
    fits = f", {session.unfitted:,} of them do not fit" if session.unfitted else ""
    calls = f"{many(session.calls, 'model call')} at {window:,} tokens{fits}"
    if not counts[judge.NOTES] and not session.untrue:
        yield f"{recording.id}: {calls}; no note was made, so there is nothing to check"
        return
    edits = counts[judge.EDITS]
    shown = f"; new lines are shown of {counts[judge.SHOWN]:,} of {many(edits, 'edit')} in them"
    yield (
        f"{recording.id}: {calls}; {many(counts[judge.NOTES], 'note')} with "
        f"{many(counts[judge.QUOTED], 'quoted line')}{shown if edits else ''}"
    )
    if not session.untrue:
        yield (
            "  true: each line is under the step and file it came from, and nothing is shown "
            "that a later step of its note changed"
        )
    for found in session.untrue[:SHOWN_LINES]:
        under = f' (it is under "{_cut(found.head)}")' if found.head else ""
        yield (
            f'  untrue, from message {found.messages:,} on: "{_cut(found.line)}" '
            f"{judge.UNTRUE[found.kind]}{under}"
        )
    if (more := len(session.untrue) - SHOWN_LINES) > 0:
        yield f"  and {more:,} more that are untrue; --json has all"


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]} …"


def _row(session: SessionTruth) -> dict[str, Any]:
    """One session for --json."""
    return {
        "id": session.recording.id, "calls": session.calls, "unfitted": session.unfitted,
        "counts": dict(session.counts), "untrue": [found._asdict() for found in session.untrue],
    }  # fmt: skip
