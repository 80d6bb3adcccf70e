"""A model's turn as each of five formats has it: in a history, as an answer, as a stream.

Knows the providers' answers.  Does not use the package.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

STREAM_TYPES = {"bedrock": "application/vnd.amazon.eventstream"}
"""The content type of a stream, where it is not ``text/event-stream``."""
Event = tuple[str, dict[str, Any]]


class Call(NamedTuple):
    """A tool call."""

    id: str
    name: str
    arguments: Mapping[str, Any]


def turn(format: str, text: str = "", calls: Sequence[Call] = ()) -> list[Any]:
    """The items of a history in which the model says a text and makes calls."""
    if format == "openai-responses":
        part = {"type": "output_text", "text": text, "annotations": []}
        said = {"type": "message", "role": "assistant", "content": [part]}
        return with_calls(format, [said] if text else [], calls)
    if format == "openai-chat":
        message: Any = {"role": "assistant", "content": text or None}
    elif format == "gemini":
        message = {"role": "model", "parts": [{"text": text}] if text else []}
    else:
        kind = {"type": "text"} if format == "anthropic" else {}
        message = {"role": "assistant", "content": [{**kind, "text": text}] if text else []}
    return with_calls(format, [message], calls)


def with_calls(format: str, items: Sequence[Any], calls: Sequence[Call]) -> list[Any]:
    """The items of a turn in which the model makes these calls too."""
    if not calls:
        return list(items)
    made = [_call(format, call) for call in calls]
    if format == "openai-responses":
        return [*items, *made]
    key = {"openai-chat": "tool_calls", "gemini": "parts"}.get(format, "content")
    *before, last = items
    return [*before, {**last, key: [*_parts(format, last, key), *made]}]


def _parts(format: str, message: Any, key: str) -> list[Any]:
    parts = message.get(key) or []
    if isinstance(parts, str):
        parts = [{"type": "text", "text": parts} if format == "anthropic" else {"text": parts}]
    return list(parts)


def _call(format: str, call: Call) -> dict[str, Any]:
    id, name, arguments = call
    if format == "anthropic":
        return {"type": "tool_use", "id": id, "name": name, "input": arguments}
    if format == "bedrock":
        return {"toolUse": {"toolUseId": id, "name": name, "input": arguments}}
    if format == "gemini":
        return {"functionCall": {"name": name, "args": arguments}}
    text = json.dumps(arguments)
    if format == "openai-responses":
        call_ = {"type": "function_call", "call_id": id, "name": name, "arguments": text}
        return {**call_, "id": f"fc_{id}", "status": "completed"}
    return {"id": id, "type": "function", "function": {"name": name, "arguments": text}}


# --- whole answers ---


def whole(format: str, items: Sequence[Any], tokens: int | None = None) -> dict[str, Any]:
    """An answer; ``tokens``: those of the prompt, None where it does not say what it cost."""
    used = tokens or 0
    if format == "openai-responses":
        usage = {"input_tokens": used, "output_tokens": 1, "total_tokens": used + 1}
        return {
            "id": "resp_1", "object": "response", "status": "completed", "model": "m",
            "output": [_item(at, item) for at, item in enumerate(items)],
            "usage": usage if tokens else None,
        }  # fmt: skip
    message = items[-1]
    if format == "gemini":
        counted = {"promptTokenCount": tokens, "candidatesTokenCount": 1} if tokens else {}
        candidate = {"content": message, "finishReason": "STOP"}
        return {"candidates": [candidate], "usageMetadata": counted}
    if format == "openai-chat":
        calls = message.get("tool_calls")
        choice = {"index": 0, "message": message, "finish_reason": _end(calls, "stop")}
        found = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
        usage = {"prompt_tokens": used, "completion_tokens": 1, "total_tokens": used + 1}
        return {**found, "choices": [choice], **({"usage": usage} if tokens else {})}
    content = _parts(format, message, "content")
    calls = [p for p in content if "toolUse" in p or p.get("type") == "tool_use"]
    if format == "bedrock":
        usage = {"inputTokens": used, "outputTokens": 1, "totalTokens": used + 1}
        output = {"message": {"role": "assistant", "content": content}}
        stop = _end(calls, "end_turn", "tool_use")
        return {
            "output": output, "stopReason": stop, "usage": usage, "metrics": {"latencyMs": 1}
        }  # fmt: skip
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
        "stop_reason": _end(calls, "end_turn", "tool_use"), "stop_sequence": None,
        "usage": {"input_tokens": used, "output_tokens": 1},
    }  # fmt: skip


def _end(calls: Any, without: str, with_: str = "tool_calls") -> str:
    return with_ if calls else without


def _item(at: int, item: Any) -> dict[str, Any]:
    """An item of a history as an answer has it."""
    kind = item.get("type", "message")
    found = {"type": kind, "id": f"{kind}_{at}", "status": "completed", **item}
    if kind == "message" and isinstance(found["content"], str):
        part = {"type": "output_text", "text": found["content"], "annotations": []}
        found["content"] = [part]
    return found


# --- streams ---


def streamed(format: str, items: Sequence[Any], tokens: int | None = None) -> bytes:
    """The answer as a stream."""
    answer = whole(format, items, tokens)
    if format == "bedrock":
        return b"".join(_frame(name, value) for name, value in _of_bedrock(answer))
    if format == "openai-chat":
        events = [*_of_chat(answer), ("", None)]
    elif format == "gemini":
        events = list(_of_gemini(answer))
    else:
        events = list((_of_responses if format == "openai-responses" else _of_claude)(answer))
    lines = list[str]()
    for number, (name, value) in enumerate(events):
        if name:
            numbered = {"sequence_number": number} if format == "openai-responses" else {}
            data = json.dumps({"type": name, **numbered, **value})
            lines.append(f"event: {name}\ndata: {data}\n\n")
        else:
            lines.append(f"data: {'[DONE]' if value is None else json.dumps(value)}\n\n")
    return "".join(lines).encode()


def _of_chat(answer: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    choice = answer["choices"][0]
    message = dict(choice["message"])
    calls = message.pop("tool_calls", None) or []
    deltas = [message]
    for at, call in enumerate(calls):
        function = call.get("function") or {}
        first, rest = _halves(function.get("arguments") or "")
        begun = {**call, "index": at, "function": {**function, "arguments": first}}
        deltas.append({"tool_calls": [begun]})
        deltas.append({"tool_calls": [{"index": at, "function": {"arguments": rest}}]})
    chunk = {**answer, "object": "chat.completion.chunk"}
    usage = chunk.pop("usage", None)
    for delta in deltas:
        yield "", {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    end = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    yield "", {**chunk, "choices": [end]}
    if usage:
        yield "", {**chunk, "choices": [], "usage": usage}


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def _of_gemini(answer: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """A chunk for each part; the last one says the end and the cost."""
    content = answer["candidates"][0]["content"]
    for part in content["parts"][:-1]:
        yield "", {"candidates": [{"content": {**content, "parts": [part]}}]}
    last = {**content, "parts": content["parts"][-1:]}
    yield "", {**answer, "candidates": [{"content": last, "finishReason": "STOP"}]}


def _of_responses(answer: dict[str, Any]) -> Iterator[Event]:
    yield "response.created", {"response": {**answer, "status": "in_progress", "output": []}}
    for at, item in enumerate(answer["output"]):
        place = {"output_index": at, "item_id": item["id"]}
        begun = {**item, "status": "in_progress"}
        if "arguments" in item:
            begun["arguments"] = ""
        elif item["type"] == "message":
            begun["content"] = []
        yield "response.output_item.added", {"output_index": at, "item": begun}
        if "arguments" in item:
            for half in _halves(item["arguments"]):
                yield "response.function_call_arguments.delta", {**place, "delta": half}
            done = {**place, "arguments": item["arguments"]}
            yield "response.function_call_arguments.done", done
        elif item["type"] == "message":
            for number, part in enumerate(item["content"]):
                of_part, text = {**place, "content_index": number}, part.get("text", "")
                empty = {**part, "text": ""}
                yield "response.content_part.added", {**of_part, "part": empty}
                for half in _halves(text):
                    delta = {**of_part, "delta": half, "logprobs": []}
                    yield "response.output_text.delta", delta
                done = {**of_part, "text": text, "logprobs": []}
                yield "response.output_text.done", done
                yield "response.content_part.done", {**of_part, "part": part}
        yield "response.output_item.done", {"output_index": at, "item": item}
    yield "response.completed", {"response": answer}


def _of_claude(answer: dict[str, Any]) -> Iterator[Event]:
    yield "message_start", {"message": {**answer, "content": [], "stop_reason": None}}
    for at, block in enumerate(answer["content"]):
        begun, deltas = dict(block), list[dict[str, Any]]()
        kind = block.get("type")
        if kind == "text":
            begun["text"] = ""
            deltas = [{"type": "text_delta", "text": half} for half in _halves(block["text"])]
        elif kind == "tool_use":
            begun["input"] = {}
            halves = _halves(json.dumps(block["input"]))
            deltas = [{"type": "input_json_delta", "partial_json": half} for half in halves]
        elif kind == "thinking":
            begun |= {"thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": block.get("thinking", "")},
                {"type": "signature_delta", "signature": block.get("signature", "")},
            ]
        yield "content_block_start", {"index": at, "content_block": begun}
        for delta in deltas:
            yield "content_block_delta", {"index": at, "delta": delta}
        yield "content_block_stop", {"index": at}
    end = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"delta": end, "usage": {"output_tokens": 1}}
    yield "message_stop", {}


def _of_bedrock(answer: dict[str, Any]) -> Iterator[Event]:
    yield "messageStart", {"role": "assistant"}
    for at, block in enumerate(answer["output"]["message"]["content"]):
        place, deltas = {"contentBlockIndex": at}, list[dict[str, Any]]()
        if "toolUse" in block:
            use = dict(block["toolUse"])
            halves = _halves(json.dumps(use.pop("input")))
            yield "contentBlockStart", {**place, "start": {"toolUse": use}}
            deltas = [{"toolUse": {"input": half}} for half in halves]
        elif "text" in block:
            deltas = [{"text": half} for half in _halves(block["text"])]
        elif "reasoningText" in block.get("reasoningContent", {}):
            reasoning = block["reasoningContent"]["reasoningText"]
            deltas = [{"reasoningContent": {key: text}} for key, text in reasoning.items()]
        for delta in deltas:
            yield "contentBlockDelta", {**place, "delta": delta}
        yield "contentBlockStop", place
    yield "messageStop", {"stopReason": answer["stopReason"]}
    yield "metadata", {"usage": answer["usage"], "metrics": answer["metrics"]}


def _frame(name: str, value: Any) -> bytes:
    """An event in AWS's event-stream encoding."""
    fields = {
        ":event-type": name, ":content-type": "application/json", ":message-type": "event"
    }  # fmt: skip
    headers = b"".join(
        struct.pack(">B", len(key))
        + key.encode()
        + struct.pack(">BH", 7, len(text))
        + text.encode()
        for key, text in fields.items()
    )
    payload = json.dumps(value).encode()
    lengths = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    front = lengths + struct.pack(">I", zlib.crc32(lengths)) + headers + payload
    return front + struct.pack(">I", zlib.crc32(front))
