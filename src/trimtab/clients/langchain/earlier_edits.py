"""Middlewares before ours that clear or summarize: what they take, trimtab cannot give back.

A middleware does not see the others of its agent, so they are known by what they leave in messages.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence, Set

from langchain_core.messages import BaseMessage

_CLEARS = (
    "ContextEditingMiddleware is before TrimtabMiddleware: it has cleared tool results that "
    "trimtab would have shortened and could give back; remove it from middleware=[…]"
)
_SUMMARIZES = (
    "SummarizationMiddleware is before TrimtabMiddleware: it has summarized what trimtab would "
    "have made fit; remove it, or put TrimtabMiddleware first"
)
_DEEPAGENTS_SUMMARIZES = (
    "SummarizationMiddleware of deepagents is before TrimtabMiddleware: it has summarized what "
    "trimtab would have made fit; exclude it: register_harness_profile(MODEL, "
    'HarnessProfile(excluded_middleware={"SummarizationMiddleware"}))'
)


class EarlierEdits:
    """Warns once of each middleware that edits before ours."""

    def __init__(self) -> None:
        self._named = set[str]()

    def look_in_state(self, messages: Sequence[BaseMessage], sent: Set[str | None]) -> None:
        """Look before the model: ``sent`` are the ids of our last call.  A summary that was not in
        it, though others were, was made before us; one made behind us was in it."""
        is_new = bool(messages) and _is_summary(messages[0]) and messages[0].id not in sent
        if is_new and any(message.id in sent for message in messages):
            self._warn(_SUMMARIZES)

    def look_in_request(
        self, messages: Sequence[BaseMessage], state: Sequence[BaseMessage]
    ) -> None:
        """Look at what a call is given; what is not in the state was made around the model."""
        if any("context_editing" in message.response_metadata for message in messages):
            self._warn(_CLEARS)
        kept = {message.id for message in state}
        if any(_is_summary(message) and message.id not in kept for message in messages):
            self._warn(_DEEPAGENTS_SUMMARIZES)

    def _warn(self, text: str) -> None:
        if text not in self._named:
            self._named.add(text)
            warnings.warn(text, stacklevel=4)


def _is_summary(message: BaseMessage) -> bool:
    return message.additional_kwargs.get("lc_source") == "summarization"
