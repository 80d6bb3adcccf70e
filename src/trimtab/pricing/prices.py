"""Named price tables: cache reads and writes as multiples of the input price, and lifetimes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trimtab.errors import InvalidSetting
from trimtab.pricing.models import Model


@dataclass(frozen=True, slots=True)
class Prices:
    """One provider's prices of a prompt, as multiples of the plain input price.

    ``read``: of a token read from the cache; ``write``: of one written to it; ``output``: of one
    that the model writes (a round ratio of list prices; it matters for summarizers only).
    ``min_tokens``: shorter prefixes are not cached.  ``step_tokens``: cache hits are multiples of
    it.  ``ttl_seconds``: how long a prefix lives after its last use; None if not documented (taken
    as for ever).  ``tier_tokens``/``tier``: above this size the whole request costs ``tier`` times
    as much.  ``about``: what the numbers apply to, and their source.
    """

    name: str
    read: float
    write: float
    output: float = 5.0
    min_tokens: int = 0
    step_tokens: int = 1
    ttl_seconds: int | None = None
    tier_tokens: int | None = None
    tier: float = 1.0
    about: str = ""

    def cached(self, prefix_tokens: int, gap_seconds: float) -> int:
        """How many tokens of a common prefix are read from the cache.

        ``gap_seconds``: time since the prefix was last used; negative if unknown, which counts as
        not expired.
        """
        if self.read >= 1.0 or prefix_tokens < self.min_tokens:
            return 0
        if self.ttl_seconds is not None and gap_seconds > self.ttl_seconds:
            return 0
        return prefix_tokens - prefix_tokens % self.step_tokens

    def prompt(self, tokens: int, prefix_tokens: int, gap_seconds: float = -1.0) -> float:
        """What a prompt costs, in plain input tokens.

        >>> TABLES["claude-5m"].prompt(10_000, 8_000)
        3300.0
        """
        cached = self.cached(min(prefix_tokens, tokens), gap_seconds)
        write = self.write if tokens >= self.min_tokens else 1.0
        billed = cached * self.read + (tokens - cached) * write
        above_tier = self.tier_tokens is not None and tokens > self.tier_tokens
        return billed * (self.tier if above_tier else 1.0)

    def call(self, tokens: int, output_tokens: int) -> float:
        """The cost of a call outside the conversation (a summary), of which nothing is cached."""
        return tokens + output_tokens * self.output


_CATALOGUE = "multiples in LiteLLM's price table 1.106.2"

TABLES: Mapping[str, Prices] = {
    prices.name: prices
    for prices in (
        Prices(
            "claude-5m", 0.10, 1.25, min_tokens=1024, ttl_seconds=300,
            about=f"Claude, breakpoints of 5 minutes: {_CATALOGUE}; least prefix of Sonnet 4 … 5 "
            "(512 to 4,096 by model)",
        ),
        Prices(
            "claude-1h", 0.10, 2.00, min_tokens=1024, ttl_seconds=3600,
            about=f"Claude, breakpoints of an hour: {_CATALOGUE}",
        ),
        Prices(
            "openai", 0.10, 1.25, output=8.0, min_tokens=1024, ttl_seconds=1800,
            tier_tokens=272_000, tier=2.0,
            about=f"OpenAI from GPT-5.6 on, where writing is billed: {_CATALOGUE}; 30 minutes is "
            "the one value prompt_cache_options.ttl takes",
        ),
        Prices(
            "openai-5", 0.10, 1.00, output=8.0, min_tokens=1024, step_tokens=128, ttl_seconds=600,
            tier_tokens=272_000, tier=2.0,
            about="OpenAI GPT-5 … 5.5: writing is free, hits in steps of 128, kept for 5–10 "
            f"minutes: {_CATALOGUE}",
        ),
        Prices(
            "gemini", 0.10, 1.00, output=8.0, min_tokens=4096, tier_tokens=200_000, tier=2.0,
            about=f"Gemini 3, implicit caching: {_CATALOGUE}; its lifetime is not documented",
        ),
        Prices(
            "deepseek", 0.033, 1.00, output=2.0, min_tokens=64, step_tokens=64,
            about=f"DeepSeek V4-pro, cache on disk (others 0.02–0.1): {_CATALOGUE}",
        ),
        Prices("none", 1.0, 1.0, about="no cache: every token at the plain price"),
    )
}  # fmt: skip


def named(name: str) -> Prices:
    """A table by its name.  Raises InvalidSetting."""
    if name not in TABLES:
        raise InvalidSetting(f"no price table {name!r}; there are {', '.join(TABLES)}")
    return TABLES[name]


def of_model(model: Model, *, hour: bool = False) -> Prices:
    """The price table of a model.  A price that its provider does not list is that of plain input;
    if writing to the cache is billed, a prefix is taken to live for five minutes, or with ``hour``
    for an hour, at the price of that."""
    hour = hour and model.write_1h is not None
    write = model.write_1h if hour else model.write
    return Prices(
        model.name, 1.0 if model.read is None else model.read,
        1.0 if write is None else write, min_tokens=model.min_cached or 0,
        output=TABLES["none"].output if model.output is None else model.output,
        ttl_seconds=None if write is None else 3600 if hour else 300,
        tier_tokens=model.tier_tokens, tier=model.tier or 1.0,
    )  # fmt: skip
