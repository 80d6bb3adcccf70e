"""Output of programs: outcome, counts, failures and errors come first.

Logs, builds, test runs, stack traces and installs are one kind, because one command can print all
of them.
"""

from __future__ import annotations

import re
from collections.abc import MutableSequence, Sequence

from trimtab.reducers.content import installs, test_runs, traces
from trimtab.reducers.content.base import DEMOTED, ERROR, FAILURE, SUMMARY, Kind, LineSample, shape

_SUMMARY = re.compile(
    r"(?:^|.*\b)(?:[Ee]xit(?:ed)?|EXIT|[Pp]rocess|[Cc]ommand|[Rr]eturned)\b.{0,60}?"
    r"\b(?:code|status)\b\D{0,12}-?\d+|\$\? ?= ?\d"
    r"|.*\b[1-9][\d,]* (?:tests? |previous |new |total )?(?:errors?|warnings?|failures?|problems?"
    r"|passed|failed|skipped|passing|failing|pending|vulnerabilit\w+|issues?|mismatches)\b"
    r"|make(?:\[\d+\])?: \*\*\*|(?:\[\w+\] )?BUILD \w+|Build (?:succeeded|failed|completed)"
    r"|(?:Finished|Done|Completed|Success|Elapsed|Total|TOTAL|Sum|Took|Wrote|Found)\b.*\d"
    r"|real\t|\s*\d[\d,]* (?:files?|packages?|objects?|rows?|results?|matches|lines) "
)
_ERROR = re.compile(
    r"(?:^|[\s:\[(|>*])(?:(?:fatal |internal compiler |syntax |runtime |link(?:er)? )?error|fatal"
    r"|panic(?:ked)?|critical|severe|err!)(?:\[[\w-]+\])?(?:[\]:!)|,]|\s|$)"
    r"|(?:[a-z]\w*(?:error|exception)|failure)\b(?::|$|\s)"
    r"|\b(?:failed|failing|cannot|can't|could not|couldn't|unable to|denied|refused|timed out"
    r"|not found|undefined reference|unresolved|segmentation fault|core dumped|abort(?:ed|ing)"
    r"|killed|out of memory|oom-kill\w*|no such file|traceback|unexpected|invalid|missing)\b"
)
_SURE = re.compile(
    r"(?:^|[\s:\[(|])(?:error|fatal|panic|critical|severe|err!)(?:\[[\w-]+\])?(?:[\]:!)|]|$| )"
    r"|[a-z]\w*(?:error|exception): |failed$|failed:"
)
_FINE = re.compile(
    r"\b(?:0|no|without) (?:\w+ )?(?:errors?|failures?|failed|warnings?)\b|\berrors?[=:] ?0\b"
    r"|\b(?:ok|passed|pass)\b(?:\s+\[ *\d+%\]|\s+\([\d.]+ ?m?s\))?$|^(?:✓|✔|ok |√|pass\b)"
    r"|\b(?:info|debug|trace|notice)\b[\]: |]"
)
_WARNING = re.compile(r"\bwarn(?:ing)?s?\b(?:\[[\w-]+\])?[\]: !)|]|^w\d{3,}|\bdeprecat")
_VERSION = re.compile(r"\bv?\d+\.\d+\.\d+|\bversion \d|\b[\w-]+[ -]v?\d+\.\d+\b")
_WORDS = (
    "error", "fatal", "panic", "critical", "severe", "err!", "exception", "fail", "cannot", "can't",
    "could", "unable", "denied", "refused", "timed out", "not found", "undefined", "unresolved",
    "fault", "dumped", "abort", "killed", "out of memory", "oom-kill", "no such", "traceback",
    "unexpected", "invalid",
    "missing", "warn", "deprecat",
)  # fmt: skip
_ENDS = ("failed", "error", "warning", "exit", "status", "code", "***", "build ", "total", "done",
         "finished", "found", "took", "passed", "skipped", "pending", "passing",
         "vulnerabilit", "issue", "files ", "packages ",
         "results ", "real\t", "completed", "success", "elapsed", "wrote", "rows", "objects",
         "problem", "mismatches", "lines ", "matches ", "$?", "sum")  # fmt: skip
_COUNTED_AGAIN = 2.0
_OTHER_ERROR, _FIRST_WARNING, _NEW_WARNING, _AGAIN, _VERSIONED = 160.0, 150.0, 24.0, 0.4, 5.0
_FIRST_ERRORS = 24
"""Number of different errors that are mandatory; of further ones only the last is."""


def _weigh(lines: Sequence[str], weights: MutableSequence[float]) -> None:
    low = [line.lower() for line in lines]
    whole = "\n".join(low)
    _errors(lines, low, weights, tuple(word for word in _WORDS if word in whole))
    _outcomes(lines, low, weights, tuple(word for word in _ENDS if word in whole))
    test_runs.weigh(lines, weights)
    traces.weigh(lines, weights)
    installs.weigh(lines, weights)


def _errors(
    lines: Sequence[str],
    low: Sequence[str],
    weights: MutableSequence[float],
    words: tuple[str, ...],
) -> None:
    seen: dict[str, int] = {}
    sure, unsure, warned = list[int](), list[int](), list[int]()
    for number, line in enumerate(low):
        if not any(word in line for word in words):
            continue
        again = seen.get(form := shape(line), 0)
        seen[form] = again + 1
        if _FINE.search(line):
            continue
        if _ERROR.search(line) and not ("warn" in line and _WARNING.search(line[:60])):
            certain = _SURE.search(line) is not None
            (sure if certain else unsure).append(number)
            if not again:
                different = len(sure) if certain else len(unsure)
                most = ERROR if certain else _OTHER_ERROR
                weights[number] += most if different <= _FIRST_ERRORS else DEMOTED
            else:
                weights[number] *= _AGAIN
        elif _WARNING.search(line):
            warned.append(number)
            form = shape(line[line.find("warn") :])  # one of each sort, without its location
            weights[number] += 0.0 if form in seen else _NEW_WARNING
            seen[form] = 1
    for matching, top in ((sure or unsure, FAILURE), (warned, _FIRST_WARNING)):
        for number in {*matching[:1], *matching[-1:]}:
            weights[number] = max(weights[number], top)


def _outcomes(
    lines: Sequence[str],
    low: Sequence[str],
    weights: MutableSequence[float],
    words: tuple[str, ...],
) -> None:
    last: dict[str, int] = {}
    for number, line in enumerate(low):
        if any(word in line for word in words) and _SUMMARY.match(lines[number]):
            form = shape(line)
            weights[number] = max(weights[number], DEMOTED if form not in last else _COUNTED_AGAIN)
            last[form] = number
        elif _VERSION.search(line) and not line.startswith((" ", "\t")):
            weights[number] += _VERSIONED
    for number in last.values():  # of a running count, the last value
        weights[number] = max(weights[number], SUMMARY)


def _is_output(sample: LineSample) -> bool:
    def matches(line: str) -> object:
        low = line.lower()
        return any(word in low for word in _WORDS) or traces.FRAME.match(line)

    stamped = sample.share(lambda line: line.lstrip("[")[:4].isdigit() or ":" in line[:24])
    return (
        sample.share(matches) > 0.02
        or sample.share(installs.looks) > 0.3
        or stamped > 0.5
        or any(word in sample.tool for word in ("bash", "shell", "exec", "command", "terminal"))
    )


def _nothing(lines: Sequence[str], weights: MutableSequence[float]) -> None:
    pass


OUTPUT = Kind("output", _is_output, _weigh)
PLAIN = Kind("text", lambda sample: True, _nothing)
