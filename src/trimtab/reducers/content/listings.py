"""Listings by ``ls -l``, ``ls -R``, ``find``, ``tree``: directories, totals, new file endings."""

from __future__ import annotations

import re
from collections.abc import MutableSequence, Sequence

from trimtab.reducers.content.base import MUST, SUMMARY, Kind, LineSample

_LONG = re.compile(r"[ \d]{0,20}[dlcbps-][rwxsStT-]{9}[.+@]?\s+\d")
_TREE = re.compile(r"[│ \u00a0|]*[├└|`]── ?|[│ \u00a0|]*[├└]")
_PATH = re.compile(r"(?:\.{0,2}/)?[\w@.+~%=,-]+(?:/[\w@.+~%=, -]*)*[*/@=|]?$|(?:\.{0,2}/)[^\s:]*$")
_HEADER = re.compile(r"\S.*:$")
_TOTAL = re.compile(r"total \d|\s*\d[\d,]* (?:files?|director|entries|items)")
_KNOWN = re.compile(
    r"(?:^|[/\s])(?:README|LICENSE|Makefile|Dockerfile|CHANGELOG|package\.json|pyproject\.toml"
    r"|Cargo\.toml|go\.mod|pom\.xml|build\.gradle|setup\.py|tsconfig\.json|main\.\w+|index\.\w+)"
)
_DIRECTORY, _NOTABLE, _NEW_ENDING, _HEAD = 12.0, 8.0, 4.0, 60.0
_HEADS = 40


def _takes(sample: LineSample) -> bool:
    def path(line: str) -> object:
        return ("/" in line or "." in line) and _PATH.match(line)

    listed = sample.share(lambda line: _LONG.match(line) or _TREE.match(line))
    return listed > 0.6 or (
        sample.share(path) > 0.8 and sample.share(lambda line: " " not in line.strip()) > 0.8
    )


def _weigh(lines: Sequence[str], weights: MutableSequence[float]) -> None:
    endings: set[str] = set()
    folder, heads = "", 0
    for number, line in enumerate(lines):
        if _TOTAL.match(line):
            # A folder's total says little without its header; an overall one is at an end.
            weights[number] = SUMMARY if number > len(lines) - 4 or not number else 1.0
            continue
        if _HEADER.match(line) and not _LONG.match(line):
            heads += 1
            weights[number] = MUST if heads <= _HEADS else _HEAD
            folder = line
            endings.clear()
            continue
        name = line.rstrip()
        if line[:1] == "d" and _LONG.match(line):
            weights[number] += 1.0 if name.endswith((" .", " ..")) else _DIRECTORY
            continue
        parent = name.rpartition("/")[0]
        if parent != folder and "/" in name and not _LONG.match(line):
            folder = parent
            endings.clear()
        if name.endswith("/"):
            weights[number] += _DIRECTORY
        ending = name.rpartition(".")[2] if "." in name else ""
        if ending not in endings:
            endings.add(ending)
            weights[number] += _NEW_ENDING
        if _KNOWN.search(line):
            weights[number] += _NOTABLE


LISTING = Kind("listing", _takes, _weigh)
