"""Results as JSON, CSV and HTML."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from trimtab.replay import html_report
from trimtab.replay.summary import INTERVALS, SummaryRow

Results = Sequence[Mapping[str, Any]]


def as_json(results: Results, lines: Sequence[SummaryRow], prices: str) -> str:
    """Every line of the table, and the rows of every recording behind it."""
    whole = {"prices": prices, "lines": [asdict(line) for line in lines], "results": list(results)}
    return json.dumps(whole, indent=1)


def as_csv(results: Results, lines: Sequence[SummaryRow], prices: str) -> str:
    """One line for each row of the table; a share of nothing is an empty cell."""
    out = io.StringIO()
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
        writer.writerow([*labels, prices, *figures, *ends, *costs])
    return out.getvalue()


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


WRITERS: dict[str, Callable[[Results, Sequence[SummaryRow], str], str]] = {
    "json": as_json,
    "csv": as_csv,
    "html": html_report.as_html,
}
"""What can be written, by the end of its name."""
