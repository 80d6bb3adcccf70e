"""Whether what the notes of one recorded session say is true, at one window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from trimtab.errors import CannotFit
from trimtab.logs.recording import Recording
from trimtab_lab.replay.recording_index import RecordingIndex
from trimtab_lab.replay.sent_sizes import SentSizes
from trimtab_lab.replay.trimtab_policy import Trimtab
from trimtab_lab.replay.truth.judge import NoteJudge, UntrueLine


class SessionTruth(NamedTuple):
    """What was found in one session: its model calls, how many of them cannot fit, the judge's
    counts, and the lines that are wrong, each once."""

    recording: Recording
    calls: int
    unfitted: int
    counts: Counter[str]
    untrue: Sequence[UntrueLine]


def judged(recording: Recording, window: int) -> SessionTruth:
    """Fit a session turn by turn, as ``trimtab replay`` does, and judge every note that is sent."""
    index = RecordingIndex(recording)
    step, judge, views = Trimtab().start(index, window), NoteJudge(index.history), SentSizes(index)
    unfitted = 0
    for turn in index.turns:
        try:
            body = step(recording.request(turn)).request
        except CannotFit:
            unfitted += 1
            continue
        full = index.views[: turn.sent]
        sent = views.views(body, full)
        if sent is not full:
            judge.read([view.message for view in sent], turn.sent)
    once = {(found.kind, found.line, found.head): found for found in reversed(judge.untrue)}
    untrue = tuple(reversed(once.values()))
    return SessionTruth(recording, len(index.turns), unfitted, judge.tally, untrue)
