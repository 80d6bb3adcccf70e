"""The transcript that passed the check last: one that goes on from it is read where it is new.

Knows when messages read once need not be read again.  Knows no rule: which scans may begin behind
known messages is said where they stand (``rules.base.resumes``).
"""

from __future__ import annotations

from trimtab import rules
from trimtab.index import goes_on, shared
from trimtab.model import Transcript
from trimtab.rules import Violation


class Sound:
    """A memo: it changes no answer, only time."""

    def __init__(self) -> None:
        self._passed: tuple[Transcript, bool] | None = None

    def check(
        self, transcript: Transcript, *, open_tail: bool, failures: list[str] | None
    ) -> tuple[Violation, ...]:
        """What ``rules.check`` says."""
        known = self._known(transcript, open_tail)
        if known is None:
            return ()
        if not known or not _nothing_new(transcript, open_tail, known):
            before = len(failures or ())
            found = rules.check(transcript, open_tail=open_tail, failures=failures)
            if found or len(failures or ()) > before:
                return found
        self._passed = transcript, open_tail
        return ()

    def _known(self, transcript: Transcript, open_tail: bool) -> int | None:
        """How many of the first messages are the very ones that passed; None: all there is."""
        if self._passed is None or self._passed[1] is not open_tail:
            return 0
        before = self._passed[0]
        if transcript is before:
            return None
        same = (
            transcript.format is before.format
            and transcript.base == before.base
            and transcript.head == before.head
            and transcript.facts == before.facts
        )
        if same and goes_on(transcript.messages, before.messages):
            return len(before.messages)
        return shared(before.messages, transcript.messages) if same else 0


def _nothing_new(transcript: Transcript, open_tail: bool, known: int) -> bool:
    """Whether nothing is found behind known messages; where it is, or a rule raises, the whole
    check says what."""
    failures: list[str] = []
    found = rules.check(transcript, open_tail=open_tail, failures=failures, known=known)
    return not found and not failures
