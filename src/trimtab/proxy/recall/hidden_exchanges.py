"""Exchanges that the client never saw, put back into each later request where they stood.

A turn of the model is recognised, when the client sends it back, by what it said, its calls, and
the message before it.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol

from trimtab.proxy.recall.request_layouts import LAYOUTS, history, runs

RESPONSES = "responses"
"""In place of a conversation: responses that the provider holds are found by their id."""
MOST = 2_000
"""Exchanges in memory."""


@dataclass(frozen=True)
class HiddenExchange:
    """What really happened in place of a turn that the client knows: ``real`` messages, and
    ``results`` that stand at the front of the message behind it."""

    real: list[Any]
    results: list[Any]


class ExchangeStore(Protocol):
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


class ExchangeMemory:
    """All exchanges in memory; each belongs to one tenant at one upstream."""

    def __init__(self) -> None:
        self.exchanges: OrderedDict[tuple[str, str, str], HiddenExchange] = OrderedDict()

    def of(self, upstream: str, tenant: str) -> HiddenExchanges:
        """Those of one tenant at one upstream: nobody else's can be reached by it."""
        return HiddenExchanges(self, f"{upstream}/{tenant}")

    def keep(self, owner: str, conversation: str, key: str, hidden: HiddenExchange) -> None:
        """One more; the oldest go."""
        self.exchanges[owner, conversation, key] = hidden
        while len(self.exchanges) > MOST:
            self.exchanges.popitem(last=False)


class HiddenExchanges:
    """Exchanges of one owner, by conversation and turn.

    The provider's ids and a client's words are no secrets: another user may send the same.
    """

    def __init__(self, memory: ExchangeMemory, owner: str) -> None:
        self._memory, self._owner = memory, owner

    def _get(self, conversation: str, key: str) -> HiddenExchange | None:
        return self._memory.exchanges.get((self._owner, conversation, key))

    def put(
        self, conversation: str, key: str, hidden: HiddenExchange, store: ExchangeStore | None
    ) -> None:
        """Keep one."""
        self._memory.keep(self._owner, conversation, key, hidden)
        if store is not None:
            store.keep(conversation, key, {"real": hidden.real, "results": hidden.results})

    def follow(
        self, first: str, last: str, results: list[Any], store: ExchangeStore | None
    ) -> None:
        """A response that the client knows as ``first`` went on to be ``last``; ``results`` of
        its recalls have not been given yet."""
        self.put(RESPONSES, first, HiddenExchange([last], results), store)

    def followed(self, body: Any, store: ExchangeStore | None) -> Any:
        """The request with the response that really came last, where the provider holds the
        history; the same object where there is nothing to do."""
        before = body.get("previous_response_id")
        if not isinstance(before, str):
            return body
        hidden = self._get(RESPONSES, before)
        if hidden is None and store is not None and (row := store.one(RESPONSES, before)):
            hidden = HiddenExchange(row["real"], row["results"])
        if hidden is None:
            return body
        given = [*hidden.results, *history("openai-responses", body)]
        return {**body, "previous_response_id": hidden.real[0], "input": given}

    def restored(
        self, format: str, conversation: str, body: Any, store: ExchangeStore | None
    ) -> Any:
        """The request with every exchange of this conversation in its place; the same object
        where there is none."""
        if store is not None:
            for key, row in store.read(conversation).items():
                if self._get(conversation, key) is None:
                    kept = HiddenExchange(row["real"], row["results"])
                    self._memory.keep(self._owner, conversation, key, kept)
        messages, layout = history(format, body), LAYOUTS[format]
        given_back: list[Any] = []
        done, waiting = 0, list[Any]()
        for first, end in runs(format, messages):
            key = turn_key(format, messages, first, end)
            hidden = self._get(conversation, key)
            if hidden is None:
                continue
            given_back += [*_fronted(messages[done:first], waiting, layout.grouped), *hidden.real]
            done, waiting = end, hidden.results
        if not done:
            return body
        given_back += _fronted(messages[done:], waiting, layout.grouped)
        return {**body, layout.key: given_back}


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
    said = LAYOUTS[format].said
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
