"""Search results (``path:12:text``, ``path:text``): each file's first and last match come first."""

from __future__ import annotations

import re
from collections.abc import MutableSequence, Sequence

from trimtab.reducers.content.base import Kind, LineSample

_MATCH = re.compile(r"([^\s:][^:\n]{0,200}?)([:-])(\d+)[:-]|([^\s:]*[./][^\s:]*)(:)(?=[^:/\d])")
_DIAGNOSED = re.compile(r":\d+(?::\d+)?: (?:fatal error|error|warning|note)\b|[Ee]rror:|Warning:")
_FIRST, _LAST = 8.0, 3.0


def _takes(sample: LineSample) -> bool:
    return (
        sample.share(_MATCH.match) > 0.7
        and sample.share(lambda line: line[0].isdigit()) < 0.3  # times of day have colons too
        and ("grep" in sample.tool or sample.share(_DIAGNOSED.search) < 0.15)
    )


def _weigh(lines: Sequence[str], weights: MutableSequence[float]) -> None:
    last, before = "", -1
    for number, line in enumerate(lines):
        match = _MATCH.match(line)
        if match is None:
            continue
        path = match[1] or match[4]
        if path != last:
            weights[number] += _FIRST
            if before >= 0:
                weights[before] += _LAST
        elif match[2] == "-":  # a line around the match
            weights[number] *= 0.3
        last, before = path, number
    if before >= 0:
        weights[before] += _LAST


GREP = Kind("search", _takes, _weigh)
