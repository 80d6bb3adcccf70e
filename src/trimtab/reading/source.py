"""The request as it was given: dict, list, text or bytes, and the way back.

Knows how to parse and to return the same type.  Does not know formats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trimtab import paths
from trimtab.errors import InvalidRequest
from trimtab.model import Path
from trimtab.paths import PathOp
from trimtab.reading.rows import Rows


@dataclass(frozen=True)
class Source:
    """``given`` is the caller's own object; ``written`` its JSON where it came as text or bytes,
    and ``rows`` where its messages stand in the bytes, where that is known."""

    given: Any
    tree: Any
    written: str | bytes | None = None
    rows: Rows | None = None

    @classmethod
    def of(cls, request: Any) -> Source:
        """Parse bytes and str; take dict, list and what is parsed already as they are.

        Raises InvalidRequest.
        """
        if isinstance(request, Source):
            return request
        if isinstance(request, (bytes, bytearray, memoryview)):
            data = bytes(request)
            return cls(request, paths.parse(paths.decode(data)), data)
        if isinstance(request, str):
            return cls(request, paths.parse(request), request)
        if isinstance(request, (dict, list)):
            return cls(request, request)
        raise InvalidRequest(
            f"a request is a dict, a list of messages, or JSON text, not {type(request).__name__}"
        )

    @property
    def private(self) -> bool:
        """Whether nobody but us has the tree, so that nobody changes it."""
        return self.written is not None

    @cached_property
    def text(self) -> str | None:
        """Its JSON text where it came as text or bytes."""
        return self.written.decode() if isinstance(self.written, bytes) else self.written

    def after(self, passes: Sequence[Sequence[PathOp]]) -> Source:
        """The same request with operations applied, each pass on the result of the one before."""
        last = self
        for ops in passes:
            tree = paths.apply(last.tree, ops)
            if tree is not last.tree:
                last = Source(self.given, tree, last._spliced(ops))
        return last

    def _spliced(self, ops: Sequence[PathOp]) -> str | bytes | None:
        if self.rows is not None and isinstance(self.written, bytes):
            return self.rows.spliced(self.written, ops)
        if self.text is None:
            return None
        text = paths.splice(self.text, ops)
        return text if isinstance(self.written, str) else text.encode()

    def after_as(self, before: Source, sent: Source, ops: Sequence[PathOp]) -> Source | None:
        """``after([ops])``, where ``before.after([ops])`` was ``sent`` and this goes on behind the
        last message of ``before``; None where that cannot be told, or the end would differ."""
        rows, old, data, out = self.rows, before.rows, self.written, sent.written
        if rows is None or old is None or not old.only_within(ops) or not rows.go_on(old):
            return None
        if not (isinstance(data, bytes) and isinstance(out, bytes)):
            return None
        assert isinstance(before.written, bytes)
        end, key = old.ends[-1], old.key
        if not data.startswith(memoryview(before.written)[:end]):
            return None
        same = len(out) - (len(before.written) - end)
        messages = sent.tree[key] + self.tree[key][len(old.ends) :]
        written = b"".join((memoryview(out)[:same], memoryview(data)[end:]))
        return Source(self.given, {**self.tree, key: messages}, written)

    def returned(self, original: Source) -> Any:
        """What to hand back: the caller's object if nothing changed, else the same type."""
        if self is original:
            return original.given
        return self.tree if self.written is None else self.written

    def spelled(self, items: Sequence[Path]) -> list[str]:
        """The JSON of the values at these paths, as it was spelled where it came as text."""
        if self.rows is not None and isinstance(self.written, bytes):
            found = self.rows.spelled(self.written, items)
            if found is not None:
                return found
        if self.text is None:
            return [paths.dump(paths.get(self.tree, item)) for item in items]
        spans = paths.spans(self.text, items)
        return [self.text[slice(*spans[item])] for item in items]

    @property
    def body_bytes(self) -> int:
        """Size of the encoded body, compact where it came as objects."""
        return _size(paths.dump(self.tree) if self.written is None else self.written)

    def item_bytes(self, path: Path) -> int:
        """Encoded bytes of the value at a path, compact."""
        return _size(paths.dump(paths.get(self.tree, path)))


def _size(written: str | bytes) -> int:
    if isinstance(written, bytes) or written.isascii():
        return len(written)
    return len(written.encode("utf-8", "surrogatepass"))
