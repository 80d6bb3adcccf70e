"""A recorded conversation, and the model calls in it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

from trimtab.formats import FORMATS, Format
from trimtab.formats.registry import FormatName
from trimtab.lazy import cached_property
from trimtab.pricing.call_usage import CallUsage
from trimtab.settings import Settings
from trimtab.transcript.model import Message


class RecordedTurn(NamedTuple):
    """One model call: the request is ``messages[:sent]``, the answer ``messages[sent:end]``."""

    sent: int
    end: int


@dataclass(frozen=True, eq=False)
class Recording:
    """One recorded conversation, as items of its own format.

    ``source`` names the collection it is reported under, ``task`` the kind of work, if known.
    ``system`` and ``tools`` are native values (None: not recorded), ``params`` the other keys of
    the body.  ``times``: seconds since the epoch, one per message, None if unknown; empty if none
    is known.  ``usages``: one per message: the billed usage of the model call whose answer the
    message belongs to, or None; empty if the log has no usage at all.

    ``agent``: the program that wrote the log; ``session``: the session's id, if compactions by the
    client split it into several recordings ("": the recording's own id); ``carried``: how many
    leading messages the compaction put in place of the earlier history; ``window``: the model's
    window as the client logged it (0: not logged).
    """

    source: str
    id: str
    format: str
    messages: Sequence[Any]
    model: str | None = None
    system: Any = None
    tools: Any = None
    params: Mapping[str, Any] = field(default_factory=dict)
    times: tuple[float | None, ...] = ()
    task: str = ""
    origin: str = ""
    """The file it was read from, for people."""
    usages: tuple[CallUsage | None, ...] = ()
    agent: str = ""
    session: str = ""
    carried: int = 0
    window: int = 0

    @property
    def facts(self) -> Settings:
        """Format and model, for who reads one of its requests: a body need not tell them."""
        facts = Settings(format=cast("FormatName", self.format))
        return facts | Settings(model=self.model) if self.model else facts

    @property
    def reader(self) -> Format:
        """The format of its items."""
        return FORMATS[self.format]

    def body(self, messages: Sequence[Any]) -> dict[str, Any]:
        """A request with these messages and the recorded model, system text and tools."""
        body, format = dict(self.params), self.reader
        if self.model and format.model_key:
            body.setdefault(format.model_key, self.model)
        if self.system is not None and format.system_key:
            body[format.system_key] = self.system
        if self.tools is not None:
            key, *inner = map(str, format.table.tools.path)
            listed = inner and isinstance(self.tools, list)
            body[key] = {inner[0]: self.tools} if listed else self.tools
        body[format.messages_key] = list(messages)
        return body

    def request(self, turn: RecordedTurn) -> dict[str, Any]:
        """The request that this model call answered."""
        return self.body(self.messages[: turn.sent])

    @cached_property
    def views(self) -> tuple[Message, ...]:
        """Every message as blocks and parts."""
        return tuple(self.reader.read_message(message) for message in self.messages)

    @cached_property
    def turns(self) -> tuple[RecordedTurn, ...]:
        """Every model call that has messages before it, in order.

        A turn is a run of the model's items.  If the calls of a run are answered only after the
        next run, both are one turn, because no request was sent in between.
        """
        views, pending = self.views, _answered_later(self.views)
        turns: list[RecordedTurn] = []
        number = 0
        while number < len(views):
            if views[number].role != "assistant":
                number += 1
                continue
            first = number
            while number < len(views) and views[number].role == "assistant":
                number += 1
            if first and not pending[first]:
                turns.append(RecordedTurn(first, number))
            elif turns:
                turns[-1] = RecordedTurn(turns[-1].sent, number)
        return tuple(turns)

    def usage(self, turn: RecordedTurn) -> CallUsage | None:
        """The billed usage of a turn's model call; None if the log does not have it."""
        return next((usage for usage in self.usages[turn.sent : turn.end] if usage), None)

    @property
    def wrote_for_an_hour(self) -> bool:
        """Whether most of what its calls wrote to the cache was to be kept for an hour."""
        usages = [usage for usage in self.usages if usage is not None]
        return sum(u.written_1h for u in usages) > sum(u.written for u in usages)

    @cached_property
    def digest(self) -> str:
        """A digest (16 hex chars) of everything that is replayed."""
        parts = (self.format, self.model, self.system, self.tools, self.params, self.messages)
        data = json.dumps([*parts, self.times], sort_keys=True, default=str).encode()
        return hashlib.blake2b(data, digest_size=8).hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone; cached properties are not sent to other processes."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def renamed(self, **changes: Any) -> Recording:
        """A copy with some fields changed."""
        return replace(self, **changes)


def _answered_later(views: Sequence[Message]) -> list[bool]:
    """For each position, whether a call before it is answered by a result at or behind it.

    Ids may repeat within a conversation: a result answers the oldest open call of its id in the
    newest message that has any.
    """
    change = [0] * (len(views) + 1)
    waiting: dict[str, list[int]] = {}
    for number, view in enumerate(views):
        for call in view.calls:
            queue = waiting.setdefault(call.id, [])
            queue[:] = [*(n for n in queue if n == number), number]
        for result in view.results:
            if calls := waiting.get(result.id):
                change[calls.pop(0) + 1] += 1
                change[number + 1] -= 1
    open_calls, is_waiting = 0, []
    for number in range(len(views)):
        open_calls += change[number]
        is_waiting.append(open_calls > 0)
    return is_waiting
