"""``trimtab`` as it stands: one in-memory session a recording, counted like everything here.

Knows the public ``Session`` and nothing behind it.
"""

from __future__ import annotations

from typing import Any

import trimtab
from trimtab.paths import escape
from trimtab.replay.index import Index
from trimtab.replay.policies import Sent, Step
from trimtab.replay.views import own_counter


class Trimtab:
    """Every option at its default, save no output reserve and the counter: o200k, cold, as it is
    for a session that begins."""

    name, format = "trimtab", ""

    def __init__(self) -> None:
        self.version = trimtab.__version__

    def start(self, index: Index, window: int) -> Step:
        """One session for the whole recording."""
        recording = index.recording
        session = trimtab.Session(
            window=window, reserve=0, counter=own_counter(), format=recording.format,
            model=recording.model,
        )  # fmt: skip

        def step(body: dict[str, Any]) -> Sent:
            fitted = session.fit(body)
            report = fitted.report
            edits = [edit for edit in report.edits if edit.new and edit.handle]
            return Sent(
                fitted.request,
                originals={edit.handle: fitted.recall(edit.handle) for edit in edits},
                notes=[(escape(edit.path), f"{edit.kind}: {edit.why}") for edit in report.edits],
            )

        return step
