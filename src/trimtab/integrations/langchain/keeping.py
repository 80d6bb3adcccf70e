"""What is kept of a conversation: its session in this process, its journal in the agent's state
or in a store.

Knows which session belongs to which state, so that a restart or another replica goes on from the
journal.  Does not know messages.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware.types import AgentState, PrivateStateAttr
from langgraph.config import get_config

from trimtab.fitted import Fitted
from trimtab.session import Session

RECENT = 64
"""Conversations whose sessions stay in memory; of any other the journal is read again."""


class TrimtabState(AgentState[Any]):
    """The agent's state with ours: ``{"session": …, "journal": …}``, neither in- nor output."""

    trimtab: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]


class Kept:
    """One conversation's session; ``sent`` are the ids of the messages that went to the model."""

    def __init__(self, key: str, session: Session, stored: bool) -> None:
        self.key, self.session, self._stored = key, session, stored
        self.sent: frozenset[str | None] = frozenset()

    def fit(self, request: Any, **keywords: Any) -> Fitted:
        """``session.fit``, of this conversation where the session has many."""
        if self._stored:
            keywords["conversation"] = self.key
        return self.session.fit(request, **keywords)

    def undo(self, fitted: Fitted) -> None:
        """Take back edits that were made on a guess and helped nothing."""
        for edit in fitted.report.edits:
            if edit.new:
                self.session.undo(edit.handle)
                self.session.unpin(edit.handle)

    def update(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """What of ours the agent's state lacks, as an update of it; empty where nothing is new."""
        if self._stored:
            return {}
        journal = self.session.journal
        known = (state.get("trimtab") or {}).get("journal") or {"edits": (), "mended": ()}
        if all(len(journal[part]) == len(known[part]) for part in ("edits", "mended")):
            return {}
        return {"trimtab": {"session": self.key, "journal": journal}}

    def covers(self, journal: Mapping[str, Any]) -> bool:
        """Whether the session knows all that this journal does."""
        own: Mapping[str, Any] = self.session.journal["originals"]
        return set(journal["originals"]) <= set(own)


class Sessions:
    """The sessions of this process, by the key that stands in the agent's state.

    With a ``store`` there is one session for all, and nothing of ours in the state.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = dict(settings)
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._lock = Lock()
        first = Session(**self._settings)  # a wrong setting is an error where it is given
        self.shared = first if settings.get("store") is not None else None

    def of_state(self, state: Mapping[str, Any]) -> Kept:
        """The session of the conversation with this state."""
        ours = state.get("trimtab") or {}
        key = ours.get("session") or thread() or uuid.uuid4().hex
        return self.of_key(key, ours.get("journal"))

    def of_key(self, key: str, journal: Mapping[str, Any] | None = None) -> Kept:
        """The session of this key, made from the journal where it is not known here."""
        with self._lock:
            kept = self._kept.pop(key, None)
            if kept is None or (journal is not None and not kept.covers(journal)):
                kept = self._made(key, journal)
            self._kept[key] = kept
            while len(self._kept) > RECENT:
                self._kept.popitem(last=False)
            return kept

    def _made(self, key: str, journal: Mapping[str, Any] | None) -> Kept:
        if self.shared is not None:
            return Kept(key, self.shared, stored=True)
        return Kept(key, Session(journal=journal, **self._settings), stored=False)


def thread() -> str:
    """The thread of the run this is called in; "" without a checkpointer, or outside of a run."""
    try:
        configurable = get_config().get("configurable") or {}
    except RuntimeError:
        return ""
    return str(configurable.get("thread_id") or "")
