"""The table in the terminal: one block a source and window, one line a policy.

Knows columns and words.  Does not know how a figure came about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from trimtab.replay.summary import Line

COLUMNS = (
    ("over", "over", "{:.0f}"),
    ("invalid", "inval", "{:.0f}"),
    ("failed", "fail", "{:.0f}"),
    ("recall", "recall", "{:.1f}"),
    ("old", "old", "{:.1f}"),
    ("g1", "g1", "{:.1f}"),
    ("g3", "g3", "{:.1f}"),
    ("lines", "lines", "{:.1f}"),
    ("next", "next", "{:.1f}"),
    ("user", "user", "{:.1f}"),
    ("handle", "handle", "{:.0f}"),
    ("cost", "cost", "{:.3f}"),
    ("breaks", "brk/20", "{:.2f}"),
    ("mean_ms", "ms", "{:.1f}"),
    ("p99_ms", "p99ms", "{:.0f}"),
)
WITH_INTERVAL = ("g1", "cost")

LEGEND = """\
over, inval, fail: calls above the window, breaking a rule the recording kept, raising an exception
recall: identifiers the agent wrote that still stood · old: of those gone from the newest window/2
g1, g3: old ones among their words on the line, or 80 characters around · lines: old lines verbatim
next: identifiers only in the results just received · user: sentences with a demand of the user
handle: lost ones a handle gives back · cost: billed against sending everything ({prices})
brk/20: cache breaks in 20 turns · ms, p99ms: CPU a call · [95 % interval over recordings] ·
%orc: g1 as a share of the oracle's"""


def table(lines: Iterable[Line], *, prices: str) -> str:
    """All lines, grouped; with the legend below."""
    parts = []
    for (group, window), some in groupby(lines, key=lambda line: (line.group, line.window)):
        rows = list(some)
        calls, recordings = rows[0].calls, rows[0].recordings
        title = f"{group}, window {window:,}: {recordings} recordings, {calls:,} calls"
        parts.append("\n".join([title, *_aligned([_header(), *map(_row, rows)]), *_notes(rows)]))
    return "\n\n".join([*parts, LEGEND.format(prices=prices)])


def _header() -> list[str]:
    heads = ["policy"]
    for name, head, _ in COLUMNS:
        heads.append(head)
        if name in WITH_INTERVAL:
            heads.append("")
    return [*heads, "%orc"]


def _row(line: Line) -> list[str]:
    cells = [f"{line.policy} {line.version}".strip()]
    for name, _, form in COLUMNS:
        value = line.figures.get(name)
        cells.append("–" if value is None else form.format(value))
        if name in WITH_INTERVAL:
            low, high = line.low.get(name), line.high.get(name)
            digits = 2 if name == "cost" else 0
            known = low is not None and high is not None
            cells.append(f"[{low:.{digits}f},{high:.{digits}f}]" if known else "")
    share = line.of_oracle.get("g1")
    return [*cells, "–" if share is None else f"{share:.0f}"]


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.ljust(width) if n == 0 else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield ("  " + " ".join(cells)).rstrip()


def _notes(rows: Sequence[Line]) -> Iterator[str]:
    for line in rows:
        if line.note:
            yield f"  {line.policy}: played on the conversation converted {line.note}"
        for error, count in list(line.errors.items())[:2]:
            yield f"  {line.policy}: {count} × {error}"
