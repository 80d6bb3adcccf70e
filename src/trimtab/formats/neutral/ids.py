"""Call ids and tool names in the characters the target allows, and the way back.

A name is always respelled in the same way, whatever else the request holds, so that a growing
conversation keeps its ids.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

_DIGEST = 8
NAMES = "a-zA-Z0-9_-"
"""What a tool may be called with every provider: ``^[a-zA-Z0-9_-]+$``, at most 64 chars
(botocore service model of Converse; OpenAI API reference)."""


_SPELLED = re.compile(r"tt-(?:[A-Za-z0-9_]|-[0-9a-f]+-)+")


def spelled_id(call_id: str) -> str:
    """An id in letters, digits, ``_`` and ``-``, so that ``given_id`` tells what it was.

    >>> spelled_id("call/1")
    'tt-call-2f-1'
    """
    return "tt-" + re.sub(r"[^A-Za-z0-9_]", lambda odd: f"-{ord(odd[0]):x}-", call_id)


def given_id(call_id: str) -> str:
    """The id that ``spelled_id`` spelled; any other as it is."""
    if not _SPELLED.fullmatch(call_id):
        return call_id
    try:
        original = re.sub(r"-([0-9a-f]+)-", lambda odd: chr(int(odd[1], 16)), call_id[3:])
    except (ValueError, OverflowError):
        return call_id
    return original if spelled_id(original) == call_id else call_id


class Renames:
    """Maps names to those that a target allows; ``forward`` and ``back`` hold all that were met.

    A name that fits stays.  An id that does not is spelled so that it can be recovered
    (``spelled_id``), where that fits.  Any other name keeps what fits of it (odd characters become
    ``_``) and gets 8 hex characters of its digest; should that name be taken, a longer digest.
    """

    def __init__(
        self, allowed: str = "", longest: int = 0, *, first: str = "", of_ids: bool = False
    ) -> None:
        """``allowed`` and ``first`` are character classes ("a-z0-9_"; "" for any); ``longest`` in
        chars, 0 for any length.  ``of_ids``: odd ids are spelled so that they can be recovered,
        where there is room."""
        self._of_ids = of_ids
        self._odd = re.compile(f"[^{allowed}]") if allowed else None
        self._first = re.compile(f"[{first}]") if first else None
        self._longest = longest
        self.forward: dict[str, str] = {}
        self.back: dict[str, str] = {}

    def __call__(self, name: str) -> str:
        """The name the target is given."""
        new = self.forward.get(name)
        if new is not None:
            return new
        new = name if self._fits(name) else self._odd_one(name)
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

    def _odd_one(self, name: str) -> str:
        spelled = spelled_id(name) if self._of_ids and name else ""
        return spelled if self._fits(spelled) else self._respelled(name, _DIGEST)

    def _respelled(self, name: str, length: int) -> str:
        data = name.encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(data, digest_size=16).hexdigest()[:length]
        allowed = self._odd.sub("_", name) if self._odd else name
        if not allowed or (self._first and not self._first.match(allowed)):
            allowed = f"x_{allowed}" if allowed else "x"
        room = self._longest - length - 1 if self._longest else len(allowed)
        return f"{allowed[:room]}_{digest}"


class ConversionTarget(NamedTuple):
    """``model`` as the caller named it, else None; ``ids`` and ``names`` collect what they map."""

    model: str | None
    ids: Renames
    names: Renames

    def is_of(self, *families: str) -> bool:
        """Whether the model's name has one of these words in it."""
        name = (self.model or "").lower()
        return any(family in name for family in families)


class NameRules(NamedTuple):
    """Which characters call ids and tool names may have, and how many; 0 for any number."""

    ids: str = ""
    longest_id: int = 0
    names: str = NAMES
    longest_name: int = 64
    first_of_name: str = ""

    def target(self, model: str | None) -> ConversionTarget:
        """A target that has met no id yet."""
        names = Renames(self.names, self.longest_name, first=self.first_of_name)
        return ConversionTarget(model, Renames(self.ids, self.longest_id, of_ids=True), names)
