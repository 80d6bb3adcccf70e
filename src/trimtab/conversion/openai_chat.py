"""Reads OpenAI Chat Completions into a neutral request, and writes one.

Includes the keys of other servers that speak this format.  It has no error flag and no images in
tool results.
"""

from __future__ import annotations

from typing import Any

from trimtab.conversion import media as medium
from trimtab.conversion.cache_control import mark_of, with_mark
from trimtab.conversion.chat_media import read_media, write_media
from trimtab.conversion.ids import ConversionTarget, NameRules, Ordinals
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
from trimtab.conversion.tool_payloads import arguments_of, flagged, item_texts, unflagged_items
from trimtab.conversion.turn_order import (
    OrderedTurn,
    TargetRules,
    calls_last,
    choice_for,
    ordered,
    tools_for,
)
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Path

name_rules = NameRules(longest_id=40)
"""Ids of at most 40 chars (quoted refusal: "string too long … maximum length 40")."""

_ROLES: dict[str, Any] = {"system": "system", "developer": "system", "user": "user"}
_ROLES |= {"assistant": "assistant", "tool": "user", "function": "user"}
_SETTINGS = {
    "model": "model", "max_completion_tokens": "max_output", "max_tokens": "max_output",
    "temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "stop": "stop",
    "stream": "stream", "seed": "seed", "parallel_tool_calls": "parallel",
}  # fmt: skip
_WRITTEN = {
    "model": "model", "max_output": "max_completion_tokens", "temperature": "temperature",
    "top_p": "top_p", "stop": "stop", "stream": "stream", "seed": "seed",
    "parallel": "parallel_tool_calls",
}  # fmt: skip
_BODY = frozenset(_SETTINGS) | {"messages", "tools", "functions", "tool_choice", "function_call"}
_MESSAGE = frozenset(
    ("role", "content", "tool_calls", "function_call", "tool_call_id", "refusal", "is_error",
     "status", "reasoning", "reasoning_content", "reasoning_details", "cache_control")
)  # fmt: skip
_RESULT = _MESSAGE | {"name"}
_CALL = frozenset(("id", "type", "function", "custom", "index", "cache_control"))
_CALLED = frozenset(("name", "arguments", "input"))
_PART = frozenset(("type", "text", "cache_control", "refusal", "image_url", "file", "input_audio"))
_FUNCTION = frozenset(("name", "description", "parameters", "strict"))


# --- reading -------------------------------------------------------------------------------------


def read(tree: Any, log: ConversionLog) -> NeutralRequest:
    """A body, or a bare list of messages."""
    if isinstance(tree, list):
        return NeutralRequest(_turns(tree, (), log), bare=True)
    settings: dict[str, Setting] = {}
    read_settings(tree, _SETTINGS, (), settings)
    if isinstance(tree.get("stop"), str):
        settings["stop"] = Setting([tree["stop"]], ("stop",))
    log.rest(tree, _BODY, ())
    return NeutralRequest(
        _turns(tree.get("messages") or [], ("messages",), log),
        tuple(_tools(tree, log)),
        _choice(tree, log),
        settings,
    )


def _turns(messages: Any, base: Path, log: ConversionLog) -> tuple[NeutralTurn, ...]:
    unnamed = Ordinals()
    turns = []
    for number, message in enumerate(messages):
        path = (*base, number)
        role = message.get("role")
        if role in ("tool", "function"):
            parts: list[Part] = [_result(message, path, unnamed, log)]
            log.rest(message, _RESULT, path)
        else:
            parts = _parts(message, path, log)
            if role == "assistant":
                parts = [*_reasoning(message, path), *parts]
                parts += _calls(message, path, unnamed, log)
            log.rest(message, _MESSAGE, path)
        if role not in _ROLES:
            log.lose(path, "role", f"the role {role} became user")
        name = str(role) if _ROLES.get(role) == "system" else ""
        turns.append(NeutralTurn(_ROLES.get(role, "user"), tuple(parts), path, name))
    return tuple(turns)


def _parts(message: Any, path: Path, log: ConversionLog) -> list[Part]:
    content, mark = message.get("content"), mark_of(message)
    parts: list[Part] = []
    if isinstance(content, str):
        parts = [TextPart(content, (*path, "content"), mark)] if content else []
    elif isinstance(content, list):
        for number, item in enumerate(content):
            part = _part(item, (*path, "content", number), log)
            parts += [part] if part is not None else []
    if isinstance(message.get("refusal"), str):
        parts.append(_refusal(message["refusal"], (*path, "refusal"), log))
    return parts


def _refusal(text: str, path: Path, log: ConversionLog) -> TextPart:
    log.lose(path, "refusal", "carried as text")
    return TextPart(text, path)


def _part(item: Any, path: Path, log: ConversionLog) -> TextPart | MediaPart | None:
    if isinstance(item, str):
        return TextPart(item, path)
    kind = item.get("type")
    mark = mark_of(item)
    if isinstance(item.get("text"), str) and kind in ("text", "input_text", "output_text"):
        log.rest(item, _PART, path)
        return TextPart(item["text"], (*path, "text"), mark)
    if kind == "refusal" and isinstance(item.get("refusal"), str):
        return _refusal(item["refusal"], path, log)
    media = read_media(item, kind, path, log)
    if media is None:
        log.lose(path, str(kind))
        return None
    log.rest(item, _PART, path)
    return media._replace(mark=mark)


def _reasoning(message: Any, path: Path) -> list[Part]:
    parts: list[Part] = []
    for key in ("reasoning_content", "reasoning"):
        if isinstance(message.get(key), str) and message[key]:
            parts.append(ReasoningPart(message[key], (*path, key), sealed=False))
    if message.get("reasoning_details"):
        parts.append(ReasoningPart("", (*path, "reasoning_details")))
    return parts


def _calls(message: Any, path: Path, unnamed: Ordinals, log: ConversionLog) -> list[Part]:
    calls: list[Part] = []
    for number, call in enumerate(message.get("tool_calls") or ()):
        where = (*path, "tool_calls", number)
        custom = call.get("type") == "custom"
        inner = call.get("custom" if custom else "function") or {}
        name = str(inner.get("name") or "")
        at = (*where, "custom", "input") if custom else (*where, "function", "arguments")
        value = inner.get(at[-1])
        if not custom:
            value = arguments_of(value, at, log)
        call_id = call.get("id") or unnamed.call(name)
        calls.append(CallPart(call_id, name, value, where, custom, mark_of(call)))
        log.rest(call, _CALL, where)
        log.rest(inner, _CALLED, (*where, at[-2]))
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        where, name = (*path, "function_call"), str(legacy.get("name") or "")
        value = arguments_of(legacy.get("arguments"), (*where, "arguments"), log)
        calls.append(CallPart(unnamed.call(name), name, value, where))
    return calls


def _result(message: Any, path: Path, unnamed: Ordinals, log: ConversionLog) -> ResultPart:
    items: list[Any] = [
        p for p in _parts(message, path, log) if isinstance(p, (TextPart, MediaPart))
    ]
    contents, error = unflagged_items(items)
    error = error or message.get("is_error") is True or message.get("status") == "error"
    name = str(message.get("name") or "")
    call_id = message.get("tool_call_id") or unnamed.result(name)
    mark = next(
        (item.mark for item in contents if not isinstance(item, JsonPart) and item.mark), None
    )
    mark = mark_of(message) if mark is None else mark
    return ResultPart(call_id, name, contents, path, error, mark=mark)


def _tools(tree: Any, log: ConversionLog) -> list[Tool]:
    tools = []
    for key in ("tools", "functions"):
        for number, tool in enumerate(tree.get(key) or ()):
            path = (key, number)
            inner = tool if key == "functions" else tool.get("function") or tool.get("custom")
            if not isinstance(inner, dict) or not inner.get("name"):
                log.lose(path, str(tool.get("type")), "a tool of the server")
                continue
            log.rest(inner, _FUNCTION | {"format"}, path)
            custom = _custom(inner) if tool.get("type") == "custom" else None
            tools.append(
                Tool(
                    inner["name"], inner.get("description") or "", inner.get("parameters"), path,
                    inner.get("strict"), custom, mark_of(tool),
                )
            )  # fmt: skip
    return tools


def _custom(inner: Any) -> Any:
    """A free-form tool with its grammar spelled flat, as the newer API has it."""
    form = inner.get("format")
    if isinstance(form, dict) and isinstance(form.get("grammar"), dict):
        return {**inner, "format": {"type": form.get("type"), **form["grammar"]}}
    return inner


def _choice(tree: Any, log: ConversionLog) -> ToolChoice | None:
    for key in ("tool_choice", "function_call"):
        value, path = tree.get(key), (key,)
        if value in ("auto", "none"):
            return ToolChoice(value, path)
        if value in ("required", "any"):
            return ToolChoice("any", path)
        if isinstance(value, dict):
            inner = value.get("function") or value.get("custom") or value
            if isinstance(inner, dict) and isinstance(inner.get("name"), str):
                return ToolChoice("tool", path, inner["name"])
            log.lose(path, key)
    return None


# --- writing -------------------------------------------------------------------------------------


def write(neutral: NeutralRequest, target: ConversionTarget, log: ConversionLog) -> Any:
    """A body with ``messages`` first after the model."""
    target_rules = TargetRules(
        late_system=True,
        takes_custom=True,
        takes_marks=target.is_of("claude"),
        takes_open_reasoning=target.is_of("deepseek", "kimi", "moonshot"),
    )
    shaped = ordered(neutral, target_rules, log)
    messages: list[Any] = []
    for turn in shaped.head:
        step = OrderedTurn("system", list(turn.parts), turn.path, turn.name)
        messages.append(_plain(step, log))
    for step in shaped.steps:
        if step.role == "assistant":
            messages += _model_turn(step, target, log)
        else:
            messages += _user_turn(step, target, log)
    body = write_settings(neutral, _WRITTEN, log)
    body["messages"] = messages
    tools = tools_for(neutral, target_rules, log)
    if tools:
        body["tools"] = [_write_tool(tool, target) for tool in tools]
    choice = choice_for(neutral, tools, log)
    if choice:
        body["tool_choice"] = _write_choice(choice, target)
    return body


def _plain(step: OrderedTurn, log: ConversionLog) -> Any:
    role = "developer" if step.name == "developer" else step.role
    return {"role": role, "content": _content(step.parts, log)}


def _content(parts: list[Part], log: ConversionLog) -> Any:
    if len(parts) == 1 and isinstance(parts[0], TextPart) and parts[0].mark is None:
        return parts[0].text
    return [_write_part(part, log) for part in parts if isinstance(part, (TextPart, MediaPart))]


def _write_part(part: TextPart | MediaPart, log: ConversionLog) -> Any:
    out: Any = None
    if isinstance(part, MediaPart):
        out = write_media(part)
        if out is None:
            part = medium.named(part, log)
    if isinstance(part, TextPart):
        out = {"type": "text", "text": part.text}
    return with_mark(out, part.mark)


def _model_turn(step: OrderedTurn, target: ConversionTarget, log: ConversionLog) -> list[Any]:
    others, calls = calls_last(step, log)
    spoken = [part for part in others if not isinstance(part, ReasoningPart)]
    texts: list[Part] = [
        medium.named(part, log) if isinstance(part, MediaPart) else part for part in spoken
    ]
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if texts:
        message["content"] = _content(texts, log)
    thought = [part.text for part in others if isinstance(part, ReasoningPart)]
    if thought:
        message["reasoning_content"] = "\n\n".join(thought)
    if calls:
        message["tool_calls"] = [_write_call(call, target) for call in calls]
    elif not texts:
        message["content"] = ""
    moved: list[Part] = []
    messages = [message, *(_write_result(r, moved, target, log) for r in step.results)]
    return [*messages, *_moved(moved, log)]


def _user_turn(step: OrderedTurn, target: ConversionTarget, log: ConversionLog) -> list[Any]:
    results = [part for part in step.parts if isinstance(part, ResultPart)]
    if not results:
        return [_plain(step, log)]
    moved: list[Part] = []
    messages = [_write_result(result, moved, target, log) for result in results]
    moved += [part for part in step.parts if not isinstance(part, ResultPart)]
    return messages + _moved(moved, log)


def _moved(parts: list[Part], log: ConversionLog) -> list[Any]:
    return [{"role": "user", "content": _content(parts, log)}] if parts else []


def _write_call(call: CallPart, target: ConversionTarget) -> Any:
    name, call_id = target.names(call.name), target.ids(call.id)
    if call.custom:
        inner = {"name": name, "input": call.arguments}
        out: dict[str, Any] = {"id": call_id, "type": "custom", "custom": inner}
    else:
        inner = {"name": name, "arguments": paths.dump(call.arguments)}
        out = {"id": call_id, "type": "function", "function": inner}
    return with_mark(out, call.mark)


def _write_result(
    result: ResultPart, moved: list[Part], target: ConversionTarget, log: ConversionLog
) -> Any:
    texts, media = item_texts(result.items, log)
    for item in media:
        why = "moved behind the results of its turn, into a user message"
        log.lose(item.path, f"{item.kind} in a result", why)
        label = f"[{item.kind} of the result of {result.name or 'a tool'}]"
        moved += [TextPart(label, item.path), item]
    if result.error:
        texts[:1] = [flagged(texts[0] if texts else "")]
    content: Any = texts[0] if len(texts) == 1 else [{"type": "text", "text": t} for t in texts]
    if not texts:
        content = "[see the next user message]" if media else ""
    elif result.mark is not None:
        content = [{"type": "text", "text": text} for text in texts]
        with_mark(content[-1], result.mark)
    return {"role": "tool", "tool_call_id": target.ids(result.id), "content": content}


def _write_tool(tool: Tool, target: ConversionTarget) -> Any:
    if tool.custom is not None:
        inner = dict(tool.custom)
        if (inner.get("format") or {}).get("type") == "grammar":
            inner["format"] = {"type": "grammar", "grammar": {
                key: value for key, value in inner["format"].items() if key != "type"}}  # fmt: skip
        return {"type": "custom", "custom": inner}
    inner = {"name": target.names(tool.name)}
    inner |= {"description": tool.description} if tool.description else {}
    inner["parameters"] = tool.schema
    inner |= {"strict": tool.strict} if tool.strict is not None else {}
    return with_mark({"type": "function", "function": inner}, tool.mark)


def _write_choice(choice: ToolChoice, target: ConversionTarget) -> Any:
    if choice.mode == "tool":
        return {"type": "function", "function": {"name": target.names(choice.name)}}
    return "required" if choice.mode == "any" else choice.mode
