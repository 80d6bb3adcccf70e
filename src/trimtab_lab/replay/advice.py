"""Which window to use: recordings at several, with what each would have refused, cost and lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from trimtab.amounts import many, short
from trimtab.logs.recording import Recording
from trimtab.pricing import models, outcome
from trimtab.proxy.agents import AGENTS
from trimtab.reporting.columns import aligned
from trimtab_lab.replay.summary import SummaryRow
from trimtab_lab.replay.verdict import OURS, percent, refusals_of, worked

WINDOWS = (32_000, 60_000, 100_000, 128_000, 200_000)
POLICIES = ("none", OURS)
MAX_LOST = 1.0
"""Percent of what the agent used again: a window that loses more is only advised if all do."""
HEADS = ("window", "refused without trimtab", "cost", "compared", "lost", "found again")


class WindowChoice(NamedTuple):
    """One window.  ``fits``: whether trimtab fitted any request; ``saved``: the difference to
    sending everything, as a share, below 0 if less; ``lost``: percent of what the agent used
    again; ``found``: percent of that, None if nothing was lost."""

    window: int
    refused: int
    still_refused: int
    fits: bool
    spent: float | None
    saved: float
    lost: float
    found: float | None


def windows_for(recordings: Iterable[Recording]) -> list[int]:
    """The windows to try: up to the largest of the recorded models, all if one is unknown; none
    that ``trimtab run`` would call little for the agent that wrote a log."""
    largest = smallest = 0
    for recording in recordings:
        model = models.find(recording.model or "")
        largest = max(largest, WINDOWS[-1] if model is None else model.window)
        agent = AGENTS.get(recording.agent.partition("-")[0])  # claude-code is run as claude
        smallest = max(smallest, 0 if agent is None else agent.min_window)
    fitting = [window for window in WINDOWS if window <= largest] or [WINDOWS[0]]
    return [window for window in fitting if window >= smallest] or fitting[-1:]


def choices(rows: Sequence[SummaryRow], *, in_dollars: bool = True) -> list[WindowChoice]:
    """One for each window, the smallest first.

    ``rows``: those of POLICIES, over all recordings.
    """
    by_window = {(row.window, row.policy): row for row in rows}
    made = []
    for window in sorted({row.window for row in rows}):
        everything, ours = by_window[window, "none"], by_window[window, OURS]
        figures = ours.figures
        spent, whole = figures.get("dollars"), figures.get("full_dollars")
        cost, kept = figures.get("cost"), figures.get("recall")
        if in_dollars and spent is not None and whole:
            cost = spent / whole
        else:
            spent = None
        made.append(WindowChoice(
            window, round(refusals_of(everything)), round(refusals_of(ours)), worked(ours), spent,
            0.0 if cost is None else cost - 1, 0.0 if kept is None else 100 - kept,
            figures.get("handle"),
        ))  # fmt: skip
    return made


def best(offered: Sequence[WindowChoice]) -> WindowChoice:
    """Of the windows with the fewest refusals left, and of these those that lose little, the
    cheapest; of equals the largest.  Raises ValueError where nothing fits any."""
    fewest = min(one.still_refused for one in offered if one.fits)
    left = [one for one in offered if one.fits and one.still_refused == fewest]
    careful = [one for one in left if one.lost <= MAX_LOST]
    careful = careful or [min(left, key=lambda one: (one.lost, one.saved))]
    return min(careful, key=lambda one: (round(one.saved, 3), -one.window))


def table(offered: Sequence[WindowChoice]) -> str:
    """A line for each window."""
    rows = [list(HEADS)]
    for one in offered:
        cells = ["–", "does not fit", "–", "–"]
        if one.fits:
            cells = [
                "–" if one.spent is None else outcome.dollars(one.spent),
                outcome.share(one.saved), f"{one.lost:.1f} %",
                "–" if not one.lost else percent(one.found),
            ]  # fmt: skip
        rows.append([short(one.window), f"{one.refused:,}", *cells])
    if all(one.spent is None for one in offered):
        rows = [[*row[:2], *row[3:]] for row in rows]
    return "\n".join(aligned(rows))


def sentence(offered: Sequence[WindowChoice]) -> str:
    """The advice: ``Use 60k: 18 refusals end, it costs 6.0 % less than sending everything, …``."""
    chosen = best(offered)
    ends = chosen.refused - chosen.still_refused
    refusals = f"{many(ends, 'refusal')} {'ends' if ends == 1 else 'end'}" if ends > 0 else (
        "nothing is refused there"
    )  # fmt: skip
    if chosen.still_refused:
        refusals += f", {chosen.still_refused:,} stay"
    words = outcome.share(chosen.saved)
    cost = f"it costs {words} {'as' if words == outcome.SAME else 'than'} sending everything"
    lost = "nothing that the agent used again is lost"
    if chosen.lost:
        lost = f"{chosen.lost:.1f} % of what the agent used again is lost"
        if chosen.found is not None:
            lost += f", {'all' if chosen.found >= 100 else percent(chosen.found)} of it recallable"
    return f"Use {short(chosen.window)}: {refusals}, {cost}, {lost}."
