"""Computes what a cut costs and saves, whether it pays, and when it is free.

Costs are in plain input tokens; a price converts them to currency.  The caller passes in how long
the cache has been idle.

Only the earliest edit of a cut costs: everything behind it is written to the cache instead of
read.  By cost alone a cut would always cut deeper; the target limits how deep, because content is
lost.  Cost decides *when*: at the trigger, or earlier where the cache is lost anyway, because it
has expired or because the client emptied an old result; and *whether*: not if it saves less than
the next turn adds.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from math import inf
from typing import Any

from trimtab.planning.eligibility import Bounds
from trimtab.planning.planner import Planner
from trimtab.pricing import models, outcome
from trimtab.pricing.prices import TABLES, Prices, named, of_model
from trimtab.transcript.model import Edit
from trimtab.transcript.token_sizes import TokenSizes
from trimtab.transcript.transcript import Transcript

COLD_SHARE = 0.5
"""With a lost cache a cut starts at this share of the way from the target to the trigger."""

MIN_SHARE = 0.03
"""A cut that saves this share of the capacity is worth a lost cache, whatever the next turn
adds."""

MIN_SAVED_TOKENS = 64
"""Tokens: a cut that is not forced must save more.  The two notes of a fold cost about as much,
so a request at its minimum is not fitted again just for shorter notes."""


@dataclass(frozen=True)
class CutEffect:
    """The effect of one cut.  ``rewritten``: tokens behind its earliest edit, as sent;
    ``saved``: by how many tokens each later request is smaller; ``cold``: whether the cached prefix
    had expired."""

    rewritten: int
    saved: int
    cold: bool = False


@dataclass(frozen=True)
class CutCost:
    """The cost of a cut under a price table, in plain input tokens.

    ``once``: the extra cost of the request with the cut (negative: it costs less); ``each``: what
    every later request saves; ``break_even``: after how many later requests it has paid (None:
    never); ``requests``: how many are still expected; ``gain``: the net saving over these;
    ``dollars``: the gain in US dollars, if the model's price is known.
    """

    prices: str
    rewritten: int
    saved: int
    cold: bool
    once: int
    each: int
    break_even: int | None
    requests: int
    gain: int
    dollars: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)

    def __str__(self) -> str:
        where = "the cache was cold" if self.cold else f"{self.rewritten:,} tokens written again"
        paid = "it never pays" if self.break_even is None else (
            f"it pays after {self.break_even:,} request{'s' * (self.break_even != 1)}"
            if self.break_even else "it pays at once"
        )  # fmt: skip
        worth = f"about {abs(self.gain):,} tokens {'less' if self.gain > 0 else 'more'}"
        if self.dollars is not None:
            worth = outcome.difference(-self.dollars, 0.0)
        return (
            f"{self.prices}: {where}, {self.saved:,} fewer in each request; {paid}; over "
            f"{self.requests:,} more requests: {worth}"
        )


def extra_cost(prices: Prices, cut: CutEffect) -> float:
    """The extra cost of the request with the cut, in plain input tokens.

    >>> from trimtab.pricing.prices import TABLES
    >>> round(extra_cost(TABLES["claude-5m"], CutEffect(rewritten=10_000, saved=5_000)))
    11000
    """
    read, write = prices.read, prices.write
    if cut.cold or read >= 1.0:
        return -cut.saved * (write if cut.cold else 1.0)
    return cut.rewritten * (write - read) - cut.saved * read


def break_even(prices: Prices, cut: CutEffect) -> float:
    """After how many later requests a cut has paid: 0 if at once, ``inf`` if never."""
    cost, each = extra_cost(prices, cut), cut.saved * prices.read
    return 0.0 if cost <= 0 else inf if each <= 0 else cost / each


def cut_cost(
    prices: Prices, cut: CutEffect, requests: int, dollars_per_million: float | None
) -> CutCost:
    """The cost of ``cut`` under ``prices``, over ``requests`` later requests."""
    cost, each, even = (
        extra_cost(prices, cut),
        cut.saved * prices.read,
        break_even(prices, cut),
    )
    gain = requests * each - cost
    dollars = None if dollars_per_million is None else round(gain * dollars_per_million / 1e6, 6)
    return CutCost(
        prices.name, cut.rewritten, cut.saved, cut.cold, round(cost), round(each),
        None if even == inf else -int(-even // 1), requests, round(gain), dollars,
    )  # fmt: skip


MIN_SAVED_SHARE = 0.25
"""Share of a request that a cut before the trigger must save: a cut moves the whole cache."""


def pays(prices: Prices, cut: CutEffect, tokens: int, calls: int) -> bool:
    """Whether a cut of a request of ``tokens`` pays before the trigger, after ``calls`` calls
    without one.

    As many calls are expected as there were: with no knowledge of the future a cut made when the
    past calls would have paid for it costs at most twice the best (the rule of renting skis).
    """
    return cut.saved >= MIN_SAVED_SHARE * tokens and break_even(prices, cut) < calls


def requests_left(transcript: Transcript) -> int:
    """The expected number of requests still to come: as many as there were so far, the usual
    estimate for a session of unknown length."""
    return max(1, sum(1 for message in transcript.messages if message.role == "assistant"))


DEFAULT, HOUR = TABLES["claude-5m"], TABLES["claude-1h"]
"""DEFAULT applies where nothing else is known: with it a lost cache is expensive."""

COLD_SECONDS = 3600
"""The lifetime of a cached prefix where neither a table nor the request says it: the longest
default of any provider in our tables."""


def lifetime(table: str | None, transcript: Transcript) -> float:
    """Seconds that a cached prefix lives: by the named table, else as the request's own breakpoints
    say; ``inf`` where it is not documented."""
    if table is not None:
        return named(table).ttl_seconds or inf
    seconds: int | None = transcript.facts.extra.get("cache_seconds")
    return seconds or COLD_SECONDS


def prices_of(table: str | None, transcript: Transcript) -> Prices:
    """The prices of a request: the named table, else what its breakpoints say, else its model."""
    if table is not None:
        return named(table)
    seconds: int | None = transcript.facts.extra.get("cache_seconds")
    if seconds is not None:
        return HOUR if seconds > (DEFAULT.ttl_seconds or 0) else DEFAULT
    model = models.find(transcript.facts.model or "")
    return DEFAULT if model is None or model.read is None else of_model(model)


def bounds_for_lost_cache(bounds: Bounds) -> Bounds:
    """Bounds with an earlier trigger for a request whose cache is lost anyway: a cut that would
    come soon is made now, while rewriting the prefix costs nothing extra."""
    share = bounds.target + COLD_SHARE * (1.0 - bounds.target)
    return replace(bounds, trigger=min(bounds.trigger, int(bounds.trigger * share)))


def is_worthwhile(transcript: Transcript, sizes: TokenSizes, capacity: int, saved: int) -> bool:
    """Whether a cut that is not forced saves more than the next call will take, or a share of
    ``capacity``.  A smaller one would lose the cache at every turn."""
    least = min(tokens_of_calls(transcript, sizes, 1) or 0, int(capacity * MIN_SHARE))
    return saved > max(least, MIN_SAVED_TOKENS)


class SentTokens:
    """The tokens before each message in the request that a plan would send."""

    def __init__(self, planner: Planner) -> None:
        transcript, sizes, state = planner.transcript, planner.sizes, planner.state
        tokens = []
        for number, message in enumerate(transcript.messages):
            places = [p for p in transcript.places_in(number) if not state.is_dropped(p)]
            tokens.append(sum(map(state.cost, places)) + sizes.overhead(message) if places else 0)
        self._before = list(accumulate(tokens, initial=sizes.head(transcript)))
        runs = state.runs
        self._noted = [transcript.groups[run.first].first for run in runs]
        self._notes = list(accumulate((run.tokens for run in runs), initial=0))

    def before(self, number: int) -> int:
        """Tokens before a message, notes included."""
        number = max(0, number)
        return self._before[number] + self._notes[bisect_right(self._noted, number - 1)]


def cut_of(
    planner: Planner, new: tuple[Edit, ...], before: int, after: int, cold: bool
) -> CutEffect:
    """The cut of the new edits; ``before`` and ``after``: tokens of the whole request."""
    refs = planner.transcript.refs
    numbers = [refs[ref].message for edit in new for ref in edit.targets if ref in refs]
    return CutEffect(
        max(0, after - SentTokens(planner).before(min(numbers, default=0))), before - after, cold
    )


# --- the tokens that calls still to come will take ---

MARGIN = 1.1
"""Factor on the average size of a tool call, because results vary in size."""


def tokens_of_calls(transcript: Transcript, sizes: TokenSizes, number: int) -> int | None:
    """The tokens that so many more tool calls will take, if they are as large as those so far; None
    if there were none.  (What the history grows by *now* is ``Eligibility.growth``.)"""
    sums = sizes.runs(transcript)
    calls, cost = sums.calls[-1], sums.closed[-1]
    if not calls:
        return None if number else 0
    return int(MARGIN * number * cost / calls)


def with_calls_left(
    bounds: Bounds, transcript: Transcript, sizes: TokenSizes, calls_left: int
) -> Bounds:
    """Bounds that cut no earlier and no deeper than ``calls_left`` more tool calls need."""
    added = tokens_of_calls(transcript, sizes, calls_left)
    if added is None:
        return bounds
    if sizes.measure(transcript) + added <= bounds.capacity:
        return replace(bounds, trigger=bounds.capacity)
    return replace(bounds, target=max(bounds.target, 1 - added / bounds.capacity))
