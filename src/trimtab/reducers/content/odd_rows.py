"""The odd one of many equal rows: a failed request of an access log, a file hardly covered."""

from __future__ import annotations

import re
from collections.abc import MutableSequence, Sequence
from statistics import median

from trimtab.reducers.content.base import ERROR, FAILURE

_STATUS = re.compile(r"\" (\d{3}) (?:\d+|-)(?:\s|$)|\bstatus[=:] ?\"?(\d{3})\b")
_PERCENT = re.compile(r"(?<![\d.])(\d{1,3}(?:\.\d+)?) ?%")
MIN_ROWS = 8
"""Least rows of a kind; fewer are a table that is read whole."""
MAX_ODD = 12
"""Most rows that are raised: more of them are no exception."""
MAX_SHARE = 0.1
_FAR = 15.0
"""Percent below the median from where a file's coverage is bad."""


def weigh(lines: Sequence[str], weights: MutableSequence[float]) -> None:
    """Raise requests that failed, and files whose coverage is far below the others; in place."""
    whole = "\n".join(lines)
    if '" ' in whole or "status" in whole:
        _requests(lines, weights)
    if "%" in whole and ("over" in whole or "TOTAL" in whole):
        _coverage(lines, weights)


def _requests(lines: Sequence[str], weights: MutableSequence[float]) -> None:
    matches = [(n, match) for n, line in enumerate(lines) if (match := _STATUS.search(line))]
    if len(matches) < MIN_ROWS or 2 * len(matches) < len(lines):
        return
    codes = [(n, int(match[1] or match[2])) for n, match in matches]
    for least, tier in ((500, FAILURE), (400, ERROR)):
        odd = [n for n, code in codes if least <= code < least + 100]
        if len(odd) > max(1.0, MAX_SHARE * len(codes)):
            odd = [odd[0], odd[-1]]
        for n in odd[:MAX_ODD]:
            weights[n] = max(weights[n], tier)


def _coverage(lines: Sequence[str], weights: MutableSequence[float]) -> None:
    rows = [(n, float(m[1])) for n, line in enumerate(lines) if (m := _PERCENT.search(line))]
    rows = [(n, share) for n, share in rows if share <= 100]
    if len(rows) < MIN_ROWS or 2 * len(rows) < len(lines):
        return
    usual = median(share for _, share in rows)
    bad = sorted((share, n) for n, share in rows if share < usual - _FAR)
    if len(bad) > max(1.0, MAX_SHARE * len(rows)):
        bad = bad[:1]
    for _, n in bad[:MAX_ODD]:
        weights[n] = max(weights[n], ERROR)
