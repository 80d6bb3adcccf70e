"""The judge of notes tells a line under its own file from one under another, and old from new."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from trimtab import wire
from trimtab.replay.truth.history import RecordedHistory
from trimtab.replay.truth.judge import CALLS, NoteJudge

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
    return wire.read({"messages": body}, wire.find({"messages": body}, "anthropic")[0]).messages


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
