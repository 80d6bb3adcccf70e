"""A request as bytes that goes on where an earlier one went: only what is new is parsed.

Knows where the messages of the last few requests end in their bytes.  A memo: what comes back is
what ``Source.of`` gives, the objects of known messages being the very same as before.  Does not
know formats, but for the names under which they have their messages.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from typing import Any

from trimtab import jsontext
from trimtab.errors import InvalidRequest
from trimtab.rows import Rows
from trimtab.source import Source

_RECENT = 8
"""Requests that are remembered."""
_SMALL = 16_384
"""Bytes below which parsing anew costs nothing."""
_OPENS = re.compile(r'"(messages|input|contents)"\s*:\s*\[\s*')
_SCAN = json.JSONDecoder().raw_decode
_ODD = re.compile(r"\\u00[67]")
"""Letters spelled as escapes: a key may be spelled so, and be one that stands there already."""


@dataclass(frozen=True, slots=True)
class _Text:
    """A parsed request."""

    data: bytes
    tree: dict[str, Any]
    rows: Rows


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
        return Source(request, found.tree, request, found.rows)

    def _longer(self, data: bytes) -> _Text | None:
        """This text on top of the known one with which it has most in common; None where it
        begins like none."""
        most, best = 0, None
        for known in list(self._recent):
            if known.data[:256] == data[:256] and (count := _alike(known, data)) > most:
                most, best = count, known
                if count == len(known.rows.ends):
                    break
        return None if best is None else _on_top(best, data, most)


def _alike(known: _Text, data: bytes) -> int:
    """How many of the first messages, and all before them, stand in the same bytes."""
    ends, view = known.rows.ends, memoryview(known.data)

    def differs(count: int) -> bool:
        return not data.startswith(view[: ends[count - 1]])

    low, step = len(ends), 1
    while low > 0 and differs(low):
        low, step = max(low - step, 0), 2 * step
    return bisect_left(range(low + 1, len(ends) + 1), True, key=differs) + low


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
    at = opens.end()
    return _read(data, text, at, len(text[:at].encode()), head, Rows(opens[1], [], []), [])


def _on_top(known: _Text, data: bytes, count: int) -> _Text | None:
    rows, head = known.rows, dict[str, Any]()
    for key, value in known.tree.items():  # keys before the messages: the same bytes
        head[key] = value
        if key == rows.key:
            break
    size, kept = rows.ends[count - 1], known.tree[rows.key][:count]
    begun = Rows(rows.key, rows.starts[:count], rows.ends[:count])
    return _read(data, jsontext.decode(data[size:]), 0, size, head, begun, kept)


def _read(
    data: bytes, text: str, at: int, place: int, head: dict[str, Any], begun: Rows,
    kept: list[Any],
) -> _Text | None:  # fmt: skip
    """The messages of ``text`` from ``at`` on, which is ``place`` in the bytes, and what follows
    them; behind those that are kept."""
    start, key, messages, spans = at, begun.key, list(kept), list[int]()
    try:
        if kept:
            at = _separated(text, at)
        while text[at] != "]":
            value, end = _SCAN(text, at)
            messages.append(value)
            spans += (at, end)
            at = _separated(text, end)
        tail = jsontext.parse('{"":[' + text[at:])
        jsontext.check_depth(messages[len(kept) :])
    except (ValueError, IndexError, RecursionError):
        return None
    tail.pop("")
    odd = _ODD.search(text, start) or text.find(f'"{key}"', start) >= 0
    if odd or not messages or not head.keys().isdisjoint(tail):
        return None
    found = _in_bytes(text, start, place, spans)
    rows = Rows(key, [*begun.starts, *found[::2]], [*begun.ends, *found[1::2]])
    return _Text(data, {**head, key: messages, **tail}, rows)


def _in_bytes(text: str, start: int, place: int, spans: list[int]) -> list[int]:
    """Places in a text, in order, as places in its bytes, where ``start`` is at ``place``."""
    if text.isascii():
        return [place - start + at for at in spans]
    found = []
    for at in spans:
        piece = text[start:at]
        place += len(piece) if piece.isascii() else len(piece.encode())
        found.append(place)
        start = at
    return found


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
