"""Stack traces: the exception, the innermost frame and causes come first; equal traces once.

It reads the traces of Python, Java, JavaScript, Go, Rust, Ruby and native code.
"""

from __future__ import annotations

import re
from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass

from trimtab.reducers.content.base import ERROR, FAILURE, shape

FRAME = re.compile(
    r"\s+at \S|\s*File \".*\", line \d+|\s*#\d+\s+0x|\s+\d+: +0x|\s+from \S+:\d+:in |\t\S+:\d+ \+0x"
    r"|\s+\.\.\. \d+ more|\s*\d+: \w[\w:<>]+$"
)
_RAISED = re.compile(
    r"Exception in thread |\s*Caused by: |\s*Suppressed: |panic: |goroutine \d+ \[|fatal error: "
    r"|Uncaught |Unhandled |thread '.*' panicked|(?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception|Exit|"
    r"Interrupt|Warning|Failure|Throwable)(?: \[\w+\])?(?::|$)|\S+:\d+:in .*\(\w+\)$"
)
_CAUSED = re.compile(r"(?:The above exception was|During handling of the above|Caused by:)")
_BEGIN = "Traceback (most recent call last)"
_LIBRARY = re.compile(
    r"site-packages|node_modules|node:internal|/lib/python|java\.base|jdk\.internal|java\.util"
    r"|/rustc/|\blib/python|/usr/(?:lib|local/go)|<frozen|sun\.reflect|org\.(?:junit|springframework)"
)
_WORDS = (_BEGIN, "Exception", "Error", "panic", "goroutine", "Uncaught", "Unhandled", "Caused by",
          "Throwable", "\n#0 ", "\n    at ", "\n\tat ", "Interrupt", "Failure")  # fmt: skip
_OUTER, _BEGINS, _AGAIN = 0.5, 20.0, 0.5
_MAX = 120


def weigh(lines: Sequence[str], weights: MutableSequence[float]) -> None:
    """Raise the weights of exceptions and their places, lower frames of libraries; in place."""
    whole = "\n".join(lines)
    if not any(word in whole for word in _WORDS):
        return
    seen: set[str] = set()
    state = _TraceState()
    for number, line in enumerate(lines):
        if FRAME.match(line):
            _frame(number, line, weights, state)
        elif _BEGIN in line:
            state.begin = state.frame = number
        elif state.frame >= 0 and line[:1].isspace():
            continue  # the source of a frame
        elif state.frame >= 0 or _RAISED.match(line):
            form = shape(line)
            new = form not in seen
            seen.add(form)
            _raised(number, weights, state, new)
        elif _CAUSED.match(line):
            weights[number] = max(weights[number], _BEGINS)


@dataclass
class _TraceState:
    """``frame``: the last frame of a trace whose frames precede the exception, −1 outside one;
    ``awaited``: whether frames should follow an exception."""

    begin: int = -1
    frame: int = -1
    awaited: bool = False
    kept: int = 0


def _frame(number: int, line: str, weights: MutableSequence[float], state: _TraceState) -> None:
    library = _LIBRARY.search(line) is not None
    weights[number] = weights[number] * (0.3 if library else 1.0) + (0.0 if library else _OUTER)
    if state.frame >= 0 and (not library or state.frame == state.begin):
        state.frame = number  # the exception follows its frames: the last one is the place
    elif state.awaited and not library:  # frames follow the exception: the first is the place
        weights[number] = max(weights[number], ERROR)
        state.awaited = False


def _raised(number: int, weights: MutableSequence[float], state: _TraceState, new: bool) -> None:
    state.kept += new
    must = new and state.kept <= _MAX
    weights[number] = max(weights[number], FAILURE if must else _AGAIN)
    if must and state.frame >= 0:
        weights[state.begin] = max(weights[state.begin], _BEGINS)
        for place in range(state.frame, min(state.frame + 2, number)):
            weights[place] = max(weights[place], ERROR)
    state.awaited, state.frame = must and state.frame < 0, -1
