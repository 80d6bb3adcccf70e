"""Compactions that a session requested from the provider: applied to requests, kept with their
originals, undone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.pipeline import FitResult
from trimtab.report import ReportEdit
from trimtab.sessions import provider_compactions
from trimtab.sessions.conversation import Conversation
from trimtab.sessions.conversation_store import ConversationStore
from trimtab.sessions.provider_compactions import Compacted, CompactionOffer
from trimtab.wire.body import RequestBody

FACT = "compactions/"


class Compactions:
    """The compactions of all conversations of a session; ``store``: None if it has none."""

    def __init__(self, store: ConversationStore | None) -> None:
        self._store = store

    def known(self, one: Conversation) -> tuple[Compacted, ...]:
        """The compactions of a conversation, oldest first."""
        if one.compactions is None:
            rows = self._store.fact(FACT + one.id) if self._store is not None else None
            one.compactions = tuple(map(_read, rows if isinstance(rows, list) else ()))
        return one.compactions

    def applied(
        self, one: Conversation, body: RequestBody
    ) -> tuple[RequestBody, Compacted | None, ReportEdit | None]:
        """The request with the newest compaction applied, that compaction, and its report row."""
        result = provider_compactions.applied(self.known(one), body)
        if result is None:
            return body, None, None
        request, compacted = result
        new, one.fresh_compaction = one.fresh_compaction == compacted.handle, ""
        return request, compacted, compacted.row(new)

    def offer(
        self, one: Conversation, given: RequestBody, compacted: Compacted | None, result: FitResult
    ) -> tuple[Conversation, CompactionOffer] | None:
        """What to request from the provider instead of the fold in ``result``; None for nothing."""
        if not result.new:
            return None
        made = provider_compactions.offer(result, given.tree, compacted, one.handle_key)
        return None if made is None else (one, made)

    def take(self, one: Conversation, offer: CompactionOffer, answer: Any) -> bool:
        """Keep the provider's compaction, its originals first; returns whether it can be used."""
        made = provider_compactions.taken(offer, answer)
        if made is None:
            return False
        originals = {made.handle: offer.original}
        with one.lock:
            if self._store is None:
                one.journal = one.journal.add((), originals)
            elif self._store.save(one, one.journal, originals):
                return False
            one.fresh_compaction = made.handle
            self._set(one, (*self.known(one), made))
        return True

    def undo(self, one: Conversation, handle: str) -> bool:
        """Undo a compaction: its messages are sent again.  False if none has this handle."""
        left = tuple(made for made in self.known(one) if made.handle != handle)
        if len(left) == len(self.known(one)):
            return False
        self._set(one, left)
        return True

    def history(self, one: Conversation) -> list[dict[str, Any]]:
        """The compactions as entries of ``Session.history``."""
        rows = [made.row(new=False) for made in self.known(one)]
        return [
            {"op": row.op, "kind": row.kind, "why": row.why, "loss": row.loss,
             "handle": row.handle, "refs": []}
            for row in rows
        ]  # fmt: skip

    def _set(self, one: Conversation, made: Sequence[Compacted]) -> None:
        one.compactions = tuple(made)
        if self._store is not None:
            self._store.write_fact_now(FACT + one.id, [each.as_dict() for each in made])


def _read(row: Any) -> Compacted:
    return Compacted(**{**row, "items": tuple(row["items"])})
