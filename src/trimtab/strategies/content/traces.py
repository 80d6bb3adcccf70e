"""Stack traces: what was raised, the innermost frame, causes; of equal traces one.

Knows the traces of Python, Java, JavaScript, Go, Rust, Ruby and native code.
"""

from __future__ import annotations

import re
from collections.abc import MutableSequence, Sequence

from trimtab.strategies.content.base import DEMOTED, ERROR, FAILURE, shape

FRAME = re.compile(
    r"\s+at \S|\s*File \".*\", line \d+|\s*#\d+\s+0x|\s+\d+: +0x|\s+from \S+:\d+:in |\t\S+:\d+ \+0x"
    r"|\s+\.\.\. \d+ more|\s*\d+: \w[\w:<>]+$"
)
_RAISED = re.compile(
    r"Exception in thread |\s*Caused by: |\s*Suppressed: |panic: |goroutine \d+ \[|fatal error: "
    r"|Uncaught |Unhandled |thread '.*' panicked|(?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception|Exit|"
    r"Interrupt|Warning|Failure|Throwable)(?: \[\w+\])?(?::|$)|\S+:\d+:in .*\(\w+\)$"
)
_BEGIN = "Traceback (most recent call last)"
_LIBRARY = re.compile(
    r"site-packages|node_modules|node:internal|/lib/python|java\.base|jdk\.internal|java\.util"
    r"|/rustc/|/usr/(?:lib|local/go)|<frozen|sun\.reflect|org\.(?:junit|springframework)"
)
_WORDS = (_BEGIN, "Exception", "Error", "panic", "goroutine", "Uncaught", "Unhandled", "Caused by",
          "Throwable", "\n#0 ", "\n    at ", "\n\tat ", "Interrupt", "Failure")  # fmt: skip
_OUTER, _LIBRARY_FRAME, _BEGINS = 2.0, 0.3, 20.0
_MOST = 120


def weigh(lines: Sequence[str], weights: MutableSequence[float]) -> None:
    """Raise what was thrown and where, lower the frames of libraries; in place."""
    whole = "\n".join(lines)
    if not any(word in whole for word in _WORDS):
        return
    seen: set[str] = set()
    kept, innermost, python, fresh = 0, False, -1, False
    for number, line in enumerate(lines):
        if FRAME.match(line):
            library = _LIBRARY.search(line) is not None
            weights[number] *= 0.3 if library else 1.0
            weights[number] += 0.0 if library else (_OUTER if fresh else 0.2)
            if innermost and not library:  # frames follow what was raised: the first is it
                weights[number] = max(weights[number], ERROR)
                innermost = False
            if python >= 0:
                python = number  # what was raised follows the frames: the last is it
        elif _BEGIN in line:
            python, fresh = number, True
            weights[number] = max(weights[number], _BEGINS)
        elif _RAISED.match(line):
            form = shape(line)
            fresh = form not in seen
            seen.add(form)
            kept += fresh
            must = fresh and kept <= _MOST
            weights[number] = max(weights[number], FAILURE if must else DEMOTED / 10)
            innermost = must and python < 0
            if must and python >= 0:
                for place in range(python, min(python + 2, number)):
                    weights[place] = max(weights[place], ERROR)
            python = -1
