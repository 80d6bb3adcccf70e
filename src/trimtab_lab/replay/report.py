"""Results as JSON, CSV and HTML."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import asdict

from trimtab_lab.replay import html_report
from trimtab_lab.replay.summary import INTERVALS, ReplaySummary, SummaryRow
from trimtab_lab.replay.verdict import verdict


def as_json(summary: ReplaySummary) -> str:
    """The verdict, all table rows, and the rows of every recording."""
    whole = {
        "verdict": verdict(summary.pooled, summary.left_out, summary.named_prices),
        "prices": summary.prices, "left_out": summary.left_out,
        "pooled": [asdict(line) for line in summary.pooled],
        "lines": [asdict(line) for line in summary.lines], "results": list(summary.results),
    }  # fmt: skip
    return json.dumps(whole, indent=1)


def as_csv(summary: ReplaySummary) -> str:
    """One line for each table row, those over all recordings first; a figure that is undefined is
    an empty cell."""
    out, lines = io.StringIO(), _all_first(summary)
    names = list(lines[0].figures) if lines else []
    tables = list(lines[0].costs) if lines else []
    head = ["group", "window", "policy", "version", "recordings", "calls", "prices", *names]
    writer = csv.writer(out, lineterminator="\n")
    ends = [f"{n}_{end}" for n in INTERVALS for end in ("low", "high")]
    writer.writerow([*head, *ends, *(f"cost_{name}" for name in tables)])
    for line in lines:
        labels = [line.group, line.window, line.policy, line.version, line.recordings, line.calls]
        figures = [_cell(line.figures[name]) for name in names]
        ends = [_cell(side.get(n)) for n in INTERVALS for side in (line.low, line.high)]
        costs = [_cell(line.costs.get(name)) for name in tables]
        writer.writerow([*labels, summary.prices, *figures, *ends, *costs])
    return out.getvalue()


def _all_first(summary: ReplaySummary) -> list[SummaryRow]:
    """The rows over all recordings, then those by group; without duplicates."""
    groups = {line.group for line in summary.lines}
    return [*(summary.pooled if groups != {"all"} else ()), *summary.lines]


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


WRITERS: dict[str, Callable[[ReplaySummary], str]] = {
    "json": as_json,
    "csv": as_csv,
    "html": html_report.as_html,
}
"""File suffix → the function that writes it."""
