"""A request as dict, list, text, bytes or an SDK's objects: parsed, changed, and returned in the
type in which it was given."""

from __future__ import annotations

import marshal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trimtab.errors import InvalidRequest
from trimtab.formats.engine import sdk_objects
from trimtab.formats.no_request import NO_JSON, no_type
from trimtab.jsontext import paths, splicing
from trimtab.jsontext.message_spans import MessageSpans
from trimtab.jsontext.parsing import decode_any, encode, parse_bytes
from trimtab.jsontext.paths import Path, PathOp
from trimtab.lazy import cached_property


@dataclass(frozen=True)
class RequestBody:
    """``given`` is the caller's object; ``tree`` the JSON value read from it; ``written`` its JSON
    if it was text or bytes; ``rows`` the positions of its messages in the bytes, if known;
    ``plain`` the first ``tree`` of a request with an SDK's objects, else None."""

    given: Any
    tree: Any
    written: str | bytes | None = None
    rows: MessageSpans | None = None
    plain: Any = None

    @classmethod
    def of(cls, request: Any) -> RequestBody:
        """Parse bytes and str; take a dict, a list or a RequestBody as it is; read objects of a
        provider's SDK as the JSON it would send.  Bytes that are not UTF-8 become lone surrogates
        in the tree, which ``jsontext.unreadable`` finds.

        Raises InvalidRequest.
        """
        if isinstance(request, RequestBody):
            return request
        if isinstance(request, (bytes, bytearray, memoryview)):
            data = bytes(request)
            return cls(request, parse_bytes(data), data)
        if isinstance(request, str):
            if request.strip()[:1].isalpha() and request.strip() not in ("null", "true", "false"):
                raise InvalidRequest(NO_JSON)
            return cls(request, paths.parse(request), request)
        if isinstance(request, (dict, list)):
            plain = sdk_objects.as_json(request)
            return cls(request, plain, plain=None if plain is request else plain)
        raise InvalidRequest(no_type(request))

    @property
    def private(self) -> bool:
        """Whether the tree was parsed here, so that no caller can change it."""
        return self.written is not None

    @cached_property
    def text(self) -> str | None:
        """The JSON text of a request given as text or bytes, else None."""
        return decode_any(self.written) if isinstance(self.written, bytes) else self.written

    def after(self, passes: Sequence[Sequence[PathOp]]) -> RequestBody:
        """The request after ``passes``, each applied to the result of the one before."""
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
        text = splicing.splice(self.text, ops)
        return text if isinstance(self.written, str) else encode(text)

    def returned(self, original: RequestBody) -> Any:
        """What the caller gets: ``original``'s object if nothing changed, else one of its type."""
        if self is original:
            return original.given
        if self.plain is not None:
            return sdk_objects.restored(self.tree, self.plain, self.given)
        return self.tree if self.written is None else self.written

    def spelled(self, items: Sequence[Path]) -> list[str]:
        """The JSON of the values at ``items``, spelled as in the caller's text if there is one."""
        if self.rows is not None and isinstance(self.written, bytes):
            texts = self.rows.spelled(self.written, items)
            if texts is not None:
                return texts
        if self.text is None:
            return [paths.dump(paths.get(self.tree, item)) for item in items]
        spans = splicing.spans(self.text, items)
        return [self.text[slice(*spans[item])] for item in items]

    @property
    def body_bytes(self) -> int:
        """Size of the encoded body in bytes; objects are encoded as compact JSON."""
        return _size(paths.dump(self.tree) if self.written is None else self.written)

    @cached_property
    def max_bytes(self) -> int:
        """A cheap upper bound of ``body_bytes``, about six times as large; of a written request
        four times its length."""
        if self.written is not None:
            return 4 * len(self.written)  # a character has at most four bytes
        try:
            # JSON takes at most 6 bytes for each of these: "\x01" is "\\u0001", false 1 byte.
            return 6 * len(marshal.dumps(self.tree, 2))  # 3 and 4 write repeated texts once
        except ValueError:
            return self.body_bytes

    def exceeds(self, limit: int) -> bool:
        """Whether the encoded body has more than ``limit`` bytes."""
        return self.max_bytes > limit and self.body_bytes > limit

    def item_bytes(self, path: Path) -> int:
        """Size in bytes of the value at ``path`` as compact JSON."""
        return _size(paths.dump(paths.get(self.tree, path)))


def _size(written: str | bytes) -> int:
    if isinstance(written, bytes) or written.isascii():
        return len(written)
    return len(written.encode("utf-8", "surrogatepass"))
