"""The billed tokens of one model call by kind of price, and their cost in US dollars.

The tokens are those that the provider reported; the prices are the list prices in our table of
models.  If either is missing there is no figure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from trimtab.pricing import models
from trimtab.pricing.reported_usage import read_usage

KINDS = ("uncached", "read", "written", "written_1h", "output")


@dataclass(frozen=True, slots=True)
class CallUsage:
    """Tokens of one call, or a sum over several calls of one model.

    ``uncached`` input at the plain price, ``read`` from the cache, ``written`` to it for the
    provider's default time (5 minutes at Anthropic), ``written_1h`` for an hour, ``output`` with
    thinking.  ``id``: the provider's id of the answer, "" if the log has none; needed because a
    resumed session is logged twice.
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
        """The cost of the whole prompt."""
        return self.uncached + self.read + self.written + self.written_1h

    @property
    def total(self) -> float:
        """The cost of prompt and output."""
        return self.prompt + self.output

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, kind) + getattr(other, kind) for kind in KINDS))

    def as_dict(self) -> dict[str, float]:
        """By kind, and the sum; rounded to a millionth of a dollar."""
        return {**{k: round(v, 6) for k, v in asdict(self).items()}, "total": round(self.total, 6)}


def read_call(usage: Any, model: Any, id: str = "") -> CallUsage | None:
    """The tokens in a usage that a provider reported (any format); None if it has none."""
    reported = read_usage(usage)
    if reported is None or not reported.input_tokens:
        return None
    hour = reported.written_1h
    new = max(reported.input_tokens - reported.read - reported.written, 0)
    return CallUsage(
        str(model or ""), new, reported.read, reported.written - hour, hour,
        reported.output_tokens, id,
    )  # fmt: skip


def is_above_tier(usage: CallUsage) -> bool:
    """Whether a call's prompt is above its model's tier, where input costs more."""
    model = models.find(usage.model)
    return bool(model and model.tier_tokens is not None and usage.prompt > model.tier_tokens)


def price_of(usage: CallUsage, *, above_tier: bool | None = None) -> Cost | None:
    """The cost of a call at list prices; None if the table lacks one of them.

    Above the model's tier the whole prompt costs more.  (The table has no tier for output.)
    ``above_tier``: whether the calls of a sum are above the tier; None: ``usage`` is one call.

    >>> round(price_of(CallUsage("claude-sonnet-4-5", read=1_000_000)).total, 6)
    0.3
    """
    model = models.find(usage.model)
    if model is None or model.input_price is None or model.output is None:
        return None
    if (usage.read and model.read is None) or (usage.written_1h and model.write_1h is None):
        return None
    dollars = model.input_price / 1e6
    above_tier = is_above_tier(usage) if above_tier is None else above_tier
    prompt = dollars * ((model.tier or 1.0) if above_tier else 1.0)
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
