"""Test runs: each failing test with its place and its assertion.

It reads the output of pytest, unittest, go test, cargo test, TAP, node, jest, mocha and JUnit.
"""

from __future__ import annotations

import re
from collections.abc import MutableSequence, Sequence

from trimtab.reducers.content.base import DEMOTED, FAILURE, MUST, SUMMARY

_NAMED = re.compile(
    r"(?:FAILED|FAIL|ERROR)[: ]\s*\S|\s*--- FAIL: |not ok \d|\s*[✗✕✖×●✘] ?\S|_{3,} .+ _{3,}$"
    r"|-{4} .+ (?:stdout|stderr) -{4}$|\[ERROR\] {2,}\S|(?:test )?\S.* (?:\.\.\. )?FAILED$"
    r"|\S.*\bFAILED\s+\[ *\d+%\]$|={3,} (?:FAIL|ERROR): |panicked at"
)
_SAID = re.compile(
    r"E {2,}\S|> {2,}\S|\s*(?:left|right): |thread '.*' panicked at"
    r"|\s*(?:Expected|Received|expected|actual|got|want|location|error|message):? *\S"
    r"|\s*expect\(|\s*(?:AssertionError|assert(?:ion)?\b)|\s*[+-] (?:expected|actual)"
    r"|\s*at .*(?:test|spec)\w*\.\w+:\d+"
)
_LOGGED = re.compile(r"\s+\w+_test\.go:\d+: ")  # printed before the name, too
_PLACE = re.compile(r"\s*[\w./\\<>-]+\.\w+:\d+(?::\d+)?:(?: in \w+| \w*)$")
_COUNTED = re.compile(
    r"=+ .*(?:\d+ (?:passed|failed|error|skipped|deselected|warning)|no tests ran).* =+$"
    r"|Ran \d+ tests?|(?:Tests?|Test Suites|Snapshots|Assertions|Time):\s+\S|.*Tests run: \d"
    r"|test result: |(?:# |ℹ )(?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) \d"
    r"|OK(?: \(.*\))?$|FAILED \(.*\)$|(?:ok|FAIL)[ \t]+\S+\s+(?:\d|\(cached\)|\[)|FAIL$"
    r"|\s*\d+ (?:passing|failing|pending)\b|collected \d+ items|running \d+ tests?|1\.\.\d+$"
    r"|\d+ (?:passed|failed)\b"
)
_STARTED = re.compile(r"platform \w+ -- |rootdir: |cachedir: |plugins: |TAP version|\s*RUN +v\d")
_FOUND = ("FAIL", "ERROR", "not ok", "✗", "✕", "✖", "×", "●", "✘", "panicked", "____")
_COUNTS = ("passed", "passing", "failed", "skipped", "Tests", "Ran ", "test result", "tests", "OK",
           "collected ", "running ", "# pass", "pass ", "ok ", "PASS")  # fmt: skip
_REACH = 60
"""Number of lines after the name of a failing test that are searched for its assertion."""
_EACH, _MAX = 8, 160


def weigh(lines: Sequence[str], weights: MutableSequence[float]) -> None:
    """Raise weights of names, places and assertions of failing tests, and of counts; in place."""
    whole = "\n".join(lines)
    words = tuple(word for word in _FOUND if word in whole)
    if not words and not any(word in whole for word in _COUNTS):
        return
    near, shown, kept = 0, 0, 0
    for number, line in enumerate(lines):
        if words and any(word in line for word in words) and _NAMED.match(line):
            near, shown = _REACH, 0
            kept += 1
            weights[number] = max(weights[number], FAILURE if kept <= _MAX else DEMOTED)
        elif (near and _PLACE.match(line)) or _LOGGED.match(line):
            kept += 1
            weights[number] = max(weights[number], FAILURE if kept <= _MAX else DEMOTED)
        elif near and _SAID.match(line):
            shown += 1
            kept += 1
            must = shown <= _EACH and kept <= _MAX
            weights[number] = max(weights[number], FAILURE if must else 8.0)
        elif _COUNTED.match(line):
            weights[number] = max(weights[number], SUMMARY)
        elif _STARTED.match(line):
            weights[number] = max(weights[number], MUST)
        near = max(0, near - 1)
