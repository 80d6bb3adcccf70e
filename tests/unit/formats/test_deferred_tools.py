"""Tools that the provider loads only when a search has found them count only then."""

from __future__ import annotations

from typing import Any

import judge_responses
import pytest
import sizes

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


def test_a_tool_that_a_message_adds_counts_and_one_that_it_withdraws_does_not() -> None:
    def changed(kind: str) -> dict[str, Any]:
        reference = {"type": "tool_reference", "name": "orders_3"}
        change = {"role": "system", "content": [{"type": kind, "tool": reference}]}
        answer = {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]}
        return claude(answer, change, {"role": "user", "content": "Use it."})

    definition = (
        trimtab.count_tokens(claude(deferred=False)) - trimtab.count_tokens(claude())
    ) / 30
    added, withdrawn = (trimtab.count_tokens(changed(f"tool_{kind}")) for kind in
                        ("addition", "removal"))  # fmt: skip
    assert definition > 500
    assert added - withdrawn == pytest.approx(definition, rel=0.1)
    assert withdrawn < 200
    for kind in ("tool_addition", "tool_removal"):
        assert trimtab.count_tokens(changed(kind)) >= sizes.tokens(changed(kind), "anthropic")


def test_a_tool_that_a_compacted_turn_had_loaded_counts() -> None:
    change = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "orders_3"}}
    summary = {"type": "compaction", "content": "Asked for orders."}

    def compacted(**more: Any) -> dict[str, Any]:
        content = [{**summary, **more}, {"type": "text", "text": "Yes."}]
        return claude({"role": "assistant", "content": content}, {"role": "user", "content": "Go."})

    definition = (
        trimtab.count_tokens(claude(deferred=False)) - trimtab.count_tokens(claude())
    ) / 30
    grown = trimtab.count_tokens(compacted(tool_changes=[change])) - trimtab.count_tokens(
        compacted()
    )
    assert grown > definition


@pytest.mark.parametrize("model", ["MiniMax-M2", "claude-3-7-sonnet-latest", "glm-4.6", ""])
def test_a_model_that_defers_nothing_reads_every_definition(model: str) -> None:
    def of(model: str, deferred: bool) -> dict[str, Any]:
        return {**claude(deferred=deferred), "model": model}

    flag = 30 * 12  # the field itself is read, too
    assert (
        0 <= trimtab.count_tokens(of(model, True)) - trimtab.count_tokens(of(model, False)) < flag
    )
    assert sizes.tokens(of(model, True), "anthropic") > 10_000 > sizes.tokens(claude(), "anthropic")


@pytest.mark.parametrize("model", ["claude-sonnet-5", "us.anthropic.claude-opus-4-5-v1:0"])
def test_a_model_that_the_address_names_defers_as_one_in_the_body_does(model: str) -> None:
    body = {key: value for key, value in claude().items() if key != "model"}
    assert trimtab.count_tokens(body, model=model) < 150 < 20_000 < trimtab.count_tokens(body)


def test_a_reference_in_an_added_tool_stays_after_a_refusal_of_another() -> None:
    """It may be to a tool that an earlier message defines."""
    defined = {"type": "tool_definition", "definition": {"name": "LATE", "input_schema": SCHEMA}}
    added = [{"type": "tool_addition", "tool": tool}
             for tool in (defined, {"type": "tool_reference", "name": "LATE"})]  # fmt: skip
    body = claude({"role": "system", "content": added}, *found("LSP"))
    session = trimtab.Session(window=10**6)
    again = session.refused(
        (400, "Tool reference 'LSP' not found in available tools"), session.fit(body)
    )
    assert again is not None
    assert again.request["messages"][1] == body["messages"][1]
    assert "LSP" not in str(again.request["messages"][2])


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


@pytest.mark.parametrize(
    ("model", "search", "defers"),
    [("gpt-5.4-mini", True, True), ("gpt-6", True, True), ("openai/gpt-5.10", True, True),
     ("gpt-5.5", False, False), ("gpt-5.3-codex", True, False), ("gpt-5", True, False),
     ("deepseek-v4", True, False), ("some-deployment", True, False)],
)  # fmt: skip
def test_a_definition_of_responses_counts_whole_where_no_search_can_find_it(
    model: str, search: bool, defers: bool
) -> None:
    function = {"type": "function", "description": "Open orders.", "parameters": SCHEMA}
    tools: list[Any] = [{**function, "name": f"orders_{n}", "defer_loading": True}
                        for n in range(30)]  # fmt: skip
    body = {"model": model, "input": [HI], "tools": tools + [{"type": "tool_search"}] * search}
    for counted in (trimtab.count_tokens(body), judge_responses.tokens(body)):
        assert counted < 900 if defers else counted > 10_000


def test_a_session_that_goes_on_with_a_model_that_searches_counts_anew() -> None:
    function = {"type": "function", "name": "f", "parameters": SCHEMA, "defer_loading": True}
    tools = [function, {"type": "tool_search"}]
    session = trimtab.Session(window=10**6)
    old, new = (
        session.fit({"model": model, "input": [HI], "tools": tools}).report.tokens_after
        for model in ("gpt-5", "gpt-5.5")
    )
    assert old > new + 300
