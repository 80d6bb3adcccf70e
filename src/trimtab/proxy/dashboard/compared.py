"""Compares a request with what was sent: equal messages are counted, different ones are shown."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from trimtab.amounts import many
from trimtab.proxy.dashboard.readable import Statement

MAX_COMPARED = 4_000
"""Statements on a side; more are not compared: it would take seconds."""
MAX_SHOWN = 40
"""Statements shown on a side of one place that differs."""


class ComparedPlace(NamedTuple):
    """One row of the comparison: parts that are ``same`` in both ("": they differ), or what came
    and what was sent; ``more``: how much of it is not shown."""

    same: str = ""
    came: tuple[Statement, ...] = ()
    sent: tuple[Statement, ...] = ()
    more: str = ""


def compared(came: Sequence[Statement], sent: Sequence[Statement]) -> list[ComparedPlace] | None:
    """The places in order; None where there are too many statements."""
    if max(len(came), len(sent)) > MAX_COMPARED:
        return None
    matcher = SequenceMatcher(None, came, sent, autojunk=False)
    return [
        _place(tag == "equal", came[begin:end], sent[other:other_end])
        for tag, begin, end, other, other_end in matcher.get_opcodes()
    ]


def _place(equal: bool, came: Sequence[Statement], sent: Sequence[Statement]) -> ComparedPlace:
    if equal:
        return ComparedPlace(f"{many(len(came), 'part')} unchanged")
    left = max(len(came) - MAX_SHOWN, 0) + max(len(sent) - MAX_SHOWN, 0)
    return ComparedPlace(
        "", tuple(came[:MAX_SHOWN]), tuple(sent[:MAX_SHOWN]),
        f"{many(left, 'more part')}: the whole texts have them" if left else "",
    )  # fmt: skip
