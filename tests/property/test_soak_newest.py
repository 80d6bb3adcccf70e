"""Conversations that are valid by the providers' newest pages pass every door unharmed, in small.

``python -m tests.soak.newest.run`` tries them by the thousand, ``python -m
tests.soak.newest.signals`` tells what one false refusal does.  ``SOAK_NEWEST`` says how many
conversations a format gets here.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from soak.newest import judge
from soak.newest.doors import NAMES
from soak.newest.formats import FORMATS, provider, sign, talk_of
from soak.newest.run import soak
from soak.newest.said import SIGNALS
from soak.newest.signals import false_signal, true_is_right, true_limit
from soak.newest.talk import Talk

COUNT = int(os.environ.get("SOAK_NEWEST") or 3)

UNTAUGHT = tuple(signal.name for signal in SIGNALS if signal.name != "count-low")
"""One false signal of these changes no other conversation."""
REMEMBERED = (
    "window", "bytes", "images", "images-claude", "long-string", "output-limit", "field",
)  # fmt: skip
"""True limits that are met within the sends and known after a restart and to a replica."""


def bodies(seed: int, format: str) -> tuple[Talk, list[dict[str, Any]]]:
    """All requests of a conversation, sent as they are."""
    talk, found = talk_of(seed, format), list[dict[str, Any]]()
    requests = talk.requests(sign)
    while (body := requests.body) is not None:
        found.append(body)
        requests.answered(body)
    return talk, found


# --- the generators and the provider models ---


@pytest.mark.parametrize("format", FORMATS)
def test_every_generated_request_is_taken_by_the_provider_model(format: str) -> None:
    for seed in range(60):
        talk, asked = bodies(seed, format)
        for body in asked:
            assert provider(format).refusal(body, talk.headers, talk.dialect) is None, seed


def test_a_conversation_comes_of_its_seed_alone() -> None:
    for seed in range(24):
        assert bodies(seed, "") == bodies(seed, "")


@pytest.mark.parametrize(
    ("format", "features"),
    [
        ("anthropic", {
            "mixed", "programmatic", "pause", "filtering", "tool_search", "client_search", "mcp",
            "changed_tools", "system in the middle", "directive only", "in_a_row", "document",
            "results apart", "system behind a server tool", "compacted", "future", "odd_role",
            "browser",
        }),
        ("openai-chat", {"calls", "apart", "system", "custom", "future", "parts"}),
        ("openai-responses", {
            "program", "tool_search", "mcp", "approval", "computer", "configured", "more_tools",
            "future", "late_output", "custom", "shell", "hosted", "compacted",
        }),
        ("bedrock", {
            "system", "changed_tools", "cited", "ran_by_server", "document", "cache", "future",
        }),
        ("gemini", {"calls", "code", "server_tool", "media", "thought", "answered_and_asked"}),
        ("gemini-interactions", {"search", "code", "tool_search", "mcp", "mixed", "future"}),
    ],
)  # fmt: skip
def test_each_newer_feature_is_drawn(format: str, features: set[str]) -> None:
    drawn: set[str] = set()
    for seed in range(120):
        drawn |= talk_of(seed, format).features
    assert features <= drawn


def test_every_chat_dialect_is_drawn() -> None:
    drawn = {talk_of(seed, "openai-chat").dialect for seed in range(200)}
    assert len(drawn) == 11


Fault = Callable[[list[Any]], Any]


def _drop_block(kind: str) -> Fault:
    def fault(messages: list[Any]) -> None:
        for message in messages:
            content = message.get("content")
            if isinstance(content, list):
                for part in content:
                    if part.get("type") == kind or kind in part:
                        content.remove(part)
                        return

    return fault


def _drop(test: Callable[[Any], bool]) -> Fault:
    def fault(messages: list[Any]) -> None:
        del messages[next(n for n, message in enumerate(messages) if test(message))]

    return fault


def _behind(role: str, message: Any) -> Fault:
    """Put a message behind the first of a role."""

    def fault(messages: list[Any]) -> None:
        at = next(n for n, m in enumerate(messages) if m.get("role") == role)
        messages.insert(at + 1, message)

    return fault


def _change(test: Callable[[Any], bool], **fields: Any) -> Fault:
    def fault(messages: list[Any]) -> None:
        next(message for message in messages if test(message)).update(fields)

    return fault


SYSTEM = {"role": "system", "content": "Now in plan mode."}
PLANTED: list[tuple[str, str, str, Fault, str]] = [
    ("anthropic", "mixed", "", _drop_block("web_search_tool_result"), "without a corresponding"),
    ("anthropic", "programmatic", "", _drop_block("code_execution_tool_result"),
     "`code_execution`"),
    ("anthropic", "pause", "", _drop_block("server_tool_use"), "unexpected `tool_use_id`"),
    ("anthropic", "calls", "", _drop_block("tool_result"), "without `tool_result` blocks"),
    ("anthropic", "calls", "", _drop_block("tool_use"), "unexpected `tool_use_id`"),
    ("anthropic", "future", "", _drop_block("hologram_use"), "hologram_result"),
    ("anthropic", "say", "", lambda m: m.insert(0, SYSTEM), "top-level 'system'"),
    ("anthropic", "say", "", _behind("assistant", SYSTEM), "must directly follow"),
    ("anthropic", "say", "", lambda m: m.extend([SYSTEM, SYSTEM]), "'system'"),
    ("anthropic", "say", "", lambda m: m.append({"role": "assistant", "content": "So"}), "prefill"),
    ("anthropic", "client_search", "", lambda m: m[-1].update(content=[
        {"type": "tool_reference", "tool_name": "gone"}]), "not found in available tools"),
    ("openai-chat", "calls", "", _drop(lambda m: m["role"] == "tool"), "did not have response"),
    ("openai-chat", "calls", "", _drop(lambda m: bool(m.get("tool_calls"))), "preceeding message"),
    ("openai-chat", "calls", "chat-deepseek",
     _change(lambda m: bool(m.get("tool_calls")), reasoning_content=""), "passed back"),
    ("openai-chat", "calls", "chat-groq",
     _change(lambda m: m["role"] == "assistant", reasoning_content="x"), "unsupported"),
    ("openai-chat", "calls", "chat-mistral",
     lambda m: m.append({"role": "system", "content": "x"}), "Unexpected role 'system'"),
    ("openai-chat", "say", "chat-llamacpp", lambda m: m.append(SYSTEM), "at the beginning"),
    ("openai-chat", "say", "chat-alternating", lambda m: m.append(m[-1]), "must alternate"),
    ("openai-responses", "calls", "",
     _drop(lambda i: i.get("type") == "function_call_output"), "No tool output found"),
    ("openai-responses", "calls", "", _drop(lambda i: i.get("type") == "function_call"), "No "),
    ("openai-responses", "program", "", _drop(lambda i: i.get("type") == "program_output"),
     "No program output"),
    ("openai-responses", "tool_search", "", _drop(lambda i: i.get("type") == "tool_search_call"),
     "tool search output"),
    ("bedrock", "calls", "", _drop_block("toolResult"), "Expected toolResult"),
    ("bedrock", "calls", "", _drop_block("toolUse"), "exceeds the number"),
    ("bedrock", "say", "", lambda m: m.append(m[-1]), "must alternate"),
    ("gemini", "calls", "", _drop(lambda c: any("functionResponse" in p for p in c["parts"])),
     "function"),
    ("gemini", "server_tool", "", lambda c: [c_["parts"].pop(0) for c_ in c
                                             if "toolCall" in c_["parts"][0]], "matching tool"),
    ("gemini-interactions", "calls", "", _drop(lambda s: s["type"] == "function_result"),
     "Function"),
    ("gemini-interactions", "calls", "", _drop(lambda s: s["type"] == "function_call"), "matching"),
]  # fmt: skip


@pytest.mark.parametrize(("format", "feature", "dialect", "fault", "words"), PLANTED)
def test_a_planted_fault_is_refused(
    format: str, feature: str, dialect: str, fault: Fault, words: str
) -> None:
    refused = 0
    for seed in range(400):
        talk = talk_of(seed, format)
        if feature not in talk.features or (dialect and talk.dialect != dialect):
            continue
        body = bodies(seed, format)[1][-1]
        try:
            fault(body[talk.key])
        except StopIteration:  # nothing to break in this one
            continue
        said = provider(format).refusal(body, talk.headers, talk.dialect)
        refused += words in (said or "")
        if refused == 2:
            return
    raise AssertionError(f"{refused} refused")


def test_a_reasoning_item_may_not_lose_what_it_was_made_with() -> None:
    for seed in range(200):
        _, asked = bodies(seed, "openai-responses")
        items = asked[-1]["input"]
        at = next((n for n, item in enumerate(items) if item.get("type") == "reasoning"), None)
        if at is None:
            continue
        alone = {**asked[-1], "input": items[:at] + items[at + 1 :]}
        words = provider("openai-responses").refusal(alone)
        assert "without its required 'reasoning' item" in str(words)
        return


def test_a_thought_is_bound_to_what_stood_before_it() -> None:
    for seed in range(200):
        talk, asked = bodies(seed, "anthropic")
        if not talk.model.endswith("5-5") or len(asked) < 3:
            continue
        body = asked[-1]
        body["system"] = "Another."
        words = provider("anthropic").refusal(body, talk.headers)
        assert "bound to a different conversation" in str(words)
        return


# --- the judge ---


def test_the_judge_tells_each_sort_of_fault() -> None:
    talk = next(t for s in range(99) if "client_search" in (t := talk_of(s, "anthropic")).features)
    requests = talk.requests(sign)
    while (body := requests.body) is not None:
        given = body
        requests.answered(body)

    def sorts(sent: dict[str, Any], recalled: str = "", below: bool = False) -> set[str]:
        found = judge.faults(
            talk, given, sent, same=sent == given, below=below, recalled=lambda: [recalled]
        )
        return {sort for sort, _ in found}

    assert sorts(given, below=True) == set()
    text = json.dumps(given)
    kept = copy.deepcopy(given)
    kept["messages"][-1] = {"role": "user", "content": "Go on."}
    assert judge.CHANGED in sorts(kept, text, below=True)
    assert judge.LOST in sorts({**given, "messages": given["messages"][:1]})
    assert judge.LOST not in sorts({**given, "messages": given["messages"][:1]}, text)
    assert judge.STATE in sorts({**given, "messages": given["messages"][:1]}, text)
    told = "\n".join(
        text for channel, text in provider("anthropic").channels(given) if channel == "tool"
    )
    spoken = {**given, "messages": [*given["messages"], {"role": "user", "content": told}]}
    assert judge.SPEAKER in sorts(spoken, text)
    assert judge.MADE_INVALID in sorts({**given, "messages": given["messages"][1:]}, text)


# --- the doors ---


@pytest.mark.parametrize("format", FORMATS)
def test_no_valid_request_is_harmed_at_any_door(format: str) -> None:
    table = soak(COUNT, seed=500, format=format)
    print("\n".join(table.lines()))
    assert all(table.counts[format, door, "sessions"] == COUNT for door in NAMES)
    assert all(table.counts[format, door, "cut"] > 0 for door in NAMES)
    assert table.faults() == 0


# --- what one signal teaches ---


def _signal(name: str) -> Any:
    return next(signal for signal in SIGNALS if signal.name == name)


@pytest.mark.parametrize("name", UNTAUGHT)
def test_one_false_refusal_changes_no_other_conversation(name: str) -> None:
    run = false_signal("wrap", _signal(name))
    assert run.others_of > 80
    assert (run.others, run.unasked) == (0, 0), run.first


@pytest.mark.parametrize("door", ["wrap", "proxy"])
@pytest.mark.parametrize("name", REMEMBERED)
def test_a_true_limit_is_met_and_remembered_by_restarts_and_replicas(name: str, door: str) -> None:
    met = true_limit(door, _signal(name))
    assert true_is_right(_signal(name), met), met
