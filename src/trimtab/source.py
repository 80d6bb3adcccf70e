"""The request as it was given: dict, list, text or bytes, and the way back.

Knows how to parse and to return the same type.  Does not know formats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trimtab import paths
from trimtab.errors import InvalidRequest
from trimtab.model import Path
from trimtab.paths import PathOp


@dataclass(frozen=True)
class Source:
    """``given`` is the caller's own object; ``text`` its JSON text where it came as text."""

    given: Any
    tree: Any
    text: str | None

    @classmethod
    def of(cls, request: Any) -> Source:
        """Parse bytes and str; take dict, list and what is parsed already as they are.

        Raises InvalidRequest.
        """
        if isinstance(request, Source):
            return request
        if isinstance(request, (bytes, bytearray, memoryview)):
            text = paths.decode(bytes(request))
            return cls(request, paths.parse(text), text)
        if isinstance(request, str):
            return cls(request, paths.parse(request), request)
        if isinstance(request, (dict, list)):
            return cls(request, request, None)
        raise InvalidRequest(
            f"a request is a dict, a list of messages, or JSON text, not {type(request).__name__}"
        )

    def after(self, passes: Sequence[Sequence[PathOp]]) -> Source:
        """The same request with operations applied, each pass on the result of the one before."""
        tree, text = self.tree, self.text
        for ops in passes:
            tree = paths.apply(tree, ops)
            text = None if text is None else paths.splice(text, ops)
        return self if tree is self.tree else Source(self.given, tree, text)

    def returned(self, original: Source) -> Any:
        """What to hand back: the caller's object if nothing changed, else the same type."""
        if self is original:
            return original.given
        if self.text is None:
            return self.tree
        if isinstance(original.given, str):
            return self.text
        return self.text.encode("utf-8")

    @property
    def body_bytes(self) -> int:
        """Size of the encoded body, compact where it came as objects."""
        text = paths.dump(self.tree) if self.text is None else self.text
        return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))

    def item_bytes(self, path: Path) -> int:
        """Encoded bytes of the value at a path, compact."""
        text = paths.dump(paths.get(self.tree, path))
        return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
