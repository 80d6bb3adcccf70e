"""The result of a replay in plain words: a verdict, and a table of plain figures."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from trimtab.amounts import many, short
from trimtab.reporting.columns import aligned
from trimtab_lab.replay.summary import SummaryRow

OURS = "trimtab"
WIDTH = 96
"""Width of the explanations in terminal columns."""

COLUMNS: Mapping[str, str] = {
    "refused": "requests the provider would refuse: too long, or against its rules",
    "cost": "what the prompts cost with a prompt cache, at {prices} prices (--prices names "
    "others); sending everything, as if nothing were refused, is 1",
    "dollars": "the same at the list prices of the recorded models, where they have one",
    "used again": "of the names, paths and numbers that the agent used again, those that were "
    "still in the request",
    "old lines": "of the older lines that the agent wrote again, those that were still there word "
    "for word",
    "constraints": "sentences in which the user demands or forbids something, still there",
    "true": "of the lines that notes quote, those that are under the step and file they came "
    "from, and that no later step changed",
    "recallable": "of the names, paths and numbers that were no longer there, those that can be "
    "had again by a handle: by you, and by the model where recall is on",
}
"""Column → its meaning."""

POLICIES: Mapping[str, str] = {
    "none": "sends everything as it is",
    "trimtab": "trimtab with every setting at its default",
    "keep-last-n": "keeps the newest turns only",
    "drop-oldest-safe": "drops the oldest turns until the rest fits",
    "mask-old-observations": "empties all but the newest tool results",
}
"""Default policy → a few words about it."""


class WindowVerdict(NamedTuple):
    """The verdict on one window: sentences, and figures (head, value, about)."""

    window: str
    sentences: Sequence[str]
    figures: Sequence[tuple[str, str, str]] = ()


def verdict(rows: Sequence[SummaryRow], left_out: int = 0, prices: str = "claude-5m") -> str:
    """One paragraph per window: the result of sending everything, and of trimtab."""
    verdicts = window_verdicts(rows, prices)
    parts = [f"Window {one.window}. {' '.join(one.sentences)}" for one in verdicts]
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


def window_verdicts(rows: Sequence[SummaryRow], prices: str = "claude-5m") -> list[WindowVerdict]:
    """One verdict per window, the smallest first."""
    verdicts = []
    for window in sorted({row.window for row in rows}):
        by_policy = {row.policy: row for row in rows if row.window == window}
        sentences, figures = _sentences(by_policy, prices), _figures(by_policy, prices)
        verdicts.append(WindowVerdict(short(window), list(sentences), list(figures)))
    return verdicts


def _sentences(rows: Mapping[str, SummaryRow], prices: str) -> Iterator[str]:
    everything, ours = rows.get("none"), rows.get(OURS)
    if everything is not None:
        calls, refused = everything.calls, _refused(everything)
        with_ours = f"; with trimtab, {_refused(ours):,.0f}" if ours and _worked(ours) else ""
        count = everything.recordings
        some = "1 recording" if count == 1 else f"{count:,} recordings"
        yield (
            f"Of {calls:,} calls in {some}, {refused:,.0f} would be refused at this window"
            f"{with_ours}."
        )
    if ours is None:
        return
    why = next(iter(ours.errors), "no reason given")
    if not _worked(ours):
        yield f"trimtab failed on every call: {why}. Choose a larger window."
        return
    if failed := ours.figures.get("failed"):
        yield f"It failed on {failed:,.0f}: {why}."
    cost, still_there = ours.figures.get("cost"), ours.figures.get("recall")
    if cost is not None:
        yield (
            f"The prompts would cost {cost:.2f} times what sending everything would, if nothing "
            f"were refused, at {prices} prices."
        )
    yield from _money(ours)
    if still_there is not None:
        yield (
            "Of the names, paths and numbers that the agent used again, "
            f"{_percent(still_there)} were still in the request{_rest(ours)}."
        )
    if (lines := ours.figures.get("lines")) is not None:
        yield (
            f"Of the older lines that it wrote again, {_percent(lines)} were still there word "
            "for word."
        )


def _money(row: SummaryRow) -> Iterator[str]:
    """The cost at list prices, and for how many recordings; nothing if none has a price."""
    spent, whole = row.figures.get("dollars"), row.figures.get("full_dollars")
    if spent is None or whole is None:
        return
    priced, some = _priced(row), ""
    if priced < row.recordings:
        some = f" for the {many(priced, 'recording')} with a known price"
    instead = f"{_dollars(spent)} instead of {_dollars(whole)}"
    yield f"At the models' own list prices it is {instead}{some}."


def _priced(row: SummaryRow) -> int:
    """How many of the recordings have a model whose price is known."""
    return int(row.figures.get("priced") or 0)


def _rest(row: SummaryRow) -> str:
    """A clause about how much of what was cut and used again can be recalled."""
    back = row.figures.get("handle")
    if back is None or (row.figures.get("recall") or 0) >= 100:
        return ""
    return "; the rest can be recalled" if back > 99.5 else (
        f"; {_percent(back)} of the rest can be recalled" if back else "; the rest is gone"
    )  # fmt: skip


def _figures(rows: Mapping[str, SummaryRow], prices: str) -> Iterator[tuple[str, str, str]]:
    """The verdict's main figures: (name, value, explanation)."""
    everything, ours = rows.get("none"), rows.get(OURS)
    if ours is None:
        return
    beside = f"of {ours.calls:,} calls"
    if everything is not None:
        beside += f"; {_refused(everything):,.0f} without trimtab"
    yield "refused", f"{_refused(ours) if _worked(ours) else ours.calls:,.0f}", beside
    cost, still_there = ours.figures.get("cost"), ours.figures.get("recall")
    if cost is not None:
        yield "cost of the prompts", f"{cost:.2f}", f"times sending everything, at {prices} prices"
    spent, whole = ours.figures.get("dollars"), ours.figures.get("full_dollars")
    if spent is not None and whole is not None:
        priced, some = _priced(ours), ""
        if priced < ours.recordings:
            some = f", for {priced:,} of {ours.recordings:,} recordings"
        yield "at list prices", _dollars(spent), f"instead of {_dollars(whole)}{some}"
    if still_there is not None:
        beside = f"of the names, paths and numbers that the agent used again{_rest(ours)}"
        yield "still in the request", _percent(still_there), beside


def column_meanings(heads: Sequence[str], prices: str) -> dict[str, str]:
    return {head: COLUMNS[head].format(prices=prices) for head in heads}


def plain_table(rows: Sequence[SummaryRow], prices: str = "claude-5m") -> str:
    """One line per window and policy, with the meaning of the columns below."""
    heads = plain_heads(rows)
    body = [[short(row.window), row.policy, *plain_cells(row, heads)] for row in rows]
    lines = list(aligned([["window", "policy", *heads], *body], left=2, gap=" "))
    named = [row.policy for row in rows]
    policies = {name: about for name, about in POLICIES.items() if name in named}
    for about in (column_meanings(heads, prices), policies):
        width = max(map(len, about), default=0)
        lines += ["", *(line for each in about.items() for line in _explained(*each, width))]
    return "\n".join(lines)


def _explained(name: str, about: str, width: int) -> Iterator[str]:
    yield from textwrap.wrap(
        about, WIDTH, initial_indent=f"  {name:{width}}  ", subsequent_indent=" " * (width + 4)
    )


def plain_heads(rows: Sequence[SummaryRow]) -> list[str]:
    """The columns with figures: dollars only if a model has a price, true only if a policy makes
    notes."""
    has = {
        "dollars": any(row.figures.get("priced") for row in rows),
        "true": any(row.figures.get("true") is not None for row in rows),
    }
    return [head for head in COLUMNS if has.get(head, True)]


def plain_cells(row: SummaryRow, heads: Sequence[str]) -> list[str]:
    """A row's figures in the columns ``heads``; "–" if the policy failed on every call."""
    figures, worked = row.figures, _worked(row)
    cost, dollars = figures.get("cost"), figures.get("dollars")
    cells = {
        "refused": f"{_refused(row) if worked else row.calls:,.0f}",
        "cost": "–" if cost is None else f"{cost:.2f}",
        "dollars": "–" if dollars is None else _dollars(dollars),
        "used again": _percent(figures.get("recall")),
        "old lines": _percent(figures.get("lines")),
        "constraints": _percent(figures.get("user")),
        "true": _percent(figures.get("true")),
        "recallable": _percent(figures.get("handle")),
    }
    return [cells[head] if worked or head == "refused" else "–" for head in heads]


def _percent(share: float | None) -> str:
    """Whole percent; near 100 with one decimal, so that only a full share shows as 100."""
    if share is None:
        return "–"
    return f"{min(share, 99.9):.1f} %" if 99.5 <= share < 100 else f"{share:.0f} %"


def _dollars(dollars: float | None) -> str:
    return "–" if dollars is None else f"${dollars:,.2f}"


def _refused(row: SummaryRow) -> float:
    """Calls that would end in an error: too long, invalid, or the policy itself failed."""
    calls = sum(row.figures.get(name) or 0 for name in ("over", "invalid", "failed"))
    return min(float(row.calls), calls)


def _worked(row: SummaryRow) -> bool:
    """Whether the policy succeeded on any call; otherwise its shares mean nothing."""
    return (row.figures.get("failed") or 0) < row.calls
