"""Names that were probably meant, for the errors about names that are not there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from difflib import get_close_matches
from typing import TYPE_CHECKING, ClassVar

_ELSEWHERE = {
    "error_pruning": "failed_inputs", "purge_errors": "failed_inputs",
    "deduplication": "duplicates", "dedup": "duplicates",
    "supersede_writes": "superseded",
    "min_age": "min_calls", "turns": "min_turns",
    "turn_protection": "protected_turns",
    "protected_file_patterns": "protected_paths",
    "context_window": "window", "max_context": "window", "max_tokens": "reserve",
}  # fmt: skip
"""What other programs call a setting → our name for it."""


def nearest(name: str, names: Sequence[str] | Set[str], lead: str = "") -> str:
    """``"; did you mean …?"`` with the name that was probably meant; "" where none is near."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().replace("-", "_")
    called = _ELSEWHERE.get(plain, plain)
    matches = [called] if called in names else get_close_matches(name, sorted(names), n=1)
    return f"; did you mean {lead}{matches[0]}?" if matches else ""


class SuggestsNames:
    """A class whose error for an attribute that is not there names the one that was meant."""

    _GUESSES: ClassVar[Mapping[str, str]] = {}
    """What people try → the name that has it; for what no similar spelling tells."""

    if not TYPE_CHECKING:  # so that a type checker catches a misspelt name

        def __getattr__(self, name):
            if name.startswith("_") or hasattr(type(self), name):
                return object.__getattribute__(self, name)  # raises its own error
            meant = self._GUESSES.get(name)
            names = [one for one in dir(self) if not one.startswith("_")]
            hint = f"; did you mean {meant}?" if meant else nearest(name, names)
            hint = hint or f"; it has {', '.join(names)}"
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{hint}")
