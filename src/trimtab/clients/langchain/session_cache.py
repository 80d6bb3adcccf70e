"""The sessions of this process, by conversation; journals are in the agent's state or in a store.

After a restart, or in another replica, a session is rebuilt from its journal.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, NotRequired, Unpack, cast

from langchain.agents.middleware.types import AgentState, PrivateStateAttr
from langgraph.config import get_config

from trimtab.clients.langchain.adapter import MessageAdapter
from trimtab.clients.langchain.undone import with_originals
from trimtab.clients.sent_fits import SentFits
from trimtab.events import OnEvent
from trimtab.forking import Lock
from trimtab.journal.archive import ByHandle, Originals
from trimtab.planning.presets import PresetName
from trimtab.report import Report
from trimtab.request.fitted import Fitted, facts_of
from trimtab.session import Session, SessionKeywords
from trimtab.sessions.session_turns import undone_by
from trimtab.settings import FitKeywords, Settings, check_names, with_keywords
from trimtab.summarizers.summarizer import Summarizer
from trimtab.transcript.protected import Pin

RECENT = 64
"""How many conversations keep their sessions in memory; others are rebuilt from their journals."""


class AgentKeywords(SessionKeywords, total=False):
    """The keywords of a session, and the settings that agents often need by their own names."""

    summarizer: Callable[[str], str] | Summarizer | None
    protected_tools: Sequence[str]
    pins: Sequence[Pin]
    on_event: OnEvent | None


_OWN_NAMES = AgentKeywords.__annotations__.keys() - SessionKeywords.__annotations__.keys()


class TrimtabState(AgentState[Any]):
    """The agent's state with our part, ``{"session": …, "journal": …}``, which is neither input
    nor output of the agent."""

    trimtab: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]


class ConversationSession:
    """One conversation's session; ``sent`` are the ids of the messages that went to the model."""

    def __init__(self, key: str, session: Session, stored: bool, fits: SentFits) -> None:
        self.key, self.session, self._stored, self._fits = key, session, stored, fits
        self.sent: frozenset[str | None] = frozenset()
        self.shortened: Report | None = None
        """What was done to the agent's state for the call that comes next."""
        self._fitted: Fitted | None = None

    def fit(self, request: Any, **keywords: Unpack[FitKeywords]) -> Fitted:
        """``session.fit``, naming this conversation if the session is shared."""
        self._fitted = self.session.fit(
            request, conversation=self.key if self._stored else None, **keywords
        )
        facts_of(self._fitted).shortened = self.shortened
        self._fits.add(self.session, self._fitted, self.key)
        return self._fitted

    def with_originals(self, adapter: MessageAdapter) -> Mapping[str, Any]:
        """The body of ``adapter``, with the originals of what was undone in this conversation."""
        if self._fitted is None and self._stored:  # not known yet which one it is in the store
            return adapter.body
        id = "" if self._fitted is None else self._fitted.conversation
        return with_originals(adapter, self.session, id)

    @property
    def originals(self) -> Originals:
        """What the recall tool answers from: this conversation, never another of its session."""
        if not self._stored:
            return self.session
        return self._fitted or ByHandle(self.session)

    def update(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """The update of our part of the state; {} if the state has all of the journal."""
        if self._stored:
            return {}
        journal = self.session.journal
        stored = (state.get("trimtab") or {}).get("journal") or {"edits": (), "mended": ()}
        if all(len(journal[part]) == len(stored[part]) for part in ("edits", "mended")):
            return {}
        return {"trimtab": {"session": self.key, "journal": journal}}

    def covers(self, journal: Mapping[str, Any]) -> bool:
        """Whether the session has every original of this journal."""
        originals: Mapping[str, Any] = self.session.journal["originals"]
        return set(journal["originals"]) <= set(originals)


class SessionCache:
    """The sessions of this process, by the key in the agent's state.

    With a ``store`` all conversations share one session, and the state has nothing of ours.
    ``fits`` gets what is sent; ``view``: how a user has it, for the log.
    """

    def __init__(self, keywords: SessionKeywords, fits: SentFits, view: str) -> None:
        self._keywords, self._fits, self._view = keywords, fits, view
        self._conversation: OrderedDict[str, ConversationSession] = OrderedDict()
        self._lock = Lock()
        first = self._session(keywords.get("journal"))  # a wrong setting is an error here
        self.settings = first.settings
        self.shared = fits.session = first if keywords.get("store") is not None else None

    def of_state(self, state: Mapping[str, Any]) -> ConversationSession:
        ours = state.get("trimtab") or {}
        key = ours.get("session") or thread() or uuid.uuid4().hex
        return self.of_key(key, ours.get("journal"))

    def of_key(self, key: str, journal: Mapping[str, Any] | None = None) -> ConversationSession:
        """The session of ``key``; rebuilt from ``journal`` if it is not here or lacks originals."""
        with self._lock:
            conversation = self._conversation.pop(key, None)
            if conversation is None or (journal is not None and not conversation.covers(journal)):
                conversation = self._new_session(key, journal)
            self._conversation[key] = conversation
            while len(self._conversation) > RECENT:
                self._conversation.popitem(last=False)
            return conversation

    def _session(self, journal: Mapping[str, Any] | None) -> Session:
        keywords = self._keywords.copy()
        keywords["journal"] = journal
        session = Session(**keywords)
        undone_by(session, f'{self._view}.undo("{{}}")')
        return session

    def _new_session(self, key: str, journal: Mapping[str, Any] | None) -> ConversationSession:
        if self.shared is not None:
            return ConversationSession(key, self.shared, stored=True, fits=self._fits)
        return ConversationSession(key, self._session(journal), stored=False, fits=self._fits)


def session_keywords(
    where: str, preset: PresetName, keywords: AgentKeywords, also: Collection[str] = ()
) -> SessionKeywords:
    """``keywords`` as a session takes them, with ``preset`` as the default preset.

    Raises TypeError for an unknown one, in the name of ``where``, which takes ``also``, too.
    """
    check_names(keywords, {*AgentKeywords.__annotations__, *also}, where)
    rest: dict[str, Any] = dict(keywords)
    own = {name: rest.pop(name) for name in _OWN_NAMES & rest.keys()}
    base = with_keywords(Settings(preset=preset), {"settings": rest.get("settings")})
    rest["settings"] = base | Settings(**{k: v for k, v in own.items() if v is not None})
    return cast(SessionKeywords, rest)


def thread() -> str:
    """The thread id of the current run; "" without a checkpointer, or outside of a run."""
    try:
        configurable = get_config().get("configurable") or {}
    except RuntimeError:
        return ""
    return str(configurable.get("thread_id") or "")
