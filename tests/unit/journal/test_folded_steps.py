"""Recall of steps that were folded together: a table of contents, and each step by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from shapes import FORMATS, items_of
from tool_calls import Step, conversation

import trimtab
from trimtab.journal.excerpts import MAX_CHARS, answer
from trimtab.journal.folded_steps import folded_steps, step_range, steps_of


def folded(format: str, steps: int = 40) -> Any:
    """A fitted conversation of so many steps, most of them folded, and the handle of the fold."""
    given = [
        Step(
            "read",
            {"file_path": f"src/part_{n}.py"},
            f"# part {n}\n" + "\n".join(f"name_{n * 7919 + i} = {i * 31 ^ n}" for i in range(60)),
        )
        for n in range(steps)
    ]
    body = conversation(format, *given)
    fitted = trimtab.fit(body, window=12_000, reserve=0, format=format, recall=True)
    handles = [edit.handle for edit in fitted.report.edits if edit.kind in ("fold", "drop")]
    return body, fitted, max(handles, key=lambda handle: len(fitted.recall(handle)))


@pytest.mark.parametrize("format", FORMATS)
def test_each_step_tells_its_tool_first_line_and_size_and_comes_back_exactly(format: str) -> None:
    body, fitted, handle = folded(format)
    whole = fitted.recall(handle)
    steps = folded_steps(fitted.recall(handle))
    assert len(steps) > 20
    given = [json.dumps(item, sort_keys=True) for item in items_of(body)]
    for n, step in enumerate(steps):
        assert step.number == n + 1
        assert step.calls == (f"read src/part_{n}.py",)
        assert step.first_line == f"# part {n}"
        items = json.loads(fitted.recall(handle, steps=step.number))
        assert len(json.dumps(items)) <= 2 * step.chars
        assert all(json.dumps(item, sort_keys=True) in given for item in items)
    every = [json.loads(fitted.recall(handle, steps=step.number)) for step in steps]
    assert [item for items in every for item in items] == json.loads(whole)
    assert json.loads(fitted.recall(handle, steps="2-4")) == [*every[1], *every[2], *every[3]]


def test_a_model_is_shown_the_table_of_contents_first_and_asks_for_steps() -> None:
    _, fitted, handle = folded("anthropic")
    said = answer(fitted, {"handle": handle})
    assert not said.failed
    assert len(said.text) < len(fitted.recall(handle)) / 5
    rows = said.text.splitlines()
    assert rows[1].startswith("step 1: read src/part_0.py (")
    assert rows[1].endswith("chars): # part 0")
    one = answer(fitted, {"handle": handle, "steps": "3"})
    assert "# part 2" in one.text
    assert "# part 3" not in one.text
    assert "# part 4" in answer(fitted, {"handle": handle, "steps": "3-5"}).text
    assert answer(fitted, {"handle": handle, "steps": "900"}).failed
    assert answer(fitted, {"handle": handle, "steps": "some"}).failed
    assert answer(fitted, {"handle": handle, "start": 0, "end": 50}).text.startswith("[{")


def test_the_contents_of_a_very_long_fold_fit_one_answer() -> None:
    items = [
        message
        for n in range(2_000)
        for message in (
            {"role": "assistant", "tool_calls": [{"id": f"c{n}", "function": {
                "name": "run", "arguments": json.dumps({"command": f"make {n}"})}}]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"made {n}"},
        )
    ]  # fmt: skip

    class Kept:
        def recall(self, handle: str) -> str:
            return json.dumps(items)

    said = answer(Kept(), {"handle": "r"})
    assert len(said.text) <= MAX_CHARS
    assert said.text.splitlines()[-1].endswith("search finds lines in them too]")


def long_step(number: int) -> list[dict[str, Any]]:
    arguments = json.dumps({"command": f"make {number}"})
    call = {"id": f"c{number}", "function": {"name": "run", "arguments": arguments}}
    rows = "\n".join(f"row {n} of {number}" for n in range(300))
    result = {"role": "tool", "tool_call_id": f"c{number}", "content": rows}
    return [{"role": "assistant", "tool_calls": [call]}, result]


@pytest.mark.parametrize(("steps", "tabled"), [(1, False), (2, True)])
def test_one_long_step_is_shown_at_once_and_two_as_a_table(steps: int, tabled: bool) -> None:
    class Kept:
        def recall(self, handle: str) -> str:
            return json.dumps([item for n in range(steps) for item in long_step(n)])

    said = answer(Kept(), {"handle": "r"}).text
    assert said.startswith("2 steps were left out" if tabled else "[{")


def test_a_fold_that_begins_with_a_result_has_that_as_its_first_step() -> None:
    items = [{"role": "tool", "tool_call_id": "c9", "content": "late"}, *long_step(1)]
    steps = folded_steps(json.dumps(items))
    assert [(step.calls, step.first_line) for step in steps] == [
        ((), "late"),
        (("run make 1",), "row 0 of 1"),
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"path": None, "all": True, "lines": 3, "names": ["a", "b"]}, "f 3 a b"),
        ({}, "f"),
        ("not json", "f not json"),
        ("null", "f"),
    ],
    ids=str,
)
def test_a_call_is_told_by_the_texts_and_numbers_of_its_arguments(
    arguments: Any, said: str
) -> None:
    call = {"id": "c", "name": "f", "arguments": arguments}
    (step,) = folded_steps(json.dumps([{"type": "function_call", **call}]))
    assert step.calls == (said,)


@pytest.mark.parametrize(
    "text", ["", "[]", "plain", '[{"id": 1, "name": "Ada"}]', '[1, {"role": "user"}]', '[{"role"']
)
def test_any_other_original_has_no_steps(text: str) -> None:
    assert folded_steps(text) == []
    with pytest.raises(ValueError, match="not made of steps"):
        steps_of(text, 1, 1)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [(None, None), ("", None), (3, (3, 3)), ("3", (3, 3)), ("3-5", (3, 5)), ((3, 5), (3, 5))],
)
def test_steps_are_asked_for_by_number_or_range(asked: Any, expected: Any) -> None:
    assert step_range(asked) == expected


@pytest.mark.parametrize("asked", ["x", "0", "1-2-3", "-1", {}, 1.5])
def test_what_is_no_step_is_refused(asked: Any) -> None:
    with pytest.raises(ValueError, match="steps is a number"):
        step_range(asked)
