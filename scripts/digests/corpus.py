"""Recorded conversations, the requests in them, and which of them a part is run on.

Knows the records of the data folder and how a body is put together.  Does not use the package.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

FORMATS = ("openai-chat", "openai-responses", "anthropic", "bedrock", "gemini")
MESSAGES = {"openai-responses": "input", "gemini": "contents"}
SYSTEM = {
    "anthropic": "system",
    "openai-responses": "instructions",
    "bedrock": "system",
    "gemini": "systemInstruction",
}
LONG = 60_000
"""Bytes above which something has to be done for a recording at the smaller windows."""
MAX_TURNS = 60
"""Of one conversation; a longer one is stepped through."""


def number(text: str, below: int) -> int:
    """A number that depends on the text alone."""
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % below


@dataclass(frozen=True)
class Record:
    """One line of the data: parsed when it is needed, anew in each process."""

    name: str
    source: str
    format: str
    line: bytes
    turns: int = 0
    """How many requests there are in it."""

    @property
    def busy(self) -> bool:
        """Whether it is long by what was said and read, not by a picture in it."""
        return self.size >= LONG and (self.turns >= 8 or self.source.startswith("rag-"))

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.line)

    @cached_property
    def data(self) -> dict[str, Any]:
        """The record."""
        return dict(json.loads(self.line))

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def base(self) -> dict[str, Any]:
        """A body without its messages."""
        data, format = self.data, self.format
        body = dict((data.get("meta") or {}).get("params") or {})
        if data.get("model") and format != "gemini":
            body.setdefault("modelId" if format == "bedrock" else "model", data["model"])
        system, tools = data.get("system"), data.get("tools")
        if system is not None and format in SYSTEM:
            body[SYSTEM[format]] = system
        if tools is not None:
            wrap = format == "bedrock" and isinstance(tools, list)
            key = "toolConfig" if format == "bedrock" else "tools"
            body[key] = {"tools": tools} if wrap else tools
        return body

    @property
    def messages(self) -> list[Any]:
        """Its items; a chat's system message stands first."""
        found, system = self.data["messages"], self.data.get("system")
        if self.format == "openai-chat" and system is not None:
            return [{"role": "system", "content": system}, *found]
        return list(found)

    @property
    def talk(self) -> Talk:
        """The conversation."""
        return Talk(self.format, self.base, self.messages)

    @property
    def broken(self) -> bool:
        """Whether it is one that a provider would refuse as it stands."""
        return self.source.startswith("broken-")


@dataclass(frozen=True)
class Talk:
    """A conversation in one format."""

    format: str
    base: Mapping[str, Any]
    messages: Sequence[Any]

    @classmethod
    def of_body(cls, format: str, body: Mapping[str, Any]) -> Talk:
        """The conversation that a whole body holds."""
        key = MESSAGES.get(format, "messages")
        rest = {name: value for name, value in body.items() if name != key}
        found = body[key]
        return cls(format, rest, found if isinstance(found, list) else [found])

    def body(self, end: int | None = None) -> dict[str, Any]:
        """The request with the first messages."""
        return {**self.base, MESSAGES.get(self.format, "messages"): list(self.messages[:end])}

    @cached_property
    def ends(self) -> list[int]:
        """How many messages each request has: up to before each turn of the model, and all of
        them where the model has not answered yet."""
        mine = [_of_model(self.format, message) for message in self.messages]
        waiting = _waiting(self.messages)
        starts = [
            at for at in range(1, len(mine)) if mine[at] and not mine[at - 1] and not waiting[at]
        ]
        return starts if not mine or mine[-1] else [*starts, len(mine)]

    def some_ends(self, most: int = MAX_TURNS) -> list[int]:
        """At most so many of them, evenly, the last always."""
        step = -(-len(self.ends) // most) or 1
        return self.ends[(len(self.ends) - 1) % step :: step] if self.ends else []

    def turn(self, end: int) -> list[Any]:
        """What the model said to the request with so many messages: a message, or the items of
        Responses."""
        own = takewhile(lambda item: _of_model(self.format, item), self.messages[end:])
        return list(own if self.format == "openai-responses" else islice(own, 1))

    @property
    def last(self) -> dict[str, Any]:
        """The last request."""
        return self.body(self.ends[-1] if self.ends else None)


def _of_model(format: str, message: Any) -> bool:
    role = message.get("role") if isinstance(message, dict) else None
    if format == "openai-responses" and role is None and isinstance(message, dict):
        kind = str(message.get("type"))
        return not kind.endswith("_output") and kind != "message"
    return role in ("assistant", "model")


def _waiting(messages: Sequence[Any]) -> list[bool]:
    """Before which messages a call is open whose result comes there or later."""
    change, calls = [0] * (len(messages) + 1), dict[str, list[int]]()
    for at, message in enumerate(messages):
        for id, is_result in _ids(message):
            if not is_result:
                queue = calls.setdefault(id, [])
                queue[:] = [*(n for n in queue if n == at), at]
            elif queue := calls.get(id, []):
                change[queue.pop(0) + 1] += 1
                change[at + 1] -= 1
    found, many = list[bool](), 0
    for at in range(len(messages)):
        many += change[at]
        # The result that follows its call at once is not waited for behind the call's own turn.
        found.append(many > 0)
    return found


def _ids(message: Any) -> Iterator[tuple[str, bool]]:
    """(id, whether it is a result's) of all calls and results of a message."""
    if not isinstance(message, dict):
        return
    if isinstance(id := message.get("call_id"), str):
        yield id, str(message.get("type")).endswith("_output")
    for call in message.get("tool_calls") or ():
        yield str(call.get("id")), False
    if isinstance(id := message.get("tool_call_id"), str):
        yield id, True
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict):
            continue
        if part.get("type") == "tool_use":
            yield str(part.get("id")), False
        elif part.get("type") == "tool_result":
            yield str(part.get("tool_use_id")), True
        elif isinstance(use := part.get("toolUse"), dict):
            yield str(use.get("toolUseId")), False
        elif isinstance(use := part.get("toolResult"), dict):
            yield str(use.get("toolUseId")), True


def records(folder: Path) -> list[Record]:
    """All records whose format is one of the five, in the order of the files."""
    found = list[Record]()
    for file in sorted(folder.glob("*.jsonl.gz")):
        source = file.name.removesuffix(".jsonl.gz")
        with gzip.open(file) as lines:
            for line in lines:
                data = json.loads(line)
                if data["format"] in FORMATS:
                    record = Record(f"{source}/{data['id']}", source, data["format"], line)
                    found.append(replace(record, turns=len(record.talk.ends)))
    names = {record.name for record in found}
    assert len(names) == len(found), "two records of one name"
    return found


def some(found: Iterable[Record], many: int, salt: str) -> list[Record]:
    """So many of them: of each source and format in turn, in an order made of the salt."""
    groups = dict[tuple[str, str], list[Record]]()
    for record in found:
        groups.setdefault((record.source, record.format), []).append(record)
    for group in groups.values():
        group.sort(key=lambda record: number(salt + record.name, 2**60))
    picked = list[Record]()
    while len(picked) < many and any(groups.values()):
        for group in groups.values():
            if group and len(picked) < many:
                picked.append(group.pop(0))
    return picked
