"""Computes figures from the metric's rows (shares, cost, intervals), by source, task or overall."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trimtab.pricing import models
from trimtab.pricing.prices import TABLES, Prices, named, of_model
from trimtab_lab.replay.bill_estimate import TokenLine
from trimtab_lab.replay.metric import CallMetrics

RESAMPLES = 1000
SEED = 20_260_101
"""Fixed, so that the same results give the same intervals."""

SHARES = {
    "recall": ("need_kept", "need"),
    "old": ("old_kept", "old"),
    "g1": ("ground_kept", "ground"),
    "g3": ("wide_kept", "wide"),
    "lines": ("line_kept", "line"),
    "next": ("fresh_kept", "fresh"),
    "user": ("demand_kept", "demand"),
    "handle": ("recoverable", "lost"),
    "find": ("found", "sought"),
    "find_all": ("found_all", "sought"),
    "room": ("used", "goal"),
    "true": ("quoted_true", "quoted"),
    "shown": ("edits_shown", "edits"),
    "placed": ("edit_lines_placed", "edit_lines"),
}
"""Figure → (column of what was kept, column of what was needed); shown in percent."""
_ANSWERED = {
    "need_kept", "old_kept", "ground_kept", "wide_kept", "line_kept", "fresh_kept", "demand_kept",
    "lost", "recoverable", "sought", "found", "found_all",
}  # fmt: skip
"""Columns that a refused request adds nothing to: it keeps nothing, and nobody asks it."""


@dataclass
class Tally:
    """Sums over the calls of some recordings."""

    recordings: int = 0
    calls: int = 0
    sums: Counter[str] = field(default_factory=Counter)
    billed: float = 0.0
    full_billed: float = 0.0
    bills: dict[str, float] = field(default_factory=dict)
    """Price table → cost of the prompts; "… in full": the cost of sending everything."""
    dollars: float = 0.0
    full_dollars: float = 0.0
    priced: int = 0
    """How many recordings have a model with a list price; the dollars cover only these."""
    cpu_us: list[int] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    versions: set[str] = field(default_factory=set)
    formats: set[str] = field(default_factory=set)

    def add(self, other: Tally) -> None:
        """Add another tally."""
        self.recordings += other.recordings
        self.calls += other.calls
        self.billed += other.billed
        self.full_billed += other.full_billed
        self.dollars += other.dollars
        self.full_dollars += other.full_dollars
        self.priced += other.priced
        self.cpu_us += other.cpu_us
        for name, tokens in other.bills.items():
            self.bills[name] = self.bills.get(name, 0.0) + tokens
        for name in ("sums", "errors"):
            getattr(self, name).update(getattr(other, name))
        self.versions |= other.versions
        self.formats |= other.formats

    def figures(self) -> dict[str, float | None]:
        """Shares in percent (None: nothing was needed), cost of the answered requests as a share of
        sending everything, breaks per 20 turns, milliseconds per call and counts.  If a policy
        failed on every call, the cost is None."""
        sums = self.sums
        worked = sums["failed"] < self.calls
        values: dict[str, float | None] = {
            name: 100 * sums[numerator] / sums[denominator] if sums[denominator] else None
            for name, (numerator, denominator) in SHARES.items()
        }
        times = sorted(self.cpu_us)
        calls = max(1, self.calls)
        return {
            **values,
            "answered": 100 * sums["answered"] / calls,
            "refused": self.calls - sums["answered"],
            "cost": self.billed / self.full_billed if self.full_billed and worked else None,
            "hit": 100 * sums["prefix"] / sums["tokens"] if sums["tokens"] else None,
            "breaks": 20 * sums["broke"] / calls,
            "over": sums["over"],
            "invalid": sums["invalid"],
            "failed": sums["failed"],
            "stale": sums["stale"],
            "call_like": sums["call_like"],
            "sent": sums["tokens"],
            "billed": self.billed,
            "dollars": self.dollars if self.priced and worked else None,
            "full_dollars": self.full_dollars if self.priced else None,
            "priced": self.priced,
            "mean_ms": sum(times) / calls / 1000,
            "p99_ms": times[min(len(times) - 1, len(times) * 99 // 100)] / 1000 if times else 0.0,
            "session_ms": sum(times) / max(1, self.recordings) / 1000,
        }

    def costs(self) -> dict[str, float]:
        """Cost as a share of sending everything, under each price table."""
        return {
            name: self.bills[name] / full
            for name in TABLES
            if (full := self.bills.get(_in_full(name)))
        }


def _in_full(name: str) -> str:
    return f"{name} in full"


def answered(row: CallMetrics) -> bool:
    """Whether the provider would have answered the request."""
    return not (row.over or row.invalid or row.failed)


def billed(rows: Iterable[CallMetrics], prices: Prices) -> float:
    """The cost of a session's answered prompts under ``prices``, in plain input tokens, including
    the policy's own model calls.

    A refused request costs nothing and writes nothing to the cache: the next one finds what the
    last answered request left there.
    """
    total, shared, waited = 0.0, sys.maxsize, -1.0
    for row in rows:
        if row.asked_in or row.asked_out:
            total += prices.call(row.asked_in, row.asked_out)
        shared = min(shared, row.prefix)
        waited = row.gap if waited < 0 else waited + max(0.0, row.gap)
        if answered(row):
            total += prices.prompt(row.tokens, shared, waited)
            shared, waited = sys.maxsize, -1.0
    return total


def full_billed(rows: Sequence[CallMetrics], prices: Prices) -> float:
    """The cost of sending everything, where each request repeats the previous one."""
    total, before = 0.0, 0
    for row in rows:
        total += prices.prompt(row.full, before, row.gap)
        before = row.full
    return total


def in_billed_tokens(rows: list[CallMetrics], line: Sequence[float] | None) -> list[CallMetrics]:
    """``rows`` with sizes in the provider's tokens, system text and tools included.

    ``line``: a ``TokenLine``; None: the log does not say how the provider counts.
    """
    if line is None:
        return rows
    tokens = TokenLine(*line).tokens
    return [
        row._replace(
            full=round(tokens(row.full)), tokens=round(tokens(row.tokens)),
            prefix=round(min(tokens(row.prefix), tokens(row.tokens))) if number else 0,
        )
        for number, row in enumerate(rows)
    ]  # fmt: skip


def tally(result: Mapping[str, Any], prices: Prices) -> Tally:
    """The sums of one result (one recording, one policy, one window)."""
    rows = [CallMetrics(*row) for row in result["rows"]]
    sums: Counter[str] = Counter()
    for number, name in enumerate(CallMetrics._fields):
        if name not in ("turn", "gap"):
            counted = filter(answered, rows) if name in _ANSWERED else rows
            sums[name] = sum(int(row[number]) for row in counted)
    sums["answered"] = sum(map(answered, rows))
    rows = in_billed_tokens(rows, result.get("line"))
    bills = {name: billed(rows, table) for name, table in TABLES.items()}
    bills |= {_in_full(name): full_billed(rows, table) for name, table in TABLES.items()}
    dollars, full_dollars, priced = _dollars(
        rows, result.get("model"), hour=bool(result.get("hour"))
    )
    return Tally(
        1, len(rows), sums, billed(rows, prices), full_billed(rows, prices), bills,
        dollars, full_dollars, priced, [row.cpu_us for row in rows],
        Counter(result["errors"]), {result["version"]},
        {f"{result['native']} → {result['format']}"}
        if result["native"] != result["format"] else set(),
    )  # fmt: skip


def _dollars(
    rows: Sequence[CallMetrics], name: str | None, *, hour: bool
) -> tuple[float, float, int]:
    """(cost in US dollars of what was sent, of sending everything, 1); zeros if the model has no
    list price.  ``hour``: with a cache that lives for an hour."""
    model = models.find(name) if name else None
    if model is None or model.input_price is None:
        return 0.0, 0.0, 0
    prices, dollars = of_model(model, hour=hour), model.input_price / 1e6
    return billed(rows, prices) * dollars, full_billed(rows, prices) * dollars, 1


@dataclass(frozen=True)
class SummaryRow:
    """One line of a table: a policy at a window on one group of recordings.

    ``low``/``high``: 95 % intervals by resampling recordings.  ``costs``: the cost under each price
    table.
    """

    group: str
    window: int
    policy: str
    version: str
    recordings: int
    calls: int
    figures: Mapping[str, float | None]
    low: Mapping[str, float]
    high: Mapping[str, float]
    errors: Mapping[str, int]
    note: str
    costs: Mapping[str, float]


@dataclass(frozen=True)
class ReplaySummary:
    """The data of a report: the results, table rows by group (``lines``) and over all (``pooled``),
    the price table, whether it was named, in place of the models' own prices, and how many
    recordings were left out because they fit the smallest window."""

    results: Sequence[Mapping[str, Any]]
    lines: Sequence[SummaryRow]
    pooled: Sequence[SummaryRow]
    prices: str
    left_out: int = 0
    named: bool = False

    @property
    def named_prices(self) -> str:
        """The price table if it was named; "": the models' own prices count."""
        return self.prices if self.named else ""

    @classmethod
    def of(
        cls, results: Sequence[Mapping[str, Any]], *, prices: str = "claude-5m",
        by: Callable[[Mapping[str, Any]], str] = lambda result: str(result["source"]),
        left_out: int = 0, named: bool = False,
    ) -> ReplaySummary:  # fmt: skip
        """Summarize ``results``.  Raises InvalidSetting for an unknown price table."""
        lines = summarize(results, prices=prices, by=by)
        pooled = summarize(results, prices=prices, by=lambda result: "all")
        return cls(results, lines, pooled, prices, left_out, named)


INTERVALS = ("recall", "old", "g1", "g3", "lines", "cost")


def summarize(
    results: Iterable[Mapping[str, Any]],
    *,
    prices: str = "claude-5m",
    by: Callable[[Mapping[str, Any]], str] = lambda result: str(result["source"]),
) -> list[SummaryRow]:
    """One line for each group, window and policy, in order of first appearance.

    Raises InvalidSetting for an unknown price table.
    """
    table = named(prices)
    groups: dict[tuple[str, int], dict[str, list[Tally]]] = {}
    # Sorted, so that with any number of workers the same random draws select the same recordings.
    for result in sorted(results, key=lambda r: str(r["id"])):
        if result["rows"]:
            place = groups.setdefault((by(result), result["window"]), {})
            place.setdefault(result["policy"], []).append(tally(result, table))
    lines = []
    for (group, window), policies in sorted(groups.items(), key=lambda item: item[0]):
        lines += [_line(group, window, name, tallies) for name, tallies in policies.items()]
    return lines


def _line(group: str, window: int, policy: str, tallies: Sequence[Tally]) -> SummaryRow:
    total = _sum(tallies)
    figures = total.figures()
    low, high = intervals(tallies)
    return SummaryRow(
        group, window, policy, ", ".join(sorted(total.versions)), total.recordings, total.calls,
        figures, low, high, dict(total.errors.most_common()),
        "; ".join(sorted(total.formats)), total.costs(),
    )  # fmt: skip


def _sum(tallies: Iterable[Tally]) -> Tally:
    total = Tally()
    for part in tallies:
        total.add(part)
    return total


def intervals(tallies: Sequence[Tally]) -> tuple[dict[str, float], dict[str, float]]:
    """2.5th and 97.5th percentile of each figure over resampled recordings."""
    if len(tallies) < 2:
        return {}, {}
    chance = random.Random(SEED)
    parts: dict[str, list[tuple[float, float]]] = {
        name: [(t.sums[numerator], t.sums[denominator]) for t in tallies]
        for name, (numerator, denominator) in SHARES.items()
        if name in INTERVALS
    }
    parts["cost"] = [(t.billed, t.full_billed) for t in tallies]
    drawn: dict[str, list[float]] = {name: [] for name in parts}
    for _ in range(RESAMPLES):
        chosen = chance.choices(range(len(tallies)), k=len(tallies))
        for name, pairs in parts.items():
            denominator = sum(pairs[n][1] for n in chosen)
            if denominator:
                scale = 1 if name == "cost" else 100
                drawn[name].append(scale * sum(pairs[n][0] for n in chosen) / denominator)
    low, high = {}, {}
    for name, values in drawn.items():
        if values:
            values.sort()
            low[name] = values[int(0.025 * len(values))]
            high[name] = values[min(len(values) - 1, int(0.975 * len(values)))]
    return low, high
