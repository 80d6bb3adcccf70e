"""JSON text that goes on from an earlier one: only what is new in it is parsed.

Knows where the elements of one list stand in the text that was parsed last.  A request extends
the one before: its beginning is compared byte for byte, and the same objects are handed out again.
A memo: it changes no value, only time.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from typing import Any

from trimtab import paths
from trimtab.errors import InvalidRequest
from trimtab.source import Source

LISTS = ("messages", "input", "contents")
"""Keys of a request under which the list stands that grows."""
_DECODER = json.JSONDecoder()
_BLANKS = " \t\r\n"


class Growing:
    """The requests of one conversation, one after the other."""

    def __init__(self) -> None:
        self._text, self._key = "", ""
        self._tree: dict[str, Any] = {}
        self._starts: list[int] = []
        """Where each element of the list begins."""
        self._end = -1
        """Where the list's closing bracket stands; -1: there is no list to go on from."""

    def source(self, request: bytes) -> Source:
        """The parsed request.  Raises InvalidRequest."""
        text = paths.decode(request)
        tree = self._further(text) if self._end >= 0 else None
        if tree is None:
            tree = paths.parse(text)
            self._begin(text, tree)
        return Source(request, tree, text)

    def _begin(self, text: str, tree: Any) -> None:
        """Look for the list of a text that was parsed as a whole."""
        self._end = -1
        found = [key for key in LISTS if isinstance(tree, dict) and isinstance(tree.get(key), list)]
        if len(found) != 1 or not tree[found[0]] or text.count(f'"{found[0]}"') > 50:
            return
        key = found[0]
        rows = tree[key]
        spans = paths.spans(text, [(key, index) for index in range(len(rows))])
        if len(spans) != len(rows):
            return
        last = spans[key, len(rows) - 1][1]
        end = last + len(text[last:]) - len(text[last:].lstrip(_BLANKS))
        if text[end : end + 1] != "]":
            return
        self._text, self._tree, self._key = text, tree, key
        self._starts = [spans[key, index][0] for index in range(len(rows))]
        rest = self._rest(text[end:], "")
        if rest is not None and {**self._head(), key: rows, **rest} == tree:
            self._end = end

    def _further(self, text: str) -> Any:
        """The tree of a text whose list begins as the last one's did; None where it does not."""
        shared = _shared(self._text, text)
        kept = len(self._starts) if shared >= self._end else _before(self._starts, shared)
        if not kept:
            return None
        rows: list[Any] = self._tree[self._key][:kept]
        starts, at = self._starts[:kept], self._starts[kept] if kept < len(self._starts) else -1
        tail = self._text[self._end :]
        if at < 0:  # all elements are the same: go on behind the last
            at = self._end
            if text[at : at + 1] == ",":
                at = _skipped(text, at + 1)
                if text[at : at + 1] == "]":
                    return None
            elif text[at : at + 1] != "]":
                return None
        try:
            while text[at : at + 1] != "]":
                value, end = _DECODER.raw_decode(text, at)
                rows.append(value)
                starts.append(at)
                at = _skipped(text, end)
                if text[at : at + 1] == ",":
                    at = _skipped(text, at + 1)
                    if text[at : at + 1] == "]":
                        return None
        except (ValueError, RecursionError):
            return None  # the whole text is read as usual, and what is wrong with it told there
        rest = self._rest(text[at:], tail)
        if rest is None or not self._shallow(text[starts[kept] : at] if kept < len(rows) else ""):
            return None
        tree = {**self._head(), self._key: rows, **rest}
        self._text, self._tree, self._starts, self._end = text, tree, starts, at
        return tree

    def _head(self) -> dict[str, Any]:
        """The members before the list."""
        keys = list(self._tree)
        return {key: self._tree[key] for key in keys[: keys.index(self._key)]}

    def _shallow(self, text: str) -> bool:
        """Whether new elements are nested no deeper than a request may be."""
        try:
            paths.parse(f'{{"{self._key}":[{text}]}}')
        except InvalidRequest:
            return False
        return True

    def _rest(self, text: str, before: str) -> dict[str, Any] | None:
        """The members behind the list, from its closing bracket on; None where it is not clear."""
        if text == before:
            keys = list(self._tree)
            return {key: self._tree[key] for key in keys[keys.index(self._key) + 1 :]}
        try:
            found: dict[str, Any] = paths.parse(f'{{"{self._key}":[{text}')
        except InvalidRequest:
            return None
        if found.pop(self._key, None) != []:
            return None
        return None if any(key in found for key in self._head()) else found


def _shared(one: str, other: str) -> int:
    """How many characters both begin with."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    step = 4_096
    while low < high:
        middle = min(low + step, high)
        if one[low:middle] == other[low:middle]:
            low, step = middle, step * 2
        elif step == 1:
            break
        else:
            step = max(1, (middle - low) // 2)
    return low


def _before(starts: list[int], shared: int) -> int:
    """How many elements end before this place: those whose successor begins before it."""
    return max(bisect_right(starts, shared) - 1, 0)


def _skipped(text: str, at: int) -> int:
    while text[at : at + 1] and text[at] in _BLANKS:
        at += 1
    return at
