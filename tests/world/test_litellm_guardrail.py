"""LiteLLM's own proxy server, whose guardrail ``headroom`` calls ours: sessions of three windows.

Knows what its clients and the provider see.  Prints refusals, savings, look-ups and added latency.
"""

from __future__ import annotations

import json
import re
import statistics
import time
from itertools import pairwise

import pytest
from litellm_server import KEY, litellm_server
from proxies import ask, proxied

from trimtab_lab.testing import Answer, Call, StrictProvider

pytestmark = pytest.mark.world
NOWHERE = "http://127.0.0.1:9"
WINDOW, TURNS = 24_000, 70
PATH = {"type": "object", "properties": {"path": {"type": "string"}}}
MODELS = {"chat": "gpt-5.1", "messages": "claude-sonnet-4-5", "responses": "gpt-5-mini"}
HISTORY = {"chat": "messages", "messages": "messages", "responses": "input"}
HASH = re.compile(r"hash=([0-9a-f]{13})")
ORIGINAL = "src/m0.py:17: token 134623 alpha"
RETRIEVE = "headroom_retrieve"


def lines(turn: int) -> str:
    """A result of some 1,100 tokens."""
    return "".join(f"src/m{turn}.py:{n}: token {n * 7919 + turn} alpha\n" for n in range(80))


class Agent:
    """Reads a file in each turn; ``stream``: whether it asks for streams."""

    def __init__(self, url: str, kind: str, stream: bool) -> None:
        self._url, self._kind, self._stream = url, kind, stream
        self.messages = [{"role": "user", "content": "What do the files say?"}]
        self.seconds: list[float] = []
        self.refused = 0

    def run(self, turns: int, **headers: str) -> None:
        for turn in range(turns):
            for id in self._calls(headers):
                self._take(id, lines(turn))

    def _calls(self, headers: dict[str, str]) -> list[str]:
        """Ids of the calls that the model makes now."""
        path, tool = {
            "chat": ("/v1/chat/completions",
                     {"type": "function", "function": {"name": "read", "parameters": PATH}}),
            "messages": ("/v1/messages", {"name": "read", "input_schema": PATH}),
            "responses": ("/v1/responses",
                          {"type": "function", "name": "read", "parameters": PATH}),
        }[self._kind]  # fmt: skip
        most = "max_output_tokens" if self._kind == "responses" else "max_tokens"
        body = {"model": MODELS[self._kind], HISTORY[self._kind]: self.messages, most: 300,
                "stream": self._stream, "tools": [tool]}  # fmt: skip
        headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}", **headers}
        began = time.perf_counter()
        status, _, data = ask(self._url, "POST", path, json.dumps(body), headers)
        self.seconds.append(time.perf_counter() - began)
        if status != 200:
            self.refused += 1
            return []
        return self._said(joined(data) if self._stream else json.loads(data))

    def _said(self, answer: dict) -> list[str]:
        """Add an answer to the messages; the ids of its calls, which are all of ``read``."""
        if self._kind == "responses":
            keys = ("type", "call_id", "name", "arguments")
            calls = [one for one in answer["output"] if one["type"] == "function_call"]
            assert all(one["name"] == "read" for one in calls)
            self.messages += [{key: one[key] for key in keys} for one in calls]
            return [one["call_id"] for one in calls]
        if self._kind == "messages":
            blocks = [one for one in answer["content"] if one["type"] == "tool_use"]
            assert all(one["name"] == "read" for one in blocks)
            self.messages.append({"role": "assistant", "content": answer["content"]})
        else:
            message = answer["choices"][0]["message"]
            blocks = message.get("tool_calls") or []
            assert all(one["function"]["name"] == "read" for one in blocks)
            kept = {"content": message.get("content"), "tool_calls": blocks}
            self.messages.append({"role": "assistant", **kept})
        return [one["id"] for one in blocks]

    def _take(self, id: str, text: str) -> None:
        if self._kind == "responses":
            self.messages.append({"type": "function_call_output", "call_id": id, "output": text})
        elif self._kind == "chat":
            self.messages.append({"role": "tool", "tool_call_id": id, "content": text})
        else:
            block = {"type": "tool_result", "tool_use_id": id, "content": text}
            self.messages.append({"role": "user", "content": [block]})


def joined(data: bytes) -> dict:
    """The answer whose stream of events this is, in any of the APIs."""
    calls, blocks = {}, {}
    for line in data.decode().splitlines():
        if not line.startswith("data: {"):
            continue
        event = json.loads(line.removeprefix("data: "))
        if event.get("type") == "response.completed":
            return event["response"]
        if event.get("choices"):
            for one in (
                event["choices"][0]["delta"].get("tool_calls") or () if event["choices"] else ()
            ):
                kept = calls.setdefault(one["index"], {"type": "function", "function": {}})
                kept["id"] = one.get("id") or kept["id"]
                for key, value in one["function"].items():
                    kept["function"][key] = kept["function"].get(key, "") + (value or "")
        elif event.get("type") == "content_block_start":
            blocks[event["index"]] = {**event["content_block"], "json": ""}
        elif event.get("type") == "content_block_delta":
            blocks[event["index"]]["json"] += event["delta"].get("partial_json", "")
    content = [
        {**{key: one[key] for key in ("type", "id", "name")}, "input": json.loads(one["json"])}
        for one in blocks.values() if one["type"] == "tool_use"
    ]  # fmt: skip
    return {"content": content, "choices": [{"message": {"tool_calls": list(calls.values())}}]}


class Model:
    """Reads a file in each turn, and looks up once what was left out."""

    def __init__(self) -> None:
        self.asked = ""
        """The hash that it has looked up."""

    def __call__(self, record) -> Answer:
        found = HASH.search(json.dumps(history(record)))
        if found and not self.asked and RETRIEVE in json.dumps(record.body["tools"]):
            self.asked = found[1]
            return Answer("", [Call(RETRIEVE, {"hash": found[1]})])
        return Answer("", [Call("read", {"path": str(record.number)})])


def history(record) -> list:
    """The messages of a request, or its items."""
    return record.body.get("messages") or record.body["input"]


def common(one: list, other: list) -> int:
    """How many of the first messages are the same."""
    same = [a == b for a, b in zip(one, other, strict=False)]
    return same.index(False) if False in same else len(same)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """(LiteLLM's address, a provider for each API)."""
    with (
        StrictProvider(window=WINDOW) as chat, StrictProvider(window=WINDOW) as claude,
        StrictProvider(window=WINDOW) as responses,
        proxied(NOWHERE, window=WINDOW) as ours,
        litellm_server(tmp_path_factory.mktemp("litellm"), f"""
model_list:
- model_name: {MODELS["chat"]}
  litellm_params: {{model: openai/gpt-5.1, api_key: x, api_base: "{chat.url}/v1"}}
- model_name: {MODELS["messages"]}
  litellm_params: {{model: anthropic/claude-sonnet-4-5, api_key: x, api_base: "{claude.url}"}}
- model_name: {MODELS["responses"]}
  litellm_params: {{model: openai/gpt-5-mini, api_key: x, api_base: "{responses.url}/v1"}}
guardrails:
- guardrail_name: trimtab
  litellm_params: {{guardrail: headroom, mode: pre_call, default_on: true, api_key: sk-gateway,
                    api_base: "{ours.url}"}}
""") as url,
    ):  # fmt: skip
        yield url, {"chat": chat, "messages": claude, "responses": responses}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("kind", MODELS)
def test_a_session_of_three_windows_is_shortened_in_place(world, kind, stream, monkeypatch):
    url, providers = world
    provider, model = providers[kind], Model()
    monkeypatch.setattr(provider, "_steps", StrictProvider(model)._steps)
    plain, agent = Agent(url, kind, stream), Agent(url, kind, stream)
    plain.run(10, **{"x-headroom-bypass": "true"})
    begin = len(provider.requests)
    agent.run(TURNS)

    records = provider.requests[begin:]
    looked_up = [one for one in records if ORIGINAL in json.dumps(history(one)[-1:])
                 and model.asked in json.dumps(history(one))]  # fmt: skip
    numbers = {one.number for one in looked_up}
    sent = [history(one) for one in records if one.number not in numbers][:TURNS]
    kept = [common(a, b) / len(a) for a, b in pairwise(sent)]
    whole = sum(len(json.dumps(one)) for one in agent.messages)
    ratio = statistics.median(agent.seconds[1:10]) / statistics.median(plain.seconds[1:])
    print(f"{kind}, stream={stream}: {agent.refused} refused of {TURNS}, prefix kept whole "
          f"{kept.count(1.0)} times and {statistics.mean(kept):.2f} of it on average, "
          f"{len(json.dumps(sent[-1])) / whole:.2f} of the characters sent last, "
          f"{len(looked_up)} looked up, {ratio:.2f} times the time")  # fmt: skip
    assert agent.refused == 0
    assert kept.count(1.0) > TURNS // 2
    assert statistics.mean(kept) > 0.8
    assert len(json.dumps(sent[-1])) < whole / 2
    assert model.asked
    assert len(looked_up) >= 1
