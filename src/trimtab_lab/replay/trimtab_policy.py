"""``trimtab`` as a policy: one in-memory session per recording, counting tokens as the metric."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import trimtab
from trimtab.formats.registry import FormatName
from trimtab.jsontext.paths import escape
from trimtab.logs.recording import Recording
from trimtab.planning.presets import PRESETS
from trimtab_lab.replay.message_views import own_counter
from trimtab_lab.replay.policies import PolicyOutput
from trimtab_lab.replay.recording_index import RecordingIndex

APART = {"cli"}
"""Folders that do not affect what is sent."""


@cache
def version() -> str:
    """Release and digest of the code, as in 0.1.0+4f0c2a9, so that results of other code in a file
    are not reused."""
    root, digest = Path(trimtab.__file__).parent, hashlib.blake2b(digest_size=4)
    for file in sorted(root.rglob("*.py")):
        if file.relative_to(root).parts[0] not in APART:
            digest.update(file.read_bytes())
    return f"{trimtab.__version__}+{digest.hexdigest()[:7]}"


def seconds_between(recording: Recording) -> Iterator[float | None]:
    """Seconds between each model call and the previous one; None if the log has no times."""
    before: float | None = None
    for turn in recording.turns:
        now = recording.times[turn.sent] if recording.times else None
        yield None if now is None or before is None else max(0.0, now - before)
        before = now


class Trimtab:
    """trimtab with default settings, except no output reserve and an o200k counter with an empty
    cache, as in a new session.  ``trimtab:0.6``: with this target; ``trimtab:economy``: with this
    preset.  Idle times come from the log, if it has times."""

    name, format = "trimtab", ""

    def __init__(self, option: str = "") -> None:
        self.version = version()
        given = dict[str, Any]()
        if option[:1].isdigit():
            given = {"target": float(option)}
        elif option in PRESETS:
            given = {"preset": option}
        elif option:
            raise ValueError(f"give a target or a preset: {', '.join(PRESETS)}")
        self.options = trimtab.Settings(**given)

    def start(self, index: RecordingIndex, window: int) -> PlayedSession:
        """One session for the whole recording."""
        recording = index.recording
        session = trimtab.Session(
            window=window, reserve=0, format=cast(FormatName, recording.format),
            model=recording.model, clock=lambda: 0.0,
            settings=trimtab.Settings(counter=own_counter()) | self.options,
        )  # fmt: skip
        return PlayedSession(session, seconds_between(recording))


class PlayedSession:
    """A step of the policy: the session, and the result of its last turn."""

    def __init__(self, session: trimtab.Session, gaps: Iterator[float | None]) -> None:
        self.session, self._gaps = session, gaps
        self.fitted: trimtab.Fitted | None = None

    def __call__(self, body: dict[str, Any]) -> PolicyOutput:
        """Fit the next request."""
        idle = trimtab.Settings(idle_seconds=next(self._gaps, None))
        self.fitted = fitted = self.session.fit(body, settings=idle)
        report = fitted.report
        edits = [edit for edit in report.edits if edit.new and edit.handle]
        target = report.limits["target_tokens"]
        return PolicyOutput(
            fitted.request,
            room=(report.tokens_after, target) if edits and target else None,
            originals={edit.handle: fitted.recall(edit.handle) for edit in edits},
            notes=[(escape(edit.path), f"{edit.kind}: {edit.why}") for edit in report.edits],
        )
