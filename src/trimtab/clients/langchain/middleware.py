"""TrimtabMiddleware: a LangChain agent whose requests always fit and are always legal.

Before the model it shrinks messages in the agent's state; around the model it fits what is sent.
``model_call`` retries refusals.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Self, Unpack

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
)
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.runtime import Runtime
from langgraph.types import Command

from trimtab.clients.effects import Effects, InThread, run, run_async
from trimtab.clients.langchain.adapter import MessageAdapter
from trimtab.clients.langchain.earlier_edits import EarlierEdits
from trimtab.clients.langchain.model_call import ModelCall
from trimtab.clients.langchain.recall import note_tool, recall_tool
from trimtab.clients.langchain.request_head import RequestHead
from trimtab.clients.langchain.session_cache import (
    AgentKeywords,
    ConversationSession,
    SessionCache,
    TrimtabState,
    session_keywords,
)
from trimtab.clients.langchain.state_updates import replaced
from trimtab.clients.sent_fits import SentFits
from trimtab.clients.wrapped_clients import of, register
from trimtab.errors import CannotFit, InvalidSetting
from trimtab.planning.presets import PresetName
from trimtab.reducers.articles.article import ArticleRule
from trimtab.report import Report, ReportEdit
from trimtab.request.fitted import Fitted, facts_of
from trimtab.retry.guesses import RESULT_CHARS, result_chars
from trimtab.retry.learned_limits import LearnedLimits
from trimtab.session import learned_limits
from trimtab.settings import Settings, with_keywords
from trimtab.telemetry import cause, logger

Answer = ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]
Handler = Callable[[ModelRequest[Any]], ModelResponse[Any]]
AsyncHandler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


class MiddlewareKeywords(AgentKeywords, total=False):
    """The keywords of ``TrimtabMiddleware``."""

    persist: bool
    retry_result_chars: int
    learned: LearnedLimits | None
    notes: bool


_OURS = MiddlewareKeywords.__annotations__.keys() - AgentKeywords.__annotations__.keys()


class TrimtabMiddleware(AgentMiddleware[TrimtabState, Any, Any]):
    """Put it first in ``middleware=[…]``, before SummarizationMiddleware.

    ``window``: the model's window in tokens; None: that of the model's profile.  ``persist``:
    whether results and calls are shrunk in the agent's state too (same message ids; the journal in
    the state keeps the originals), or only in what is sent.  ``learned``: limits learned from
    refusals, to share them; ``retry_result_chars``: see ``trimtab.retry.flow``.  All others are
    those of ``trimtab.Session``, and the settings ``summarizer``, ``protected_tools``, ``pins`` and
    ``on_event`` by their own names (any other setting in ``settings=``).  The default ``preset`` is
    "in-place" with ``persist``, else "balanced"; with ``store`` the journal is kept there, not in
    the state.  ``recall=True`` gives the agent a tool with which the model looks up what was left
    out, ``notes=True`` one with which it keeps its own texts.
    """

    state_schema = TrimtabState

    def __init__(
        self,
        *,
        persist: bool = True,
        retry_result_chars: int = RESULT_CHARS,
        learned: LearnedLimits | None = None,
        notes: bool = False,
        **keywords: Unpack[AgentKeywords],
    ) -> None:
        super().__init__()
        self._persist, self._earlier = persist, EarlierEdits()
        self._fits = SentFits(type(self).__name__)
        self.stats = self._fits.stats
        """Counters over all model calls so far."""
        register(self, self._fits)
        preset: PresetName = "in-place" if persist else "balanced"
        ours = session_keywords(type(self).__name__, preset, keywords, _OURS)
        self._sessions = SessionCache(ours, self._fits, "trimtab.of(middleware)")
        self._own_window = self._sessions.settings.window
        shared = self._sessions.shared
        known = LearnedLimits() if shared is None else learned_limits(shared)
        self._flow = {
            "learned": known if learned is None else learned,
            "retry_result_chars": result_chars(retry_result_chars),
            "on_event": self._sessions.settings.on_event,
            "stats": self.stats,
        }
        recall = self._sessions.settings.recall
        self.tools = [recall_tool(self._sessions)] * recall + [note_tool()] * notes
        self._head: RequestHead | None = None
        """The head of the agent's newest call, kept because ``before_model`` is not given it."""

    @classmethod
    def just_in_time(
        cls,
        *,
        threshold: float = 0.85,
        article_ratio: float = 0.30,
        **keywords: Unpack[MiddlewareKeywords],
    ) -> Self:
        """Shorten articles in tool results, the least relevant first, once the conversation
        passes ``threshold`` of the window, until it is at ``target`` (0.80); each keeps
        ``article_ratio`` of its tokens (with ``summarizer=`` they are summarized)."""
        rule = ArticleRule(order="position", shares=(article_ratio,), newest_first=True)
        ours = Settings(trigger=threshold, target=0.80, articles=rule, preset="balanced")
        keywords["settings"] = with_keywords(ours, {"settings": keywords.get("settings")})
        return cls(**keywords)

    @property
    def report(self) -> Report | None:
        """What was done to the last request and why; None before the first.  ``trimtab.of`` gives
        all else that is known: look-ups, undo, pins, other conversations."""
        return of(self).report

    def history(self) -> list[ReportEdit]:
        """Every edit of the conversation that was sent last, oldest first.  Raises StoreError."""
        return of(self).history()

    def recall(self, state: Mapping[str, Any], handle: str) -> str:
        """The original behind a handle, from the agent's state, in any process.  Raises
        UnknownHandle."""
        return self._sessions.of_state(state).session.recall(handle)

    # --- before the model: the agent's state --------------------------------------------------

    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The update that shrinks messages in the state; None if there is none."""
        messages = state["messages"]
        conversation = self._sessions.of_state(state)
        self._earlier.look_in_state(messages, conversation.sent)
        conversation.shortened = None
        if not self._persist:
            return None
        head = self._head or RequestHead.from_history(messages)
        if self._own_window is None and head.window is None:
            return None  # the window is known once the first call names the model
        try:
            adapter, fitted = self._fitted(conversation, head, messages)
            changes = replaced(messages, adapter.back(fitted.request))
        except CannotFit:
            return None  # wrap_model_call logs it, knowing the whole request
        except InvalidSetting:
            raise
        except Exception as error:
            failed(error)
            return None
        if changes or facts_of(fitted).made_edits:  # steps taken out stay in the state
            conversation.shortened = fitted.report
        if not changes:
            return None
        return {"messages": changes, **conversation.update(state)}

    async def abefore_model(
        self, state: AgentState[Any], runtime: Runtime[Any]
    ) -> dict[str, Any] | None:
        """``before_model`` in a thread, as counting and a summarizer take a while."""
        return await asyncio.to_thread(self.before_model, state, runtime)

    # --- around the model: what is sent -------------------------------------------------------

    def wrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> Answer:
        """Send the fitted request and retry refusals; new journal entries go into the state with
        the answer."""
        return run(self._called(request, handler))

    async def awrap_model_call(self, request: ModelRequest[Any], handler: AsyncHandler) -> Answer:
        """``wrap_model_call`` for async agents; fitting runs in a thread."""
        return await run_async(self._called(request, handler))

    def _called(
        self, request: ModelRequest[Any], handler: Handler | AsyncHandler
    ) -> Effects[Answer]:
        conversation, model_call = yield InThread(partial(self._start_call, request))
        if model_call is None:
            answer: Answer = yield partial(handler, request)
            return answer
        while True:
            try:
                answer = yield partial(handler, model_call.ready)
            except Exception as error:
                if not (yield InThread(partial(model_call.retry, error))):
                    raise
            else:
                return self._answered(conversation, model_call, request, answer)

    def _start_call(
        self, request: ModelRequest[Any]
    ) -> tuple[ConversationSession, ModelCall | None]:
        self._earlier.look_in_request(request.messages, request.state.get("messages") or ())
        conversation = self._sessions.of_state(request.state)
        try:
            self._head = head = RequestHead.of(request)
            window = head.window if self._own_window is None else self._own_window
            return conversation, ModelCall(request, head, conversation, window, self._flow)
        except Exception as error:
            failed(error)
            return conversation, None

    def _fitted(
        self, conversation: ConversationSession, head: RequestHead, messages: Sequence[BaseMessage]
    ) -> tuple[MessageAdapter, Fitted]:
        adapter = head.adapter(messages)
        window = head.window if self._own_window is None else self._own_window
        body = conversation.with_originals(adapter)
        return adapter, conversation.fit(body, format=adapter.format, window=window)

    def _answered(
        self,
        conversation: ConversationSession,
        model_call: ModelCall,
        request: ModelRequest[Any],
        answer: Any,
    ) -> Answer:
        """The answer, with the update of our part of the state if there is one."""
        conversation.sent = frozenset(message.id for message in model_call.ready.messages)
        try:
            model_call.accept(answer)
            update = conversation.update(request.state)
        except Exception as error:
            failed(error)
            return answer  # type: ignore[no-any-return]
        if not update:
            return answer  # type: ignore[no-any-return]
        if isinstance(answer, AIMessage):
            answer = ModelResponse(result=[answer])
        return ExtendedModelResponse(model_response=answer, command=Command(update=update))


def failed(error: Exception) -> None:
    """Log an error of ours; it never breaks the agent's turn."""
    logger().warning("the conversation is sent as it is: %s", cause(error))
