"""Reads Gemini Interactions into a neutral request, and writes one.

What Google holds or ran itself (earlier interactions, searches, code execution) and encrypted
thoughts cannot be carried over and are listed.
"""

from __future__ import annotations

from typing import Any

from trimtab.conversion import media as medium
from trimtab.conversion.gemini import name_rules
from trimtab.conversion.ids import ConversionTarget
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
    Role,
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

__all__ = ["name_rules", "read", "write"]

_BODY_SETTINGS = {"model": "model", "stream": "stream"}
_CONFIG = {
    "max_output_tokens": "max_output", "temperature": "temperature", "top_p": "top_p",
    "stop_sequences": "stop", "seed": "seed",
}  # fmt: skip
_IN_CONFIG = {name: key for key, name in _CONFIG.items()}
_BODY = frozenset((*_BODY_SETTINGS, "input", "system_instruction", "tools", "generation_config"))
_WORDS = frozenset(("type", "role", "content"))
_CALL = frozenset(("type", "id", "name", "arguments"))
_RESULT = frozenset(("type", "call_id", "name", "result", "is_error"))
_CONTENT = frozenset(("type", "text", "data", "uri", "mime_type"))
_TOOL = frozenset(("type", "name", "description", "parameters"))
_MEDIA: dict[str, str] = {
    "image": "image/png", "audio": "audio/wav", "video": "video/mp4", "document": "application/pdf",
}  # fmt: skip
"""Types of content that are media, and what they are taken for without a ``mime_type``."""

# --- reading -------------------------------------------------------------------------------------


def read(tree: Any, log: ConversionLog) -> NeutralRequest:
    """A body, or a bare list of steps."""
    if isinstance(tree, list):
        return NeutralRequest(tuple(_turns(tree, (), log)), bare=True)
    log.rest(tree, _BODY, ())
    settings: dict[str, Setting] = {}
    read_settings(tree, _BODY_SETTINGS, (), settings)
    config = tree.get("generation_config") or {}
    read_settings(config, _CONFIG, ("generation_config",), settings)
    log.rest(config, frozenset((*_CONFIG, "tool_choice")), ("generation_config",))
    steps = tree.get("input") or []
    if isinstance(steps, str):
        steps = [{"type": "user_input", "content": steps}]
    elif isinstance(steps, dict):
        steps = [steps]
    turns = _turns(steps, ("input",), log)
    head = tree.get("system_instruction")
    if isinstance(head, str) and head:
        path: Path = ("system_instruction",)
        turns.insert(0, NeutralTurn("system", (TextPart(head, path),), path))
    return NeutralRequest(tuple(turns), _tools(tree, log), _choice(config, log), settings)


def _turns(steps: Any, base: Path, log: ConversionLog) -> list[NeutralTurn]:
    """One turn a step of the user or a result; consecutive steps of the model are one turn."""
    turns: list[NeutralTurn] = []
    spoken: list[Part] = []
    for number, step in enumerate(steps):
        path = (*base, number)
        role, parts = _step(step, path, log)
        if role == "assistant":
            spoken += parts
            continue
        if not parts:
            continue
        if spoken:
            turns.append(NeutralTurn("assistant", tuple(spoken), spoken[0].path))
            spoken = []
        turns.append(NeutralTurn(role, tuple(parts), path))
    if spoken:
        turns.append(NeutralTurn("assistant", tuple(spoken), spoken[0].path))
    return turns


def _step(step: Any, path: Path, log: ConversionLog) -> tuple[Role, list[Part]]:
    kind = str(step.get("type") or "")
    if kind in ("user_input", "model_output") or (not kind and "role" in step):
        log.rest(step, _WORDS, path)
        by_model = kind == "model_output" or step.get("role") == "model"
        return "assistant" if by_model else "user", _contents(step.get("content"), path, log)
    if kind == "text" or kind in _MEDIA:
        return "user", list(_content(step, path, log))
    if kind == "function_call":
        log.rest(step, _CALL, path)
        arguments = arguments_of(step.get("arguments"), (*path, "arguments"), log)
        name = str(step.get("name") or "")
        return "assistant", [CallPart(str(step.get("id") or ""), name, arguments, path)]
    if kind == "function_result":
        log.rest(step, _RESULT, path)
        return "user", [_result(step, path, log)]
    if kind == "thought":
        summary = step.get("summary") or ()
        texts = [str(part.get("text") or "") for part in summary if isinstance(part, dict)]
        return "assistant", [ReasoningPart("\n\n".join(texts), path)]
    log.lose(path, kind or "step", "Google ran it")
    return "assistant", []


def _contents(content: Any, path: Path, log: ConversionLog) -> list[Part]:
    where = (*path, "content")
    if isinstance(content, str):
        return [TextPart(content, where)] if content else []
    parts: list[Part] = []
    for number, item in enumerate(content or ()):
        parts += _content(item, (*where, number), log)
    return parts


def _content(item: Any, path: Path, log: ConversionLog) -> list[TextPart | MediaPart]:
    kind = str(item.get("type"))
    log.rest(item, _CONTENT, path)
    if kind == "text":
        return [TextPart(item["text"], (*path, "text"))] if item.get("text") else []
    if kind in _MEDIA:
        mime = str(item.get("mime_type") or _MEDIA[kind])
        data, url = medium.base64_of(item.get("data") or ""), str(item.get("uri") or "")
        return [MediaPart(medium.kind_of(mime), mime, path, data=data, url=url)]
    log.lose(path, kind)
    return []


def _result(step: Any, path: Path, log: ConversionLog) -> ResultPart:
    value, where = step.get("result"), (*path, "result")
    items: list[TextPart | JsonPart | MediaPart] = []
    if isinstance(value, str):
        items = [TextPart(value, where)] if value else []
    elif isinstance(value, list) and all(isinstance(part, dict) for part in value):
        for number, part in enumerate(value):
            items += _content(part, (*where, number), log)
    elif value is not None:
        items = [JsonPart(value, where)]
    name, call_id = str(step.get("name") or ""), str(step.get("call_id") or "")
    return ResultPart(call_id, name, tuple(items), path, step.get("is_error") is True)


def _tools(tree: Any, log: ConversionLog) -> tuple[Tool, ...]:
    tools = []
    for number, tool in enumerate(tree.get("tools") or ()):
        path: Path = ("tools", number)
        if tool.get("type") != "function" or not tool.get("name"):
            log.lose(path, str(tool.get("type")), "a tool of the server")
            continue
        log.rest(tool, _TOOL, path)
        about = str(tool.get("description") or "")
        tools.append(Tool(tool["name"], about, tool.get("parameters"), path))
    return tuple(tools)


def _choice(config: Any, log: ConversionLog) -> ToolChoice | None:
    value, path = config.get("tool_choice"), ("generation_config", "tool_choice")
    if value in ("auto", "none", "any"):
        return ToolChoice(value, path)
    allowed = value.get("allowed_tools") if isinstance(value, dict) else None
    names = allowed.get("tools") if isinstance(allowed, dict) else None
    if isinstance(names, list) and len(names) == 1:
        return ToolChoice("tool", path, str(names[0]))
    if value is not None:
        log.lose(path, "tool choice")
    return None


# --- writing -------------------------------------------------------------------------------------

_TARGET_RULES = TargetRules(begins_with_user=True, ends_with_user=True)


def write(neutral: NeutralRequest, target: ConversionTarget, log: ConversionLog) -> Any:
    """A body whose ``input`` is a list of steps."""
    shaped = ordered(neutral, _TARGET_RULES, log)
    known = {name: key for key, name in _BODY_SETTINGS.items()}
    body = write_settings(neutral, {**known, **_IN_CONFIG}, log)
    config = {key: body.pop(key) for key in _CONFIG if key in body}
    head = [part.text for turn in shaped.head for part in turn.parts if isinstance(part, TextPart)]
    if head:
        body["system_instruction"] = "\n\n".join(head)
    names = {call.id: call.name for call in neutral.calls}
    body["input"] = [
        item for step in shaped.steps for item in _write_step(step, names, target, log)
    ]
    tools = tools_for(neutral, _TARGET_RULES, log)
    if tools:
        body["tools"] = [_write_tool(tool, target) for tool in tools]
    if choice := choice_for(neutral, tools, log):
        config["tool_choice"] = _write_choice(choice, target)
    if config:
        body["generation_config"] = config
    return body


def _write_step(
    step: OrderedTurn, names: dict[str, str], target: ConversionTarget, log: ConversionLog
) -> list[Any]:
    """The model's words and calls with the results behind them, or results and the user's words."""
    items: list[Any] = []
    words: list[Any] = []
    results = list(step.results)
    kind = "model_output" if step.role == "assistant" else "user_input"
    for part in step.parts:
        if isinstance(part, ResultPart):
            results.append(part)
        elif isinstance(part, CallPart):
            items += _spoken(kind, words)
            words = []
            items.append(
                {
                    "type": "function_call",
                    "id": target.ids(part.id),
                    "name": target.names(part.name),
                    "arguments": part.arguments,
                }
            )
        elif isinstance(part, (TextPart, MediaPart)):
            words.append(_write_content(part, log))
    written = [_write_result(result, names, target, log) for result in results]
    if step.role == "assistant":
        return [*items, *_spoken(kind, words), *written]
    return [*written, *_spoken(kind, words)]


def _spoken(kind: str, words: list[Any]) -> list[Any]:
    return [{"type": kind, "content": words}] if words else []


def _write_content(part: TextPart | MediaPart, log: ConversionLog) -> Any:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if part.data:
        return {"type": part.kind, "data": part.data, "mime_type": part.mime}
    if part.url.startswith(("http:", "https:", "gs:")):
        return {"type": part.kind, "uri": part.url, "mime_type": part.mime}
    return {"type": "text", "text": medium.named(part, log).text}


def _write_result(
    result: ResultPart, names: dict[str, str], target: ConversionTarget, log: ConversionLog
) -> Any:
    tool = result.name or names.get(result.id) or "tool"
    items = result.items
    value: Any = ""
    if len(items) == 1 and isinstance(items[0], TextPart):
        value = items[0].text
    elif len(items) == 1 and isinstance(items[0], JsonPart) and isinstance(items[0].value, dict):
        value = items[0].value
    elif items:
        value = [
            {"type": "text", "text": json_text(item, log)}
            if isinstance(item, JsonPart)
            else _write_content(item, log)
            for item in items
        ]
    step = {"type": "function_result", "call_id": target.ids(result.id)}
    step |= {"name": target.names(tool), "result": value}
    return {**step, "is_error": True} if result.error else step


def _write_tool(tool: Tool, target: ConversionTarget) -> Any:
    out: dict[str, Any] = {"type": "function", "name": target.names(tool.name)}
    out |= {"description": tool.description} if tool.description else {}
    return {**out, "parameters": tool.schema} if tool.schema is not None else out


def _write_choice(choice: ToolChoice, target: ConversionTarget) -> Any:
    if choice.mode != "tool":
        return choice.mode
    return {"allowed_tools": {"mode": "any", "tools": [target.names(choice.name)]}}
