"""Exchanges that the client never saw, put back where they stood in each later request.

Knows how a turn of the model is recognised when the client sends it back: by what it said, its
calls, and what came before.  Does not know formats (``shapes`` does) nor where it is kept.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol

from trimtab.proxy.recall.shapes import SHAPES, history, runs

RESPONSES = "responses"
"""In place of a conversation: responses that the provider holds are found by their id."""
MOST = 2_000
"""Exchanges in memory."""


@dataclass(frozen=True)
class Hidden:
    """What really happened in place of a turn that the client knows: ``real`` messages, and
    ``results`` that stand at the front of the message behind it."""

    real: list[Any]
    results: list[Any]


class Facts(Protocol):
    """Where exchanges outlast the process."""

    def read(self, conversation: str) -> Mapping[str, Any]:
        """All of a conversation, by key."""
        ...

    def one(self, conversation: str, key: str) -> Any:
        """One of them; None where there is none."""
        ...

    def keep(self, conversation: str, key: str, value: Any) -> None:
        """One more."""
        ...


class Memory:
    """Exchanges by conversation and turn."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], Hidden] = OrderedDict()
        self._read: OrderedDict[str, bool] = OrderedDict()

    def put(self, conversation: str, key: str, hidden: Hidden, facts: Facts | None) -> None:
        """Keep one."""
        self._known[conversation, key] = hidden
        while len(self._known) > MOST:
            self._known.popitem(last=False)
        if facts is not None:
            facts.keep(conversation, key, {"real": hidden.real, "results": hidden.results})

    def follow(self, first: str, last: str, results: list[Any], facts: Facts | None) -> None:
        """A response that the client knows as ``first`` went on to be ``last``; ``results`` of
        its recalls have not been given yet."""
        self.put(RESPONSES, first, Hidden([last], results), facts)

    def followed(self, body: Any, facts: Facts | None) -> Any:
        """The request with the response that really came last, where the provider holds the
        history; the same object where there is nothing to do."""
        before = body.get("previous_response_id")
        if not isinstance(before, str):
            return body
        hidden = self._known.get((RESPONSES, before))
        if hidden is None and facts is not None and (row := facts.one(RESPONSES, before)):
            hidden = Hidden(row["real"], row["results"])
        if hidden is None:
            return body
        given = [*hidden.results, *history("openai-responses", body)]
        return {**body, "previous_response_id": hidden.real[0], "input": given}

    def restored(self, format: str, conversation: str, body: Any, facts: Facts | None) -> Any:
        """The request with every exchange of this conversation in its place; the same object
        where there is none."""
        if facts is not None:
            for key, row in facts.read(conversation).items():
                self._known.setdefault((conversation, key), Hidden(row["real"], row["results"]))
        messages, shape = history(format, body), SHAPES[format]
        found: list[Any] = []
        done, waiting = 0, list[Any]()
        for first, end in runs(format, messages):
            key = turn_key(format, messages, first, end)
            hidden = self._known.get((conversation, key))
            if hidden is None:
                continue
            found += [*_fronted(messages[done:first], waiting, shape.grouped), *hidden.real]
            done, waiting = end, hidden.results
        if not done:
            return body
        found += _fronted(messages[done:], waiting, shape.grouped)
        return {**body, shape.key: found}


def _fronted(messages: list[Any], results: list[Any], grouped: str) -> list[Any]:
    """Messages whose first has these results at its front."""
    if not results:
        return messages
    if not messages:
        return [{"role": "user", grouped: results}]
    first = messages[0]
    content = first.get(grouped)
    content = content if isinstance(content, list) else [{"type": "text", "text": content}]
    return [{**first, grouped: [*results, *content]}, *messages[1:]]


def turn_key(format: str, messages: list[Any], first: int, end: int) -> str:
    """A name for a turn of the model: what it said and called, and what stands before it."""
    said = SHAPES[format].said
    words = [text for message in messages[first:end] for text in said(message) if text]
    before = [_plain(messages[first - 1])] if first else []
    data = json.dumps([words, before]).encode()
    return blake2b(data, digest_size=12).hexdigest()


_VOLATILE = ("cache_control", "cachePoint", "id", "status", "annotations", "logprobs", "parsed")


def _plain(value: Any) -> Any:
    """A message without what clients change: breakpoints, ids, a list of one text for a text."""
    if isinstance(value, dict):
        kept = {k: _plain(v) for k, v in value.items() if k not in _VOLATILE}
        return {k: v for k, v in kept.items() if v not in (None, {}, [])}
    if isinstance(value, list):
        rows = [row for row in map(_plain, value) if row]
        if len(rows) == 1 and isinstance(rows[0], dict) and set(rows[0]) <= {"type", "text"}:
            return rows[0].get("text")
        return rows
    return value
