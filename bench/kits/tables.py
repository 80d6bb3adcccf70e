"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A row for each."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def share(kept: Sequence[bool]) -> str:
    """ "75 %"; – of nothing."""
    return f"{100 * sum(kept) / len(kept):.0f} %" if kept else "–"
