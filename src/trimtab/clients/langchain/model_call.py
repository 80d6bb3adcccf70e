"""One model call of an agent: the request to send next, and the reaction to a refusal.

The middleware makes the call itself, sync or async.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import partial
from typing import Any

from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest
from langchain_core.messages import AIMessage
from langgraph.errors import GraphBubbleUp

from trimtab.clients.langchain.adapter import MessageAdapter
from trimtab.clients.langchain.request_head import RequestHead
from trimtab.clients.langchain.session_cache import ConversationSession
from trimtab.request.fitted import Fitted
from trimtab.retry.flow import Accepted, Fit, Refused, flow
from trimtab.retry.learned_limits import key_for
from trimtab.retry.refusals.exceptions import error_parts
from trimtab.sessions.edit_history import take_back
from trimtab.settings import FitKeywords


class ModelCall:
    """``ready`` is the request to send; ``retry`` replaces it after a refusal.

    ``keywords`` are those of ``flow``.
    """

    def __init__(
        self,
        request: ModelRequest[Any],
        head: RequestHead,
        conversation: ConversationSession,
        window: int | None,
        keywords: Mapping[str, Any],
    ) -> None:
        self._request, self._conversation = request, conversation
        self._adapter = head.adapter(request.messages)
        fit_keywords: FitKeywords = {"format": self._adapter.format}
        if window is not None:
            fit_keywords["window"] = window
        self._run = flow(
            self._adapter.body, partial(_fit, conversation.fit, fit_keywords),
            key=key_for(head.provider, head.model),
            undo=partial(take_back, conversation.session), **keywords,
        )  # fmt: skip
        self._set_request(next(self._run))

    def retry(self, error: Exception) -> bool:
        """Return whether to send the new ``ready``; if not, ``error`` is final."""
        if isinstance(error, GraphBubbleUp):  # LangGraph raises it to interrupt a run
            return False
        try:
            self._set_request(self._run.send(Refused(*error_parts(error))))
        except StopIteration:
            return False
        return True

    def accept(self, answer: Any) -> None:
        """Pass the provider's usage to the session and end the flow."""
        usage = _usage(answer)
        if usage is not None and self._fitted is not None:
            self._conversation.session.observe(usage, self._fitted)
        with contextlib.suppress(StopIteration):
            self._run.send(Accepted(None if usage is None else usage.get("input_tokens")))

    def _set_request(self, send: Any) -> None:
        self._fitted: Fitted | None = send.fitted
        self.ready = with_fitted(self._request, self._adapter, send.request)


def _fit(fit: Fit, fit_keywords: Mapping[str, Any], request: Any, **keywords: Any) -> Fitted:
    return fit(request, **{**fit_keywords, **keywords})


def with_fitted(
    request: ModelRequest[Any], adapter: MessageAdapter, fitted: Any
) -> ModelRequest[Any]:
    """``request`` with the fitted messages; the very same object if nothing changed."""
    if fitted is adapter.body:
        return request
    system, messages = adapter.parted(fitted)
    return request.override(messages=list[Any](messages), system_message=system)


def _usage(answer: Any) -> Mapping[str, Any] | None:
    """The usage of the newest message in an answer of the handler."""
    if isinstance(answer, ExtendedModelResponse):
        answer = answer.model_response
    messages = [answer] if isinstance(answer, AIMessage) else getattr(answer, "result", ())
    usages = (m.usage_metadata for m in reversed(messages) if isinstance(m, AIMessage))
    return next((usage for usage in usages if usage), None)
