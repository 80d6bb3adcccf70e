"""A result whose id differs from one call's by case alone is that call's answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from shapes import FORMATS, session

import trimtab

CALLS = ("call_0000", "call_0001")


def with_result_ids(format: str, new: dict[str, str]) -> Any:
    """A small session in which results have other ids than their calls."""
    body = session(format, steps=2, lines=2)
    return _renamed(body, new)


def _renamed(value: Any, new: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_renamed(item, new) for item in value]
    if not isinstance(value, dict):
        return value
    is_result = (
        value.get("type") in ("function_call_output", "tool_result")
        or value.get("role") == "tool"
        or {"toolUseId", "content"} <= value.keys()
        or "response" in value
    )
    ids = ("call_id", "tool_use_id", "tool_call_id", "toolUseId", "id")
    return {
        key: new.get(item, item) if is_result and key in ids else _renamed(item, new)
        for key, item in value.items()
    }


@pytest.mark.row("B3")
@pytest.mark.parametrize("format", FORMATS)
def test_a_result_id_that_differs_only_by_case_is_told_and_given_the_id_of_its_call(
    format: str,
) -> None:
    body = with_result_ids(format, {"call_0000": "CALL_0000"})
    assert "result_id_case" in {v.rule for v in trimtab.check(body, format=format)}
    for done in (
        trimtab.repair(body, format=format),
        trimtab.fit(body, window=50_000, format=format),
    ):
        assert done.request == session(format, steps=2, lines=2)
        assert [row.rule for row in done.report.repairs] == ["result_id_case"]


@pytest.mark.row("B3")
@pytest.mark.parametrize("format", FORMATS)
def test_where_two_calls_could_be_meant_or_both_have_results_nothing_is_guessed(
    format: str,
) -> None:
    text = json.dumps(session(format, steps=2, lines=2)).replace("call_0001", "Call_0000")
    two_calls = _renamed(json.loads(text), {"call_0000": "CALL_0000"})
    done = trimtab.repair(two_calls, format=format)
    assert trimtab.check(done.request, format=format) == ()
    assert "result_id_case" not in {row.rule for row in done.report.repairs}
