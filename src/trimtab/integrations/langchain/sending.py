"""One model call of an agent: what to send next, and what becomes of a refusal.

Knows how LangChain's errors and answers tell flow what came back.  Does not know sync from async:
the middleware calls the model.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import partial
from typing import Any

from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest
from langchain_core.messages import AIMessage
from langgraph.errors import GraphBubbleUp

from trimtab.fitted import Fitted
from trimtab.flow import Accepted, Fit, Refused, flow
from trimtab.integrations.langchain.head import Head
from trimtab.integrations.langchain.keeping import Kept
from trimtab.integrations.langchain.views import View
from trimtab.refusals.exceptions import parts
from trimtab.sending.learned import key_for


class Exchange:
    """``ready`` is what to send; after a refusal that can be answered, something smaller.

    ``keywords`` are those of ``flow``.
    """

    def __init__(
        self,
        request: ModelRequest[Any],
        head: Head,
        kept: Kept,
        window: int | None,
        keywords: Mapping[str, Any],
    ) -> None:
        self._request, self._kept = request, kept
        self._view = head.view(request.messages)
        known: dict[str, Any] = {"format": self._view.format}
        if window is not None:
            known["window"] = window
        self._run = flow(
            self._view.body, partial(_fit, kept.fit, known),
            key=key_for(head.provider, head.model), undo=kept.undo, **keywords,
        )  # fmt: skip
        self._take(next(self._run))

    def again(self, error: Exception) -> bool:
        """Whether to send ``ready`` once more; else the error is the provider's last word."""
        if isinstance(error, GraphBubbleUp):  # LangGraph's own, for an interrupt
            return False
        try:
            self._take(self._run.send(Refused(*parts(error))))
        except StopIteration:
            return False
        return True

    def answered(self, answer: Any) -> None:
        """Tell what the provider counted."""
        usage = _usage(answer)
        if usage is not None and self._fitted is not None:
            self._kept.session.observe(usage, self._fitted)
        with contextlib.suppress(StopIteration):
            self._run.send(Accepted(None if usage is None else usage.get("input_tokens")))

    def _take(self, send: Any) -> None:
        self._fitted: Fitted | None = send.fitted
        self.ready = with_fitted(self._request, self._view, send.request)


def _fit(fit: Fit, known: Mapping[str, Any], request: Any, **keywords: Any) -> Fitted:
    return fit(request, **{**known, **keywords})


def with_fitted(request: ModelRequest[Any], view: View, fitted: Any) -> ModelRequest[Any]:
    """The request with what was fitted; the very same where nothing changed."""
    if fitted is view.body:
        return request
    system, messages = view.parted(fitted)
    return request.override(messages=list[Any](messages), system_message=system)


def _usage(answer: Any) -> Mapping[str, Any] | None:
    """The usage of the newest message in an answer of the handler."""
    if isinstance(answer, ExtendedModelResponse):
        answer = answer.model_response
    found = [answer] if isinstance(answer, AIMessage) else getattr(answer, "result", ())
    told = (m.usage_metadata for m in reversed(found) if isinstance(m, AIMessage))
    return next((usage for usage in told if usage), None)
