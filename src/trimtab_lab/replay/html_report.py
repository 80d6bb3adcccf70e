"""The report as one HTML page: which window to use, the verdicts, the table, all figures by source.

It needs no network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from trimtab.amounts import short
from trimtab.reporting.pages import stylesheet, templates
from trimtab_lab.replay import advice, verdict
from trimtab_lab.replay.summary import ReplaySummary, SummaryRow
from trimtab_lab.replay.table import COLUMNS, legend, name_of

WORST = 12
Results = Sequence[Mapping[str, Any]]


def template() -> Any:
    """The page's template.  Raises MissingExtra without jinja2."""
    return templates(__package__, "html").get_template("report.html")


def as_html(summary: ReplaySummary) -> str:
    """A whole page; nothing in it is loaded from elsewhere.  Raises MissingExtra."""
    page = template()
    from markupsafe import Markup

    pooled, prices = summary.pooled, summary.prices
    policies = list(dict.fromkeys(row.policy for row in (*pooled, *summary.lines)))
    heads = [head for _, head, _ in COLUMNS]
    plain = verdict.plain_heads(pooled, summary.named_prices)
    text: str = page.render(
        style=Markup(stylesheet(__package__)),
        prices=prices,
        versions=", ".join(dict.fromkeys(name_of(line) for line in pooled)),
        recordings=max((row.recordings for row in pooled), default=0),
        calls=max((row.calls for row in pooled), default=0),
        left_out=verdict.left_out_note(summary.left_out) if summary.left_out else "",
        advice=_advice(summary),
        verdicts=verdict.window_verdicts(pooled, summary.named_prices),
        plain=list(verdict.column_meanings(plain, prices).items()),
        about=[(name, verdict.POLICIES[name]) for name in policies if name in verdict.POLICIES],
        windows=list(_windows(pooled, plain)),
        heads=heads,
        parts=[
            _part(group, window, list(rows))
            for (group, window), rows in groupby(
                summary.lines, key=lambda line: (line.group, line.window)
            )
        ],
        worst=list(_worst(summary.results)),
        legend=legend(prices),
    )
    return text


def _advice(summary: ReplaySummary) -> str:
    """Which of the windows to use, as ``--advise`` says it; "" where there is no choice."""
    windows = {row.window for row in summary.pooled}
    there = {(row.window, row.policy) for row in summary.pooled}
    compared = all((window, policy) in there for window in windows for policy in advice.POLICIES)
    if len(windows) < 2 or not compared:
        return ""
    offered = advice.choices(summary.pooled, in_dollars=not summary.named)
    return advice.sentence(offered) if any(one.fits for one in offered) else ""


def _windows(pooled: Sequence[SummaryRow], heads: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The plain table over all recordings, one for each window."""
    for window, some in groupby(pooled, key=lambda row: row.window):
        yield {
            "window": short(window),
            "rows": [
                {"name": row.policy, "cells": verdict.plain_cells(row, heads),
                 "errors": [f"{count:,} × {error}" for error, count in [*row.errors.items()][:2]]}
                for row in some
            ],
        }  # fmt: skip


def _part(group: str, window: int, rows: Sequence[SummaryRow]) -> dict[str, Any]:
    """All figures of one group."""
    return {
        "group": group, "window": f"{window:,}",
        "recordings": rows[0].recordings, "calls": rows[0].calls,
        "rows": [{"name": line.policy, "cells": list(_cells(line))} for line in rows],
    }  # fmt: skip


def _cells(line: SummaryRow) -> Iterator[tuple[str, str]]:
    """(figure, its interval or "") for each column."""
    for name, _, form in COLUMNS:
        value = line.figures.get(name)
        interval = ""
        if name in line.low and value is not None:
            digits = 2 if name == "cost" else 0
            interval = f"{line.low[name]:.{digits}f}–{line.high[name]:.{digits}f}"
        yield "–" if value is None else form.format(value), interval


def _worst(results: Results) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """The turns of each policy with most losses, with the text before and after."""
    by_policy: dict[str, list[tuple[int, Mapping[str, Any], Mapping[str, Any]]]] = {}
    for result in results:
        for turn in result["worst"]:
            name = f"{result['policy']}, window {short(result['window'])}"
            place = by_policy.setdefault(name, [])
            place.append((len(turn["losses"]), result, turn))
    for policy, turns in by_policy.items():
        turns.sort(key=lambda item: (-item[0], item[1]["id"], item[2]["turn"]))
        yield policy, [
            {
                "call": f"{result['id'][-40:]} #{turn['turn']}", "identifier": identifier,
                "place": f"{tool} {kind}".strip(), "before": line, "after": now,
            }
            for _, result, turn in turns[:WORST]
            for identifier, _, kind, tool, line, now in turn["losses"][:3]
        ]  # fmt: skip
