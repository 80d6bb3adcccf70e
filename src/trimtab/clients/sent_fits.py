"""What one client has sent: its counters, and the last request of each conversation."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import NamedTuple

from trimtab.forking import Lock
from trimtab.report import Report
from trimtab.request.fitted import Fitted, facts_of
from trimtab.retry.effects import SendStats
from trimtab.session import Session

RECENT = 16
"""Conversations whose last request is kept, those sent last: a request is as large as its body."""


class SentFit(NamedTuple):
    """The last request of one conversation, and the session that fitted it."""

    session: Session
    fitted: Fitted

    @property
    def report(self) -> Report:
        """What was done to the request, and to the agent's state that it was made from."""
        report, facts = self.fitted.report, facts_of(self.fitted)
        if facts.shortened is None:
            return report
        return _joined(facts.shortened, report, report.tokens_before + facts.tokens_shortened)


def _joined(first: Report, then: Report, tokens_before: int) -> Report:
    """The report of two fits, one after the other; an edit of both is told once."""
    again = {edit.handle for edit in first.edits} & {edit.handle for edit in then.edits}
    made = {edit.handle for edit in first.edits if edit.new}
    edits = [edit for edit in first.edits if edit.handle not in again]
    edits += [replace(one, new=one.new or one.handle in made) for one in then.edits]
    repairs = {(one.rule, one.path): one for one in (*first.repairs, *then.repairs)}
    reason = first.reason
    if any(edit.new for edit in then.edits):
        reason = f"{first.reason}. Then {then.reason}"
    sums = {
        name: first.summaries.get(name, 0) + then.summaries.get(name, 0)
        for name in {**first.summaries, **then.summaries}
    }
    return replace(
        then, reason=reason, tokens_before=tokens_before, edits=tuple(edits),
        repairs=tuple(repairs.values()), summaries=sums, money=then.money or first.money,
        warnings=tuple(dict.fromkeys((*first.warnings, *then.warnings))),
        _losses=lambda: (*first.losses, *then.losses),
        _bytes=lambda: (first.bytes_before, then.bytes_after),
    )  # fmt: skip


class SentFits:
    """``client``: its name, for people; ``stats``: counters over all its requests; ``session``: the
    one in which handles of earlier runs are found, if there is one for all conversations."""

    def __init__(self, client: str, session: Session | None = None) -> None:
        self.client, self.session, self.stats = client, session, SendStats()
        self._last: OrderedDict[str, SentFit] = OrderedDict()
        self._lock = Lock()

    def add(self, session: Session, fitted: Fitted, conversation: str | None = None) -> None:
        """Take in one fit.  ``conversation``: its name; None: its id in the session's store.

        A title or summary that a framework asks for is no turn of a conversation.
        """
        facts = facts_of(fitted)
        if facts.is_client_request:
            return
        id = fitted.conversation if conversation is None else conversation
        saved = 0
        if facts.made_edits:
            new = sum(edit.tokens_saved for edit in fitted.report.edits if edit.new)
            saved = new - facts.replaced_tokens.total()
        # A cut that began in the agent's state was counted there.
        earlier = () if facts.shortened is None else facts.shortened.edits
        with self._lock:
            self.stats.cuts += facts.made_edits and not any(edit.new for edit in earlier)
            self.stats.tokens_archived += saved
            self._last[id] = SentFit(session, fitted)
            self._last.move_to_end(id)
            while len(self._last) > RECENT:
                self._last.popitem(last=False)

    def conversations(self) -> dict[str, SentFit]:
        """The last request of each conversation, the one sent last at the end."""
        with self._lock:
            return dict(self._last)
