"""The report as one HTML page: tables, plots and the worst turns; it needs no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from trimtab.replay import plots
from trimtab.replay.metric import CallMetrics
from trimtab.replay.summary import SummaryRow
from trimtab.replay.table import COLUMNS, legend, meaning, name_of
from trimtab.reporting.pages import stylesheet, templates

WORST = 12
Results = Sequence[Mapping[str, Any]]


def template() -> Any:
    """The page's template.  Raises MissingExtra without jinja2."""
    return templates(__package__, "html").get_template("report.html")


def as_html(results: Results, lines: Sequence[SummaryRow], prices: str) -> str:
    """A whole page; nothing in it is loaded from elsewhere.  Raises MissingExtra."""
    page = template()
    from markupsafe import Markup

    policies = list(dict.fromkeys(line.policy for line in lines))
    colours = {name: plots.colour(number) for number, name in enumerate(policies)}
    heads = [*(head for _, head, _ in COLUMNS), "%orc"]
    text: str = page.render(
        style=Markup(stylesheet(__package__)),
        prices=prices,
        versions=", ".join(dict.fromkeys(name_of(line) for line in lines)),
        colours=colours,
        heads=[(head, meaning(head, prices)) for head in heads],
        parts=[
            _part(group, window, list(rows), colours)
            for (group, window), rows in groupby(lines, key=lambda line: (line.group, line.window))
        ],
        contexts=list(_contexts(results, colours)),
        worst=list(_worst(results)),
        legend=legend(prices),
    )
    return text


def _part(
    group: str, window: int, rows: Sequence[SummaryRow], colours: Mapping[str, str]
) -> dict[str, Any]:
    """One table, with its plots."""
    points = {
        line.policy: (line.figures["cost"] or 0.0, line.figures["g1"] or 0.0)
        for line in rows
        if line.figures["cost"] is not None and line.figures["g1"] is not None
    }
    return {
        "group": group, "window": f"{window:,}",
        "recordings": rows[0].recordings, "calls": f"{rows[0].calls:,}",
        "rows": [{"name": name_of(line), "cells": list(_cells(line))} for line in rows],
        "frontier": points and plots.FrontierPlot(points, title="frontier", colours=colours),
        "lost": list(_lost(rows, colours)),
    }  # fmt: skip


def _cells(line: SummaryRow) -> Iterator[tuple[str, str]]:
    """(figure, its interval or "") of each column."""
    for name, _, form in COLUMNS:
        value = line.figures.get(name)
        interval = ""
        if name in line.low:
            digits = 2 if name == "cost" else 0
            interval = f"{line.low[name]:.{digits}f}–{line.high[name]:.{digits}f}"
        yield "–" if value is None else form.format(value), interval
    share = line.of_oracle.get("g1")
    yield "–" if share is None else f"{share:.0f}", ""


def _lost(
    rows: Sequence[SummaryRow], colours: Mapping[str, str]
) -> Iterator[tuple[str, plots.BarPlot]]:
    for line in rows:
        if line.lost_by:
            top = dict(list(line.lost_by.items())[:10])
            title = f"lost by {line.policy}"
            yield line.policy, plots.BarPlot(top, title=title, fill=colours[line.policy])


def _contexts(results: Results, colours: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Tokens over the turns, of the longest recording of each source."""
    longest: dict[tuple[str, int], tuple[int, str]] = {}
    for result in results:
        place = (result["source"], result["window"])
        size = (result["tokens"], result["id"])
        if result["native"] == result["format"] and size > longest.get(place, (0, "")):
            longest[place] = size
    for (source, window), (_, name) in sorted(longest.items()):
        series = {
            result["policy"]: [CallMetrics(*row).tokens for row in result["rows"]]
            for result in results
            if result["id"] == name and result["window"] == window and result["source"] == source
        }
        plot = plots.LinePlot(series, limit=window, title=f"context {source}", colours=colours)
        yield {"source": source, "window": f"{window:,}", "recording": name, "plot": plot}


def _worst(results: Results) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """The turns of each policy that missed most, before and after."""
    by_policy: dict[str, list[tuple[int, Mapping[str, Any], Mapping[str, Any]]]] = {}
    for result in results:
        for turn in result["worst"]:
            place = by_policy.setdefault(f"{result['policy']}, window {result['window']:,}", [])
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
