"""The steps of an interaction out of the events of its stream."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.formats.gemini_interactions.streamed_steps import StreamedSteps


def start(index: int, **step: Any) -> dict[str, Any]:
    return {"event_type": "step.start", "index": index, "step": step}


def delta(index: int, **fields: Any) -> dict[str, Any]:
    return {"event_type": "step.delta", "index": index, "delta": fields}


DONE = {"event_type": "interaction.completed", "interaction": {"id": "i1", "steps": None}}


def whole(*events: Any) -> Any:
    steps = StreamedSteps()
    for event in events:
        assert steps.take(event) is None
    return steps.take(DONE)


def test_each_kind_of_step_is_put_together_as_a_plain_answer_has_it():
    text = {"type": "text", "text": "thought"}
    image = {"type": "image", "data": "aGk=", "mime_type": "image/png"}
    found = whole(
        {"event_type": "interaction.created", "interaction": {"id": "i1"}},
        start(0, type="thought"),
        delta(0, type="thought_summary", content=text),
        delta(0, type="thought_signature", signature="c2ln"),
        start(1, type="model_output"),
        delta(1, type="text", text="I look "),
        delta(1, type="text_annotation_delta", annotations=[]),
        delta(1, type="text", text="there"),
        delta(1, **image),
        start(2, type="function_call", id="c1", name="read", arguments={}, signature=None),
        delta(2, type="arguments_delta", arguments='{"path": '),
        delta(2, type="arguments_delta", arguments='"a.py"}'),
        start(3, type="google_search_call", id="s1"),
        delta(3, type="google_search_call", arguments={"queries": ["a"]}),
        {"event_type": "step.stop", "index": 3},
    )
    said = {"type": "text", "text": "I look there"}
    assert found["steps"] == [
        {"type": "thought", "summary": [text], "signature": "c2ln"},
        {"type": "model_output", "content": [said, image]},
        {"type": "function_call", "id": "c1", "name": "read", "arguments": {"path": "a.py"}},
        {"type": "google_search_call", "id": "s1", "arguments": {"queries": ["a"]}},
    ]


def test_a_stream_that_was_not_understood_or_not_seen_from_its_start_is_not_followed():
    begun = start(0, type="model_output")
    assert whole(begun, delta(0, type="hologram", data="x")) is None
    assert whole(delta(0, type="text", text="late")) is None
    call = start(0, type="function_call", id="c", name="read")
    assert whole(call, delta(0, type="arguments_delta", arguments="{")) is None


def test_an_interaction_that_brings_its_steps_is_taken_as_it_is():
    steps = [{"type": "model_output", "content": []}]
    event = {"event_type": "interaction.completed", "interaction": {"id": "i", "steps": steps}}
    assert StreamedSteps().take(event) == {"id": "i", "steps": steps}


@pytest.mark.parametrize("arguments", [[], [""], [None], ["{}"]])
def test_a_call_without_arguments_is_a_call(arguments):
    deltas = (delta(0, type="arguments_delta", arguments=one) for one in arguments)
    found = whole(start(0, type="function_call", id="c", name="f", arguments={}), *deltas)
    assert found["steps"] == [{"type": "function_call", "id": "c", "name": "f", "arguments": {}}]
