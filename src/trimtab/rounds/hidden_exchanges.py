"""Exchanges hidden from the client (recall calls and results), put back into each later request.

When the client sends a turn of the model back, it is recognised by its text, its calls and the
message before it.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from typing import Any

from trimtab.formats import FORMATS, Format
from trimtab.rounds.request_layouts import history, runs, texts_and_calls
from trimtab.rounds.stored_exchanges import StoredExchanges
from trimtab.stores.base import RESPONSES
from trimtab.telemetry import logger

MAX = 2_000
"""Exchanges in memory."""
MAX_BARE = 20_000
"""Turns of which it is known that nothing is hidden."""
SINGLE_READS = 4
"""Turns that are looked up one by one; where more are unknown, all of a conversation are read."""


@dataclass(frozen=True)
class HiddenExchange:
    """A turn of which the client saw only a part: its ``real`` messages, and ``results`` that
    belong at the front of the message after it.

    ``at``: the number of messages that the client had sent before it, 0: unknown; ``before``: a
    digest of the last of them.
    """

    real: list[Any]
    results: list[Any]
    at: int = 0
    before: str = ""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> HiddenExchange:
        """One from a store."""
        return cls(row["real"], row["results"], row.get("at", 0), row.get("before", ""))


class ExchangeMemory:
    """All exchanges in memory; each belongs to one tenant at one upstream."""

    def __init__(self) -> None:
        self.exchanges: OrderedDict[tuple[str, str, str], HiddenExchange] = OrderedDict()
        self._bare: OrderedDict[tuple[str, str, str], None] = OrderedDict()

    def of(self, upstream: str, tenant: str) -> HiddenExchanges:
        """The exchanges of one tenant at one upstream; it gives no access to any other."""
        return HiddenExchanges(self, f"{upstream}/{tenant}")

    def keep(self, owner: str, conversation: str, key: str, hidden: HiddenExchange) -> None:
        """Add an exchange; the oldest are dropped."""
        self.exchanges[owner, conversation, key] = hidden
        while len(self.exchanges) > MAX:
            self.exchanges.popitem(last=False)

    def forget(self, upstream: str, tenant: str, conversation: str) -> None:
        """Drop what is hidden of a conversation."""
        gone = (f"{upstream}/{tenant}", conversation)
        for key in [key for key in self.exchanges if key[:2] == gone]:
            del self.exchanges[key]

    def knows(self, owner: str, conversation: str, key: str) -> bool:
        """Whether a store need not be asked what is hidden of a turn."""
        return (owner, conversation, key) in self.exchanges or (
            owner, conversation, key,
        ) in self._bare  # fmt: skip

    def keep_bare(self, owner: str, conversation: str, key: str) -> None:
        """Remember that nothing is hidden of a turn.  That never changes: what is hidden is stored
        before the client has the end of the answer."""
        self._bare[owner, conversation, key] = None
        while len(self._bare) > MAX_BARE:
            self._bare.popitem(last=False)


class HiddenExchanges:
    """Exchanges of one owner, by conversation and turn.

    They are kept by owner since ids and texts are not secret: another user may send the same.
    """

    def __init__(self, memory: ExchangeMemory, owner: str) -> None:
        self._memory, self._owner = memory, owner

    def _get(self, conversation: str, key: str) -> HiddenExchange | None:
        return self._memory.exchanges.get((self._owner, conversation, key))

    def put(
        self, conversation: str, key: str, hidden: HiddenExchange, store: StoredExchanges | None
    ) -> None:
        """Keep one."""
        self._memory.keep(self._owner, conversation, key, hidden)
        if store is not None:
            store.keep(conversation, key, asdict(hidden))

    def follow(
        self, conversation: str, first: str, last: str, results: list[Any],
        store: StoredExchanges | None,
    ) -> None:  # fmt: skip
        """Record that the response the client knows as ``first`` was continued to ``last``, whose
        recalls' ``results`` have not been sent yet."""
        hidden = HiddenExchange([last], results)
        self._memory.keep(self._owner, RESPONSES, first, hidden)
        if store is not None:  # it is found by the response, and deleted with its conversation
            store.keep(RESPONSES, first, {**asdict(hidden), "conversation": conversation})

    def followed(self, body: Any, store: StoredExchanges | None) -> Any:
        """The request, naming the response that really came last, if the provider stores the
        history; the same object if nothing has to change."""
        before = body.get("previous_response_id")
        if not isinstance(before, str):
            return body
        hidden = self._get(RESPONSES, before)
        if hidden is None and store is not None and (row := store.exchange(RESPONSES, before)):
            hidden = HiddenExchange.of(row)
        if hidden is None:
            return body
        items = [*hidden.results, *history("openai-responses", body)]
        return {**body, "previous_response_id": hidden.real[0], "input": items}

    def restored(
        self, format: str, conversation: str, body: Any, store: StoredExchanges | None
    ) -> Any:
        """The request with every exchange of this conversation in its place; the same object if
        there is none."""
        messages, kind = history(format, body), FORMATS[format]
        turns = [
            (turn_key(format, messages, first, end), first, end)
            for first, end in runs(format, messages)
        ]
        if store is not None:
            self._read(conversation, [key for key, _, _ in turns], store)
        given_back: list[Any] = []
        done, waiting, found = 0, list[Any](), set[str]()
        for key, first, end in turns:
            hidden = self._get(conversation, key)
            if hidden is None:
                continue
            found.add(key)
            given_back += [*_fronted(messages[done:first], waiting, kind), *hidden.real]
            done, waiting = end, hidden.results
        self._tell_lost(conversation, messages, found)
        if not done:
            return body
        given_back += _fronted(messages[done:], waiting, kind)
        return {**body, kind.table.messages: given_back}

    def _read(self, conversation: str, keys: list[str], store: StoredExchanges) -> None:
        """Have in memory what a store has of these turns; each is asked for once."""
        owner, memory = self._owner, self._memory
        unknown = [key for key in keys if not memory.knows(owner, conversation, key)]
        if len(unknown) > SINGLE_READS:
            rows = store.read(conversation)
        else:
            rows = {key: store.exchange(conversation, key) for key in unknown}
        for key, row in rows.items():
            if row and (owner, conversation, key) not in memory.exchanges:
                memory.keep(owner, conversation, key, HiddenExchange.of(row))
        for key in unknown if store.answers else ():
            if not rows.get(key):
                memory.keep_bare(owner, conversation, key)

    def _tell_lost(self, conversation: str, messages: list[Any], found: set[str]) -> None:
        """Log, once for each, what belongs to an answer that the client has changed or left out:
        the message before it is at its place, and another one follows."""
        for owner, talk, key in list(self._memory.exchanges):
            if (owner, talk) != (self._owner, conversation) or key in found:
                continue
            hidden = self._get(talk, key)
            if hidden is None or not 0 < hidden.at < len(messages):
                continue
            if _digest(_plain(messages[hidden.at - 1])) == hidden.before:
                self._memory.exchanges[owner, talk, key] = replace(hidden, at=0)
                logger().warning(
                    "what the model recalled is not put back: the client has changed or left out "
                    "the answer in which it did"
                )


def _fronted(messages: list[Any], results: list[Any], kind: Format) -> list[Any]:
    """The messages with these results at the front of the first."""
    if not results:
        return messages
    if not messages:
        return [kind.results_message(results)]
    first = messages[0]
    content = first.get(kind.content_key)
    content = content if isinstance(content, list) else [kind.text_part(content)]
    return [{**first, kind.content_key: [*results, *content]}, *messages[1:]]


def turn_key(format: str, messages: list[Any], first: int, end: int) -> str:
    """The key of a model turn: a digest of its text, its calls and the message before it."""
    words = [
        text for message in messages[first:end] for text in texts_and_calls(format, message) if text
    ]
    before = [_plain(messages[first - 1])] if first else []
    return _digest([words, before])


def hidden_exchange(
    format: str, client_messages: list[Any], visible: list[Any], real: list[Any], results: list[Any]
) -> tuple[str, HiddenExchange]:
    """(key, exchange) of a turn: the messages of the client, what it got as ``visible``,
    what that was in ``real``, and ``results`` that are still to be sent."""
    messages, at = [*client_messages, *visible], len(client_messages)
    before = _digest(_plain(client_messages[-1])) if client_messages else ""
    key = turn_key(format, messages, at, len(messages))
    return key, HiddenExchange(real, results, at, before)


def _digest(value: Any) -> str:
    return blake2b(json.dumps(value).encode(), digest_size=12).hexdigest()


_VOLATILE = ("cache_control", "cachePoint", "id", "status", "annotations", "logprobs", "parsed")


def _plain(value: Any) -> Any:
    """A message without what clients change: cache breakpoints, ids, a text as a list of one
    text."""
    if isinstance(value, dict):
        fields = {k: _plain(v) for k, v in value.items() if k not in _VOLATILE}
        return {k: v for k, v in fields.items() if v not in (None, {}, [])}
    if isinstance(value, list):
        rows = [row for row in map(_plain, value) if row]
        if len(rows) == 1 and isinstance(rows[0], dict) and set(rows[0]) <= {"type", "text"}:
            return rows[0].get("text")
        return rows
    return value
