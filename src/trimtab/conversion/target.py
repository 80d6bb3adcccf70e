"""Whom a request is converted for: the model, and the alphabets of its ids and names.

Knows which family a model belongs to.  Does not know any provider's keys.
"""

from __future__ import annotations

from typing import NamedTuple

from trimtab.conversion.ids import Renames

NAMES = "a-zA-Z0-9_-"
"""What a tool may be called with every provider: ``^[a-zA-Z0-9_-]+$``, at most 64 chars
(botocore service model of Converse; OpenAI API reference)."""


class Target(NamedTuple):
    """``model`` as the caller named it, else None; ``ids`` and ``names`` collect what they map."""

    model: str | None
    ids: Renames
    names: Renames

    def is_of(self, *families: str) -> bool:
        """Whether the model's name has one of these words in it."""
        name = (self.model or "").lower()
        return any(family in name for family in families)


class Alphabet(NamedTuple):
    """Which characters call ids and tool names may have, and how many; 0 for any number."""

    ids: str = ""
    longest_id: int = 0
    names: str = NAMES
    longest_name: int = 64
    first_of_name: str = ""

    def target(self, model: str | None) -> Target:
        """A target that has met no id yet."""
        names = Renames(self.names, self.longest_name, first=self.first_of_name)
        return Target(model, Renames(self.ids, self.longest_id), names)
