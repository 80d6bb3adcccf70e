"""Made-up valid conversations, written down in any of the five formats.

A story is drawn once (who speaks, which tools are called, what they answer) and then spelled in
one format, as far as that format can say it.  Knows the wire formats; does not know the library.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
FORMATS = ("openai-chat", "openai-responses", "anthropic", "bedrock", "gemini")


@dataclass
class Answer:
    """One tool call with what came back; ``items`` are ("text" | "json" | "image", value)."""

    id: str
    name: str
    arguments: dict[str, Any]
    items: list[tuple[str, Any]]
    error: bool = False


@dataclass
class Step:
    """``kind``: user, model, system; ``items`` as in Answer; ``late``: text behind the calls."""

    kind: str
    items: list[tuple[str, Any]]
    answers: list[Answer] = field(default_factory=list)
    late: str = ""


@dataclass
class Story:
    """A whole request."""

    system: list[str]
    steps: list[Step]
    declared: bool
    limit: int | None
    temperature: float | None
    choice: str
    ids: bool


WORDS = st.sampled_from(
    ["ok", "Fix src/app.py, line 42.", "строка\nдве", '{"a": 1}', "这是", "[tool error]", "x" * 300,
     "  two spaces", "🚀 e\u0301", "🚀 odd", 'say "no" \\ to \x7f', "Error: no such file"]
)  # fmt: skip
TEXTS = st.builds(lambda text, stamp: f"{text} {stamp}", WORDS, st.integers(0, 99))
JSONS = st.sampled_from([{"a": [1, 2.5, None]}, {"result": "x"}, {"output": "y"}, {"content": []}])
ITEM = st.one_of(
    st.tuples(st.just("text"), TEXTS),
    st.tuples(st.just("text"), TEXTS),
    st.tuples(st.just("json"), JSONS),
    st.tuples(st.just("image"), st.sampled_from([PIXEL, "https://example.org/a.png"])),
)
IDS = st.sampled_from(["call_1", "toolu_Ab-9", "functions.get:0", "é/1", "i" * 64, "j" * 100, "7"])
ANSWERS = st.builds(
    Answer,
    st.builds(lambda kind, number: f"{number}{kind}", IDS, st.integers(0, 9_999)),
    st.sampled_from(["read_file", "search-web", "Bash", "n" * 64]),
    st.sampled_from([{}, {"path": "ü.md"}, {"n": 1.5, "deep": {"list": [None, True, "x"]}}]),
    st.lists(ITEM, max_size=3),
    st.sampled_from([False, False, False, True]),
)
SAID = st.lists(ITEM.filter(lambda item: item[0] != "json"), min_size=1, max_size=2)
SPOKEN = st.lists(st.tuples(st.just("text"), TEXTS), max_size=2)
SAID_BY_MODEL = st.lists(st.tuples(st.just("text"), TEXTS), min_size=1, max_size=2)
STEPS = st.one_of(
    st.builds(Step, st.just("user"), SAID),
    st.builds(
        Step, st.just("model"), SPOKEN, st.lists(ANSWERS, min_size=1, max_size=3),
        st.sampled_from([""] * 9 + ["and so on"]),
    ),
    st.builds(Step, st.just("model"), SAID_BY_MODEL),
    st.builds(Step, st.just("system"), st.lists(st.tuples(st.just("text"), TEXTS), min_size=1,
                                                max_size=1)),
)  # fmt: skip


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """A conversation that begins with the user and mostly ends with user or results."""
    steps = [draw(st.builds(Step, st.just("user"), SAID))]
    seen: set[str] = set()
    for step in draw(st.lists(STEPS, min_size=2, max_size=14)):
        before = steps[-1]
        if step.kind == "model" and before.kind == "model" and not before.answers:
            continue
        step.answers = [a for a in step.answers if not (a.id in seen or seen.add(a.id))]
        if step.items or step.answers:
            steps.append(step)
    if steps[-1].kind != "user" and not steps[-1].answers:
        steps.append(draw(st.builds(Step, st.just("user"), SAID)))
    return Story(
        draw(st.lists(TEXTS, max_size=2)),
        steps,
        draw(st.booleans()),
        draw(st.sampled_from([None, 512])),
        draw(st.sampled_from([None, 0.5, 1])),
        draw(st.sampled_from(["", "auto", "any", "tool"])),
        draw(st.booleans()),
    )


def written(story: Story, format: str) -> dict[str, Any]:
    """The story as a request of one format."""
    return {
        "openai-chat": _chat, "openai-responses": _responses, "anthropic": _anthropic,
        "bedrock": _bedrock, "gemini": _gemini,
    }[format](story)  # fmt: skip


def _names(story: Story) -> list[str]:
    found = dict.fromkeys(a.name for step in story.steps for a in step.answers)
    return list(found) or ["read_file"]


SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _put(body: dict[str, Any], key: str, value: Any) -> None:
    if value not in (None, "", []):
        body[key] = value


# --- OpenAI --------------------------------------------------------------------------------------


def _url(value: str) -> str:
    return value if value.startswith("http") else f"data:image/png;base64,{value}"


def _chat_parts(items: list[tuple[str, Any]]) -> Any:
    parts = [
        {"type": "image_url", "image_url": {"url": _url(value)}}
        if kind == "image"
        else {"type": "text", "text": value if kind == "text" else _dump(value)}
        for kind, value in items
    ]
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _chat(story: Story) -> dict[str, Any]:
    messages: list[Any] = [{"role": "system", "content": text} for text in story.system]
    for step in story.steps:
        if step.kind != "model":
            messages.append({"role": step.kind, "content": _chat_parts(step.items)})
            continue
        items = [*step.items, *([("text", step.late)] if step.late else [])]
        message: dict[str, Any] = {"role": "assistant", "content": _chat_parts(items) or None}
        messages.append(message)
        for answer in step.answers:
            inner = {"name": answer.name, "arguments": json.dumps(answer.arguments)}
            call = {"id": answer.id[:40], "type": "function", "function": inner}
            message.setdefault("tool_calls", []).append(call)
            texts = [item for item in answer.items if item[0] != "image"]
            content = _chat_parts(texts) or ""
            messages.append({"role": "tool", "tool_call_id": answer.id[:40], "content": content})
    body: dict[str, Any] = {"messages": messages}
    _put(body, "max_tokens", story.limit)
    _put(body, "temperature", story.temperature)
    if story.declared:
        body["tools"] = [
            {"type": "function", "function": {"name": name, "parameters": SCHEMA}}
            for name in _names(story)
        ]
        named = {"type": "function", "function": {"name": _names(story)[0]}}
        choices = {"auto": "auto", "any": "required", "tool": named}
        _put(body, "tool_choice", choices.get(story.choice))
    return body


def _input_parts(items: list[tuple[str, Any]]) -> list[Any]:
    return [
        {"type": "input_image", "image_url": _url(value), "detail": "auto"}
        if kind == "image"
        else {"type": "input_text", "text": value if kind == "text" else _dump(value)}
        for kind, value in items
    ]


def _responses(story: Story) -> dict[str, Any]:
    items: list[Any] = []
    for step in story.steps:
        if step.kind != "model":
            role = "developer" if step.kind == "system" else "user"
            items.append({"type": "message", "role": role, "content": _input_parts(step.items)})
            continue
        spoken = [{"type": "output_text", "text": text} for _, text in step.items]
        if spoken:
            items.append({"type": "message", "role": "assistant", "content": spoken})
        items += [
            {"type": "function_call", "call_id": a.id[:64], "name": a.name,
             "arguments": json.dumps(a.arguments)}
            for a in step.answers
        ]  # fmt: skip
        outputs = [
            {"type": "function_call_output", "call_id": a.id[:64],
             "output": _input_parts(a.items) if len(a.items) != 1 or a.items[0][0] == "image"
             else _input_parts(a.items)[0]["text"]}
            for a in step.answers
        ]  # fmt: skip
        if step.late and outputs:  # the last output comes after more words: legal here
            items += outputs[:-1]
            said = {"type": "output_text", "text": step.late}
            items.append({"type": "message", "role": "assistant", "content": [said]})
            outputs = outputs[-1:]
        items += outputs
    body: dict[str, Any] = {"input": items}
    _put(body, "instructions", "\n\n".join(story.system))
    _put(body, "max_output_tokens", story.limit)
    _put(body, "temperature", story.temperature)
    if story.declared:
        body["tools"] = [
            {"type": "function", "name": name, "parameters": SCHEMA, "strict": False}
            for name in _names(story)
        ]
        named = {"type": "function", "name": _names(story)[0]}
        choices = {"auto": "auto", "any": "required", "tool": named}
        _put(body, "tool_choice", choices.get(story.choice))
    return body


# --- Anthropic and Bedrock -----------------------------------------------------------------------


def _claude_item(kind: str, value: Any) -> Any:
    if kind == "image" and value.startswith("http"):
        return {"type": "image", "source": {"type": "url", "url": value}}
    if kind == "image":
        source = {"type": "base64", "media_type": "image/png", "data": value}
        return {"type": "image", "source": source}
    return {"type": "text", "text": value if kind == "text" else _dump(value)}


def _anthropic(story: Story) -> dict[str, Any]:
    def clean(name: str) -> str:
        return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64]

    messages: list[Any] = []
    for step in story.steps:
        content: list[Any] = [_claude_item(*item) for item in step.items]
        if step.kind != "model":
            messages.append({"role": "user", "content": content})
            continue
        for a in step.answers:
            call = {"id": clean(a.id), "name": a.name, "input": a.arguments}
            content.append({"type": "tool_use", **call})
        content += [_claude_item("text", step.late)] if step.late else []
        messages.append({"role": "assistant", "content": content})
        results = [
            {"type": "tool_result", "tool_use_id": clean(a.id),
             "content": [_claude_item(*item) for item in a.items] or "",
             **({"is_error": True} if a.error else {})}
            for a in step.answers
        ]  # fmt: skip
        messages += [{"role": "user", "content": results}] if results else []
    body: dict[str, Any] = {"max_tokens": story.limit or 100, "messages": messages}
    _put(body, "system", [{"type": "text", "text": text} for text in story.system])
    _put(body, "temperature", story.temperature)
    body["tools"] = [{"name": name, "input_schema": SCHEMA} for name in _names(story)]
    choice = {"type": story.choice} | ({"name": _names(story)[0]} if story.choice == "tool" else {})
    _put(body, "tool_choice", choice if story.choice else None)
    return body


def _bedrock_item(kind: str, value: Any) -> Any:
    if kind == "image":
        url = value.startswith("http")
        source = {"s3Location": {"uri": "s3://bucket/a.png"}} if url else {"bytes": value}
        return {"image": {"format": "png", "source": source}}
    return {kind: value}


def _bedrock(story: Story) -> dict[str, Any]:
    def clean(name: str) -> str:
        return re.sub(r"[^a-zA-Z0-9_.:-]", ".", name)[:64]

    messages: list[Any] = []
    for step in story.steps:
        content = [_bedrock_item(*item) for item in step.items]
        role = "assistant" if step.kind == "model" else "user"
        for a in step.answers:
            call = {"toolUseId": clean(a.id), "name": a.name, "input": a.arguments}
            content.append({"toolUse": call})
        content += [{"text": step.late}] if step.late else []
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += content
        else:
            messages.append({"role": role, "content": content})
        if step.answers:
            results = [
                {"toolResult": {
                    "toolUseId": clean(a.id),
                    "content": [_bedrock_item(*item) for item in a.items] or [{"text": "none"}],
                    **({"status": "error"} if a.error else {})}}
                for a in step.answers
            ]  # fmt: skip
            messages.append({"role": "user", "content": results})
    body: dict[str, Any] = {"messages": messages}
    _put(body, "system", [{"text": text} for text in story.system])
    inference: dict[str, Any] = {}
    _put(inference, "maxTokens", story.limit)
    _put(inference, "temperature", story.temperature)
    _put(body, "inferenceConfig", inference or None)
    specs = [{"toolSpec": {"name": n, "inputSchema": {"json": SCHEMA}}} for n in _names(story)]
    body["toolConfig"] = {"tools": specs}
    named = {"name": _names(story)[0]} if story.choice == "tool" else {}
    _put(body["toolConfig"], "toolChoice", {story.choice: named} if story.choice else None)
    return body


# --- Gemini --------------------------------------------------------------------------------------


def _gemini_item(kind: str, value: Any) -> Any:
    if kind == "image" and value.startswith("http"):
        return {"fileData": {"mimeType": "image/png", "fileUri": value}}
    if kind == "image":
        return {"inlineData": {"mimeType": "image/png", "data": value}}
    return {"text": value}


def _response(answer: Answer) -> Any:
    items = [value for kind, value in answer.items if kind != "image"]
    if len(items) == 1 and isinstance(items[0], dict) and not answer.error:
        return items[0]
    texts = [value if isinstance(value, str) else _dump(value) for value in items]
    return {"error" if answer.error else "output": "\n".join(texts)}


def _gemini(story: Story) -> dict[str, Any]:
    contents: list[Any] = []
    for step in story.steps:
        parts: list[Any] = [_gemini_item(*item) for item in step.items]
        for number, a in enumerate(step.answers):
            call = {"name": a.name, "args": a.arguments} | ({"id": a.id} if story.ids else {})
            parts.append({"functionCall": call})
            if not number:
                parts[-1]["thoughtSignature"] = "c2lnbmVk"
        contents.append({"role": "model" if step.kind == "model" else "user", "parts": parts})
        responses = []
        for a in step.answers:
            inner = {"name": a.name, "response": _response(a)}
            inner |= {"id": a.id} if story.ids else {}
            images = [_gemini_item(*item) for item in a.items if item[0] == "image"]
            _put(inner, "parts", images)
            responses.append({"functionResponse": inner})
        contents += [{"role": "user", "parts": responses}] if responses else []
    body: dict[str, Any] = {"contents": contents}
    if story.system:
        body["systemInstruction"] = {"parts": [{"text": text} for text in story.system]}
    config: dict[str, Any] = {}
    _put(config, "maxOutputTokens", story.limit)
    _put(config, "temperature", story.temperature)
    _put(body, "generationConfig", config or None)
    if story.declared:
        declarations = [{"name": n, "parametersJsonSchema": SCHEMA} for n in _names(story)]
        body["tools"] = [{"functionDeclarations": declarations}]
        mode: dict[str, Any] = {"mode": "ANY" if story.choice == "tool" else story.choice.upper()}
        if story.choice == "tool":
            mode["allowedFunctionNames"] = [_names(story)[0]]
        _put(body, "toolConfig", {"functionCallingConfig": mode} if story.choice else None)
    return body
