"""What a replay says in plain words: a verdict, and a table of figures that anyone can read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trimtab.amounts import short
from trimtab.replay.summary import SummaryRow

OURS = "trimtab"

COLUMNS: Sequence[tuple[str, str, str]] = (
    ("refused", "{:,.0f}", "requests the provider would refuse: too long, or against its rules"),
    ("cost", "{:.2f}", "tokens billed with the prompt cache; sending everything is 1"),
    ("used again", "{:.0f} %", "of the names, paths and numbers that the agent wrote next and had "
     "seen before, those that were still in the request"),
    ("old lines", "{:.0f} %", "whole old lines that the agent wrote again, still there verbatim"),
    ("constraints", "{:.0f} %", "sentences in which the user demands or forbids something"),
    ("recallable", "{:.0f} %", "of what was lost, what can be asked for again"),
)  # fmt: skip
"""(head, how it is written, what it means)."""


def verdict(rows: Sequence[SummaryRow], left_out: int = 0) -> str:
    """One paragraph a window: what sending everything would meet, and what trimtab does instead."""
    parts = []
    for window in sorted({row.window for row in rows}):
        here = {row.policy: row for row in rows if row.window == window}
        parts.append(_of_window(window, here))
    if left_out:
        parts.append(
            f"{left_out:,} recordings that fit the smallest window whole were left out: nothing "
            "has to be cut there (--no-outgrown takes them in)."
        )
    return "\n".join(parts)


def _of_window(window: int, rows: Mapping[str, SummaryRow]) -> str:
    everything, ours = rows.get("none"), rows.get(OURS)
    said = [f"Window {short(window)}."]
    if everything is not None:
        refused = _refused(everything)
        said.append(f"Of {everything.calls:,} calls {refused:,.0f} would be refused as they are.")
    if ours is None:
        return " ".join(said)
    if not _worked(ours):
        said.append(f"trimtab failed on every call: {next(iter(ours.errors), 'no reason given')}.")
        return " ".join(said)
    said.append(f"With trimtab {_refused(ours):,.0f}.")
    cost, kept = ours.figures.get("cost"), ours.figures.get("recall")
    back = ours.figures.get("handle")
    if cost is not None:
        said.append(f"The prompts would have cost {cost:.2f} of sending everything.")
    if kept is not None:
        rest = "; the rest can be recalled" if back is not None and back > 99.5 else ""
        said.append(f"{kept:.0f} % of what the agent used again was still there{rest}.")
    return " ".join(said)


def plain_table(rows: Sequence[SummaryRow]) -> str:
    """One line a window and policy, with figures that need no explanation, and what they mean."""
    heads = ["window", "policy", *(head for head, _, _ in COLUMNS)]
    body = [[short(row.window), row.policy, *_cells(row)] for row in rows]
    lines = list(_aligned([heads, *body]))
    lines += ["", *(f"  {head:12} {about}" for head, _, about in COLUMNS)]
    return "\n".join(lines)


def _cells(row: SummaryRow) -> Iterator[str]:
    figures = row.figures
    values = {
        "refused": float(row.calls) if not _worked(row) else _refused(row),
        "cost": figures.get("cost"),
        "used again": figures.get("recall"),
        "old lines": figures.get("lines"),
        "constraints": figures.get("user"),
        "recallable": figures.get("handle"),
    }
    for head, form, _ in COLUMNS:
        value = values[head]
        missing = value is None or (head != "refused" and not _worked(row))
        yield "–" if missing or value is None else form.format(value)


def _refused(row: SummaryRow) -> float:
    """Calls that would end in an error: too long, invalid, or the policy itself failed."""
    found = sum(row.figures.get(name) or 0 for name in ("over", "invalid", "failed"))
    return min(float(row.calls), found)


def _worked(row: SummaryRow) -> bool:
    """Whether the policy came through on any call: what it kept says nothing else."""
    return (row.figures.get("failed") or 0) < row.calls


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.ljust(width) if n < 2 else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
