"""Tools that the provider loads only when a search has found them count only then."""

from __future__ import annotations

from typing import Any

import pytest

import trimtab

HI = {"role": "user", "content": "Which orders are open?"}
WORDS = "Lists what is open for one customer, newest first. " * 40
SCHEMA = {"type": "object", "properties": {"customer": {"type": "string", "description": WORDS}}}


def claude(*messages: Any, deferred: bool = True, count: int = 30) -> dict[str, Any]:
    defer = {"defer_loading": True} if deferred else {}
    tools = [{"name": f"orders_{n}", "description": WORDS, "input_schema": SCHEMA, **defer}
             for n in range(count)]  # fmt: skip
    search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    return {"model": "claude-sonnet-5", "max_tokens": 100, "tools": [search, *tools],
            "messages": [HI, *messages]}  # fmt: skip


def found(*names: str) -> list[dict[str, Any]]:
    """A search by the server that found these tools, and the next question."""
    references = [{"type": "tool_reference", "tool_name": name} for name in names]
    return [
        {"role": "assistant", "content": [
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25",
             "input": {"query": "orders"}},
            {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": {
                "type": "tool_search_tool_search_result", "tool_references": references}},
            {"type": "text", "text": "I found it."},
        ]},
        {"role": "user", "content": "Use it."},
    ]  # fmt: skip


def test_a_deferred_tool_of_claude_takes_no_room_until_a_search_has_found_it() -> None:
    whole = trimtab.count_tokens(claude(deferred=False))
    none = trimtab.count_tokens(claude())
    one = trimtab.count_tokens(claude(*found("orders_3")))
    two = trimtab.count_tokens(claude(*found("orders_3", "orders_4")))
    definition = (whole - trimtab.count_tokens(claude(count=0))) // 30
    assert none < 150 < 20_000 < whole
    assert definition < one - none < definition + 300
    assert definition < two - one < definition + 50


def test_what_the_advice_says_helps() -> None:
    with pytest.raises(trimtab.CannotFit, match="defer_loading"):
        trimtab.fit(claude(deferred=False), 9_000)
    body = claude()
    fitted = trimtab.fit(body, 9_000)
    assert fitted.request is body
    assert not fitted.report.warnings
    assert not trimtab.measure(body).tools_advice()


@pytest.mark.parametrize("kind", ["function", "namespace"])
def test_of_a_deferred_tool_of_responses_what_the_model_reads_at_first_counts(kind: str) -> None:
    def body(deferred: bool) -> dict[str, Any]:
        function = {"type": "function", "description": "Open orders.", "parameters": SCHEMA}
        functions = [
            {**function, "name": f"orders_{n}", "defer_loading": deferred} for n in range(30)
        ]
        tools: list[Any] = functions
        if kind == "namespace":
            tools = [{"type": "namespace", "name": "crm", "description": "A CRM.",
                      "tools": functions}]  # fmt: skip
        return {"model": "gpt-5.5", "input": [HI], "tools": [*tools, {"type": "tool_search"}]}

    most = 900 if kind == "function" else 60
    assert trimtab.count_tokens(body(True)) < most < 10_000 < trimtab.count_tokens(body(False))
    assert trimtab.fit(body(True), 2_000, reserve=0).report.tokens_after < most
