"""A request as bytes that goes on where an earlier one went: only what is new is parsed.

Knows where the messages of the last few requests end in their text.  A memo: what comes back is
what ``Source.of`` gives, the objects of known messages being the very same as before.  Does not
know formats, but for the names under which they have their messages.
"""

from __future__ import annotations

import json
import re
from collections import deque
from dataclasses import dataclass
from typing import Any

from trimtab import jsontext
from trimtab.errors import InvalidRequest
from trimtab.source import Source

_RECENT = 8
"""Requests that are remembered."""
_ENDS = 6
"""Of each, the last messages after which a later one may differ: clients move cache marks."""
_SMALL = 16_384
"""Bytes below which parsing anew costs nothing."""
_BLOCK = 32_768
_OPENS = re.compile(r'"(messages|input|contents)"\s*:\s*\[\s*')
_SCAN = json.JSONDecoder().raw_decode
_ODD = re.compile(r"\\u00[67]")
"""Letters spelled as escapes: a key may be spelled so, and be one that stands there already."""


@dataclass(frozen=True, slots=True)
class _Text:
    """A parsed request: where each of its last messages ends, as (bytes, characters, number)."""

    data: bytes
    text: str
    tree: dict[str, Any]
    key: str
    ends: tuple[tuple[int, int, int], ...]


class Grown:
    """Parses requests; several threads may."""

    def __init__(self) -> None:
        self._recent: deque[_Text] = deque(maxlen=_RECENT)

    def source(self, request: Any) -> Source:
        """``Source.of(request)``, from what is known where that can be.  Raises InvalidRequest."""
        if not isinstance(request, bytes) or len(request) < _SMALL:
            return Source.of(request)
        found = self._longer(request) or _whole(request)
        if found is None:
            return Source.of(request)
        self._recent.appendleft(found)
        return Source(request, found.tree, found.text)

    def _longer(self, data: bytes) -> _Text | None:
        """This text on top of one that is known; None where it begins like none."""
        for known in list(self._recent):
            if known.data[:256] != data[:256]:
                continue
            for size, chars, number in reversed(known.ends):
                if _begins_alike(data, known.data, size):
                    return _on_top(known, data, size, chars, number)
        return None


def _begins_alike(one: bytes, other: bytes, size: int) -> bool:
    """Whether the first bytes are the same; in blocks, which stay in the processor's cache."""
    return len(one) >= size and all(
        one[at : min(at + _BLOCK, size)] == other[at : min(at + _BLOCK, size)]
        for at in range(0, size, _BLOCK)
    )


def _whole(data: bytes) -> _Text | None:
    """A text read message by message; None for one that has to be read as ever."""
    text = jsontext.decode(data)
    opens = _OPENS.search(text)
    if opens is None:
        return None
    try:
        head = jsontext.parse(text[: opens.end()] + "]}")
    except InvalidRequest:  # these messages stand deeper in something else
        return None
    if not isinstance(head, dict) or next(reversed(head)) != opens[1]:
        return None
    return _read(data, text, head, opens[1], opens.end(), [], [])


def _on_top(known: _Text, data: bytes, size: int, chars: int, number: int) -> _Text | None:
    rest = jsontext.decode(data[size:])
    head: dict[str, Any] = {}
    for key, value in known.tree.items():  # keys before the messages: the same bytes
        head[key] = value
        if key == known.key:
            break
    kept = known.tree[known.key][:number]
    ends = [(end, count) for _, end, count in known.ends if count <= number]
    return _read(data, known.text[:chars] + rest, head, known.key, chars, kept, ends)


def _read(
    data: bytes, text: str, head: dict[str, Any], key: str, at: int,
    kept: list[Any], ends: list[tuple[int, int]],
) -> _Text | None:  # fmt: skip
    """The messages from here on, and what follows them."""
    start, messages = at, list(kept)
    try:
        if kept:
            at = _separated(text, at)
        while text[at] != "]":
            value, at = _SCAN(text, at)
            messages.append(value)
            ends.append((at, len(messages)))
            at = _separated(text, at)
        tail = jsontext.parse('{"":[' + text[at:])
        jsontext.check_depth(messages[len(kept) :])
    except (ValueError, IndexError, RecursionError):
        return None
    tail.pop("")
    odd = _ODD.search(text, start) or f'"{key}"' in text[start:]
    if odd or not ends or not head.keys().isdisjoint(tail):
        return None
    tree = {**head, key: messages, **tail}
    places = tuple(
        (len(data) - len(text[end:].encode()), end, number) for end, number in ends[-_ENDS:]
    )
    return _Text(data, text, tree, key, places)


def _separated(text: str, at: int) -> int:
    """Where the next message begins, or the bracket that ends them.  Raises ValueError."""
    while text[at] in " \t\r\n":
        at += 1
    if text[at] == "]":
        return at
    if text[at] != ",":
        raise ValueError("neither a comma nor the end")
    at += 1
    while text[at] in " \t\r\n":
        at += 1
    if text[at] == "]":
        raise ValueError("a comma before the end")
    return at
