"""Turns the model's answers over several rounds into one answer for the client.

A rewriter takes the answers of one format, whole or event by event.  It leaves out calls of the
recall tool, and holds the end of an answer until it is known whether another round follows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol, Self

from trimtab.formats.engine.stream_events import StreamEvent, parsed, server_sent
from trimtab.sessions.recall_tool import NAME, recall_tool


@dataclass(frozen=True)
class SaidError:
    """A refusal, reduced to what every format can express."""

    status: int
    kind: str
    message: str

    @classmethod
    def of(cls, status: int, error: Any) -> Self:
        """``error``: the body of a refusal, as bytes or parsed."""
        tree = error
        if isinstance(error, (bytes, str)):
            try:
                tree = json.loads(error)
            except (ValueError, RecursionError):
                tree = {"message": error.decode() if isinstance(error, bytes) else error}
        if isinstance(tree, list) and tree:
            tree = tree[0]
        inner = tree.get("error") or tree if isinstance(tree, dict) else {}
        details = inner if isinstance(inner, dict) else {"message": inner}
        kinds = (details.get(key) for key in ("type", "status", "code"))
        usual = "rate_limit_exceeded" if status == 429 else "server_error"
        kind = next((kind for kind in kinds if isinstance(kind, str) and kind), usual)
        return cls(status, kind, str(details.get("message") or f"refused with status {status}"))


class StreamRewriter(Protocol):
    """Rewrites the answers of one format.

    ``recalls``: calls of the recall tool in this round; ``has_client_calls``: whether there are
    calls for the client too; ``real``: this round as messages of the history; ``visible``: what
    the client has received over all rounds, as it will send it back.
    """

    recalls: list[Any]
    has_client_calls: bool
    ours: frozenset[str]
    sums_prompts: bool

    def started_over(self) -> Self:
        """A rewriter that has shown nothing yet, and knows what the rounds before it cost."""
        ...

    def begin(self) -> None:
        """Begin a round."""
        ...

    def event(self, event: StreamEvent) -> bytes:
        """The bytes to pass on for one event."""
        ...

    def take_full_response(self, tree: Any) -> None:
        """Take a round's whole answer."""
        ...

    def real(self) -> list[Any]:
        """This round as messages of the history."""
        ...

    def visible(self) -> list[Any]:
        """What the client has received over all rounds, as messages of the history."""
        ...

    def discard_round_end(self) -> None:
        """Drop the end of this round, as another one follows; its usage is kept."""
        ...

    def end(self) -> bytes:
        """The end of a streamed answer."""
        ...

    def failed(self, failure: SaidError) -> bytes:
        """The event that reports an error within a stream."""
        ...

    def answer(self) -> Any:
        """The whole answer, if it was not streamed."""
        ...


BREAK = "\n\n"
"""Between the texts of two rounds, which the model said as two messages."""


class RewriterBase:
    """Recognises calls of our tools, and where the text of one round runs into the next."""

    def __init__(self, format: str) -> None:
        self._read = recall_tool(format).read
        self.ours = frozenset((NAME,))
        """Names of the tools that we run ourselves."""
        self.sums_prompts = False
        """Whether the prompts of all rounds are one sum, or the last one is told: a client that
        reads from it how full the window is would compact too early."""
        self._ends_open = self._runs_on = False
        self._usage: Any = None

    def started_over(self) -> Self:
        """A rewriter that has shown nothing yet, and knows what the rounds before it cost."""
        made: Any = type(self)
        fresh: Self = made()
        fresh.ours, fresh.sums_prompts, fresh._usage = self.ours, self.sums_prompts, self._usage
        return fresh

    def begin_text(self) -> None:
        """The next text is the first of its round."""
        self._runs_on = self._ends_open

    def break_before(self, text: str) -> str:
        """A blank line where ``text`` would run into the last word of an earlier round, as in
        "I need itdone"; else "".  To be asked for each text that the client gets, in order."""
        if not text:
            return ""
        runs_on = self._runs_on and not text[0].isspace()
        self._runs_on, self._ends_open = False, not text[-1].isspace()
        return BREAK if runs_on else ""

    def added(self, before: Any, usage: Any) -> Any:
        """The usage of the rounds before and of one more."""
        return summed(before, usage) if self.sums_prompts else added(before, usage)

    def is_call(self, call: Any) -> bool:
        """Whether this is a call of one of them."""
        return self._read(call)[1] in self.ours


def loads(event: StreamEvent) -> Any:
    """The JSON object in an event, or None."""
    tree = parsed(event)
    return tree if isinstance(tree, dict) else None


def sse(value: Any, name: str = "", end: bytes = b"\n") -> bytes:
    """One event."""
    return server_sent(dumped(value), name, end)


def dumped(value: Any) -> bytes:
    """Compact JSON."""
    return json.dumps(value, separators=(",", ":")).encode()


def added(first: Any, second: Any) -> Any:
    """Two usages added: the later prompt, the sum of both outputs."""
    if not isinstance(first, dict) or not isinstance(second, dict):
        return second if isinstance(second, dict) else first
    total = {**first, **second}
    for key in _SUMMED:
        if type(first.get(key)) is int and type(second.get(key)) is int:
            total[key] = first[key] + second[key]
    return total


def summed(first: Any, second: Any) -> Any:
    """Two usages added, number by number, as deep as they go; of texts the later one."""
    if isinstance(first, dict) and isinstance(second, dict):
        keys = dict.fromkeys((*first, *second))
        return {key: summed(first.get(key), second.get(key)) for key in keys}
    if isinstance(first, list) and isinstance(second, list):
        return _by_modality([*first, *second])
    numbers = [value for value in (first, second) if type(value) in (int, float)]
    return sum(numbers) if len(numbers) == 2 else first if second is None else second


def _by_modality(rows: list[Any]) -> list[Any]:
    """Gemini's details: one row a modality."""
    by_name = dict[Any, Any]()
    for row in rows:
        name = row.get("modality") if isinstance(row, dict) else None
        by_name[name] = summed(by_name.get(name), row)
    return list(by_name.values())


_SUMMED = ("output_tokens", "completion_tokens", "outputTokens", "candidatesTokenCount",
           "thoughtsTokenCount", "total_output_tokens", "total_thought_tokens")  # fmt: skip
