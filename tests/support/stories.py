"""Made-up valid conversations, written down in any of the five formats.

A story is drawn once (who speaks, which tools are called, what they answer) and then spelled in
one format, as far as that format can say it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from shapes import FORMATS, KEYS, Call, Item, Items, call, merged, result

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
__all__ = ["FORMATS", "Answer", "Step", "Story", "stories", "written"]


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
    steps = [Step("system", [("text", text)]) for text in story.system]
    steps = [*(steps if format == "openai-chat" else ()), *story.steps]
    items = [item for step in steps for item in _step(story, step, format)]
    body = {KEYS[format]: merged(items) if format == "bedrock" else items}
    return body | {key: value for key, value in _HEADS[format](story).items() if value}


SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def _names(story: Story) -> list[str]:
    found = dict.fromkeys(a.name for step in story.steps for a in step.answers)
    return list(found) or ["read_file"]


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _filled(**fields: Any) -> dict[str, Any]:
    """The fields that say something."""
    return {key: value for key, value in fields.items() if value not in (None, "", [], {})}


# --- parts ----------------------------------------------------------------------------------------


def _part(format: str, kind: str, value: Any, ours: bool = False) -> Item:
    """A text, JSON or image; ``ours``: the model's."""
    if kind == "image":
        return _image(format, value)
    if kind == "json" and format == "bedrock":
        return {"json": value}
    text = value if isinstance(value, str) or format == "gemini" else _dump(value)
    if format in ("bedrock", "gemini"):
        return {"text": text}
    types = {"openai-responses": "output_text" if ours else "input_text"}
    return {"type": types.get(format, "text"), "text": text}


def _image(format: str, value: str) -> Item:
    web = value.startswith("http")
    if format.startswith("openai"):
        url = value if web else f"data:image/png;base64,{value}"
        if format == "openai-chat":
            return {"type": "image_url", "image_url": {"url": url}}
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    if format == "anthropic":
        data = {"type": "base64", "media_type": "image/png", "data": value}
        return {"type": "image", "source": {"type": "url", "url": value} if web else data}
    if format == "bedrock":
        source = {"s3Location": {"uri": "s3://bucket/a.png"}} if web else {"bytes": value}
        return {"image": {"format": "png", "source": source}}
    key, name = ("fileData", "fileUri") if web else ("inlineData", "data")
    return {key: {"mimeType": "image/png", name: value}}


def _plain(parts: Items) -> Any:
    """A single text as it is, else the list of parts."""
    return parts[0]["text"] if len(parts) == 1 and "text" in parts[0] else parts


_IDS: dict[str, Callable[[str], str]] = {
    "openai-chat": lambda name: name[:40],
    "openai-responses": lambda name: name[:64],
    "anthropic": lambda name: re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64],
    "bedrock": lambda name: re.sub(r"[^a-zA-Z0-9_.:-]", ".", name)[:64],
    "gemini": lambda name: name,
}


def _call(format: str, answer: Answer) -> Call:
    """A call, and what came back as this format gives it."""
    parts = [_part(format, *item) for item in answer.items]
    content: Any = parts
    if format == "openai-chat":
        content = _plain([part for part in parts if part["type"] == "text"]) or ""
    elif format == "openai-responses":
        content = _plain(parts)
    elif format == "anthropic":
        content = parts or ""
    elif format == "bedrock":
        content = parts or [{"text": "none"}]
    else:
        content = _response(answer)
    error = answer.error and format not in ("openai-chat", "openai-responses")
    return Call(_IDS[format](answer.id), answer.name, answer.arguments, content, error)


def _response(answer: Answer) -> Any:
    items = [value for kind, value in answer.items if kind != "image"]
    if len(items) == 1 and isinstance(items[0], dict) and not answer.error:
        return items[0]
    texts = [value if isinstance(value, str) else _dump(value) for value in items]
    return {"error" if answer.error else "output": "\n".join(texts)}


# --- steps ----------------------------------------------------------------------------------------


def _step(story: Story, step: Step, format: str) -> Items:
    """The messages or items of a step."""
    ours = step.kind == "model"
    parts = [_part(format, *item, ours=ours) for item in step.items]
    late = [_part(format, "text", step.late, ours)] if step.late and format != "gemini" else []
    calls = [_call(format, answer) for answer in step.answers]
    if format == "openai-responses":
        return _items(step, parts, late, calls)
    made, back = [call(format, c) for c in calls], [result(format, c) for c in calls]
    if format == "openai-chat":
        content = _plain([*parts, *late])
        if not ours:
            return [{"role": step.kind, "content": content}]
        tools = {"tool_calls": made} if made else {}
        return [{"role": "assistant", "content": content or None, **tools}, *back]
    role, key = ("model", "parts") if format == "gemini" else ("assistant", "content")
    if format == "gemini":
        _as_gemini(story, step, made, back)
    said = {"role": role if ours else "user", key: [*parts, *made, *late]}
    return [said, *([{"role": "user", key: back}] if back else [])]


def _items(step: Step, parts: Items, late: Items, calls: list[Call]) -> Items:
    """Items of Responses: the last output comes after more words, which is legal there."""
    role = {"model": "assistant", "system": "developer"}.get(step.kind, "user")
    said = [{"type": "message", "role": role, "content": parts}] if parts else []
    made = [call("openai-responses", one) for one in calls]
    back = [result("openai-responses", one) for one in calls]
    words = [{"type": "message", "role": role, "content": late}] if late and back else []
    return [*said, *made, *back[:-1], *words, *back[-1:]]


def _as_gemini(story: Story, step: Step, made: Items, back: Items) -> None:
    """The first call is signed, ids are there or not, images stand beside a response."""
    for number, (one, other, answer) in enumerate(zip(made, back, step.answers, strict=True)):
        if not number:
            one["thoughtSignature"] = "c2lnbmVk"
        if not story.ids:
            del one["functionCall"]["id"], other["functionResponse"]["id"]
        images = [_part("gemini", *item) for item in answer.items if item[0] == "image"]
        other["functionResponse"] |= _filled(parts=images)


# --- what is around them --------------------------------------------------------------------------


def _chat_head(story: Story) -> dict[str, Any]:
    names = _names(story) if story.declared else []
    named = {"type": "function", "function": {"name": _names(story)[0]}}
    choices = {"auto": "auto", "any": "required", "tool": named}
    return _filled(
        max_tokens=story.limit, temperature=story.temperature,
        tools=[{"type": "function", "function": {"name": n, "parameters": SCHEMA}} for n in names],
        tool_choice=choices.get(story.choice) if names else None,
    )  # fmt: skip


def _responses_head(story: Story) -> dict[str, Any]:
    names = _names(story) if story.declared else []
    choices = {"auto": "auto", "any": "required",
               "tool": {"type": "function", "name": _names(story)[0]}}  # fmt: skip
    return _filled(
        instructions="\n\n".join(story.system), max_output_tokens=story.limit,
        temperature=story.temperature,
        tools=[{"type": "function", "name": n, "parameters": SCHEMA, "strict": False}
               for n in names],
        tool_choice=choices.get(story.choice) if names else None,
    )  # fmt: skip


def _anthropic_head(story: Story) -> dict[str, Any]:
    named = {"name": _names(story)[0]} if story.choice == "tool" else {}
    return _filled(
        max_tokens=story.limit or 100, temperature=story.temperature,
        system=[{"type": "text", "text": text} for text in story.system],
        tools=[{"name": name, "input_schema": SCHEMA} for name in _names(story)],
        tool_choice={"type": story.choice, **named} if story.choice else None,
    )  # fmt: skip


def _bedrock_head(story: Story) -> dict[str, Any]:
    specs = [{"toolSpec": {"name": n, "inputSchema": {"json": SCHEMA}}} for n in _names(story)]
    named = {"name": _names(story)[0]} if story.choice == "tool" else {}
    choice = {"toolChoice": {story.choice: named}} if story.choice else {}
    return _filled(
        system=[{"text": text} for text in story.system],
        inferenceConfig=_filled(maxTokens=story.limit, temperature=story.temperature),
        toolConfig={"tools": specs, **choice},
    )


def _gemini_head(story: Story) -> dict[str, Any]:
    mode: dict[str, Any] = {"mode": "ANY" if story.choice == "tool" else story.choice.upper()}
    if story.choice == "tool":
        mode["allowedFunctionNames"] = [_names(story)[0]]
    declared = [{"name": n, "parametersJsonSchema": SCHEMA} for n in _names(story)]
    return _filled(
        systemInstruction={"parts": [{"text": t} for t in story.system]} if story.system else None,
        generationConfig=_filled(maxOutputTokens=story.limit, temperature=story.temperature),
        tools=[{"functionDeclarations": declared}] if story.declared else [],
        toolConfig={"functionCallingConfig": mode} if story.declared and story.choice else None,
    )


_HEADS: dict[str, Callable[[Story], dict[str, Any]]] = {
    "openai-chat": _chat_head, "openai-responses": _responses_head, "anthropic": _anthropic_head,
    "bedrock": _bedrock_head, "gemini": _gemini_head,
}  # fmt: skip
