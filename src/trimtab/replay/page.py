"""The report as one HTML page: tables, plots and the worst turns, readable without a network.

Knows HTML.  Does not know how a figure came about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any

from trimtab.replay import svg
from trimtab.replay.judge import Row
from trimtab.replay.summary import Line
from trimtab.replay.table import COLUMNS, legend, meaning, name_of

STYLE = """
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:1100px;padding:0 1rem;
color:#1a1a1a;background:#fff}
h1{font-size:1.5rem}h2{margin-top:2.5rem;border-bottom:1px solid #ccc}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px}
th[title]{cursor:help}td small{white-space:nowrap}
th,td{padding:3px 8px;text-align:right;border-bottom:1px solid #e4e4e4}
th:first-child,td:first-child,td.text{text-align:left}
small{color:#666}.grid{stroke:#e8e8e8}.tick{font-size:11px;fill:#555}.axis{font-size:12px}
.limit{stroke:#d00;stroke-dasharray:5 4}.series{stroke-width:1.6}.frontier{stroke:#bbb}
.label{font-size:12px}.key i{display:inline-block;width:10px;height:10px;margin:0 4px 0 12px}
.wide{overflow-x:auto}code{background:#f4f4f4;white-space:pre-wrap;overflow-wrap:anywhere}
del{background:#fde8e8;text-decoration:none}ins{background:#e6f6e6;text-decoration:none}
.lost{display:grid;grid-template-columns:repeat(auto-fill,minmax(470px,1fr))}
@media(prefers-color-scheme:dark){body{background:#16181c;color:#ddd}.tick,small{fill:#aaa;
color:#aaa}.axis,.label{fill:#ddd}.grid{stroke:#333}th,td{border-color:#333}code{background:#222}
del{background:#4a1f1f}ins{background:#1f3d24}}
"""
WORST = 12


def as_html(results: Sequence[Mapping[str, Any]], lines: Sequence[Line], prices: str) -> str:
    """A whole page; nothing in it is loaded from elsewhere."""
    policies = list(dict.fromkeys(line.policy for line in lines))
    colours = {name: svg.colour(number) for number, name in enumerate(policies)}
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width'>",
        f"<title>trimtab replay</title><style>{STYLE}</style><h1>trimtab replay</h1>",
        f"<p>Price table: <b>{escape(prices)}</b>. ", _versions(lines), "</p>",
        "<p class=key>",
        *(f"<span><i style='background:{c}'></i>{escape(n)}</span>" for n, c in colours.items()),
        "</p>",
    ]  # fmt: skip
    for (group, window), some in groupby(lines, key=lambda line: (line.group, line.window)):
        rows = list(some)
        parts += [f"<h2>{escape(group)}, window {window:,}</h2>", *_table(rows, prices)]
        points = {
            line.policy: (line.figures["cost"] or 0.0, line.figures["g1"] or 0.0)
            for line in rows
            if line.figures["cost"] is not None and line.figures["g1"] is not None
        }
        if points:
            parts.append("<h3>Cost against grounded recall</h3>")
            parts.append(svg.frontier(points, title="frontier", colours=colours))
        parts += _lost(rows, colours)
    parts += _contexts(results, colours)
    parts += _worst(results)
    parts.append(f"<h2>Columns</h2><pre>{escape(legend(prices))}</pre></html>")
    return "\n".join(parts)


def _versions(lines: Sequence[Line]) -> str:
    known = dict.fromkeys(name_of(line) for line in lines)
    return escape(", ".join(known))


def _table(rows: Sequence[Line], prices: str) -> Iterator[str]:
    yield f"<p>{rows[0].recordings} recordings, {rows[0].calls:,} calls</p>"
    yield "<div class=wide><table><tr><th>policy"
    heads = [*(head for _, head, _ in COLUMNS), "%orc"]
    yield "".join(f"<th title='{escape(meaning(h, prices))}'>{escape(h)}" for h in heads) + "</tr>"
    for line in rows:
        cells = [f"<td>{escape(name_of(line))}"]
        for name, _, form in COLUMNS:
            value = line.figures.get(name)
            text = "–" if value is None else form.format(value)
            if name in line.low:
                digits = 2 if name == "cost" else 0
                ends = f"{line.low[name]:.{digits}f}–{line.high[name]:.{digits}f}"
                text += f"<br><small>{ends}</small>"
            cells.append(f"<td>{text}")
        share = line.of_oracle.get("g1")
        cells.append(f"<td>{'–' if share is None else f'{share:.0f}'}")
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</table></div>"


def _lost(rows: Sequence[Line], colours: Mapping[str, str]) -> Iterator[str]:
    some = [line for line in rows if line.lost_by]
    if some:
        yield "<h3>What was lost, by tool and kind</h3><div class=lost>"
        for line in some:
            top = dict(list(line.lost_by.items())[:10])
            plot = svg.bars(top, title=f"lost by {line.policy}", fill=colours[line.policy])
            yield f"<figure><figcaption>{escape(line.policy)}</figcaption>{plot}</figure>"
        yield "</div>"


def _contexts(results: Sequence[Mapping[str, Any]], colours: Mapping[str, str]) -> Iterator[str]:
    """Tokens over the turns, of the longest recording of each source."""
    yield "<h2>Context over turns</h2><p>The longest recording of each source.</p>"
    longest: dict[tuple[str, int], tuple[int, str]] = {}
    for result in results:
        place = (result["source"], result["window"])
        size = (result["tokens"], result["id"])
        if result["native"] == result["format"] and size > longest.get(place, (0, "")):
            longest[place] = size
    for (source, window), (_, name) in sorted(longest.items()):
        series = {
            result["policy"]: [Row(*row).tokens for row in result["rows"]]
            for result in results
            if result["id"] == name and result["window"] == window and result["source"] == source
        }
        yield f"<h3>{escape(source)}, window {window:,}</h3><p><small>{escape(name)}</small></p>"
        yield svg.lines(series, limit=window, title=f"context {source}", colours=colours)


def _worst(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The turns of each policy that missed most, before and after."""
    yield "<h2>The worst turns</h2>"
    by_policy: dict[str, list[tuple[int, Mapping[str, Any], Mapping[str, Any]]]] = {}
    for result in results:
        for turn in result["worst"]:
            place = by_policy.setdefault(f"{result['policy']}, window {result['window']:,}", [])
            place.append((len(turn["losses"]), result, turn))
    for policy, turns in by_policy.items():
        turns.sort(key=lambda item: (-item[0], item[1]["id"], item[2]["turn"]))
        yield f"<details><summary>{escape(policy)}</summary><table>"
        yield "<tr><th>recording, call<th>identifier<th>stood in<th>before<th>after</tr>"
        for _, result, turn in turns[:WORST]:
            for atom, _, kind, tool, line, now in turn["losses"][:3]:
                after = f"<ins>{escape(now)}</ins>" if now else "<i>nothing stands there</i>"
                yield (
                    f"<tr><td class=text>{escape(result['id'][-40:])} #{turn['turn']}"
                    f"<td class=text><code>{escape(atom)}</code>"
                    f"<td class=text>{escape(f'{tool} {kind}'.strip())}"
                    f"<td class=text><code><del>{escape(line)}</del></code>"
                    f"<td class=text><code>{after}</code></tr>"
                )
        yield "</table></details>"
