"""Runs of dropped groups, and the note that stands in place of each.

Knows how a note is worded and how two are joined.  Does not know sizes, nor what else is shown.
"""

from __future__ import annotations

from collections import Counter as Tally
from dataclasses import dataclass

from trimtab.model import Edit
from trimtab.reading.notes import BOTH, LINES


@dataclass
class Run:
    """Neighbouring groups that are dropped together, and the note that stands for them."""

    first: int
    last: int
    lines: str = ""
    """What of these steps still stands, one under the other; "" where only a note does."""
    left: str = LINES
    """How the note calls what is left."""
    note: str = ""
    tokens: int = 0
    edit: Edit | None = None

    @property
    def span(self) -> tuple[int, int]:
        """Its first and its last group."""
        return self.first, self.last


def both(first: str, second: str) -> str:
    """The lines of two runs, one under the other."""
    return f"{first}\n{second}" if first and second else first or second


def left_of_both(old: Run, new: Run) -> str:
    """How the note of two runs joined calls what is left of them."""
    if not (old.lines and new.lines):
        return old.left if old.lines else new.left
    return new.left if old.left == new.left else BOTH


def shown_name(name: str) -> str:
    """A tool's name as a note tells it."""
    return name if name.isascii() and len(name) <= 24 else "other"


def note(
    steps: int, tools: Tally[str], handle: str = "", lines: str = "", left: str = LINES
) -> str:
    """``[14 earlier steps left out to fit: Read ×9, Bash ×4, others ×1]``; at most 64 tokens.

    ``handle``: of what was left out, where the model can recall it.  ``lines``: what still stands
    of these steps, under the note; ``left``: how the note calls them.
    """
    named = sorted(tools.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{name} ×{count}" for name, count in named[:3]]
    rest = sum(count for _, count in named[3:])
    if rest:
        shown.append(f"others ×{rest}")
    fetch = f'; recall("{handle}") has them' if handle else ""
    what = "1 earlier step" if steps == 1 else f"{steps:,} earlier steps"
    if lines:
        return f"[{what}, of which {left} left{fetch}]\n{lines}"
    return f"[{what} left out to fit: {', '.join(shown)}{fetch}]"
