"""``Refusal``: a provider's error as a value, of one of six kinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["too_long", "too_large", "invalid_pairing", "invalid_other", "rate", "other"]
"""too_long: tokens.  too_large: bytes, characters of one text, images, or an unknown size.
invalid_pairing: calls and results.  invalid_other: another rule, named in ``rule``.  rate: too
many requests.  other: anything else; trimtab does nothing about it."""

Unit = Literal["tokens", "bytes", "chars", "images", "pixels", "pages", ""]
Exactness = Literal["exact", "estimate", "lower_bound", "guess"]
"""exact: the provider's numbers are exact.  estimate: it said "about".  lower_bound: it stopped
counting, or left the output out.  guess: it named no limit."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One classified refusal: its kind, and the numbers in its text.

    ``limit`` and ``requested`` are in ``unit``; ``requested`` includes the output if the text
    says so, and ``output`` is that part.  ``rule`` is the finer kind ("orphan_result",
    "context_overflow", "request_bytes", …).
    """

    kind: Kind
    limit: int | None = None
    requested: int | None = None
    exactness: Exactness = "exact"
    rule: str = ""
    unit: Unit = ""
    output: int | None = None
    excess: int | None = None
    """By how much the request was too large, where only that is said."""
    fields: tuple[str, ...] = ()
    """Paths and names that the refusal of a field may mean, as the provider wrote them."""

    @property
    def about_size(self) -> bool:
        """Whether a smaller request may be accepted."""
        return self.kind in ("too_long", "too_large")


UNKNOWN = Refusal("other", exactness="guess")
"""An error that no pattern matches; it is passed to the caller."""
