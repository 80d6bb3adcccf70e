"""Byte positions of a request's messages, and edits that touch only the messages concerned.

The result equals that of ``splicing.splice``, which reads the whole text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

from trimtab.jsontext import splicing
from trimtab.jsontext.paths import Path, PathOp
from trimtab.jsontext.splicing import SetValue


@dataclass(frozen=True, slots=True)
class MessageSpans:
    """The items of the list under ``key``: where each begins and ends, in bytes.  The list
    has at least one item, and ``key`` occurs once at the top level of the text."""

    key: str
    starts: Sequence[int]
    ends: Sequence[int]
    values: dict[Path, SetValue] = field(default_factory=dict)
    """Values that were set in messages, by path: they are set again next turn."""

    def first(self, count: int) -> MessageSpans:
        """The same of a body that has only the first messages in common."""
        values = {path: at for path, at in [*self.values.items()] if cast(int, path[1]) < count}
        return MessageSpans(self.key, self.starts[:count], self.ends[:count], values)

    def spliced(self, data: bytes, ops: Iterable[PathOp]) -> bytes:
        """The bytes after ``ops``.  Raises LookupError for a path that does not exist."""
        within, beside = list[PathOp](), list[PathOp]()
        for op in ops:
            (within if len(op.path) > 1 and op.path[0] == self.key else beside).append(op)
        if any(op.path[:1] in ((), (self.key,)) for op in beside):  # the list as a whole
            return splicing.splice(data.decode(), [*within, *beside]).encode()
        view, first, last = memoryview(data), self.starts[0], self.ends[-1]
        head, tail = view[:first], view[last:]
        if beside:
            head, tail = self._beside(bytes(head), bytes(tail), beside)
        pieces: list[bytes | memoryview] = [head]
        done = first
        here = within if beside else ops  # ``Ops`` keeps what it has worked out
        own = splicing.cuts(self.starts, self.ends, data, here, self.key, self.values)
        for start, end, new in own:
            pieces += (view[done:start], new)
            done = end
        return b"".join((*pieces, view[done:last], tail))

    def _beside(
        self, head: bytes, tail: bytes, ops: Sequence[PathOp]
    ) -> tuple[memoryview, memoryview]:
        """The bytes before the first message and after the last one, after ``ops``."""
        bare, here = (head + tail).decode(), (self.key,)
        inner = len(head.decode()) - splicing.spans(bare, [here])[here][0]
        text = splicing.splice(bare, ops)
        at = splicing.spans(text, [here])[here][0] + inner
        return memoryview(text[:at].encode()), memoryview(text[at:].encode())

    def spelled(self, data: bytes, items: Iterable[Path]) -> list[str] | None:
        """The JSON text of each value; None if one is outside the messages.  Raises KeyError for
        a path that does not exist."""
        asked = list(items)
        within: dict[int, list[Path]] = {}
        for item in asked:
            number = item[1] if len(item) > 1 and item[0] == self.key else None
            if not isinstance(number, int) or not 0 <= number < len(self.starts):
                return None
            within.setdefault(number, []).append(item[2:])
        texts: dict[Path, str] = {}
        for number, inner in within.items():  # each message is read once
            text = data[self.starts[number] : self.ends[number]].decode()
            spans = splicing.spans(text, inner)
            texts |= {(self.key, number, *path): text[slice(*spans[path])] for path in inner}
        return [texts[item] for item in asked]
