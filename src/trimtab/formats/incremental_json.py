"""Incremental parser for growing bodies: it parses only what an earlier request did not have.

It keeps the byte positions of the messages of the last few requests.  The result equals that of
``RequestBody.of``; messages parsed before are the same objects as before.  Of formats it knows
only the keys that hold messages.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from trimtab import interruption
from trimtab.errors import InvalidRequest
from trimtab.formats.body import RequestBody
from trimtab.jsontext import parsing
from trimtab.jsontext.message_spans import MessageSpans

_RECENT = 8
"""Most requests kept."""
_MAX_BYTES = 32_000_000
"""Most bytes of all texts kept; the newest is always kept."""
_SMALL = 16_384
"""Bytes below which a body is simply parsed whole."""
_WINDOW = 30_000
"""Bytes decoded at once: small enough that the allocator reuses memory, whatever the encoding."""
_OPENS = re.compile(rb'"(messages|input|contents)"\s*:\s*\[\s*')
_SCAN: Callable[[str, int], tuple[Any, int]]
_SCAN = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True, eq=False)
class _Text:
    """A parsed request."""

    data: bytes
    tree: dict[str, Any]
    rows: MessageSpans


class IncrementalParser:
    """Parses requests; safe to use from several threads."""

    def __init__(self) -> None:
        self._recent: deque[_Text] = deque(maxlen=_RECENT)

    @property
    def stored_bytes(self) -> int:
        """Bytes of all texts kept, without the trees that were parsed from them."""
        return sum(len(text.data) for text in list(self._recent))

    def parse(
        self, request: Any, ask: Callable[[bytes, int], None] = lambda data, start: None
    ) -> RequestBody:
        """Return what ``RequestBody.of`` returns, without parsing known messages again.

        ``ask(data, start)`` is called before data[start:] is parsed; what it raises ends this.
        Raises InvalidRequest.
        """
        earlier, count, parsed = None, 0, None
        if isinstance(request, bytes) and len(request) >= _SMALL:
            earlier, count = self._closest(request)
        if earlier is not None:
            ask(request, earlier.rows.ends[count - 1])
            parsed = _on_top(earlier, request, count)
        if parsed is None and isinstance(request, bytes):
            ask(request, 0)
            parsed = _whole(request) if len(request) >= _SMALL else None
        if parsed is None:
            return RequestBody.of(request)
        self._keep(parsed, earlier if earlier and count == len(earlier.rows.ends) else None)
        return RequestBody(request, parsed.tree, request, parsed.rows)

    def _closest(self, data: bytes) -> tuple[_Text | None, int]:
        """The kept text that shares the most leading messages with ``data``, and how many."""
        best, most = None, 0
        for earlier in list(self._recent):
            if earlier.data[:256] == data[:256] and (count := _alike(earlier, data)) > most:
                best, most = earlier, count
                if count == len(earlier.rows.ends):
                    break
        return best, most

    def _keep(self, text: _Text, instead: _Text | None) -> None:
        """Keep ``text`` in place of ``instead``, all of whose messages it contains."""
        if instead is not None:
            with suppress(ValueError):  # another thread was first
                self._recent.remove(instead)
        self._recent.appendleft(text)
        with suppress(IndexError):  # another thread was first
            while len(self._recent) > 1 and self.stored_bytes > _MAX_BYTES:
                self._recent.pop()


def _alike(earlier: _Text, data: bytes) -> int:
    """How many leading messages have the same bytes in both, with all that precedes them."""
    ends, view = earlier.rows.ends, memoryview(earlier.data)

    def differs(count: int) -> bool:
        return not data.startswith(view[: ends[count - 1]])

    low, step = len(ends), 1
    while low > 0 and differs(low):
        low, step = max(low - step, 0), 2 * step
    return bisect_left(range(low + 1, len(ends) + 1), True, key=differs) + low


def _whole(data: bytes) -> _Text | None:
    """Parse a text message by message; None if it must be parsed whole."""
    opens = _OPENS.search(data)
    if opens is None:
        return None
    key, at = opens[1].decode(), opens.end()
    try:
        head = parsing.parse(parsing.decode(data[:at]) + "]}")
    except InvalidRequest:  # this list is nested deeper in the body
        return None
    if not isinstance(head, dict) or next(reversed(head)) != key:
        return None
    return _read(data, at, head, MessageSpans(key, [], []), [])


def _on_top(earlier: _Text, data: bytes, count: int) -> _Text | None:
    rows, head = earlier.rows, dict[str, Any]()
    for key, value in earlier.tree.items():  # keys before the messages: the same bytes
        head[key] = value
        if key == rows.key:
            break
    begun = rows.first(count)
    return _read(data, rows.ends[count - 1], head, begun, earlier.tree[rows.key][:count])


def _read(
    data: bytes, place: int, head: dict[str, Any], begun: MessageSpans, kept: list[Any]
) -> _Text | None:
    """Parse the messages from ``place`` on, append them to ``kept``, and parse what follows."""
    new: list[Any] = []
    starts, ends, size = [*begun.starts], [*begun.ends], _WINDOW
    try:
        while True:
            text = _window(data, place, size)
            values, spans, closed = _scanned(text, behind=bool(ends))
            if closed < 0 and not values:  # one message is longer than the window
                if place + size >= len(data):
                    return None
                size *= 2
                continue
            new += values
            positions, behind = _in_bytes(text, place, spans), spans[-1] if spans else 0
            starts += positions[::2]
            ends += positions[1::2]
            place, size = positions[-1] if positions else place, _WINDOW
            if closed >= 0:
                break
        tail = _tail(parsing.decode(data[place + closed - behind + 1 :]))
        parsing.check_depth([new])  # nested as deep as in the text
    except (ValueError, RecursionError):
        return None
    if not ends or not head.keys().isdisjoint(tail):
        return None
    tree = {**head, begun.key: [*kept, *new], **tail}
    return _Text(data, tree, MessageSpans(begun.key, starts, ends, begun.values))


def _window(data: bytes, place: int, size: int) -> str:
    """The text of about ``size`` bytes from ``place``, ending between characters."""
    end = min(place + size, len(data))
    while end < len(data) and data[end] & 0xC0 == 0x80:  # within a character
        end -= 1
    return parsing.decode(data[place:end])


def _scanned(text: str, *, behind: bool) -> tuple[list[Any], list[int], int]:
    """The complete messages in a text, the start and end of each (chars), and the position of the
    closing bracket (−1: not in this text).  ``behind``: a message precedes the text."""
    values: list[Any] = []
    spans: list[int] = []
    try:
        at = _separated(text, 0) if behind else 0
        while text[at] != "]":
            interruption.check()
            value, end = _SCAN(text, at)
            then = _separated(text, end)
            values.append(value)
            spans += (at, end)
            at = then
    except (ValueError, IndexError, StopIteration):  # no JSON, or cut off
        return values, spans, -1
    return values, spans, at


def _in_bytes(text: str, place: int, spans: list[int]) -> list[int]:
    """``spans`` (chars in ``text``) as byte offsets; the text begins at byte ``place``."""
    if text.isascii():
        return [place + at for at in spans]
    positions, last = [], 0
    for start, end in zip(spans[::2], spans[1::2], strict=True):
        place += start - last  # a comma and spaces
        positions.append(place)
        place += len(text[start:end].encode())
        positions.append(place)
        last = end
    return positions


def _tail(text: str) -> dict[str, Any]:
    """The object's members after its messages.  Raises ValueError (InvalidRequest)."""
    rest = text.lstrip(" \t\r\n")
    if rest.startswith("}"):
        return _members(rest)
    if rest.startswith(",") and (tail := _members(rest[1:])):
        return tail
    raise ValueError("neither the end nor a comma and a member")


def _members(text: str) -> dict[str, Any]:
    members: dict[str, Any] = parsing.parse("{" + text)
    return members


def _separated(text: str, at: int) -> int:
    """Position of the next message, or of the closing bracket.  Raises ValueError."""
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
