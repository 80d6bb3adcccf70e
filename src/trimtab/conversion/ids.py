"""Call ids and tool names in the alphabet of the target, and the way back.

Knows how a name is respelled: the same one always in the same way, whatever stands around it, so
that a growing conversation keeps its ids.  Does not know whose alphabet it is.
"""

from __future__ import annotations

import hashlib
import re

_DIGEST = 8


class Renames:
    """Maps names into an alphabet and a length; ``forward`` and ``back`` hold all that were met.

    A name that fits stays.  Any other keeps what fits of it (odd characters become ``_``) and
    gets 8 hex characters of its digest; should that name be taken, a longer digest.
    """

    def __init__(self, allowed: str = "", longest: int = 0, *, first: str = "") -> None:
        """``allowed`` and ``first`` are character classes ("a-z0-9_"; "" for any); ``longest`` in
        chars, 0 for any length."""
        self._odd = re.compile(f"[^{allowed}]") if allowed else None
        self._first = re.compile(f"[{first}]") if first else None
        self._longest = longest
        self.forward: dict[str, str] = {}
        self.back: dict[str, str] = {}

    def __call__(self, name: str) -> str:
        """The name the target is given."""
        known = self.forward.get(name)
        if known is not None:
            return known
        new = name if self._fits(name) else self._respelled(name, _DIGEST)
        length = _DIGEST
        while new in self.back:
            length += 2
            new = self._respelled(name, length)
        self.forward[name], self.back[new] = new, name
        return new

    @property
    def changed(self) -> dict[str, str]:
        """Old → new of those that could not stay."""
        return {old: new for old, new in self.forward.items() if old != new}

    def _fits(self, name: str) -> bool:
        if not name or (self._longest and len(name) > self._longest):
            return False
        if self._first and not self._first.match(name):
            return False
        return not (self._odd and self._odd.search(name))

    def _respelled(self, name: str, length: int) -> str:
        data = name.encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(data, digest_size=16).hexdigest()[:length]
        kept = self._odd.sub("_", name) if self._odd else name
        if not kept or (self._first and not self._first.match(kept)):
            kept = f"x_{kept}" if kept else "x"
        room = self._longest - length - 1 if self._longest else len(kept)
        return f"{kept[:room]}_{digest}"


class Ordinals:
    """Ids for calls that have none: ``name:index``, the n-th call of that name in the request.

    A result without id answers the oldest open call of its name.
    """

    def __init__(self) -> None:
        self._count: dict[str, int] = {}
        self._open: dict[str, list[str]] = {}

    def call(self, name: str) -> str:
        """The id of the next call of this tool."""
        number = self._count.get(name, 0)
        self._count[name] = number + 1
        made = f"{name}:{number}"
        self._open.setdefault(name, []).append(made)
        return made

    def result(self, name: str) -> str:
        """The id of the call this result answers; a fresh one where no call is open."""
        waiting = self._open.get(name)
        return waiting.pop(0) if waiting else f"{name}:unasked"
