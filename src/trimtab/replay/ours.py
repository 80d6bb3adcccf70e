"""``trimtab`` as it stands: one in-memory session a recording, counted like everything here.

Knows the public ``Session`` and nothing behind it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import trimtab
from trimtab.paths import escape
from trimtab.planning.arrival import Arrival
from trimtab.replay.index import Index
from trimtab.replay.policies import Sent, Step
from trimtab.replay.recording import Recording
from trimtab.replay.views import own_counter

APART = {"cli", "replay", "testing"}
"""Folders that have no say in what is sent; what the metric says has a number of its own."""


@cache
def version() -> str:
    """Release and digest of the code, as in 0.1.0+4f0c2a9: figures of other code are not taken up
    again from a file of results."""
    root, digest = Path(trimtab.__file__).parent, hashlib.blake2b(digest_size=4)
    for file in sorted(root.rglob("*.py")):
        if file.relative_to(root).parts[0] not in APART:
            digest.update(file.read_bytes())
    return f"{trimtab.__version__}+{digest.hexdigest()[:7]}"


def seconds_between(recording: Recording) -> Iterator[float | None]:
    """How long before each model call the one before it was; None where the log has no times."""
    before: float | None = None
    for turn in recording.turns:
        now = recording.times[turn.sent] if recording.times else None
        yield None if now is None or before is None else max(0.0, now - before)
        before = now


class Trimtab:
    """Every option at its default, save no output reserve and the counter: o200k, cold, as it is
    for a session that begins.  ``trimtab:large``: with that ``arrival``; ``trimtab:0.6``: with
    that target.  Where the log has times, they are the session's."""

    name, format = "trimtab", ""

    def __init__(self, option: str = "none") -> None:
        self.version, self.options = version(), dict[str, Any](arrival=option)
        if option[:1].isdigit():
            self.options = {"target": float(option)}
        elif option not in get_args(Arrival):
            raise ValueError(f"give a target, or an arrival: {', '.join(get_args(Arrival))}")

    def start(self, index: Index, window: int) -> Step:
        """One session for the whole recording."""
        recording = index.recording
        session = trimtab.Session(
            window=window, reserve=0, counter=own_counter(), format=recording.format,
            model=recording.model, clock=lambda: 0.0, **self.options,
        )  # fmt: skip
        gaps = iter(seconds_between(recording))

        def step(body: dict[str, Any]) -> Sent:
            fitted = session.fit(body, idle_seconds=next(gaps, None))
            report = fitted.report
            edits = [edit for edit in report.edits if edit.new and edit.handle]
            return Sent(
                fitted.request,
                originals={edit.handle: fitted.recall(edit.handle) for edit in edits},
                notes=[(escape(edit.path), f"{edit.kind}: {edit.why}") for edit in report.edits],
            )

        return step
