"""Law 11: a record is true as of its last step.  Law 8: no call is put into the model's words.

``record_reader`` judges; it shares no code with the library.
"""

from __future__ import annotations

from typing import Any

import edited_files
import pytest
import spoken
from edited_files import History
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from judge_speakers import foreign_pieces
from record_reader import not_the_models, notes_of, untrue

import trimtab
from trimtab import CannotFit

FORMATS = ("anthropic", "openai-chat", "openai-responses", "gemini")
STYLES = st.sampled_from(edited_files.STYLES)
WINDOWS = st.sampled_from([1_000, 1_500, 2_500, 4_000])
SETTINGS = trimtab.Settings(counter="o200k", recall=True)


def assert_true(history: History, request: Any, fitted: Any) -> None:
    sent = fitted.request
    assert untrue(history, sent, fitted.recall) == []
    assert not_the_models(history, sent) == []
    assert foreign_pieces(request, sent) == []


@given(edited_files.OPS, STYLES, st.sampled_from(FORMATS), WINDOWS)
def test_law_11_each_row_of_a_record_is_its_steps_and_still_true_after_the_last(
    ops: list[Any], style: Any, format: Any, window: int
) -> None:
    history = edited_files.history(style, ops)
    request = spoken.written(format, history.script)
    try:
        fitted = trimtab.fit(request, format=format, window=window, reserve=0, settings=SETTINGS)
    except CannotFit:
        return
    assert_true(history, request, fitted)


@examples(0.3)
@given(edited_files.OPS, STYLES, st.sampled_from(FORMATS), WINDOWS)
def test_law_11_holds_over_the_turns_of_a_session(
    ops: list[Any], style: Any, format: Any, window: int
) -> None:
    history = edited_files.history(style, ops)
    session = trimtab.Session(window=window, reserve=0, format=format, settings=SETTINGS)
    for end in range(1, len(history.script) + 1):
        if end < len(history.script) and isinstance(history.script[end], str):
            continue
        request = spoken.written(format, history.script[:end])
        try:
            fitted = session.fit(request)
        except CannotFit:
            return
        assert_true(history, request, fitted)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("style", edited_files.STYLES)
def test_such_histories_leave_records_with_rows_of_all_kinds(style: Any, format: Any) -> None:
    ops = [(kind, n % 3, 5 * n) for n in range(6) for kind in edited_files.KINDS if kind != "user"]
    history = edited_files.history(style, ops)
    request = spoken.written(format, history.script)
    fitted = trimtab.fit(request, format=format, window=4_000, reserve=0, settings=SETTINGS)
    assert_true(history, request, fitted)
    notes = list(notes_of(fitted.request))
    assert notes
    rows = [row for note in notes for one in note.sections for row in one.rows]
    assert {row[0] for row in rows} == {" ", "+", "-"}
