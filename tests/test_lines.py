"""The weight of each line: what is mandatory in each kind of content, and that it takes no time."""

from __future__ import annotations

import time

import pytest
from blocks import ESC, TEXT
from hypothesis import example, given, settings
from test_strategies import MEGABYTE

from trimtab.strategies.content.base import MANDATORY
from trimtab.strategies.lines import line_weights, read


@settings(max_examples=200, deadline=None)
@given(TEXT)
@example("")
@example("\n")
def test_each_line_has_one_weight_and_none_is_negative(text: str) -> None:
    weights = line_weights(text, "Bash")
    assert len(weights) == text.count("\n") + 1
    assert all(0 <= weight <= 2_000 for weight in weights)
    assert list(weights) == list(line_weights(text, "Bash"))


@pytest.mark.parametrize("name", MEGABYTE)
def test_a_megabyte_of_anything_is_weighed_within_a_second(name: str) -> None:
    text = MEGABYTE[name]
    started = time.process_time()
    line_weights(text)
    assert time.process_time() - started < max(1.0, 30e-6 * text.count("\n"))


NOISE = [f"12:00:{n % 60:02} worker {n} wrote part {n * 7}" for n in range(200)]


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("output", "src/app.c:12:5: error: 'x' undeclared (first use in this function)"),
        ("output", f"{ESC}[31mERROR{ESC}[0m cannot open shard.db"),
        ("output", "FAILED tests/test_a.py::test_sum - assert 1 == 2"),
        ("output", "=========== 3 failed, 120 passed in 4.21s ==========="),
        ("output", "test result: FAILED. 3 passed; 1 failed; 0 ignored"),
        ("output", "--- FAIL: TestSum (0.00s)"),
        ("output", "Tests run: 12, Failures: 1, Errors: 0, Skipped: 0"),
        ("output", "make: *** [Makefile:12: all] Error 2"),
        ("output", "ValueError: no such shard"),
        ("output", "added 120 packages in 3s"),
        ("output", "Process exited with code 3"),
    ],
)
def test_outcomes_failures_and_errors_are_mandatory_and_noise_is_not(kind: str, line: str) -> None:
    lines = [*NOISE[:120], line, *NOISE[120:]]
    found = read("\n".join(lines))
    assert found.kind == kind
    assert found.weights[120] >= MANDATORY
    rest = [w for n, w in enumerate(found.weights) if n not in (0, 1, 119, 120, 121, 198, 199, 200)]
    assert max(rest) < 10


def test_lines_alike_but_for_numbers_count_once() -> None:
    weights = line_weights("\n".join(NOISE))
    assert sum(weights[5:100]) < 0.2 * 95


@pytest.mark.parametrize(
    "line",
    [
        "tests/test_errors.py::test_error_is_raised PASSED   [ 12%]",
        "test parses_an_error ... ok",
        "0 errors, 0 warnings so far",
        "✓ fails on missing input (3 ms)",
    ],
)
def test_what_went_well_is_no_error(line: str) -> None:
    found = read("\n".join([*NOISE[:120], line, *NOISE[120:]]))
    assert found.weights[120] < MANDATORY


def test_in_an_envelope_the_output_begins_behind_it() -> None:
    head = ["Chunk ID: 5ca525", "Wall time: 0.3 seconds", "Process exited with code 2", "Output:"]
    weights = line_weights("\n".join(head + NOISE))
    assert [weight >= MANDATORY for weight in weights[:6]] == [
        False,
        False,
        True,
        False,
        True,
        False,
    ]


DIFF = """diff --git a/src/app.py b/src/app.py
index 3b18e51..a0f2c11 100644
--- a/src/app.py
+++ b/src/app.py
@@ -12,7 +12,7 @@ def main():
     first = 1
     second = 2
-    old_name = compute(first)
+    new_name = compute(second)
     third = 3
"""


def test_of_a_diff_files_and_hunks_are_mandatory_and_changes_come_before_context() -> None:
    found = read(DIFF * 3)
    assert found.kind == "diff"
    assert [weight >= MANDATORY for weight in found.weights[:6]] == [True] * 5 + [False]
    assert found.weights[7] > 3 * found.weights[5]


CODE = '''import os
from pathlib import Path

class Reader:
    """Reads."""

    def read(self, path):
        handle = open(path)
        total = 0
        for line in handle:
            total += len(line)
        return total
'''


@pytest.mark.parametrize("numbered", [False, True])
def test_of_code_signatures_come_first(numbered: bool) -> None:
    lines = (CODE * 3).split("\n")
    text = "\n".join(f"{n:6}\t{line}" for n, line in enumerate(lines, 1)) if numbered else CODE * 3
    found = read(text, "Read")
    assert found.kind == "code"
    best = sorted(range(12), key=lambda n: -found.weights[n])[:2]
    assert sorted(best) == [3, 6]
    assert max(found.weights) < MANDATORY


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("search", [f"src/part_{n // 5}.py:{n}:    value = read(shard)" for n in range(60)]),
        ("listing", [f"./src/module_{n // 9}/part_{n}.py" for n in range(60)]),
        (
            "listing",
            ["total 48"] + [f"-rw-r--r-- 1 me me {n} Jan  1 12:00 a{n}" for n in range(60)],
        ),
        ("markdown", [f"## Part {n}\n\n- see `read`\n- [docs](x.md)\n\nWords." for n in range(20)]),
        (
            "html",
            ["<!doctype html>", *[f'<li><a href="/x{n}">Part {n}</a></li>' for n in range(60)]],
        ),
        ("text", ["Some words of a story that goes on without an end to it."] * 40),
    ],
)
def test_kinds_are_told_by_their_lines(kind: str, lines: list[str]) -> None:
    assert read("\n".join(lines)).kind == kind
