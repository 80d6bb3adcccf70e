"""Compactions that a session requested from the provider: applied to requests, kept with their
originals, undone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.formats.body import RequestBody
from trimtab.report import ReportEdit
from trimtab.request.pipeline import FitResult
from trimtab.sessions import provider_compactions
from trimtab.sessions.conversation import Conversation
from trimtab.sessions.conversation_store import ConversationStore
from trimtab.sessions.provider_compactions import Compacted, CompactionOffer

FACT = "compactions/"


class Compactions:
    """The compactions of all conversations of a session; ``store``: None if it has none."""

    def __init__(self, store: ConversationStore | None) -> None:
        self._store = store

    def known(self, conversation: Conversation) -> tuple[Compacted, ...]:
        """The compactions of a conversation, oldest first."""
        if conversation.compactions is None:
            rows = self._store.fact(FACT + conversation.id) if self._store is not None else None
            conversation.compactions = tuple(map(_read, rows if isinstance(rows, list) else ()))
        return conversation.compactions

    def applied(
        self, conversation: Conversation, body: RequestBody
    ) -> tuple[RequestBody, Compacted | None, ReportEdit | None]:
        """The request with the newest compaction applied, that compaction, and its report row."""
        result = provider_compactions.applied(self.known(conversation), body)
        if result is None:
            return body, None, None
        request, compacted = result
        new, conversation.fresh_compaction = conversation.fresh_compaction == compacted.handle, ""
        return request, compacted, compacted.row(new)

    def offer(
        self,
        conversation: Conversation,
        body: RequestBody,
        compacted: Compacted | None,
        result: FitResult,
    ) -> tuple[Conversation, CompactionOffer] | None:
        """What to request from the provider instead of the fold in ``result``; None for nothing."""
        if not result.new:
            return None
        offer = provider_compactions.offer(result, body.tree, compacted, conversation.handle_key)
        return None if offer is None else (conversation, offer)

    def take(self, conversation: Conversation, offer: CompactionOffer, answer: Any) -> bool:
        """Keep the provider's compaction, its originals first; returns whether it can be used."""
        compacted = provider_compactions.taken(offer, answer)
        if compacted is None:
            return False
        originals = {compacted.handle: offer.original}
        with conversation:
            if self._store is None:
                conversation.journal = conversation.journal.add((), originals)
            elif self._store.save(conversation, conversation.journal, originals):
                return False
            conversation.fresh_compaction = compacted.handle
            self._set(conversation, (*self.known(conversation), compacted))
        return True

    def undo(self, conversation: Conversation, handle: str) -> bool:
        """Undo a compaction: its messages are sent again.  False if none has this handle."""
        known = self.known(conversation)
        others = [compacted for compacted in known if compacted.handle != handle]
        if len(others) == len(known):
            return False
        self._set(conversation, others)
        return True

    def history(self, conversation: Conversation) -> list[dict[str, Any]]:
        """The compactions as entries of ``Session.history``."""
        rows = [compacted.row(new=False) for compacted in self.known(conversation)]
        return [
            {"op": row.op, "kind": row.kind, "why": row.why, "loss": row.loss,
             "handle": row.handle, "refs": []}
            for row in rows
        ]  # fmt: skip

    def _set(self, conversation: Conversation, compactions: Sequence[Compacted]) -> None:
        conversation.compactions = tuple(compactions)
        if self._store is not None:
            rows = [compacted.as_dict() for compacted in compactions]
            self._store.write_fact_now(FACT + conversation.id, rows)


def _read(row: Any) -> Compacted:
    return Compacted(**{**row, "items": tuple(row["items"])})
