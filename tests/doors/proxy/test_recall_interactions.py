"""The recall tool over Gemini's Interactions: rounds that no client sees, plain and streamed.

Knows the API's steps and events.
"""

from __future__ import annotations

import json

import pytest
from proxies import ask, proxied
from recalled_files import file

from trimtab_lab.testing import Answer, Call, StrictProvider

WINDOW = 12_000
PATH = "/v1beta/interactions"
TOOL = {"type": "function", "name": "read", "description": "Reads a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}  # fmt: skip


class Reader:
    """Reads files until something is cut, looks it up, and goes on."""

    def __init__(self):
        self.step, self.looked_up = 0, 0

    def __call__(self, record):
        self.step += 1
        if "of which this record is left" in json.dumps(record.body) and not self.looked_up:
            self.looked_up += 1
            call = Call("recall", {"search": "line 150 of file 1"})
            return Answer("Let me look again.", [call], thinking="I need it.")
        if self.step > 10:
            return Answer("All read.", thinking="Done.")
        return Answer(f"Reading {self.step}.", [Call("read", {"path": f"{self.step}.txt"})])


def steps_of(body, *, stream):
    """(steps, usage, id) of an answer."""
    if not stream:
        answer = json.loads(body)
        return answer["steps"], answer["usage"], answer["id"]
    events = [json.loads(line[6:]) for line in body.decode().splitlines()
              if line.startswith("data: {")]  # fmt: skip
    steps, texts = {}, {}
    for event in events:
        if event["event_type"] == "step.start":
            assert event["index"] not in steps, "a place is given twice"
            steps[event["index"]] = dict(event["step"])
        elif event["event_type"] == "step.delta":
            delta = event["delta"]
            texts.setdefault(event["index"], []).append(delta)
    for index, deltas in texts.items():
        for delta in deltas:
            if delta["type"] == "text":
                content = steps[index].setdefault("content", [{"type": "text", "text": ""}])
                content[0]["text"] += delta["text"]
            elif delta["type"] == "arguments_delta":
                steps[index]["_json"] = steps[index].get("_json", "") + delta["arguments"]
            elif delta["type"] == "thought_signature":
                steps[index]["signature"] = delta["signature"]
            elif delta["type"] == "thought_summary":
                steps[index]["summary"] = [delta["content"]]
    for step in steps.values():
        if "_json" in step:
            step["arguments"] = json.loads(step.pop("_json"))
    assert [event["event_type"] for event in events].count("interaction.created") == 1
    assert body.decode().count("[DONE]") == 1
    last = events[-1]
    assert last["event_type"] == "interaction.completed"
    return (
        [steps[n] for n in sorted(steps)],
        last["interaction"]["usage"],
        last["interaction"]["id"],
    )


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_rounds_of_an_interaction_are_never_seen(stream):
    reader = Reader()
    with (
        StrictProvider(reader, window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW, recall=True, notes=True) as server,
    ):
        new = [{"type": "user_input", "content": [{"type": "text", "text": "Read all files."}]}]
        whole, seen, texts, number = [], [], [], 0
        while True:
            body = {"model": "gemini-3-pro", "tools": [TOOL], "stream": stream, "store": False}
            whole += new
            body["input"] = whole
            status, _, answer = ask(server.url, "POST", PATH, json.dumps(body))
            assert status == 200, answer
            steps, _, _ = steps_of(answer, stream=stream)
            whole += steps
            texts += [part["text"] for step in steps if step["type"] == "model_output"
                      for part in step["content"]]  # fmt: skip
            calls = [step for step in steps if step["type"] == "function_call"]
            seen += [call["name"] for call in calls]
            if not calls:
                break
            new = []
            for call in calls:
                number += 1
                text = f"short {number}" if reader.looked_up else file(number)
                new.append({"type": "function_result", "call_id": call["id"], "name": "read",
                            "result": text})  # fmt: skip
        assert provider.crashes == []
        assert reader.looked_up == 1
        assert set(seen) == {"read"}
        assert "".join(texts).count("Let me look again.") == 1
        assert texts[-1] == "All read."
        assert "recall" not in json.dumps(whole)
        assert {record.status for record in provider.requests} == {200}
        assert all(record.violations == () for record in provider.requests)
        asked = [json.dumps(record.body) for record in provider.requests]
        behind = [text for text in asked if "I need it." in text]
        assert len(behind) > 5  # the round stays in every later request
        assert all("line 150 of file 1 " in text for text in behind)


def test_where_the_provider_keeps_the_history_the_tool_is_not_declared():
    with (
        StrictProvider(lambda record: Answer("Hi."), window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW, recall=True) as server,
    ):
        said = [{"type": "user_input", "content": [{"type": "text", "text": "Hello."}]}]
        body = {"model": "gemini-3-pro", "tools": [TOOL], "input": said}
        for more in ({}, {"store": True}, {"store": False, "previous_interaction_id": "unknown"}):
            ask(server.url, "POST", PATH, json.dumps({**body, **more}))
            assert '"recall"' not in json.dumps(provider.requests[-1].body)
        ask(server.url, "POST", PATH, json.dumps({**body, "store": False}))
        assert '"recall"' in json.dumps(provider.requests[-1].body)
