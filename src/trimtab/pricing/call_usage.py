"""What one model call was billed, apart by price, and what that costs in US dollars.

The tokens are those that the provider reported; the prices are the list prices of our table of
models.  Where either is missing there is no figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from trimtab.pricing import models
from trimtab.pricing.models import Model
from trimtab.pricing.reported_usage import read_usage

KINDS = ("uncached", "read", "written", "written_1h", "output")


@dataclass(frozen=True, slots=True)
class CallUsage:
    """Tokens of one call, or a sum over several calls of one model.

    ``uncached`` input at the plain price, ``read`` from the cache, ``written`` to it for the
    provider's default time (5 minutes at Anthropic), ``written_1h`` for an hour, ``output`` with
    thinking.  ``id``: the provider's name of the answer, "" where the log has none: a session that
    is taken up again is logged twice.
    """

    model: str
    uncached: int = 0
    read: int = 0
    written: int = 0
    written_1h: int = 0
    output: int = 0
    id: str = ""

    @property
    def prompt(self) -> int:
        """Tokens of the whole prompt."""
        return self.uncached + self.read + self.written + self.written_1h

    def as_dict(self) -> dict[str, int]:
        """Tokens by kind, JSON-able."""
        return {kind: getattr(self, kind) for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars by kind of token."""

    uncached: float = 0.0
    read: float = 0.0
    written: float = 0.0
    written_1h: float = 0.0
    output: float = 0.0

    @property
    def prompt(self) -> float:
        """Of the whole prompt."""
        return self.uncached + self.read + self.written + self.written_1h

    @property
    def total(self) -> float:
        """Of prompt and output."""
        return self.prompt + self.output

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, kind) + getattr(other, kind) for kind in KINDS))

    def as_dict(self) -> dict[str, float]:
        """By kind, and the sum; rounded to a millionth of a dollar."""
        return {**{k: round(v, 6) for k, v in asdict(self).items()}, "total": round(self.total, 6)}


def read_call(usage: Any, model: Any, id: str = "") -> CallUsage | None:
    """The tokens of a usage as a provider reports it (any format); None where it tells none."""
    found = read_usage(usage)
    if found is None or not found.input_tokens:
        return None
    hour = min(_written_for_an_hour(usage), found.written)
    return CallUsage(
        str(model or ""), max(found.input_tokens - found.read - found.written, 0), found.read,
        found.written - hour, hour, found.output_tokens, id,
    )  # fmt: skip


def _written_for_an_hour(usage: Any) -> int:
    """Anthropic tells cache writes by their lifetime."""
    for holder in (usage, usage.get("usage") if isinstance(usage, Mapping) else None):
        kinds = holder.get("cache_creation") if isinstance(holder, Mapping) else None
        if isinstance(kinds, Mapping):
            hour = kinds.get("ephemeral_1h_input_tokens")
            return hour if type(hour) is int else 0
    return 0


def price_of(usage: CallUsage, model: Model | None = None) -> Cost | None:
    """What a call costs at list prices; None where the table does not have them all.

    Above the model's tier the whole prompt costs more.  (The table has no tier for output.)

    >>> price_of(CallUsage("claude-sonnet-4-5", read=1_000_000)).total
    0.3
    """
    model = model or models.find(usage.model)
    if model is None or model.input_price is None or model.output is None:
        return None
    if (usage.read and model.read is None) or (usage.written_1h and model.write_1h is None):
        return None
    dollars = model.input_price / 1e6
    dear = model.tier_tokens is not None and usage.prompt > model.tier_tokens
    prompt = dollars * ((model.tier or 1.0) if dear else 1.0)
    return Cost(
        usage.uncached * prompt,
        usage.read * prompt * (model.read or 0.0),
        usage.written * prompt * (1.0 if model.write is None else model.write),
        usage.written_1h * prompt * (model.write_1h or 0.0),
        usage.output * dollars * model.output,
    )


def summed(usages: Iterable[CallUsage]) -> dict[str, int]:
    """Tokens by kind, over all calls."""
    total = dict.fromkeys(KINDS, 0)
    for usage in usages:
        for kind in KINDS:
            total[kind] += getattr(usage, kind)
    return total
