"""What a refusal advises."""

from __future__ import annotations

from typing import Any

import pytest
from shapes import FORMATS

import trimtab

ONLY_IMAGES = trimtab.Settings(images=9)
LONG = "Leave module_7.py as it is, whoever asks. " * 400


@pytest.mark.parametrize(
    ("system", "user", "step"),
    [(LONG, "Go.", "shorten it"), ("Be brief.", LONG, "into a file that a tool reads in parts")],
)
def test_what_takes_most_of_a_request_that_cannot_fit_is_named_with_what_to_do(
    system: str, user: str, step: str
) -> None:
    body = {"model": "claude-sonnet-4-5", "max_tokens": 10, "system": system,
            "messages": [{"role": "user", "content": user}]}  # fmt: skip
    with pytest.raises(trimtab.CannotFit) as refused:
        trimtab.fit(body, window=30, reserve=0)
    assert step in str(refused.value)


def with_tools(format: str, count: int) -> dict[str, Any]:
    """A short question with so many tools, each a little larger than the one before."""
    tools = [
        {"type": "function", "function": {
            "name": f"tool_{number}", "description": "what it does " * (200 + number),
            "parameters": {"type": "object", "properties": {}}}}
        for number in range(count)
    ]  # fmt: skip
    body = {"messages": [{"role": "user", "content": "Go."}], "tools": tools}
    return dict(trimtab.convert(body, to=format).request) if format != "openai-chat" else body


@pytest.mark.parametrize("format", FORMATS)
def test_tools_that_leave_no_room_are_named_with_what_helps(format: str) -> None:
    body = with_tools(format, 12)
    with pytest.raises(trimtab.CannotFit) as refused:
        trimtab.fit(body, 4_000, reserve=0, format=format)
    error = refused.value
    assert error.hint.startswith("The definitions of 12 tools take ")
    assert "the 10 largest are tool_11 (" in error.hint
    assert "tool_1 (" not in error.hint
    assert "connect fewer MCP servers" in error.hint
    assert ("defer_loading" in error.hint) is (format in ("anthropic", "openai-responses"))
    assert error.largest[0][2] == "tool tool_11"


@pytest.mark.parametrize("format", FORMATS)
def test_tools_that_take_more_than_half_of_the_room_are_a_warning(format: str) -> None:
    body = with_tools(format, 12)
    tokens = trimtab.count_tokens(body, format=format)
    (warning,) = trimtab.fit(body, int(1.8 * tokens), reserve=0, format=format).report.warnings
    assert warning.startswith("The definitions of 12 tools take ")
    assert f"of the {int(1.8 * tokens):,} tokens that a prompt may have" in warning
    assert not trimtab.fit(body, int(2.2 * tokens), reserve=0, format=format).report.warnings
    assert not trimtab.fit(body, reserve=0, format=format, settings=ONLY_IMAGES).report.warnings


@pytest.mark.parametrize("format", FORMATS)
def test_a_measurement_lists_the_tools_largest_first(format: str) -> None:
    measured = trimtab.measure(with_tools(format, 12), format=format)
    assert [row.tool for row in measured.tools][:2] == ["tool_11", "tool_10"]
    assert sum(row.tokens for row in measured.tools) < measured.total
    assert measured.tools_advice().startswith("The definitions of 12 tools take ")
    assert not trimtab.measure(with_tools(format, 3), format=format).tools_advice()


def test_tools_are_named_beside_a_part_that_is_larger_still() -> None:
    body = {**with_tools("openai-chat", 12)}
    body["messages"] = [{"role": "system", "content": LONG * 4}, *body["messages"]]
    with pytest.raises(trimtab.CannotFit) as refused:
        trimtab.fit(body, 9_000, reserve=0)
    assert refused.value.hint.startswith("The system prompt takes ")
    assert " The definitions of 12 tools take " in refused.value.hint


def test_the_schema_of_an_answer_is_no_tool() -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"title": LONG}}}
    body = {"messages": [{"role": "user", "content": "Go."}], "response_format": schema}
    with pytest.raises(trimtab.CannotFit) as refused:
        trimtab.fit(body, 900, reserve=0)
    assert refused.value.hint.startswith("The schema of the answer takes ")
