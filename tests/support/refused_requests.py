"""Small requests with one fault each, and whether a request still has it.

Knows what providers refuse, in the words of their threads.  Does not know trimtab.
"""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

CUT = '{"path": "a.md", "text": "half of a t'
WORDS = "What the user wants is short."


@dataclass(frozen=True)
class Fault:
    """A request that a provider refuses, and the test that the provider makes."""

    format: str
    body: dict[str, Any]
    is_in: Callable[[dict[str, Any]], bool]

    def request(self, begin: str = "") -> dict[str, Any]:
        """The request as a conversation of its own; ``begin``: its first words."""
        body = copy.deepcopy(self.body)
        if begin:
            turns = _turns(body)
            first = next((one for one in turns if one.get("role") == "user"), turns[0])
            if "parts" in first:
                first["parts"][0]["text"] = begin
            elif isinstance(first.get("content"), list):
                first["content"][0]["text"] = begin
            else:
                first["content"] = begin
        return body

    def longer(self, begin: str = "") -> dict[str, Any]:
        """The same conversation one exchange later."""
        body = self.request(begin)
        turns = _turns(body)
        if self.format == "gemini":
            turns += [{"role": "model", "parts": [{"text": "Done."}]},
                      {"role": "user", "parts": [{"text": "Thanks, and now?"}]}]  # fmt: skip
        elif self.format == "bedrock":
            turns += [{"role": "assistant", "content": [{"text": "Done."}]},
                      {"role": "user", "content": [{"text": "Thanks, and now?"}]}]  # fmt: skip
        else:
            turns += [{"role": "assistant", "content": "Done."},
                      {"role": "user", "content": "Thanks, and now?"}]  # fmt: skip
        return body


def _turns(body: dict[str, Any]) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = body.get("messages") or body.get("input") or body["contents"]
    return turns


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _objects(one)


def _has(key: str, kind: str = "") -> Callable[[dict[str, Any]], bool]:
    def has(body: dict[str, Any]) -> bool:
        return any(
            key in one and kind in ("", one.get("type"), one.get("role")) for one in _objects(body)
        )

    return has


def _chat(*more: dict[str, Any], model: str = "some-model", **extra: Any) -> dict[str, Any]:
    first = {"role": "user", "content": WORDS}
    return {"model": model, "messages": [first, *more], **extra}


def _anthropic(*more: dict[str, Any], **extra: Any) -> dict[str, Any]:
    return {**_chat(*more, model="claude-sonnet-4-5"), "max_tokens": 100, **extra}


def _responses(*more: dict[str, Any], **extra: Any) -> dict[str, Any]:
    first = {"role": "user", "content": WORDS}
    return {"model": "gpt-5.6", "input": [first, *more], **extra}


def user(text: str = "go on", **extra: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **extra}


def model(text: Any = "Hello.", **extra: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **extra}


def _call(name: str = "read", arguments: str = "{}", id: str = "call_1") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return model(None, tool_calls=[{"id": id, "type": "function", "function": function}])


def _result(text: str = "done", id: str = "call_1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": text}


def _offered(name: str = "read") -> list[dict[str, Any]]:
    schema = {"type": "object", "properties": {}}
    return [{"type": "function", "function": {"name": name, "parameters": schema}}]


def _bad_name(body: dict[str, Any]) -> bool:
    names = [one["name"] for one in _objects(body) if "name" in one]
    return any(not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)


def _late_system(body: dict[str, Any]) -> bool:
    return any(one.get("role") == "system" for one in _turns(body)[1:])


def _bad_arguments(body: dict[str, Any]) -> bool:
    for one in _objects(body):
        if isinstance(one.get("arguments"), str):
            try:
                json.loads(one["arguments"])
            except ValueError:
                return True
    return False


def _follows(first: str, second: str) -> Callable[[dict[str, Any]], bool]:
    def follows(body: dict[str, Any]) -> bool:
        roles = [one.get("role") for one in _turns(body)]
        return (first, second) in itertools.pairwise(roles)

    return follows


def _images(most: int) -> Callable[[dict[str, Any]], bool]:
    def too_many(body: dict[str, Any]) -> bool:
        kinds = ("image_url", "image", "input_image", "document")
        return sum(one.get("type") in kinds for one in _objects(_turns(body))) > most

    return too_many


def _asks(most: int, *keys: str) -> Callable[[dict[str, Any]], bool]:
    names = keys or ("max_tokens", "max_completion_tokens", "maxTokens", "max_output_tokens")
    return lambda body: any(one.get(key, 0) > most for one in _objects(body) for key in names)


def _pictures(count: int) -> dict[str, Any]:
    url = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA"
    return _chat(*[
        one for n in range(count) for one in (
            model(f"Step {n}."),
            user([{"type": "text", "text": f"see {n}"},
                  {"type": "image_url", "image_url": {"url": f"{url}{n}"}}]),
        )
    ])  # fmt: skip


def _documents(count: int) -> dict[str, Any]:
    return _anthropic(*[
        one for n in range(count) for one in (
            model(f"Step {n}."),
            user([{"type": "text", "text": f"read {n}"},
                  {"type": "document", "source": {"type": "base64", "data": f"JVBERi0{n}",
                                                  "media_type": "application/pdf"}}]),
        )
    ])  # fmt: skip


def _no_reasoning(body: dict[str, Any]) -> bool:
    return any(one.get("tool_calls") and not one.get("reasoning_content")
               for one in body["messages"])  # fmt: skip


def _calls_apart(body: dict[str, Any]) -> bool:
    pairs = itertools.pairwise(body["contents"])
    return any(one["role"] == two["role"] == "model" for one, two in pairs)


def _unsigned(body: dict[str, Any]) -> bool:
    said = [n for n, turn in enumerate(body["contents"]) if "text" in turn["parts"][0]]
    for turn in body["contents"][max(n for n in said if body["contents"][n]["role"] == "user") :]:
        calls = [part for part in turn["parts"] if "functionCall" in part]
        if calls and "thoughtSignature" not in calls[0]:
            return True
    return False


def _id_without_reasoning(body: dict[str, Any]) -> bool:
    reasoned = False
    for item in body["input"]:
        reasoned = item.get("type") == "reasoning" or (reasoned and item.get("role") != "user")
        if not reasoned and str(item.get("id", "")).startswith("msg_"):
            return True
    return False


def _hour_behind_five(body: dict[str, Any]) -> bool:
    marks = [one["cache_control"] for one in _objects(body) if "cache_control" in one]
    short = False
    for mark in marks:
        if mark.get("ttl") == "1h" and short:
            return True
        short = short or mark.get("ttl", "5m") == "5m"
    return False


def _marked(text: str, **mark: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "cache_control": {"type": "ephemeral", **mark}}


def _thought(body: dict[str, Any]) -> bool:
    return any(one.get("type") == "thinking" for one in _objects(body))


def _unknown_reference(body: dict[str, Any]) -> bool:
    offered = {tool["name"] for tool in body["tools"]}
    kinds = [one for one in _objects(body) if one.get("type") == "tool_reference"]
    return any(one["tool_name"] not in offered for one in kinds)


THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
TOOL = {"name": "read", "input_schema": {"type": "object"}}


def _uses(name: str = "read", content: Any = "done") -> list[dict[str, Any]]:
    return [
        model([{"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}]),
        user([{"type": "tool_result", "tool_use_id": "toolu_1", "content": content}]),
    ]  # fmt: skip


def _model_calls(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "model", "parts": [*calls]}


def _town(town: str, **extra: Any) -> dict[str, Any]:
    return {"functionCall": {"name": "w", "args": {"town": town}}, **extra}


def _told(*numbers: int) -> dict[str, Any]:
    return {"role": "user", "parts": [
        {"functionResponse": {"name": "w", "response": {"degrees": n}}} for n in numbers
    ]}  # fmt: skip


def _gemini(*more: dict[str, Any]) -> dict[str, Any]:
    first = {"role": "user", "parts": [{"text": WORDS}]}
    return {"model": "gemini-3-flash-preview", "contents": [first, *more]}


SAID = {"type": "output_text", "text": "I read it.", "annotations": []}
DRAWN = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "aGk=",
         "action": "generate", "quality": "high", "size": "1024x1024"}  # fmt: skip
NAMED = _chat(_call("exec.command"), _result(), user(), tools=_offered("exec.command"),
              tool_choice={"type": "function", "function": {"name": "exec.command"}})  # fmt: skip

FAULTS: dict[str, Fault] = {
    "reasoning_content": Fault(
        "openai-chat",
        _chat(model(reasoning_content="The user greets."), user("two"),
              model("Yes.", reasoning_content="He asks again."), user()),
        _has("reasoning_content"),
    ),
    "reasoning_details": Fault(
        "openai-chat",
        _chat(model(reasoning_details=[{"type": "reasoning.text", "text": "Hm."}]), user()),
        _has("reasoning_details"),
    ),
    "timestamp of a user": Fault(
        "openai-chat",
        {"model": "m", "messages": [user(WORDS, timestamp=1), model(), user(timestamp=2)]},
        _has("timestamp"),
    ),
    "status of a model": Fault(
        "openai-chat", _chat(model(), user("two"), model("Yes.", status="ok"), user()),
        lambda body: any("status" in one for one in body["messages"]),
    ),
    "id of messages": Fault(
        "openai-chat",
        {"model": "m", "messages": [{"role": "system", "content": "Code.", "id": "m0"},
                                    user(WORDS), model(), user()]},
        lambda body: any("id" in one for one in body["messages"]),
    ),
    "text of a call": Fault(
        "anthropic",
        _anthropic(model([{"type": "text", "text": "I read."},
                          {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {},
                           "text": ""}]),
                   user([{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}]),
                   tools=[TOOL]),
        _has("text", "tool_use"),
    ),
    "citations": Fault(
        "anthropic",
        _anthropic(model([{"type": "text", "text": "So.", "citations": []}]),
                   user([{"type": "text", "text": "why?", "citations": [{"type": "x"}]}])),
        _has("citations", "text"),
    ),
    "scope of a mark": Fault(
        "anthropic",
        _anthropic(system=[{"type": "text", "text": "Code."},
                           _marked("Be brief.", scope="global")]),
        _has("scope"),
    ),
    "mark of thinking": Fault(
        "anthropic",
        _anthropic(model([{**THOUGHT, "cache_control": {"type": "ephemeral"}},
                          {"type": "text", "text": "Yes."}]), user()),
        _has("cache_control", "thinking"),
    ),
    "field of a tool": Fault(
        "anthropic", _anthropic(tools=[{**TOOL, "eager_input_streaming": True}]),
        _has("eager_input_streaming"),
    ),
    "namespace": Fault(
        "openai-responses",
        _responses({"type": "function_call", "call_id": "call_1", "name": "read",
                    "arguments": "{}", "namespace": "fs"},
                   {"type": "function_call_output", "call_id": "call_1", "output": "x"}),
        _has("namespace"),
    ),
    "output fields of a picture": Fault(
        "openai-responses", _responses(DRAWN, user("now code")),
        lambda body: any(
            {"action", "quality", "size"} & one.keys()
            for one in body["input"] if one.get("type") == "image_generation_call"
        ),
    ),
    "signature in a call": Fault(
        "gemini",
        _gemini(_model_calls({"functionCall": {"name": "w", "args": {"town": "A"},
                                               "thoughtSignature": "c2ln"}}), _told(1)),
        lambda body: any(
            "thoughtSignature" in one["functionCall"]
            for one in _objects(body) if "functionCall" in one
        ),
    ),
    "ttl of a mark": Fault(
        "anthropic", _anthropic(model(), user([_marked("two", ttl="1h")])), _has("ttl")
    ),
    "provider_specific_fields": Fault(
        "openai-chat",
        _chat(model(provider_specific_fields={"citations": None}), user()),
        _has("provider_specific_fields"),
    ),
    "names in gemini": Fault(
        "gemini",
        {**_gemini({"role": "model", "parts": [{"functionCall": {"name": "read file",
                                                                 "args": {}}}]},
                   {"role": "user", "parts": [{"functionResponse": {"name": "read file",
                                                                    "response": {"r": 1}}}]}),
         "tools": [{"functionDeclarations": [{"name": "read file"}]}]},
        _bad_name,
    ),
    "content beside thinking": Fault(
        "openai-chat",
        _chat({**_call(), "content": "I read.", "reasoning_content": "Hm."},
              _result(), user()),
        lambda body: any(
            one.get("content") and one.get("tool_calls") and one.get("reasoning_content")
            for one in body["messages"]
        ),
    ),
    "no user": Fault(
        "openai-chat",
        {"model": "qwen3.5-35b", "messages": [{"role": "system", "content": WORDS}]},
        lambda body: not any(one["role"] == "user" for one in body["messages"]),
    ),
    "asks for 65536 of Gemini": Fault(
        "gemini", {**_gemini(), "generationConfig": {"maxOutputTokens": 65_536}},
        _asks(65_535, "maxOutputTokens"),
    ),
    "asks for 65536 of Gemini by chat": Fault(
        "openai-chat", _chat(max_tokens=65_536), _asks(65_535)
    ),
    "asks above 8192 of Gemini": Fault(
        "gemini", {**_gemini(), "generationConfig": {"maxOutputTokens": 65_536}},
        _asks(8_192, "maxOutputTokens"),
    ),
    "3 images of 1": Fault("openai-chat", _pictures(3), _images(1)),
    "late system": Fault(
        "openai-chat",
        {"model": "qwen3.5-27b", "messages": [
            {"role": "system", "content": "You code."}, user(WORDS), model(),
            {"role": "system", "content": "Now in plan mode."}, user()]},
        _late_system,
    ),
    "two systems": Fault(
        "openai-chat",
        {"model": "local", "messages": [
            {"role": "system", "content": "You code."},
            {"role": "system", "content": "Be brief."}, user(WORDS)]},
        _late_system,
    ),
    "user after tool": Fault(
        "openai-chat", _chat(_call(), _result(), user()), _follows("tool", "user")
    ),
    "two users": Fault("openai-chat", _chat(user("hello")), _follows("user", "user")),
    "tool after user": Fault(
        "openai-chat", _chat(_result()), _follows("user", "tool")
    ),
    "names in chat": Fault("openai-chat", NAMED, _bad_name),
    "names in anthropic": Fault(
        "anthropic", _anthropic(*_uses("read file"), tools=[{**TOOL, "name": "read file"}]),
        _bad_name,
    ),
    "names in responses": Fault(
        "openai-responses",
        _responses({"type": "function_call", "call_id": "call_1", "name": "exec.command",
                    "arguments": "{}"},
                   {"type": "function_call_output", "call_id": "call_1", "output": "x"},
                   tools=[{"type": "function", "name": "exec.command",
                           "parameters": {"type": "object"}}]),
        _bad_name,
    ),
    "arguments cut": Fault(
        "openai-chat",
        _chat(_call("write", CUT), _result("error: arguments were cut off"), user()),
        _bad_arguments,
    ),
    "arguments cut in responses": Fault(
        "openai-responses",
        _responses({"type": "function_call", "call_id": "call_1", "name": "write",
                    "arguments": CUT},
                   {"type": "function_call_output", "call_id": "call_1", "output": "error"},
                   user()),
        _bad_arguments,
    ),
    "marks": Fault(
        "anthropic",
        _anthropic(model(), user([_marked("two", ttl="1h")]), system=[_marked("Code.")]),
        _hour_behind_five,
    ),
    "tool reference": Fault(
        "anthropic",
        _anthropic(*_uses(content=[{"type": "tool_reference", "tool_name": "LSP"}]),
                   model("ok"), user(), tools=[TOOL]),
        _unknown_reference,
    ),
    "reasoning missing": Fault(
        "openai-chat", {**_chat(_call(), _result(), user()), "model": "a-house-model"},
        _no_reasoning,
    ),
    "calls apart": Fault(
        "gemini",
        _gemini(_model_calls(_town("A", thoughtSignature="c2ln")), _model_calls(_town("B")),
                _told(1, 2)),
        _calls_apart,
    ),
    "signature missing": Fault("gemini", _gemini(_model_calls(_town("A")), _told(1)), _unsigned),
    "signature refused": Fault(
        "anthropic",
        _anthropic(model([THOUGHT, {"type": "text", "text": "Yes."}]), user()), _thought,
    ),
    "item id": Fault(
        "openai-responses",
        _responses({"type": "message", "id": "msg_1", "role": "assistant", "content": [SAID],
                    "status": "completed"}, user()),
        _id_without_reasoning,
    ),
    "reasoning alone": Fault(
        "openai-responses",
        _responses({"type": "reasoning", "id": "rs_1", "summary": []}, user()),
        lambda body: any(one.get("type") == "reasoning" for one in body["input"]),
    ),
    "no content": Fault(
        "openai-chat", _chat(model([]), user()),
        lambda body: any(one["content"] in ([], "", None) for one in body["messages"]),
    ),
    "6 images of 4": Fault("openai-chat", _pictures(6), _images(4)),
    "12 images of 10": Fault("openai-chat", _pictures(12), _images(10)),
    "18 images of 16": Fault("openai-chat", _pictures(18), _images(16)),
    "52 images of 50": Fault("openai-chat", _pictures(52), _images(50)),
    "107 images of 100": Fault("openai-chat", _pictures(107), _images(100)),
    "pages": Fault("anthropic", _documents(3), _images(0)),
    "asks above 4096": Fault("openai-chat", _chat(max_tokens=8_192), _asks(4_096)),
    "asks above 8000": Fault("openai-chat", _chat(max_tokens=9_000), _asks(8_000)),
    "asks above 32768": Fault("anthropic", _anthropic(max_tokens=64_000), _asks(32_768)),
    "asks above 2048 at Bedrock": Fault(
        "bedrock",
        {"modelId": "meta.llama3-1-70b", "inferenceConfig": {"maxTokens": 4_096},
         "messages": [{"role": "user", "content": [{"text": WORDS}]}]},
        _asks(2_048),
    ),
}  # fmt: skip
"""Name of a fault → a request that has it."""
