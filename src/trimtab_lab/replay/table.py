"""The table in the terminal: one block per source and window, one line per policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from trimtab.pricing.prices import TABLES, named
from trimtab.reporting.columns import aligned
from trimtab_lab.replay.summary import SummaryRow

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
    ("find", "find", "{:.1f}"),
    ("find_all", "of all", "{:.1f}"),
    ("room", "room", "{:.1f}"),
    ("true", "true", "{:.1f}"),
    ("shown", "shown", "{:.1f}"),
    ("placed", "file", "{:.1f}"),
    ("stale", "stale", "{:.0f}"),
    ("call_like", "calls", "{:.0f}"),
    ("cost", "cost", "{:.3f}"),
    ("breaks", "brk/20", "{:.2f}"),
    ("mean_ms", "ms", "{:.1f}"),
    ("p99_ms", "p99ms", "{:.0f}"),
)
WITH_INTERVAL = ("recall", "g1", "lines", "cost")

ABOUT = (
    "Each model call of the recordings was played again: what would the policy have sent, and did "
    "that\nhold what the agent then wrote?  Identifiers are paths, ids, numbers and compound names."
)
LEGEND = (
    ("should be 0", (
        ("over", "requests larger than the window"),
        ("inval", "requests the provider would refuse, where it took the recorded one"),
        ("fail", "exceptions"),
    )),
    ("kept, in % of what the agent needed (a refused request keeps nothing): 100 is best", (
        ("recall", "identifiers the agent wrote next that still stood in the request"),
        ("old", "the same, only those not in the newest half window: there policies differ"),
        ("g1", "old ones still among the words of their line; a bare list of names counts nothing"),
        ("g3", "the same with 80 characters on both sides, across lines"),
        ("lines", "whole old lines the agent wrote again that still stood verbatim"),
        ("next", "identifiers that stood only in the results just received"),
        ("user", "sentences in which the user demands or forbids something"),
        ("handle", "of the identifiers that were lost, those the policy can give back when asked"),
        ("find", "of what was lost, what is in the first five hits of a search by plain words"),
        ("of all", "the same search over all that came before, whole; words are the agent's next"),
        ("room", "where a cut was made, how much of its target it used"),
    )),
    ("what notes say, in % of their lines: 100 is best, – where there are none", (
        ("true", "quoted lines that are under the step they came from, and still hold"),
        ("shown", "of the edits that notes stand for, those that show a new line"),
        ("file", "new lines of edits that are under their own file"),
        ("stale", "how many lines a later step changed; should be 0"),
        ("calls", "how many rows of the model's words look like calls; should be 0"),
    )),
    ("what it takes (a refused request costs nothing): less is better", (
        ("cost", "tokens billed, to send all is 1 ({prices})"),
        ("brk/20", "in 20 calls, how often the prompt cache was lost by a changed beginning"),
        ("ms", "milliseconds of CPU the policy takes for a call"),
        ("p99ms", "the same for the slowest call of a hundred"),
    )),
)  # fmt: skip
"""(heading, (column, meaning) …) …"""


def legend(prices: str) -> str:
    """The meaning of each column.  ``prices`` names a table.  Raises InvalidSetting."""
    parts = [ABOUT]
    for heading, columns in LEGEND:
        parts.append(f"{heading}:")
        parts += [f"  {head:7} {meaning(head, prices)}" for head, _ in columns]
    return "\n".join([*parts, "[a,b] is the 95 % interval over recordings."])


def meaning(head: str, prices: str) -> str:
    """The meaning of one column."""
    rates = named(prices)
    description = f"{prices}: from the cache {rates.read:g}, into it {rates.write:g} a token"
    meanings = {head: text for _, columns in LEGEND for head, text in columns}
    return meanings[head].format(prices=description)


def table(lines: Iterable[SummaryRow], *, prices: str) -> str:
    """All lines, grouped, with the legend below.  Raises InvalidSetting for unknown prices."""
    parts = []
    for (group, window), some in groupby(lines, key=lambda line: (line.group, line.window)):
        rows = list(some)
        calls, recordings = rows[0].calls, rows[0].recordings
        title = f"{group}, window {window:,}: {recordings} recordings, {calls:,} calls"
        body = [*_indented([_header(), *map(_row, rows)]), *_notes(rows), *_costs(rows)]
        parts.append("\n".join([title, *body]))
    return "\n\n".join([*parts, legend(prices)])


def _header() -> list[str]:
    heads = ["policy"]
    for name, head, _ in COLUMNS:
        heads.append(head)
        if name in WITH_INTERVAL:
            heads.append("")
    return heads


def _row(line: SummaryRow) -> list[str]:
    cells = [name_of(line)]
    for name, _, form in COLUMNS:
        value = line.figures.get(name)
        cells.append("–" if value is None else form.format(value))
        if name in WITH_INTERVAL:
            low, high = line.low.get(name), line.high.get(name)
            digits = 2 if name == "cost" else 0
            has_interval = low is not None and high is not None
            cells.append(f"[{low:.{digits}f},{high:.{digits}f}]" if has_interval else "")
    return cells


def _costs(rows: Sequence[SummaryRow]) -> Iterator[str]:
    """The cost of the same requests under every price table."""
    yield "  cost under every price table; hit: % of all tokens that the request before began with"
    heads = ["policy", "hit", "brk/20", *TABLES]
    cells = [
        [
            name_of(line),
            "–" if (hit := line.figures["hit"]) is None else f"{hit:.1f}",
            f"{line.figures['breaks']:.2f}",
            *(f"{line.costs[name]:.3f}" if name in line.costs else "–" for name in TABLES),
        ]
        for line in rows
    ]
    yield from _indented([heads, *cells])


def name_of(line: SummaryRow) -> str:
    """Policy and version; without the version of simple policies, which is only a number."""
    return f"{line.policy} {line.version}" if "." in line.version else line.policy


def _indented(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    return (f"  {line}" for line in aligned(rows, gap=" "))


def _notes(rows: Sequence[SummaryRow]) -> Iterator[str]:
    for note in dict.fromkeys(line.note for line in rows if line.note):
        names = ", ".join(line.policy for line in rows if line.note == note)
        yield f"  played on the conversation converted {note}: {names}"
    for line in rows:
        for error, count in list(line.errors.items())[:2]:
            yield f"  {line.policy}: {count} × {error}"
