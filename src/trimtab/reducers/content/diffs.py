"""Diffs as git, diff and patch tools write them: files, hunks and changed lines come first."""

from __future__ import annotations

import re
from collections.abc import MutableSequence, Sequence

from trimtab.reducers.content.base import ERROR, MUST, SUMMARY, Kind, LineSample

_HUNK = re.compile(r"@@+ -\d")
_FILE = re.compile(
    r"diff --|Index: |(?:---|\+\+\+) \S|index [0-9a-f]{4,}|(?:old|new|deleted file|new file) mode "
    r"|(?:rename|copy) (?:from|to) |(?:dis)?similarity index |Binary files |GIT binary patch"
)
_COMMIT = re.compile(r"commit [0-9a-f]{7,40}\b|(?:Author|Date|Merge|Subject): ")
_STAT = re.compile(r" ?\d+ files? changed\b| \S.* \| +(?:\d+|Bin)\b")
_CHANGED, _HEADER = 6.0, 60.0


def _takes(sample: LineSample) -> bool:
    marked = sample.share(lambda line: line[0] in "+-@ " or _FILE.match(line))
    heads = any(_HUNK.match(line) or _FILE.match(line) for line in sample.first)
    hunks = sample.share(_HUNK.match) > 0 or any(map(_HUNK.match, sample.first))
    return marked > 0.7 and (heads or hunks) and sample.share(lambda line: line[0] in "+-") > 0.05


def _weigh(lines: Sequence[str], weights: MutableSequence[float]) -> None:
    changes = {"+": list[int](), "-": list[int]()}
    for number, line in enumerate(lines):
        first = line[:1]
        if first == " ":
            if _STAT.match(line):
                weights[number] = SUMMARY if "changed" in line else MUST
            else:
                weights[number] *= 0.2
        elif first == "@" and _HUNK.match(line):
            weights[number] = MUST
        elif first and first in "+-" and not line.startswith(("--- ", "+++ ")):
            changes[first].append(number)
            # A changed brace or blank line means nothing by itself.
            weights[number] += _CHANGED if len(line.strip(" \t+-{}()[];,")) > 1 else 0.1
        elif _FILE.match(line):
            weights[number] = ERROR if not line.startswith("index") else MUST
        elif _COMMIT.match(line):
            weights[number] = MUST if line.startswith("commit") else _HEADER
        elif _STAT.match(line):
            weights[number] = SUMMARY
    for numbers in changes.values():
        for number in {*numbers[:1], *numbers[-1:]}:
            weights[number] = max(weights[number], MUST)


DIFF = Kind("diff", _takes, _weigh, ends=False)
