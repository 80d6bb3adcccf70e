"""The request as it was given: dict, list, text, bytes or an SDK's objects, and the way back.

Knows how to parse and to return the same type.  Does not know formats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trimtab.errors import InvalidRequest
from trimtab.jsontext import paths
from trimtab.jsontext.message_spans import MessageSpans
from trimtab.jsontext.parsing import decode_any, encode, parse_bytes
from trimtab.jsontext.paths import Path, PathOp
from trimtab.wire import sdk_objects
from trimtab.wire.no_request import no_type


@dataclass(frozen=True)
class RequestBody:
    """``given`` is the caller's own object; ``written`` its JSON where it came as text or bytes,
    and ``rows`` where its messages stand in the bytes, where that is known; ``plain`` what a
    request with objects of an SDK was read as, else None."""

    given: Any
    tree: Any
    written: str | bytes | None = None
    rows: MessageSpans | None = None
    plain: Any = None

    @classmethod
    def of(cls, request: Any) -> RequestBody:
        """Parse bytes and str; take dict, list and what is parsed already as they are; read
        objects of a provider's SDK as the JSON it would send.  Bytes that are no UTF-8 are lone
        halves in the tree, which ``jsontext.unreadable`` finds.

        Raises InvalidRequest.
        """
        if isinstance(request, RequestBody):
            return request
        if isinstance(request, (bytes, bytearray, memoryview)):
            data = bytes(request)
            return cls(request, parse_bytes(data), data)
        if isinstance(request, str):
            return cls(request, paths.parse(request), request)
        if isinstance(request, (dict, list)):
            plain = sdk_objects.as_json(request)
            return cls(request, plain, plain=None if plain is request else plain)
        raise InvalidRequest(no_type(request))

    @property
    def private(self) -> bool:
        """Whether nobody but us has the tree, so that nobody changes it."""
        return self.written is not None

    @cached_property
    def text(self) -> str | None:
        """Its JSON text where it came as text or bytes."""
        return decode_any(self.written) if isinstance(self.written, bytes) else self.written

    def after(self, passes: Sequence[Sequence[PathOp]]) -> RequestBody:
        """The same request with operations applied, each pass on the result of the one before."""
        last = self
        for ops in passes:
            tree = paths.apply(last.tree, ops)
            if tree is not last.tree:
                last = RequestBody(self.given, tree, last._spliced(ops), plain=self.plain)
        return last

    def _spliced(self, ops: Sequence[PathOp]) -> str | bytes | None:
        if self.rows is not None and isinstance(self.written, bytes):
            return self.rows.spliced(self.written, ops)
        if self.text is None:
            return None
        text = paths.splice(self.text, ops)
        return text if isinstance(self.written, str) else encode(text)

    def returned(self, original: RequestBody) -> Any:
        """What to hand back: the caller's object if nothing changed, else the same type."""
        if self is original:
            return original.given
        if self.plain is not None:
            return sdk_objects.restored(self.tree, self.plain, self.given)
        return self.tree if self.written is None else self.written

    def spelled(self, items: Sequence[Path]) -> list[str]:
        """The JSON of the values at these paths, as it was spelled where it came as text."""
        if self.rows is not None and isinstance(self.written, bytes):
            texts = self.rows.spelled(self.written, items)
            if texts is not None:
                return texts
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
