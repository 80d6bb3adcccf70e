"""Gemini Interactions: detection, repair, conversion, google-genai and the strict provider."""

from __future__ import annotations

import json
from typing import Any

import doubtful
import pytest
from google import genai
from google.genai import types

import trimtab
from trimtab_lab.testing import Answer, Call, StrictProvider

BIG = "\n".join(f"line {number}: value {number * 7}" for number in range(300))
TOOL = {"type": "function", "name": "read_file", "parameters": {"type": "object"}}
MODEL = "gemini-3.8-flash"


def said(text: str, kind: str = "user_input") -> dict[str, Any]:
    return {"type": kind, "content": [{"type": "text", "text": text}]}


def call(call_id: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "function_call", "id": call_id, "name": "read_file", "arguments": arguments}


def result(call_id: str, value: Any = "found") -> dict[str, Any]:
    return {"type": "function_result", "call_id": call_id, "name": "read_file", "result": value}


@pytest.mark.parametrize(
    "request_",
    [
        {"model": MODEL, "input": [said("hi")]},
        {"model": MODEL, "input": "hi", "system_instruction": "brief"},
        {"model": MODEL, "input": "hi", "generation_config": {}},
        {"model": MODEL, "input": {"type": "text", "text": "hi"}},
        {"model": MODEL, "input": [{"type": "text", "text": "hi"}]},
        {"model": MODEL, "input": "hi", "previous_interaction_id": "i1"},
        {"model": MODEL, "input": [{"role": "model", "content": "hi"}]},
        [said("hi"), call("a"), result("a")],
    ],
)
def test_a_request_is_known_by_what_only_interactions_have(request_):
    assert trimtab.detect(request_).format == "gemini-interactions"
    assert trimtab.check(request_) == ()
    assert trimtab.fit(request_, window=50_000).request is request_


def test_a_path_names_the_format():
    url = "https://generativelanguage.googleapis.com/v1beta/interactions"
    assert trimtab.detect({"model": MODEL, "input": "hi"}, url=url).format == "gemini-interactions"
    assert trimtab.detect({"model": "gpt-5.1", "input": "hi"}).format == "openai-responses"


@pytest.mark.parametrize(
    ("steps", "rule"),
    [
        ([said("go"), call("a")], "call_unanswered"),
        ([said("go"), call("a"), said("never mind")], "call_unanswered"),
        ([said("go"), result("a")], "orphan_result"),
        ([said("go"), call("a"), result("a"), result("a")], "duplicate_result"),
        ([said("go"), call("a"), call("a"), result("a"), result("a")], "duplicate_call"),
        ([said("go"), call("a"), {"type": "function_result", "call_id": "a"}], "result_missing"),
        ([said("go"), {**call("a"), "arguments": "x"}, result("a")], "arguments_not_object"),
        ([{"type": "user_input"}, call("a"), result("a")], "no_content"),
        ([said("go"), "more"], "not_a_step"),
        ([], "no_input"),
    ],
)
def test_what_would_be_refused_is_told_and_repaired(steps, rule):
    request = {"model": MODEL, "input": steps, "system_instruction": "brief"}
    assert rule in {violation.rule for violation in doubtful.found(request)}
    repaired = doubtful.repaired(request).tree
    assert doubtful.found(repaired) == []
    assert trimtab.repair(repaired).request is repaired


def long_request(steps: int = 30) -> dict[str, Any]:
    found = [said("Fix the bug. Never touch setup.py.")]
    for number in range(steps):
        found += [
            {"type": "thought", "signature": "c2ln" * 20},
            call(f"c{number}", path=f"/src/module_{number}.py"),
            result(f"c{number}", BIG.replace("value", f"v{number}")),
        ]
    found += [said("Half of it is done.", "model_output"), said("Go on.")]
    return {"model": MODEL, "input": found, "tools": [TOOL], "system_instruction": "Be exact."}


@pytest.mark.parametrize("preset", ["balanced", "in-place"])
def test_a_long_request_is_cut_the_same_as_bytes_and_every_original_comes_back(preset):
    request = long_request()
    fitted = trimtab.fit(request, window=20_000, preset=preset)
    assert fitted.report.edits
    assert trimtab.check(fitted.request) == ()
    text = json.dumps(request).encode()
    assert json.loads(trimtab.fit(text, window=20_000, preset=preset).request) == fitted.request
    whole = "".join(fitted.recall(edit.handle) for edit in fitted.report.edits)
    first = BIG.replace("value", "v3").splitlines()[100]
    assert first in whole
    assert trimtab.fit(fitted.request, window=20_000, preset=preset).request == fitted.request


def converted_request() -> dict[str, Any]:
    return {
        "model": MODEL,
        "system_instruction": "brief",
        "input": [
            said("read both"),
            call("a", path="x"),
            call("b", path="y"),
            result("a"),
            {**result("b", "no such file"), "is_error": True},
            said("done", "model_output"),
            {
                "type": "user_input",
                "content": [
                    {"type": "text", "text": "and this?"},
                    {"type": "image", "data": "aGk=", "mime_type": "image/png"},
                ],
            },
        ],
        "tools": [TOOL],
        "generation_config": {"max_output_tokens": 100, "tool_choice": "any"},
    }


@pytest.mark.parametrize(
    "to", ["openai-chat", "openai-responses", "anthropic", "bedrock", "gemini"]
)
def test_a_conversation_goes_to_every_other_format_and_comes_back(to):
    request = converted_request()
    there = trimtab.convert(request, to, model="m" if to != "gemini" else None)
    assert trimtab.check(there.request, format=to) == ()
    back = trimtab.convert(there.request, "gemini-interactions", format=to, model=MODEL)
    assert trimtab.check(back.request) == ()
    assert back.request == request


def steps_of(client: Any, streams: bool, **body: Any) -> list[Any]:
    """The steps of one answer as a client puts them into the next request."""
    if not streams:
        steps = client.interactions.create(**body).steps
        return [step.model_dump(exclude_none=True) for step in steps]
    steps, arguments = [], {}
    for event in client.interactions.create(stream=True, **body):
        if event.event_type == "step.start":
            steps.append(event.step.model_dump(exclude_none=True))
        elif event.event_type == "step.delta" and event.delta.type == "arguments_delta":
            arguments[event.index] = arguments.get(event.index, "") + event.delta.arguments
        elif event.event_type == "step.delta" and event.delta.type == "text":
            content = steps[event.index].setdefault("content", [{"type": "text", "text": ""}])
            content[0]["text"] += event.delta.text
    for index, text in arguments.items():
        steps[index]["arguments"] = json.loads(text)
    return steps


@pytest.mark.parametrize("streams", [False, True])
def test_a_loop_of_20_turns_outgrows_the_window_and_none_is_refused(streams):
    script = [Answer(calls=[Call("read_file", {"path": f"/f{n}"})]) for n in range(20)]
    with StrictProvider(script, window=12_000, answer="all done") as provider:
        options = types.HttpOptions(base_url=provider.url)
        client = trimtab.wrap(genai.Client, window=12_000)(api_key="k", http_options=options)
        steps: list[Any] = [said("read them all")]
        for _ in range(21):
            body = {"model": MODEL, "input": steps, "tools": [TOOL], "store": False}
            more = steps_of(client, streams, **body)
            calls = [step for step in more if step["type"] == "function_call"]
            steps += [*more, *(result(step["id"], BIG) for step in calls)]
        assert steps[-1]["content"][0]["text"] == "all done"
        assert [record.status for record in provider.requests] == [200] * 21
        assert max(record.tokens for record in provider.requests) < 12_000


def test_a_refusal_is_read_and_answered_smaller():
    with StrictProvider(window=9_000, answer="fine") as provider:
        options = types.HttpOptions(base_url=provider.url)
        client = trimtab.wrap(genai.Client)(api_key="k", http_options=options)
        body = {**long_request(), "store": False}
        assert client.interactions.create(**body).output_text == "fine"
        assert [record.status for record in provider.requests] == [400, 200]


def test_a_thought_before_the_call_that_a_fold_keeps_stays_before_it():
    fitted = trimtab.fit(long_request(), window=20_000)
    assert not fitted.report.warnings
    (fold,) = (edit for edit in fitted.report.edits if edit.op == "fold")
    assert len(fold.paths) > 6, "more than one step"
    kinds = [step["type"] for step in fitted.request["input"]]
    assert kinds.count("function_call") == kinds.count("thought") < 30
    assert kinds[1 : kinds.index("function_result")] == ["thought", "function_call"]
