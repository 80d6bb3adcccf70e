"""TrimtabMiddleware: an agent of LangChain whose requests always fit and are always legal.

Knows the hooks of LangChain's agents.  Before the model it makes reductions in the agent's state,
around the model it guards what is really sent.  How a refusal is answered stands in ``sending``.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Self

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

from trimtab.errors import CannotFit, InvalidSetting
from trimtab.fitted import Fitted
from trimtab.flow import Totals
from trimtab.integrations.langchain.head import Head
from trimtab.integrations.langchain.keeping import Kept, Sessions, TrimtabState
from trimtab.integrations.langchain.recall import recall_tool
from trimtab.integrations.langchain.sending import Exchange
from trimtab.integrations.langchain.updates import replaced
from trimtab.integrations.langchain.views import View
from trimtab.model import Limits
from trimtab.sending.learned import LearnedLimits
from trimtab.sending.stored_limits import StoredLimits
from trimtab.strategies.retrieval.article import ArticleRule
from trimtab.telling.log import logger

Answer = ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]
Handler = Callable[[ModelRequest[Any]], ModelResponse[Any]]
AsyncHandler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


class TrimtabMiddleware(AgentMiddleware[TrimtabState, Any, Any]):
    """Put it first in ``middleware=[…]``, before SummarizationMiddleware.

    ``window``: tokens the model takes; None: what the model's profile says.  ``persist``: whether
    results and calls are shrunk in the agent's state too (same message ids; the journal beside
    them keeps the originals), or only in what is sent.  ``learned``: the limits that refusals
    named, to share with others; ``retry_result_chars``: see ``trimtab.flow``.  All other keywords
    are those of ``trimtab.Session``; ``preset`` is "in-place" where ``persist``, and with
    ``store`` the journal stands there and not in the state.  ``recall=True`` gives the agent a
    tool with which the model gets originals back.
    """

    state_schema = TrimtabState

    def __init__(
        self,
        *,
        window: int | None = None,
        persist: bool = True,
        retry_result_chars: int | None = None,
        learned: LearnedLimits | None = None,
        **keywords: Any,
    ) -> None:
        super().__init__()
        self._window, self._persist = window, persist
        self._sessions = Sessions({"preset": "in-place" if persist else "balanced", **keywords})
        facts = None if self._sessions.shared is None else StoredLimits(self._sessions.shared)
        self.totals = Totals()
        """What became of all model calls so far."""
        self._flow = {
            "learned": LearnedLimits(facts) if learned is None else learned,
            "retry_result_chars": retry_result_chars,
            "on_event": keywords.get("on_event"),
            "totals": self.totals,
        }
        self.tools = [recall_tool(self._sessions)] if keywords.get("recall") else []
        self._head: Head | None = None
        """Of the newest call of this agent: what ``before_model`` is not told."""

    @classmethod
    def just_in_time(
        cls, *, window: int | None = None, threshold: float = 0.85, target: float = 0.80,
        article_ratio: float = 0.30, **keywords: Any,
    ) -> Self:  # fmt: skip
        """Articles in tool results are shortened, the least relevant first, once the conversation
        passes ``threshold`` of the window, until it is at ``target``; each keeps
        ``article_ratio`` of its tokens (``summarizer=`` says it in its own words)."""
        rule = ArticleRule(order="position", shares=(article_ratio,), newest_first=True)
        limits = Limits(trigger=threshold, target=target)
        ours = {"limits": limits, "articles": rule, "preset": "balanced"}
        return cls(window=window, **{**ours, **keywords})

    def recall(self, state: Mapping[str, Any], handle: str) -> str:
        """The original behind a handle, from the agent's state.  Raises UnknownHandle."""
        return self._sessions.of_state(state).session.recall(handle)

    # --- before the model: the agent's state --------------------------------------------------

    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The update of the state; None where there is nothing to do."""
        if not self._persist:
            return None
        messages = state["messages"]
        kept = self._sessions.of_state(state)
        self._warn_of_order(messages, kept)
        head = self._head or Head.from_history(messages)
        if self._window is None and head.window is None:
            return None  # the first call tells the model; its guard knows the window
        try:
            view, fitted = self._fitted(kept, head, messages)
            changes = replaced(messages, view.back(fitted.request))
        except CannotFit:
            return None  # the guard says so, where the whole request is known
        except InvalidSetting:
            raise
        except Exception as error:
            failed(error)
            return None
        if not changes:
            return None
        return {"messages": changes, **kept.update(state)}

    async def abefore_model(
        self, state: AgentState[Any], runtime: Runtime[Any]
    ) -> dict[str, Any] | None:
        """The same in a thread: counting a long conversation takes a while, a summarizer longer."""
        return await asyncio.to_thread(self.before_model, state, runtime)

    # --- around the model: what is sent -------------------------------------------------------

    def wrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> Answer:
        """Send what fits, and again where a refusal can be answered; what is new in the journal
        goes into the state with the answer."""
        kept, exchange = self._begun(request)
        if exchange is None:
            return handler(request)
        while True:
            try:
                answer = handler(exchange.ready)
            except Exception as error:
                if not exchange.again(error):
                    raise
            else:
                return self._answered(kept, exchange, request, answer)

    async def awrap_model_call(self, request: ModelRequest[Any], handler: AsyncHandler) -> Answer:
        """The same; what takes a while is done in a thread."""
        kept, exchange = await asyncio.to_thread(self._begun, request)
        if exchange is None:
            return await handler(request)
        while True:
            try:
                answer = await handler(exchange.ready)
            except Exception as error:
                if not await asyncio.to_thread(exchange.again, error):
                    raise
            else:
                return self._answered(kept, exchange, request, answer)

    def _begun(self, request: ModelRequest[Any]) -> tuple[Kept, Exchange | None]:
        kept = self._sessions.of_state(request.state)
        try:
            self._head = head = Head.of(request)
            window = self._window if self._window is not None else head.window
            return kept, Exchange(request, head, kept, window, self._flow)
        except Exception as error:
            failed(error)
            return kept, None

    def _fitted(
        self, kept: Kept, head: Head, messages: Sequence[BaseMessage]
    ) -> tuple[View, Fitted]:
        view = head.view(messages)
        window = self._window if self._window is not None else head.window
        more = {} if window is None else {"window": window}
        return view, kept.fit(view.body, format=view.format, **more)

    def _answered(
        self, kept: Kept, exchange: Exchange, request: ModelRequest[Any], answer: Any
    ) -> Answer:
        """The answer, with what is new in our part of the state."""
        kept.sent = frozenset(message.id for message in exchange.ready.messages)
        try:
            exchange.answered(answer)
            more = kept.update(request.state)
        except Exception as error:
            failed(error)
            return answer  # type: ignore[no-any-return]
        if not more:
            return answer  # type: ignore[no-any-return]
        if isinstance(answer, AIMessage):
            answer = ModelResponse(result=[answer])
        return ExtendedModelResponse(model_response=answer, command=Command(update=more))

    # --- the order of middleware --------------------------------------------------------------

    def _warn_of_order(self, messages: Sequence[BaseMessage], kept: Kept) -> None:
        """A summary that no call of ours has sent was made between that call and us."""
        if not messages or messages[0].additional_kwargs.get("lc_source") != "summarization":
            return
        known = any(message.id in kept.sent for message in messages)
        if known and messages[0].id not in kept.sent:
            warnings.warn(
                "SummarizationMiddleware stands before TrimtabMiddleware: it has summarized what "
                "trimtab would have made fit; put TrimtabMiddleware first",
                stacklevel=2,
            )


def failed(error: Exception) -> None:
    """An error of ours never breaks an agent's turn: it is told, and the turn goes on."""
    logger().warning("the conversation is sent as it is: %s: %s", type(error).__name__, error)
