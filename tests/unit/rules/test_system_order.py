"""System messages that a provider refuses where they stand, and those it takes."""

from __future__ import annotations

from typing import Any

import pytest

import trimtab
from trimtab import rules, wire

DIRECTIVE = {"role": "system", "content": [], "output_config": {"effort": "low"}}
SEARCHED = {
    "role": "assistant",
    "content": [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
    ],
}


def U(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def A(text: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def S(text: Any) -> dict[str, Any]:
    return {"role": "system", "content": text}


def claude(*messages: Any) -> dict[str, Any]:
    return {"model": "claude-opus-5", "max_tokens": 9, "system": "You.", "messages": [*messages]}


def repaired(request: Any, *refused: str, format: str | None = None) -> Any:
    """The request after a refusal that named these rows."""
    found, _ = wire.find(request, format)
    return rules.repair(request, found, wire.read(request, found), refused=frozenset(refused)).tree


ACCEPTED = {
    "behind the user, at the end": [U("a"), S("s")],
    "between user and model": [U("a"), S("s"), A("b"), U("c")],
    "a run of them": [U("a"), S("s"), S("t"), A("b"), U("c")],
    "behind a server's tool": [U("a"), SEARCHED, S("s"), A("b"), U("c")],
    "a directive first": [DIRECTIVE, U("a")],
    "a directive between users": [U("a"), DIRECTIVE, U("b")],
    "a directive behind a system message": [U("a"), S("s"), DIRECTIVE, A("b"), U("c")],
}


@pytest.mark.parametrize("messages", ACCEPTED.values(), ids=ACCEPTED)
def test_what_claude_takes_is_left_alone(messages: list[Any]) -> None:
    request = claude(*messages)
    assert trimtab.check(request) == ()
    assert trimtab.fit(request, window=9_000).request is request


MOVED = {
    "behind the model": ([U("a"), A("b"), S("s"), U("c")], [U("a"), A("b"), U("c"), S("s")]),
    "before the user": ([U("a"), S("s"), U("c")], [U("a"), U("c"), S("s")]),
    "behind the model, at the end": (
        [U("a"), A("b"), S("s")],
        [U("a"), S("s"), A("b"), U("Continue.")],
    ),
}


@pytest.mark.parametrize(("before", "after"), MOVED.values(), ids=MOVED)
def test_a_misplaced_system_message_is_moved_behind_a_user_message(
    before: list[Any], after: list[Any]
) -> None:
    request = claude(*before)
    (found,) = trimtab.check(request)
    assert found.rule == "system_place"
    assert "must precede an 'assistant'" in found.message
    assert trimtab.repair(request).request["messages"] == after


def test_a_first_system_message_becomes_part_of_the_system_prompt() -> None:
    request = claude(S("Be brief."), U("a"))
    assert [found.rule for found in trimtab.check(request)] == ["system_first"]
    sent = trimtab.repair(request).request
    assert sent["messages"] == [U("a")]
    assert [part["text"] for part in sent["system"]] == ["You.", "Be brief."]


def test_options_of_a_first_system_message_stay_where_they_are() -> None:
    sent = trimtab.repair(claude({**DIRECTIVE, "content": "Be brief."}, U("a"))).request
    assert sent["messages"] == [DIRECTIVE, U("a")]


def test_system_messages_in_a_row_are_joined_once_they_are_refused() -> None:
    request = claude(U("a"), S("s"), S("t"), A("b"), U("c"))
    joined = repaired(request, "system_in_a_row")["messages"][1]
    assert [part["text"] for part in joined["content"]] == ["s", "t"]
    assert trimtab.fit(request, window=9_000).request is request


def test_a_model_that_takes_no_system_message_gets_them_in_its_prompt() -> None:
    request = claude(U("a"), S("s"), A("b"), U("c"), S([{"type": "text", "text": "t"}]))
    sent = repaired(request, "system_unsupported", format="anthropic")
    assert sent["messages"] == [U("a"), A("b"), U("c")]
    assert [part["text"] for part in sent["system"]] == ["You.", "s", "t"]


def test_a_template_that_wants_one_system_message_first_gets_it() -> None:
    chat = {"model": "qwen3.5-27b", "messages": [S("You."), U("a"), A("b"), S("Plan."), U("c")]}
    sent = repaired(chat, "system_not_first")
    assert sent["messages"] == [S("You.\n\nPlan."), U("a"), A("b"), U("c")]
    assert trimtab.fit(chat, window=9_000).request is chat


def test_in_responses_all_of_them_go_to_the_instructions() -> None:
    said = {"role": "developer", "content": [{"type": "input_text", "text": "Plan."}]}
    request = {"model": "m", "instructions": "You.", "input": [said, U("a"), said]}
    sent = repaired(request, "system_not_first")
    assert (sent["instructions"], sent["input"]) == ("You.\n\nPlan.\n\nPlan.", [U("a")])


def test_roles_alternate_once_a_template_has_refused_them() -> None:
    messages = [S("s"), A("first"), U("a"), U("b"), A("c"), A("d"), U("e")]
    request = {"model": "gemma-3", "messages": messages}
    sent = repaired(request, "roles_alternate")["messages"]
    assert [m["role"] for m in sent] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert [m["content"] for m in sent[3:]] == ["a\n\nb", "c\n\nd", "e"]
    assert trimtab.fit(request, window=9_000).request is request


def test_a_last_message_of_the_models_may_be_empty() -> None:
    """Anthropic's words exempt it, and models before 4.6 go on from it."""
    request = {**claude(U("a"), A([])), "model": "claude-sonnet-4-5"}
    assert trimtab.check(request) == ()
    assert trimtab.fit(request, window=9_000).request is request
