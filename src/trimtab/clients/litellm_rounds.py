"""The recall tool inside LiteLLM's server: its calls are answered between an answer and the client.

LiteLLM hands over an answer, or its stream, before the client has anything of it.  Later rounds are
sent with LiteLLM's own functions, by the deployment that answered the first one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import uuid4

from trimtab.clients.answer_rounds import RefusedLater, shown
from trimtab.clients.effects import ASYNC, Chunk, Effects, Stream, chunks_async, next_chunk
from trimtab.clients.guard import Guard, Started
from trimtab.clients.litellm_bodies import CallKind, as_dict, with_body
from trimtab.clients.retry_loop import Reply, attempts
from trimtab.formats.engine.answers import AnswerError
from trimtab.formats.engine.stream_events import ServerSentEventReader
from trimtab.retry.flow import Accepted, Refused
from trimtab.retry.refusals import exceptions
from trimtab.retry.refusals.response_errors import prompt_tokens
from trimtab.rounds import RecallRounds
from trimtab.rounds.answer_steps import steps

Call = Callable[..., Any]
OWN = "trimtab-"
"""The ids of calls that are later rounds begin with it: the request in them is fitted already."""


class LiteLLMRounds:
    """The rounds of one request.  ``arguments``: of LiteLLM's function ``call``, as it gave them
    for the first round."""

    def __init__(
        self, guard: Guard, started: Started, rounds: RecallRounds, kind: CallKind,
        arguments: Mapping[str, Any], call: Call,
    ) -> None:  # fmt: skip
        self._guard, self._rounds, self._kind, self._call = guard, rounds, kind, call
        self._arguments, self._target = arguments, started.target
        self._more: Stream
        self._first: Any = None
        self._items = dict[bytes, Any]()
        """The newest item of the stream, by the bytes it was read as."""
        self._error: BaseException | None = None

    def whole(self, answer: Any) -> Effects[Any]:
        """The answer for the client; the very same object if the model has called no tool of ours.
        Raises the refusal of a later round."""
        self._more, self._first = _as_one(answer), answer
        data, stream = b"", shown(steps(self._rounds, None), self._read, self._next_round)
        try:
            while (piece := (yield from next_chunk(stream))) is not None:
                data = piece
        except RefusedLater:
            if self._error is not None:
                raise self._error from None
            return answer
        return answer if data == _dumped(answer) else _like(answer, json.loads(data))

    async def streamed(self, answer: Any) -> Any:
        """The items of the stream for the client, one by one."""
        self._more = self._events(answer)
        run = steps(self._rounds, ServerSentEventReader)
        async for data in chunks_async(shown(run, self._read, self._next_round, lambda: True)):
            for item in self._items_of(data):
                yield item

    def _read(self) -> Effects[bytes | None]:
        data: bytes | None = yield from next_chunk(self._more)
        return data

    def _events(self, answer: Any) -> Stream:
        """The bytes of a stream, item by item."""
        more = ASYNC.reader(answer)
        while (item := (yield more)) is not None:
            data = item.encode() if isinstance(item, str) else item
            if not isinstance(data, bytes):
                data = b"data: %s\n\n" % _dumped(item)
                self._first = item
            self._items = {data: item}
            yield Chunk(data)

    def _items_of(self, data: bytes) -> Iterable[Any]:
        """What LiteLLM is given for bytes: the item itself where they were not changed."""
        if data in self._items:
            return [self._items[data]]
        if self._first is None:  # its stream is bytes
            return [data] if data else []
        return self._items_like(data)

    def _items_like(self, data: bytes) -> Iterator[Any]:
        for event in ServerSentEventReader().feed(data):
            with suppress(ValueError):  # the end, which LiteLLM writes itself
                tree = json.loads(event.data)
                chat = self._kind.format == "openai-chat"
                yield _like(self._first, tree) if chat else event.raw

    def _next_round(self, body: bytes) -> Effects[AnswerError | None]:
        """Send the next round, smaller where it is refused as too long; its refusal if it stays."""
        flow = self._guard.round_flow(json.loads(body), self._target)
        (answer, self._error), _ = yield from attempts(flow, self._attempt)
        if self._error is not None:
            status, error, _ = exceptions.error_parts(self._error)
            return AnswerError.of(status or 500, error)
        self._more = self._events(answer) if self._target.streams else _as_one(answer)
        return None

    def _attempt(self, body: Any) -> Effects[tuple[Reply, Any]]:
        arguments = {**self._arguments, "litellm_call_id": f"{OWN}{uuid4()}"}
        arguments.pop("litellm_logging_obj", None)  # LiteLLM makes one for each call
        answer, error = yield partial(self._sent, with_body(arguments, body, self._kind))
        if error is not None:
            return Refused(*exceptions.error_parts(error)), (None, error)
        prompt = None if self._target.streams else prompt_tokens(as_dict(answer))
        return Accepted(prompt, final=False), (answer, None)

    async def _sent(self, arguments: dict[str, Any]) -> tuple[Any, BaseException | None]:
        """The answer, or the refusal: what raises within a ``Stream`` would end it."""
        try:
            return await self._call(**arguments), None
        except Exception as error:
            return None, error


def _as_one(answer: Any) -> Stream:
    yield Chunk(_dumped(answer))


def _dumped(answer: Any) -> bytes:
    if hasattr(answer, "model_dump_json"):
        text: str = answer.model_dump_json(exclude_none=True, exclude_unset=True)
        return text.encode()
    return json.dumps(answer, default=str).encode()


def _like(answer: Any, tree: Any) -> Any:
    """Another answer, or part of a stream, of the same class and with the same hidden facts."""
    if isinstance(answer, dict):
        return tree
    made = type(answer)(**tree)
    return answer.model_copy(update=dict(made)) if hasattr(answer, "model_copy") else made
