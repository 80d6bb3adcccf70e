"""System messages that a provider refuses where they stand, and those it takes."""

from __future__ import annotations

from typing import Any

import pytest

import trimtab
from trimtab import formats
from trimtab.formats import rules

DIRECTIVE = {"role": "system", "content": [], "output_config": {"effort": "low"}}
SEARCHED = {
    "role": "assistant",
    "content": [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
    ],
}


def asks(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def says(text: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def told(text: Any) -> dict[str, Any]:
    return {"role": "system", "content": text}


def claude(*messages: Any) -> dict[str, Any]:
    return {"model": "claude-opus-5", "max_tokens": 9, "system": "You.", "messages": [*messages]}


def repaired(request: Any, *refused: str, format: str | None = None) -> Any:
    """The request after a refusal that named these rows."""
    found, _ = formats.find(request, format)
    return rules.repair(
        request, found, formats.read(request, found), refused=frozenset(refused)
    ).tree


ACCEPTED = {
    "behind the user, at the end": [asks("a"), told("s")],
    "between user and model": [asks("a"), told("s"), says("b"), asks("c")],
    "a run of them": [asks("a"), told("s"), told("t"), says("b"), asks("c")],
    "behind a server's tool": [asks("a"), SEARCHED, told("s"), says("b"), asks("c")],
    "a directive first": [DIRECTIVE, asks("a")],
    "a directive between users": [asks("a"), DIRECTIVE, asks("b")],
    "a directive behind a system message": [asks("a"), told("s"), DIRECTIVE, says("b"), asks("c")],
}


@pytest.mark.parametrize("messages", ACCEPTED.values(), ids=ACCEPTED)
def test_what_claude_takes_is_left_alone(messages: list[Any]) -> None:
    request = claude(*messages)
    assert trimtab.check(request) == ()
    assert trimtab.fit(request, window=9_000).request is request


MOVED = {
    "behind the model": (
        [asks("a"), says("b"), told("s"), asks("c")],
        [asks("a"), says("b"), asks("c"), told("s")],
    ),
    "before the user": ([asks("a"), told("s"), asks("c")], [asks("a"), asks("c"), told("s")]),
    "behind the model, at the end": (
        [asks("a"), says("b"), told("s")],
        [asks("a"), told("s"), says("b"), asks("Continue.")],
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
    request = claude(told("Be brief."), asks("a"))
    assert [found.rule for found in trimtab.check(request)] == ["system_first"]
    sent = trimtab.repair(request).request
    assert sent["messages"] == [asks("a")]
    assert [part["text"] for part in sent["system"]] == ["You.", "Be brief."]


def test_options_of_a_first_system_message_stay_where_they_are() -> None:
    sent = trimtab.repair(claude({**DIRECTIVE, "content": "Be brief."}, asks("a"))).request
    assert sent["messages"] == [DIRECTIVE, asks("a")]


def test_system_messages_in_a_row_are_joined_once_they_are_refused() -> None:
    request = claude(asks("a"), told("s"), told("t"), says("b"), asks("c"))
    joined = repaired(request, "system_in_a_row")["messages"][1]
    assert [part["text"] for part in joined["content"]] == ["s", "t"]
    assert trimtab.fit(request, window=9_000).request is request


def test_a_model_that_takes_no_system_message_gets_them_in_its_prompt() -> None:
    request = claude(
        asks("a"), told("s"), says("b"), asks("c"), told([{"type": "text", "text": "t"}])
    )
    sent = repaired(request, "system_unsupported", format="anthropic")
    assert sent["messages"] == [asks("a"), says("b"), asks("c")]
    assert [part["text"] for part in sent["system"]] == ["You.", "s", "t"]


def test_a_template_that_wants_one_system_message_first_gets_it() -> None:
    chat = {
        "model": "qwen3.5-27b",
        "messages": [told("You."), asks("a"), says("b"), told("Plan."), asks("c")],
    }
    sent = repaired(chat, "system_not_first")
    assert sent["messages"] == [told("You.\n\nPlan."), asks("a"), says("b"), asks("c")]
    assert trimtab.fit(chat, window=9_000).request is chat


def test_in_responses_all_of_them_go_to_the_instructions() -> None:
    said = {"role": "developer", "content": [{"type": "input_text", "text": "Plan."}]}
    request = {"model": "m", "instructions": "You.", "input": [said, asks("a"), said]}
    sent = repaired(request, "system_not_first")
    assert (sent["instructions"], sent["input"]) == ("You.\n\nPlan.\n\nPlan.", [asks("a")])


def test_roles_alternate_once_a_template_has_refused_them() -> None:
    messages = [told("s"), says("first"), asks("a"), asks("b"), says("c"), says("d"), asks("e")]
    request = {"model": "gemma-3", "messages": messages}
    sent = repaired(request, "roles_alternate")["messages"]
    assert [m["role"] for m in sent] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert [m["content"] for m in sent[3:]] == ["a\n\nb", "c\n\nd", "e"]
    assert trimtab.fit(request, window=9_000).request is request


def test_a_last_message_of_the_models_may_be_empty() -> None:
    """Anthropic's words exempt it, and models before 4.6 go on from it."""
    request = {**claude(asks("a"), says([])), "model": "claude-sonnet-4-5"}
    assert trimtab.check(request) == ()
    assert trimtab.fit(request, window=9_000).request is request
