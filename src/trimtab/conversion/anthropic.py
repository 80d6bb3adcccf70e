"""Reads Anthropic Messages into a neutral request, and writes one.

Thinking is signed by the provider and is never carried over as text.  Calls that the server ran
itself cannot be carried over either.
"""

from __future__ import annotations

from typing import Any

from trimtab.conversion import media as medium
from trimtab.conversion.cache_control import mark_of, with_mark
from trimtab.conversion.ids import NAMES, ConversionTarget, NameRules
from trimtab.conversion.neutral_request import (
    CallPart,
    ConversionLog,
    JsonPart,
    MediaPart,
    NeutralRequest,
    NeutralTurn,
    Part,
    ReasoningPart,
    ResultPart,
    Setting,
    TextPart,
    Tool,
    ToolChoice,
    read_settings,
    write_settings,
)
from trimtab.conversion.tool_payloads import arguments_of, json_text
from trimtab.conversion.turn_order import OrderedTurn, TargetRules, choice_for, ordered, tools_for
from trimtab.jsontext.paths import Path

name_rules = NameRules(NAMES, 64, NAMES, 128)
"""Ids match ``^[a-zA-Z0-9_-]+$`` (quoted refusal), tool names ``^[a-zA-Z0-9_-]{1,128}$``."""
MAX_TOKENS = 4096
"""``max_tokens`` is required; every Claude from 3 on can answer that long."""

_ROLES: dict[str, Any] = {"system": "system", "user": "user", "assistant": "assistant"}
_SETTINGS = {
    "model": "model", "max_tokens": "max_output", "temperature": "temperature", "top_p": "top_p",
    "top_k": "top_k", "stop_sequences": "stop", "stream": "stream",
}  # fmt: skip
_WRITTEN = {name: key for key, name in _SETTINGS.items()}
_BODY = frozenset(_SETTINGS) | {"messages", "system", "tools", "tool_choice"}
_MESSAGE = frozenset(("role", "content"))
_TEXT = frozenset(("type", "text", "cache_control"))
_CALL = frozenset(("type", "id", "name", "input", "cache_control", "caller"))
_RESULT = frozenset(("type", "tool_use_id", "content", "is_error", "cache_control"))
_MEDIA = frozenset(("type", "source", "title", "cache_control"))
_TOOL = frozenset(("type", "name", "description", "input_schema", "strict", "cache_control"))
_CHOICE = frozenset(("type", "name", "disable_parallel_tool_use"))
_DIRECT = {"type": "direct"}
"""The caller of a call the model made itself: what every other format takes for granted."""

# --- reading -------------------------------------------------------------------------------------


def read(tree: Any, log: ConversionLog) -> NeutralRequest:
    """A body, or a bare list of messages."""
    if isinstance(tree, list):
        return NeutralRequest(tuple(_turns(tree, (), log)), bare=True)
    settings: dict[str, Setting] = {}
    read_settings(tree, _SETTINGS, (), settings)
    log.rest(tree, _BODY, ())
    turns = _turns(tree.get("messages") or [], ("messages",), log)
    if tree.get("system"):
        head = _parts(tree["system"], ("system",), log)
        turns.insert(0, NeutralTurn("system", tuple(head), ("system",)))
    return NeutralRequest(tuple(turns), _tools(tree, log), _choice(tree, settings, log), settings)


def _turns(messages: Any, base: Path, log: ConversionLog) -> list[NeutralTurn]:
    turns = []
    for number, message in enumerate(messages):
        path = (*base, number)
        log.rest(message, _MESSAGE, path)
        parts = _parts(message.get("content"), (*path, "content"), log)
        turns.append(NeutralTurn(_ROLES.get(message.get("role"), "user"), tuple(parts), path))
    return turns


def _parts(content: Any, path: Path, log: ConversionLog) -> list[Part]:
    if isinstance(content, str):
        return [TextPart(content, path)] if content else []
    parts: list[Part] = []
    for number, item in enumerate(content if isinstance(content, list) else ()):
        parts += _part(item, (*path, number), log)
    return parts


def _part(item: Any, path: Path, log: ConversionLog) -> list[Part]:
    kind = item.get("type")
    if kind == "text":
        log.rest(item, _TEXT, path)
        return [TextPart(item.get("text") or "", (*path, "text"), mark_of(item))]
    if kind == "tool_use":
        log.rest(item, _CALL, path)
        if item.get("caller") not in (None, _DIRECT):
            log.lose((*path, "caller"), "caller")
        arguments = arguments_of(item.get("input"), (*path, "input"), log)
        call_id, name = str(item.get("id") or ""), str(item.get("name") or "")
        return [CallPart(call_id, name, arguments, path, mark=mark_of(item))]
    if kind == "tool_result":
        return [_result(item, path, log)]
    if kind in ("thinking", "redacted_thinking"):
        return [ReasoningPart(str(item.get("thinking") or ""), path)]
    if kind in ("image", "document"):
        return list(_media(item, kind, path, log))
    log.lose(path, str(kind))
    return []


def _result(item: Any, path: Path, log: ConversionLog) -> ResultPart:
    log.rest(item, _RESULT, path)
    content, inner = item.get("content"), (*path, "content")
    items: list[TextPart | JsonPart | MediaPart] = []
    if isinstance(content, str):
        items = [TextPart(content, inner)] if content else []
    marks = [mark_of(item)]
    for number, part in enumerate(content if isinstance(content, list) else ()):
        where = (*inner, number)
        marks.append(mark_of(part))
        if part.get("type") == "text":
            log.rest(part, _TEXT, where)
            items.append(TextPart(part.get("text") or "", (*where, "text")))
        elif part.get("type") in ("image", "document"):
            items += _media(part, part["type"], where, log)
        else:
            log.lose(where, str(part.get("type")), "carried as JSON")
            items.append(JsonPart(part, where))
    mark = next((mark for mark in marks if mark is not None), None)
    error = item.get("is_error") is True
    return ResultPart(str(item.get("tool_use_id") or ""), "", tuple(items), path, error, mark=mark)


def _media(item: Any, kind: Any, path: Path, log: ConversionLog) -> list[Any]:
    """The medium; a document that consists of blocks is read as its texts."""
    log.rest(item, _MEDIA, path)
    source, mark = item.get("source") or {}, mark_of(item)
    name, mime = str(item.get("title") or ""), str(source.get("media_type") or "")
    how = source.get("type")
    if how == "base64":
        data = medium.base64_of(source.get("data"))
        return [MediaPart(kind, mime or "image/png", path, data=data, name=name, mark=mark)]
    if how == "text":
        data = medium.text_data(str(source.get("data") or ""))
        return [MediaPart(kind, "text/plain", path, data=data, name=name, mark=mark)]
    if how == "url":
        media = medium.from_url(str(source.get("url")), path, kind, name=name)
        return [media._replace(mark=mark)]
    if how == "content":
        log.lose(path, "document of blocks", "its texts were carried")
        inner = _parts(source.get("content"), (*path, "source", "content"), log)
        return [part for part in inner if isinstance(part, (TextPart, MediaPart))]
    stored = f"anthropic:{source.get('file_id')}"
    default = "image/png" if kind == "image" else "application/pdf"
    return [MediaPart(kind, mime or default, path, file=stored, name=name, mark=mark)]


def _tools(tree: Any, log: ConversionLog) -> tuple[Tool, ...]:
    tools = []
    for number, tool in enumerate(tree.get("tools") or ()):
        path = ("tools", number)
        if "input_schema" not in tool:
            log.lose(path, str(tool.get("type")), "a tool of the server")
            continue
        log.rest(tool, _TOOL, path)
        about = str(tool.get("description") or "")
        tools.append(
            Tool(
                str(tool.get("name")), about, tool["input_schema"], path, tool.get("strict"),
                mark=mark_of(tool),
            )
        )  # fmt: skip
    return tuple(tools)


def _choice(tree: Any, settings: dict[str, Setting], log: ConversionLog) -> ToolChoice | None:
    value, path = tree.get("tool_choice"), ("tool_choice",)
    if not isinstance(value, dict):
        return None
    log.rest(value, _CHOICE, path)
    if isinstance(value.get("disable_parallel_tool_use"), bool):
        parallel = not value["disable_parallel_tool_use"]
        settings["parallel"] = Setting(parallel, (*path, "disable_parallel_tool_use"))
    mode = value.get("type")
    if mode in ("auto", "none", "any", "tool"):
        return ToolChoice(mode, path, str(value.get("name") or ""))
    return None


# --- writing -------------------------------------------------------------------------------------

_TARGET_RULES = TargetRules(
    joins_users=True, begins_with_user=True, refuses_blanks=True, takes_marks=True,
    declares_tools=True,
)  # fmt: skip
_PREFILLED = ("claude-2", "claude-3", "claude-sonnet-4-0", "claude-sonnet-4-2", "claude-opus-4-0",
              "claude-opus-4-1", "claude-opus-4-2", "claude-sonnet-4-5", "claude-opus-4-5",
              "claude-haiku-4-5")  # fmt: skip
"""Models that accept a conversation whose last message is the model's (before 4.6)."""


def write(neutral: NeutralRequest, target: ConversionTarget, log: ConversionLog) -> Any:
    """A body; the head's system texts stand beside the messages."""
    ends = target.model is not None and not target.is_of(*_PREFILLED)
    shaped = ordered(neutral, _TARGET_RULES._replace(ends_with_user=ends), log)
    body = write_settings(neutral, _WRITTEN, log)
    _limit(body, neutral, log)
    texts = [part for turn in shaped.head for part in turn.parts if isinstance(part, TextPart)]
    if texts:
        body["system"] = _content(texts, log)
    body["messages"] = _messages(shaped.steps, target, log)
    tools = tools_for(neutral, _TARGET_RULES, log)
    if tools:
        body["tools"] = [_write_tool(tool, target) for tool in tools]
    if choice := _write_choice(choice_for(neutral, tools, log), neutral, target):
        body["tool_choice"] = choice
    return body


def _limit(body: dict[str, Any], neutral: NeutralRequest, log: ConversionLog) -> None:
    if "max_tokens" not in body and not neutral.bare:
        body["max_tokens"] = MAX_TOKENS
        log.notes[f"max_tokens: {MAX_TOKENS} was added, which this format requires"] += 1
    if body.get("temperature", 0) > 1:
        log.lose(neutral.settings["temperature"].path, "temperature", "1 is the highest here")
        body["temperature"] = 1


def _messages(steps: list[OrderedTurn], target: ConversionTarget, log: ConversionLog) -> list[Any]:
    messages: list[Any] = []
    results: list[Any] = []
    for step in steps:
        if step.role == "assistant":
            if results:
                messages.append({"role": "user", "content": results})
            content = _content(step.parts, log, target)
            messages.append({"role": "assistant", "content": content})
            results = [_write_result(result, target, log) for result in step.results]
        elif results:
            spoken = [_write_part(part, log, target) for part in step.parts]
            messages.append({"role": "user", "content": results + spoken})
            results = []
        else:
            messages.append({"role": "user", "content": _content(step.parts, log, target)})
    if results:
        messages.append({"role": "user", "content": results})
    return messages


def _content(parts: Any, log: ConversionLog, target: ConversionTarget | None = None) -> Any:
    if len(parts) == 1 and isinstance(parts[0], TextPart) and parts[0].mark is None:
        return parts[0].text
    return [_write_part(part, log, target) for part in parts]


def _write_part(part: Part, log: ConversionLog, target: ConversionTarget | None) -> Any:
    if isinstance(part, MediaPart):
        return _write_media(part, log)
    if isinstance(part, CallPart) and target:
        name, call_id = target.names(part.name), target.ids(part.id)
        call = {"type": "tool_use", "id": call_id, "name": name, "input": part.arguments}
        return with_mark(call, part.mark)
    if isinstance(part, ResultPart) and target:
        return _write_result(part, target, log)
    return with_mark({"type": "text", "text": part.text}, part.mark)  # type: ignore[union-attr]


def _write_result(result: ResultPart, target: ConversionTarget, log: ConversionLog) -> Any:
    content: list[Any] = []
    for item in result.items:
        if isinstance(item, MediaPart):
            content.append(_write_media(item, log))
            continue
        text = item.text if isinstance(item, TextPart) else json_text(item, log)
        if text.strip() or len(result.items) == 1:
            content.append({"type": "text", "text": text})
        else:
            log.lose(item.path, "blank text", "a text of white space alone is refused")
    out: dict[str, Any] = {"type": "tool_result", "tool_use_id": target.ids(result.id)}
    alone = len(content) == 1 and content[0]["type"] == "text"
    out["content"] = content[0]["text"] if alone else content or ""
    if result.error:
        out["is_error"] = True
    return with_mark(out, result.mark)


def _write_media(part: MediaPart, log: ConversionLog) -> Any:
    owner, _, stored = part.file.partition(":")
    source: dict[str, str] | None = None
    if part.url.startswith(("http:", "https:")):
        source = {"type": "url", "url": part.url}
    elif owner == "anthropic":
        source = {"type": "file", "file_id": stored}
    elif part.mime == "text/plain" and (text := medium.data_text(part.data)) is not None:
        source = {"type": "text", "media_type": "text/plain", "data": text}
    elif part.data and (part.mime in medium.IMAGES or part.mime == "application/pdf"):
        source = {"type": "base64", "media_type": part.mime, "data": part.data}
    if source is None or part.kind not in ("image", "document"):
        text_part = medium.named(part, log)
        return with_mark({"type": "text", "text": text_part.text}, part.mark)
    title = {"title": part.name} if part.name and part.kind == "document" else {}
    return with_mark({"type": part.kind, "source": source, **title}, part.mark)


def _write_tool(tool: Tool, target: ConversionTarget) -> Any:
    out: dict[str, Any] = {"name": target.names(tool.name)}
    out |= {"description": tool.description} if tool.description else {}
    out["input_schema"] = tool.schema
    out |= {"strict": True} if tool.strict else {}
    return with_mark(out, tool.mark)


def _write_choice(
    choice: ToolChoice | None, neutral: NeutralRequest, target: ConversionTarget
) -> Any:
    parallel = neutral.settings.get("parallel")
    alone = parallel is not None and parallel.value is False
    if choice is None:
        return {"type": "auto", "disable_parallel_tool_use": True} if alone else None
    out: dict[str, Any] = {"type": choice.mode}
    if choice.mode == "tool":
        out["name"] = target.names(choice.name)
    if alone and choice.mode != "none":
        out["disable_parallel_tool_use"] = True
    return out
