"""The judge of notes tells a line under its own step and file from one under another, and old from
new.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from trimtab import formats
from trimtab_lab.replay.truth.history import RecordedHistory
from trimtab_lab.replay.truth.judge import CALLS, ELSEWHERE, QUOTED, STALE, TRUE, NoteJudge

OLD, NEW, NEWER = "rate = load_rate(4711)", "rate = load_rate(8080)", "rate = load_rate(9090)"
OTHER = "limit = read_limit(config)"
HEAD = "[3 earlier steps, of which this record is left]"


def call(number: int, tool: str, **given: str) -> dict[str, Any]:
    part = {"type": "tool_use", "id": f"c{number}", "name": tool, "input": given}
    return {"role": "assistant", "content": [part]}


def result(number: int, text: str) -> dict[str, Any]:
    part = {"type": "tool_result", "tool_use_id": f"c{number}", "content": text}
    return {"role": "user", "content": [part]}


def edit(number: int, path: str, old: str, new: str) -> list[dict[str, Any]]:
    made = call(number, "Edit", file_path=path, old_string=old, new_string=new)
    return [made, result(number, "The file was updated.")]


ASKED = {"role": "user", "content": "Mend it."}
STEPS = [
    ASKED,
    call(0, "Read", file_path="src/rates.py"), result(0, f"import rates\n{OLD}\n"),
    *edit(1, "src/rates.py", OLD, NEW),
    *edit(2, "src/limits.py", "limit = 17 * seventeen", OTHER),
    {"role": "assistant", "content": "Both are mended."},
]  # fmt: skip
AGAIN = [*STEPS[:5], *edit(2, "src/rates.py", NEW, NEWER), STEPS[-1]]


def messages(body: list[dict[str, Any]]) -> Any:
    return formats.read(
        {"messages": body}, formats.find({"messages": body}, "anthropic")[0]
    ).messages


def verdict(note: str, steps: list[dict[str, Any]] = STEPS, words: str = "") -> Counter[str]:
    """The counts of a request in which this note stands for the three steps."""
    judge = NoteJudge(RecordedHistory(messages(steps)))
    said = {"role": "assistant", "content": words or "Both are mended."}
    judge.read(messages([ASKED, steps[1], result(0, f"{HEAD}\n{note}"), said]), len(steps))
    return judge.tally


@pytest.mark.parametrize(
    ("note", "found"),
    [
        (f"2 Edit src/rates.py → ok\n+{NEW}", "under their file"),
        (f"# Edit src/rates.py\n{NEW}", "under their file"),
        (f"2 Edit src/limits.py → ok\n+{NEW}", "under another file"),
        (f"# Edit\n{NEW}", "under none"),
        (f"2 Edit src/rates.py → ok\n{NEW}", "without a sign"),
        (f"2 Edit src/rates.py → ok\n {OTHER}", "without a sign"),
    ],
)
def test_a_new_line_is_where_it_is(note: str, found: str) -> None:
    tally = verdict(note)
    assert tally["notes"] == tally["edited lines"] == 1
    assert tally[found] == 1


def test_an_edit_that_shows_nothing_is_counted_as_silent() -> None:
    assert verdict("1–3: 1 Read of src/rates.py, 2 Edit of 2 files")["edits"] == 2
    assert (
        verdict("1–3: 1 Read of src/rates.py, 2 Edit of 2 files")["edits that show new lines"] == 0
    )
    told = verdict(f"2 Edit src/rates.py → ok\n+{NEW}\n3 Edit src/limits.py → ok\n+{OTHER}")
    assert told["edits that show new lines"] == told["edits whose file is named"] == 2


def test_what_a_later_step_of_the_note_replaced_is_stale_where_it_is_shown_as_new() -> None:
    assert verdict(f"2 Edit src/rates.py → ok\n+{NEW}", AGAIN)["stale"] == 1
    assert verdict(f"3 Edit src/rates.py → ok\n+{NEWER}", AGAIN)["stale"] == 0
    assert verdict(f"2 Edit src/rates.py → ok\n+{NEW}")["stale"] == 0


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        ("Both are mended.", 0),
        (f"[earlier words, in part]\n{OTHER}", 1),
        ("# Read src/rates.py", 1),
        ("[left out to fit]", 0),
    ],
)
def test_a_call_in_the_models_words_is_seen(words: str, rows: int) -> None:
    assert verdict(f"2 Edit src/rates.py → ok\n+{NEW}", words=words)[CALLS] == rows


# --- whose a quoted line is, by the number and the tool above it ---

READS = [
    ASKED,
    call(0, "Read", file_path="src/a.py"), result(0, "alpha is defined here\nshared by both files"),
    call(1, "Read", file_path="src/b.py"), result(1, "beta is defined here\nshared by both files"),
    call(2, "Bash", command="pytest -q"), result(2, "gamma has failed at last"),
    {"role": "assistant", "content": "Read."},
]  # fmt: skip


def of_reads(note: str, there: tuple[int, ...] = (0,), head: str = HEAD) -> Counter[str]:
    """The counts of a note in the result of the first call that is left."""
    first, *others = there
    sent = [ASKED, READS[1 + 2 * first], result(first, f"{head}\n{note}")]
    for number in others:
        sent += READS[1 + 2 * number : 3 + 2 * number]
    judge = NoteJudge(RecordedHistory(messages(READS)))
    judge.read(messages([*sent, READS[-1]]), len(READS))
    assert judge.tally[QUOTED] - judge.tally[TRUE] == len(judge.untrue)
    return judge.tally


@pytest.mark.parametrize(
    ("note", "wrong"),
    [
        ("1 Read src/a.py → 2 lines\n alpha is defined here\n shared by both files", 0),
        ("2 Read src/b.py → 2 lines\n beta is defined here\n shared by both files", 0),
        ("3 Bash pytest -q → exit 1\n gamma has failed at last", 0),
        ("1 Read src/a.py → 2 lines\n beta is defined here", 1),
        ("1 Read src/b.py → 2 lines\n alpha is defined here", 1),
        ("2 Read src/b.py → 2 lines\n alpha is defined here\n gamma has failed at last", 2),
        ("2 Read src/b.py → 2 lines\n a line that nobody said", 0),
        (
            "1 Read src/b.py → 2 lines\n alpha is defined here\n"
            "2 Read src/a.py → 2 lines\n beta is defined here\n"
            "3 Bash pytest -q → exit 1\n gamma has failed at last",
            2,
        ),
    ],
)
def test_a_quoted_line_belongs_to_the_step_above_it(note: str, wrong: int) -> None:
    assert of_reads(note)[ELSEWHERE] == wrong


def sent_for(steps: list[dict[str, Any]], note: str) -> Counter[str]:
    """The counts of a request in which this note stands for all of these steps."""
    judge = NoteJudge(RecordedHistory(messages(steps)))
    judge.read(messages([ASKED, steps[1], result(0, f"{HEAD}\n{note}"), steps[-1]]), len(steps))
    return judge.tally


def test_a_part_of_what_the_step_said_is_its_own() -> None:
    paths = result(1, "the failed one is src/alpha.py of 17")
    steps = [*READS[:4], paths, READS[5], result(2, "src/alpha.py"), READS[-1]]
    assert sent_for(steps, "2 Read src/b.py\n src/alpha.py")[ELSEWHERE] == 0
    assert sent_for(steps, "1 Read src/a.py\n src/alpha.py")[ELSEWHERE] == 1


def test_a_line_that_was_cut_off_may_be_any_that_begins_so() -> None:
    same = "a long beginning that both of these lines have, then "
    steps = [*READS[:2], result(0, f"{same}one"), READS[3], result(1, f"{same}two"), *READS[5:]]
    for number, path in ((1, "src/a.py"), (2, "src/b.py")):
        note = f"{number} Read {path} → ok\n {same}…"
        assert sent_for(steps, note)[ELSEWHERE] == 0
    assert sent_for(steps, f"3 Bash pytest -q → ok\n {same}…")[ELSEWHERE] == 1


def test_a_short_line_behind_a_sign_has_no_source() -> None:
    shown = result(0, "a diff:\n+    return {\nits end")
    steps = [READS[0], READS[1], shown, *edit(1, "src/b.py", OLD, f"{NEW}\nreturn {{"), *READS[5:]]
    assert sent_for(steps, "2 Edit src/b.py → ok\n+    return {")[ELSEWHERE] == 0


def test_a_sentence_of_the_model_that_begins_like_a_call_is_its_own() -> None:
    said = {"role": "assistant", "content": "1. Read the rates first\nand then the limits."}
    for words, rows in ((said["content"].splitlines()[0], 0), ("1. Read src/rates.py", 1)):
        assert verdict("2 Edit src/rates.py → ok", [*STEPS, ASKED, said], words)[CALLS] == rows


def test_a_note_may_begin_behind_steps_that_were_taken_out_by_themselves() -> None:
    head = "[2 earlier steps, of which this record is left]"
    note = "1 Read src/b.py → 2 lines\n beta is defined here\n2 Bash pytest -q → exit 1\n"
    assert of_reads(f"{note} gamma has failed at last", (1,), head)[ELSEWHERE] == 0
    assert of_reads(f"{note} alpha is defined here", (1,), head)[ELSEWHERE] == 1


def test_of_calls_made_at_once_a_line_belongs_to_the_one_that_is_named() -> None:
    lint = call(1, "Bash", command="ruff check src")["content"][0]
    both = {"role": "assistant", "content": [READS[5]["content"][0], lint]}
    said = [result(2, "gamma has failed at last"), result(1, "alpha is too long a name")]
    told = {"role": "user", "content": [one["content"][0] for one in said]}
    steps = [ASKED, both, told, READS[-1]]
    for command, wrong in (("pytest -q", 0), ("ruff check src", 1)):
        judge = NoteJudge(RecordedHistory(messages(steps)))
        note = f"{HEAD}\n1 Bash {command} → 1 line\n gamma has failed at last"
        judge.read(messages([ASKED, READS[5], result(2, note), READS[-1]]), len(steps))
        assert judge.tally[ELSEWHERE] == wrong


def test_what_was_read_and_later_replaced_is_stale_unless_its_head_says_so() -> None:
    read = f"1 Read src/rates.py → 2 lines{{}}\n {OLD}"
    assert verdict(read.format(""))[STALE] == 1
    assert verdict(read.format(", edited in step 2"))[STALE] == 0
    assert verdict("1 Read src/rates.py → 2 lines\n import rates")[STALE] == 0


def test_replaced_text_without_a_sign_is_untrue() -> None:
    told = [*STEPS[:1], *edit(1, "src/rates.py", OLD, NEW), *STEPS[5:]]
    for row, wrong in ((f"-{OLD}", 0), (f" {OLD}", 1)):
        judge = NoteJudge(RecordedHistory(messages(told)))
        note = f"[2 earlier steps, of which this record is left]\n1 Edit src/rates.py → ok\n{row}"
        judge.read(messages([ASKED, told[1], result(1, note), STEPS[-1]]), len(told))
        assert [found.kind for found in judge.untrue] == ["old text without a sign"] * wrong


def test_a_hidden_folder_is_a_file_s_own_name() -> None:
    told = [*STEPS[:3], *edit(1, ".claude/rates.json", OLD, NEW), *STEPS[5:]]
    tally = verdict(f"2 Edit src/limits.py → ok\n .claude/rates.json:\n+{NEW}", told)
    assert tally["under their file"] == 1
