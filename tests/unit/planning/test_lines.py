"""The weight of each line: what is mandatory in each kind of content, and that it takes no time."""

from __future__ import annotations

import json
import time

import pytest
from blocks import ESC, TEXT, block, call
from effort import examples
from hypothesis import example, given
from megabytes import GREAT

from trimtab.planning.lines import lines_of, texts_of
from trimtab.reducers.content.base import MANDATORY
from trimtab.reducers.digest import weigh_lines
from trimtab.transcript.model import Block


@examples(2)
@given(TEXT)
@example("")
@example("\n")
def test_each_line_has_one_weight_and_none_is_negative(text: str) -> None:
    weights = weigh_lines(text, "Bash").weights
    assert len(weights) == text.count("\n") + 1
    assert all(0 <= weight <= 2_000 for weight in weights)
    assert list(weights) == list(weigh_lines(text, "Bash").weights)


@pytest.mark.parametrize("name", GREAT)
def test_a_great_text_of_anything_is_weighed_in_less_than_half_a_second(name: str) -> None:
    text = GREAT[name]
    started = time.process_time()
    weigh_lines(text)
    assert time.process_time() - started < max(0.4, 30e-6 * text.count("\n"))


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
    found = weigh_lines("\n".join(lines))
    assert found.kind == kind
    assert found.weights[120] >= MANDATORY
    rest = [w for n, w in enumerate(found.weights) if n not in (0, 1, 119, 120, 121, 198, 199, 200)]
    assert max(rest) < 10


def test_lines_alike_but_for_numbers_count_once() -> None:
    weights = weigh_lines("\n".join(NOISE)).weights
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
    found = weigh_lines("\n".join([*NOISE[:120], line, *NOISE[120:]]))
    assert found.weights[120] < MANDATORY


def test_in_an_envelope_the_output_begins_behind_it() -> None:
    head = ["Chunk ID: 5ca525", "Wall time: 0.3 seconds", "Process exited with code 2", "Output:"]
    weights = weigh_lines("\n".join(head + NOISE)).weights
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
    found = weigh_lines(DIFF * 3)
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
    found = weigh_lines(text, "Read")
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
    assert weigh_lines("\n".join(lines)).kind == kind


RUNS = {
    "go test": (
        "=== RUN   TestSum\n    sum_test.go:12: got 1, want 2\n--- FAIL: TestSum (0.00s)\nFAIL\n"
        "FAIL\texample.org/sum\t0.004s",
        ["sum_test.go:12: got 1, want 2", "--- FAIL: TestSum", "FAIL\texample.org/sum"],
    ),
    "cargo test": (
        "running 3 tests\ntest sum::adds ... FAILED\ntest sum::zero ... ok\n\nfailures:\n\n"
        "---- sum::adds stdout ----\nthread 'sum::adds' panicked at src/sum.rs:12:5:\n"
        "assertion `left == right` failed\n  left: 1\n right: 2\n\n"
        "test result: FAILED. 2 passed; 1 failed; 0 ignored",
        ["running 3 tests", "sum::adds ... FAILED", "panicked at src/sum.rs:12:5", "  left: 1",
         " right: 2", "test result: FAILED. 2 passed; 1 failed"],
    ),
    "jest": (
        " FAIL  src/sum.test.js\n  ● sum › adds\n\n    expect(received).toBe(expected)\n\n"
        "    Expected: 2\n    Received: 1\n\n      at Object.toBe (src/sum.test.js:12:18)\n\n"
        "Test Suites: 1 failed, 1 passed, 2 total\nTests:       1 failed, 3 passed, 4 total",
        ["● sum › adds", "Expected: 2", "Received: 1", "src/sum.test.js:12:18",
         "Tests:       1 failed"],
    ),
    "JUnit": (
        "[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0\n"
        "[ERROR]   SumTest.adds:12 expected: <2> but was: <1>\n[INFO] BUILD FAILURE",
        ["Tests run: 3, Failures: 1", "SumTest.adds:12 expected: <2> but was", "BUILD FAILURE"],
    ),
    "TAP": (
        "TAP version 13\nnot ok 2 - adds\n  ---\n  location: 'sum.test.js:12:3'\n"
        "  error: 'Expected 2, got 1'\n  ...\n1..3\n# tests 3\n# pass 2\n# fail 1",
        ["not ok 2 - adds", "location: 'sum.test.js:12:3'", "error: 'Expected", "# fail 1"],
    ),
    "Java": (
        'Exception in thread "main" java.lang.IllegalStateException: part 3 is damaged\n'
        "\tat java.base/java.util.Objects.check(Objects.java:9)\n"
        "\tat org.example.Store.read(Store.java:41)\n\tat org.example.Main.main(Main.java:7)\n"
        "Caused by: java.io.IOException: end of file\n\tat org.example.File.next(File.java:88)\n"
        "\t... 2 more",
        ["IllegalStateException: part 3", "Store.java:41", "Caused by: java.io.IOException",
         "File.java:88"],
    ),
    "JavaScript": (
        "TypeError: Cannot read properties of undefined (reading 'id')\n"
        "    at node:internal/process:1:2\n    at load (/srv/app/store.js:41:13)\n"
        "    at main (/srv/app/main.js:7:3)",
        ["TypeError: Cannot read properties", "store.js:41:13"],
    ),
    "Go": (
        "panic: runtime error: index out of range [3] with length 3\n\ngoroutine 1 [running]:\n"
        "main.read(...)\n\t/srv/app/store.go:41 +0x1d\nmain.main()\n\t/srv/app/main.go:7 +0x25\n"
        "exit status 2",
        ["panic: runtime error: index", "store.go:41", "exit status 2"],
    ),
    "apt": (
        "Get:1 stable/main amd64 libx 1.2-3 [9 kB]\nUnpacking libx (1.2-3) ...\n"
        "Setting up libx (1.2-3) ...\n1 upgraded, 3 newly installed, 0 to remove",
        ["1 upgraded, 3 newly installed"],
    ),
    "npm": (
        "npm warn deprecated inflight@1.0.6: leaks memory\nadded 214 packages in 9s\n"
        "3 vulnerabilities (1 low, 2 high)",
        ["npm warn deprecated inflight@1.0.6", "added 214 packages", "3 vulnerabilities"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_what_each_runner_says_went_wrong_is_mandatory(name: str) -> None:
    text, wanted = RUNS[name]
    found = weigh_lines("\n".join([*NOISE[:100], text, *NOISE[100:]]))
    assert found.kind == "output"
    kept = [line for line, w in zip(found.lines, found.weights, strict=True) if w >= MANDATORY]
    missing = [part for part in wanted if not any(part in line for line in kept)]
    assert missing == []
    assert sum(line in NOISE for line in kept) <= 4


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        ('{"id": 4711, "ok": true, "at": 0.5, "none": null}', ["4711"]),
        ('{"a": [1, {"b": "two"}], "c": ""}', ["1", "two", ""]),
        ('{"cut off', ['{"cut off']),
    ],
)
def test_of_a_call_the_texts_and_whole_numbers_among_its_arguments_are_read(
    arguments: str, texts: list[str]
) -> None:
    assert texts_of(call(arguments)) == texts
    assert texts_of(block(arguments)) == [arguments]


TICKETS = [
    {"id": "OPS-1", "assignee": "lin", "labels": ["a", "b"], "text": "word " * 60, "state": "open"},
    {"id": "OPS-2", "assignee": "lin"},
]


def test_members_of_an_object_stand_on_one_line_so_that_it_says_whose_they_are() -> None:
    block = Block("result", (), (), json.dumps(TICKETS, indent=2))
    lines = lines_of(block)
    rows = [line for number, line in enumerate(lines) if number not in lines.joined]
    assert '{ "id": "OPS-1", "assignee": "lin", "labels": [ "a", "b" ],' in rows
    assert '"state": "open" },' in rows
    assert rows[-1] == '{ "id": "OPS-2", "assignee": "lin" } ]'


@pytest.mark.parametrize(
    "text",
    ['{\n  "broken": 1,\n}', '     1\t{\n     2\t  "of": "a file"\n     3\t}', "[plain]\nwords"],
    ids=["no JSON", "a file with numbered lines", "words in brackets"],
)
def test_lines_that_are_no_json_stay_apart(text: str) -> None:
    block = Block("result", (), (), text)
    assert len(lines_of(block)) == text.count("\n") + 1


def test_members_that_an_agent_wrote_stay_apart() -> None:
    block = Block("text", (), (), json.dumps(TICKETS[1], indent=2))
    assert len(lines_of(block)) == 4


@pytest.mark.parametrize("sign", ["", "#12 ", "é ", "7\t", "→ "])
def test_a_line_has_the_same_identifiers_wherever_it_stands(sign: str) -> None:
    """Of a text without signs the tokens of all rows are found at once."""
    rows = [f"{sign}see src/file_{n}.py:{n} and #{n}, v1.2.{n} of it" for n in range(3_000)]
    rows = [row if sign else row.replace("#", "") for row in rows]
    whole = lines_of(block("\n".join(rows)))
    assert len(whole.text) > 65_536  # several portions
    for number in (0, 1, 1_499, 2_999):
        one = lines_of(block(rows[number] + "\né #1"))
        assert whole[number] == one[0]
        assert whole.names_on(number) == one.names_on(0)
        assert whole.has_words[number] == one.has_words[0]
