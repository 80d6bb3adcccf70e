"""The result of a replay in plain words: a verdict, and a table of plain figures."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from trimtab.amounts import many, short
from trimtab.pricing import outcome
from trimtab.reporting.columns import aligned
from trimtab_lab.replay.summary import SummaryRow

OURS = "trimtab"
WIDTH = 80
"""Width of the explanations in terminal columns."""

COLUMNS: Mapping[str, str] = {
    "answered": "requests the provider would answer; a refused one keeps nothing, costs nothing",
    "used again": "of names, paths and numbers the agent used again: in an answered request",
    "old lines": "of older lines that it wrote again: there word for word",
    "constraints": "of sentences in which the user demands or forbids: there word for word",
    "recallable": "of what was no longer there: what a handle gives back",
    "dollars": "what the answered prompts cost at the list prices of the recorded models",
    "cost": "what the answered prompts cost at {prices} prices; all sent and answered is 1",
}
"""Column → its meaning.  A table has dollars or cost: one currency."""

POLICIES: Mapping[str, str] = {
    "none": "sends everything as it is",
    "trimtab": "trimtab with every setting at its default",
    "keep-last-n": "keeps the newest turns only",
    "drop-oldest-safe": "drops the oldest turns until the rest fits",
    "mask-old-observations": "empties all but the newest tool results",
}
"""Default policy → a few words about it."""


class WindowVerdict(NamedTuple):
    """The verdict on one window, in sentences."""

    window: str
    sentences: Sequence[str]


def verdict(rows: Sequence[SummaryRow], left_out: int = 0, prices: str = "") -> str:
    """One paragraph per window: the result of sending everything, and of trimtab.

    ``prices``: a table that was asked for, in place of the recorded models' own prices.
    """
    parts = [
        f"Window {one.window}: {' '.join(one.sentences)}" for one in window_verdicts(rows, prices)
    ]
    if left_out:
        parts.append(left_out_note(left_out))
    return "\n".join(parts)


def left_out_note(left_out: int) -> str:
    """A sentence about the recordings that were not replayed."""
    if left_out == 1:
        return (
            "Not counted: 1 more recording that fits the window whole, so that trimtab "
            "changes nothing (--no-outgrown counts it)."
        )
    return (
        f"Not counted: {left_out:,} more recordings that fit the window whole, so that "
        "trimtab changes nothing (--no-outgrown counts them)."
    )


def window_verdicts(rows: Sequence[SummaryRow], prices: str = "") -> list[WindowVerdict]:
    """One verdict per window, the smallest first."""
    verdicts = []
    for window in sorted({row.window for row in rows}):
        by_policy = {row.policy: row for row in rows if row.window == window}
        sentences = [*_refusals(by_policy), *money_and_losses(by_policy, prices)]
        verdicts.append(WindowVerdict(short(window), sentences))
    return verdicts


def _refusals(rows: Mapping[str, SummaryRow]) -> Iterator[str]:
    everything, ours = rows.get("none"), rows.get(OURS)
    if everything is None:
        return
    refused = round(refusals_of(everything))
    if not refused or (ours is not None and worked(ours)):
        still = round(refusals_of(ours)) if ours is not None else 0
        yield outcome.refusals(refused, everything.calls, still, played=True)
    else:
        yield f"{refused:,} of {many(everything.calls, 'request')} would have been refused."


def money_and_losses(rows: Mapping[str, SummaryRow], prices: str = "") -> Iterator[str]:
    """What follows the refusals: the money, and how much the agent still had of what it used.

    ``rows``: those of one window by policy.
    """
    everything, ours = rows.get("none"), rows.get(OURS)
    if ours is None:
        return
    why = next(iter(ours.errors), "no reason given")
    if not worked(ours):
        yield f"trimtab failed on every call: {why}. Choose a larger window."
        return
    if failed := ours.figures.get("failed"):
        yield f"It failed on {failed:,.0f}: {why}."
    yield from _money(ours, prices, refused=everything is None or refusals_of(everything) > 0)
    if (still_there := ours.figures.get("recall")) is not None:
        yield (
            "Of the names, paths and numbers that the agent used again, "
            f"{percent(still_there)} were still in the request{_rest(ours)}."
        )


def _money(row: SummaryRow, prices: str, *, refused: bool) -> Iterator[str]:
    """In dollars, and for how many recordings; without a known price as a share of everything."""
    spent, whole = row.figures.get("dollars"), row.figures.get("full_dollars")
    if not prices and spent is not None and whole is not None:
        some = "" if _priced(row) == row.recordings else (
            f" ({many(_priced(row), 'recording')} with a known price)"
        )  # fmt: skip
        other = "with everything sent" + (" and nothing refused" if refused else "")
        yield outcome.money(spent, whole, f"{other}{some}")
    elif (cost := row.figures.get("cost")) is not None:
        yield outcome.compared(cost - 1, "sending everything")


def _priced(row: SummaryRow) -> int:
    """How many of the recordings have a model whose price is known."""
    return int(row.figures.get("priced") or 0)


def _rest(row: SummaryRow) -> str:
    """A clause about how much of what was cut and used again can be recalled."""
    back = row.figures.get("handle")
    if back is None or (row.figures.get("recall") or 0) >= 100:
        return ""
    return "; the rest can be recalled" if back > 99.5 else (
        f"; {percent(back)} of the rest can be recalled" if back else "; the rest is gone"
    )  # fmt: skip


def column_meanings(heads: Sequence[str], prices: str) -> dict[str, str]:
    return {head: COLUMNS[head].format(prices=prices) for head in heads}


def plain_table(rows: Sequence[SummaryRow], prices: str = "claude-5m", named: str = "") -> str:
    """One line per window and policy, with the meaning of the columns below.

    ``prices``: the table of ``cost``; ``named``: the same where it was asked for.
    """
    heads = plain_heads(rows, named)
    body = [[short(row.window), row.policy, *plain_cells(row, heads)] for row in rows]
    lines = list(aligned([["window", "policy", *heads], *body], left=2, gap="  "))
    about = column_meanings(heads, prices)
    width = max(map(len, about), default=0)
    lines += ["", *(line for each in about.items() for line in _explained(*each, width))]
    return "\n".join(lines)


def _explained(name: str, about: str, width: int) -> Iterator[str]:
    yield from textwrap.wrap(
        about, WIDTH, initial_indent=f"  {name:{width}}  ", subsequent_indent=" " * (width + 4)
    )


def plain_heads(rows: Sequence[SummaryRow], prices: str = "") -> list[str]:
    """The columns: dollars if a model has a price and no other table was asked for, else cost."""
    in_dollars = not prices and any(row.figures.get("priced") for row in rows)
    return [head for head in COLUMNS if head != ("cost" if in_dollars else "dollars")]


def plain_cells(row: SummaryRow, heads: Sequence[str]) -> list[str]:
    """A row's figures in the columns ``heads``; "–" if the policy failed on every call."""
    figures, has_worked = row.figures, worked(row)
    cost, spent = figures.get("cost"), figures.get("dollars")
    cells = {
        "answered": percent(figures.get("answered")),
        "used again": percent(figures.get("recall")),
        "old lines": percent(figures.get("lines")),
        "constraints": percent(figures.get("user")),
        "recallable": percent(figures.get("handle")),
        "dollars": "–" if spent is None else outcome.dollars(spent),
        "cost": "–" if cost is None else f"{cost:.2f}",
    }
    return [cells[head] if has_worked or head == "answered" else "–" for head in heads]


def percent(share: float | None) -> str:
    """Whole percent; near 100 with one decimal, so that only a full share shows as 100."""
    if share is None:
        return "–"
    return f"{min(share, 99.9):.1f} %" if 99.5 <= share < 100 else f"{share:.0f} %"


def refusals_of(row: SummaryRow) -> float:
    """Calls that would end in an error: too long, invalid, or the policy itself failed."""
    return row.figures.get("refused") or 0


def worked(row: SummaryRow) -> bool:
    """Whether the policy succeeded on any call; otherwise its shares mean nothing."""
    return (row.figures.get("failed") or 0) < row.calls
