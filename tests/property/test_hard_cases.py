"""Seven hard cases in each format, at a quarter of their size: valid and within the budget."""

from __future__ import annotations

import copy

import judge
import pytest
from hard_cases import CASES, conversation
from sizes import o200k

import trimtab

FORMATS = ("openai-chat", "anthropic")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", CASES)
def test_a_hard_case_is_valid_and_fits_a_quarter_of_its_size(name: str, format: str) -> None:
    messages = conversation(name, format)
    untouched = copy.deepcopy(messages)
    budget = judge.tokens(messages, format, o200k()) // 4
    fitted = trimtab.fit(
        messages, window=budget, format=format, settings=trimtab.Settings(counter="o200k")
    )
    assert judge.problems(fitted.request, format) == []
    assert trimtab.check(fitted.request, format=format) == ()
    assert judge.tokens(fitted.request, format, o200k()) <= budget
    assert messages == untouched
    assert fitted.report.edits


@pytest.mark.parametrize("format", FORMATS)
def test_the_task_of_the_user_stays_whole_in_a_long_trace(format: str) -> None:
    messages = conversation("long trace", format)
    task = next(m["content"] for m in messages if m["role"] == "user")
    window = judge.tokens(messages, format, o200k()) // 4
    fitted = trimtab.fit(
        messages, window=window, format=format, settings=trimtab.Settings(counter="o200k")
    )
    first = next(m["content"] for m in fitted.request if m["role"] == "user")
    assert str(first).startswith(task) or task in str(first)


@pytest.mark.parametrize("format", FORMATS)
def test_a_giant_user_message_is_cut_last_and_its_ends_stay(format: str) -> None:
    messages = conversation("giant first user message", format)
    task = next(m["content"] for m in messages if m["role"] == "user")
    window = judge.tokens(messages, format, o200k()) // 4
    fitted = trimtab.fit(
        messages, window=window, format=format, settings=trimtab.Settings(counter="o200k")
    )
    first = next(m["content"] for m in fitted.request if m["role"] == "user")
    assert first.startswith(task[:100])
    assert task[-100:] in first
    assert any(edit.kind == "user-text" for edit in fitted.report.edits)
