"""Runs the recall tool for the model between a client and its provider; the client never sees the
calls.

This file says when a request gets the tool and how its calls are answered over several rounds.
The files beside it rewrite the answers of one format each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trimtab.jsontext import paths, splicing
from trimtab.rounds import offered_tools
from trimtab.rounds.anthropic import AnthropicRewriter
from trimtab.rounds.bedrock import BedrockRewriter
from trimtab.rounds.gemini import GeminiRewriter
from trimtab.rounds.hidden_exchanges import (
    HiddenExchange,
    HiddenExchanges,
    turn_key,
)
from trimtab.rounds.openai_chat import OpenAIChatRewriter
from trimtab.rounds.openai_responses import OpenAIResponsesRewriter
from trimtab.rounds.request_layouts import (
    LAYOUTS,
    history,
    offers_any,
    texts,
    tools_of,
    tools_path,
    with_turn,
)
from trimtab.rounds.stored_exchanges import StoredExchanges
from trimtab.rounds.stream_rewriter import StreamRewriter, dumped
from trimtab.session import Session
from trimtab.sessions.recall_tool import NAME
from trimtab.telemetry import fault, logger
from trimtab.transcript.client_requests import begins_with_any
from trimtab.wire.body import RequestBody

REWRITERS: Mapping[str, Callable[[], StreamRewriter]] = {
    "openai-chat": OpenAIChatRewriter,
    "openai-responses": OpenAIResponsesRewriter,
    "anthropic": AnthropicRewriter,
    "bedrock": BedrockRewriter,
    "gemini": GeminiRewriter,
}


def rewritable(format: str, *, listed: bool, framed: bool) -> bool:
    """Whether calls of our tools can be removed from answers of this format, streams included.

    ``listed``: a stream is one JSON array; ``framed``: it consists of AWS event-stream frames.
    """
    # Claude's own events in frames of AWS are not written.
    return format in REWRITERS and not listed and framed == (format == "bedrock")


MAX_ROUNDS = 6
"""Model calls for one answer at most; later recalls are not answered."""


class RecallRounds:
    """One request with the recall tool, over all its rounds."""

    def __init__(
        self, format: str, session: Session, memory: HiddenExchanges,
        facts: StoredExchanges | None, *, prune: bool = False, model: str | None = None,
    ) -> None:  # fmt: skip
        self._format, self._conversation = format, ""
        self._session, self._memory, self._facts = session, memory, facts
        self._names, self._model = offered_tools.names(prune), model
        self._body: Any = None
        self._asked: list[Any] = []
        self._real: list[Any] = []
        self.rounds = 1
        self.ready = False
        """Whether the request offers the tool."""
        self.rewriter = REWRITERS[format]()
        self.rewriter.ours = frozenset(self._names)

    def prepared(self, source: RequestBody, conversation: str) -> bytes | None:
        """The request with the recall tool and the hidden exchanges; None if it gets no tool."""
        try:
            return self._prepared(source.text or "", source.tree, conversation)
        except Exception as error:
            fault("recall", error)
            return None

    def _prepared(self, text: str, body: Any, conversation: str) -> bytes | None:
        if not eligible(self._format, body, self._names):
            return None
        self._conversation = conversation
        self._asked = history(self._format, body)
        restored = self._memory.followed(body, self._facts)
        restored = self._memory.restored(self._format, conversation, restored, self._facts)
        path = tools_path(self._format)
        count = len(tools_of(self._format, body))
        insert = [
            paths.Insert((*path, count), offered_tools.definition(self._format, name))
            for name in self._names
        ]
        self._body = paths.apply(restored, insert)
        # If nothing was restored, all other bytes stay as they were.
        same = restored is body
        prepared = splicing.splice(text, insert).encode() if same else dumped(self._body)
        self.ready = True
        return prepared

    def follow(self) -> bytes | None:
        """The next round's request, with the results of this round's recalls; None without a
        round."""
        rewriter = self.rewriter
        real = rewriter.real()
        if not rewriter.recalls or rewriter.has_client_calls or self.rounds >= MAX_ROUNDS:
            return None
        results = self._results(last=self.rounds == MAX_ROUNDS - 1)
        before = len(history(self._format, self._body))
        self._body = with_turn(self._format, self._body, real, results)
        self._real += history(self._format, self._body)[before:]
        self.rounds += 1
        return dumped(self._body)

    def _results(self, *, last: bool = False) -> list[Any]:
        return [
            offered_tools.result(
                self._format, self._session, self._body, call, self._model, last=last
            )
            for call in self.rewriter.recalls
        ]

    def remember(self) -> None:
        """Store what the client did not see of this answer, for its next requests."""
        rewriter = self.rewriter
        real, results = rewriter.real(), list[Any]()
        if rewriter.recalls and not rewriter.has_client_calls:
            real = rewriter.visible()  # recalls without an answer are left out of the history
            logger().warning(
                "a model answered with nothing but recalls %d times, and was given no more: the "
                "client got what else it said, which may be nothing",
                MAX_ROUNDS,
            )
        elif rewriter.recalls:
            results = self._results()
        if not self._real and not results:
            return
        if isinstance(rewriter, OpenAIResponsesRewriter) and self._body.get("store") is not False:
            first, last = rewriter.first_id, rewriter.last_id
            self._memory.follow(first, last, results, self._facts)
        if not LAYOUTS[self._format].grouped:
            real, results = [*real, *results], []
        visible = rewriter.visible()
        messages = [*self._asked, *visible]
        key = turn_key(self._format, messages, len(self._asked), len(messages))
        hidden = HiddenExchange([*self._real, *real], results)
        self._memory.put(self._conversation, key, hidden, self._facts)


def eligible(format: str, body: Any, names: Sequence[str] = (NAME,)) -> bool:
    """Whether a request gets our tools: it offers tools, none of them under these names, and it is
    a turn of a conversation, not an internal request of the client (a title, a summary)."""
    if not isinstance(body, dict) or tools_of(format, body) is None or body.get("n", 1) != 1:
        return False
    return not offers_any(format, body, names) and not _internal(format, body)


def _internal(format: str, body: dict[str, Any]) -> bool:
    """Whether the instructions or the last text begin like those of a client's internal request.

    ``compaction_trigger`` is how Codex asks its provider to compact.
    """
    messages = history(format, body)
    last = messages[-1] if messages and isinstance(messages[-1], dict) else {}
    if last.get("type") == "compaction_trigger":
        return True
    places = (body.get("system"), body.get("instructions"), last.get("content"), last.get("parts"))
    return begins_with_any(text for place in places for text in texts(place, "text"))
