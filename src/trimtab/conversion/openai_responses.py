"""Reads OpenAI Responses into a neutral request, and writes one.

What the server holds or ran itself (stored conversations, searches, compaction) cannot be carried
over and is listed.
"""

from __future__ import annotations

from typing import Any

from trimtab.conversion import media as medium
from trimtab.conversion.ids import ConversionTarget, NameRules
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
from trimtab.conversion.tool_payloads import arguments_of, flagged, json_text, unflagged_items
from trimtab.conversion.turn_order import (
    OrderedTurn,
    TargetRules,
    calls_last,
    choice_for,
    ordered,
    tools_for,
)
from trimtab.formats.openai_responses.item_rules import STRICT_ORDER
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Path

name_rules = NameRules(longest_id=64)
"""call_id at most 64 chars (quoted refusal)."""

_ROLES: dict[str, Any] = {"system": "system", "developer": "system", "user": "user"}
_ROLES |= {"assistant": "assistant"}
_SETTINGS = {
    "model": "model", "max_output_tokens": "max_output", "temperature": "temperature",
    "top_p": "top_p", "stream": "stream", "parallel_tool_calls": "parallel",
}  # fmt: skip
_WRITTEN = {name: key for key, name in _SETTINGS.items()}
_BODY = frozenset(_SETTINGS) | {"input", "instructions", "tools", "tool_choice"}
_ITEM = frozenset(("type", "role", "content", "id", "status", "phase", "call_id"))
"""Keys that say nothing to another provider: ids and states of stored items among them."""
_CALL = _ITEM | {"name", "arguments", "input"}
_OUTPUT = _ITEM | {"output"}
_PART = frozenset(("type", "text", "refusal", "image_url", "file_data", "file_url", "file_id",
                   "filename", "input_audio", "logprobs"))  # fmt: skip
_TOOL = frozenset(("type", "name", "description", "parameters", "strict", "format"))
_RUN_BY_CLIENT = ("local_shell", "shell", "apply_patch", "computer", "program", "tool_search")

# --- reading -------------------------------------------------------------------------------------


def read(tree: Any, log: ConversionLog) -> NeutralRequest:
    """A body, or a bare list of items."""
    if isinstance(tree, list):
        return NeutralRequest(tuple(_turns(tree, (), log)), bare=True)
    settings: dict[str, Setting] = {}
    read_settings(tree, _SETTINGS, (), settings)
    log.rest(tree, _BODY, ())
    items = tree.get("input") or []
    items = [{"role": "user", "content": items}] if isinstance(items, str) else items
    turns = _turns(items, ("input",), log)
    if isinstance(tree.get("instructions"), str) and tree["instructions"]:
        path: Path = ("instructions",)
        turns.insert(
            0, NeutralTurn("system", (TextPart(tree["instructions"], path),), path, "instructions")
        )
    return NeutralRequest(tuple(turns), _tools(tree, log), _choice(tree, log), settings)


def _turns(items: Any, base: Path, log: ConversionLog) -> list[NeutralTurn]:
    """One turn a message or result; consecutive texts and calls of the model are one turn."""
    turns: list[NeutralTurn] = []
    spoken: list[Part] = []
    for number, item in enumerate(items):
        path = (*base, number)
        role = item.get("role")
        if item.get("type") in (None, "message") and role in _ROLES:
            log.rest(item, _ITEM, path)
            parts = _parts(item.get("content"), (*path, "content"), log)
        else:
            part = _item(item, path, log)
            parts = [] if part is None else [part]
            role = "user" if isinstance(part, ResultPart) else "assistant"
            if not parts:
                continue
        if _ROLES[role] == "assistant":
            spoken += parts
            continue
        if spoken:
            turns.append(NeutralTurn("assistant", tuple(spoken), spoken[0].path))
            spoken = []
        name = role if _ROLES[role] == "system" else ""
        turns.append(NeutralTurn(_ROLES[role], tuple(parts), path, name))
    if spoken:
        turns.append(NeutralTurn("assistant", tuple(spoken), spoken[0].path))
    return turns


def _item(item: Any, path: Path, log: ConversionLog) -> Part | None:
    kind = str(item.get("type"))
    call_id = str(item.get("call_id") or item.get("id") or "")
    if kind == "function_call":
        log.rest(item, _CALL, path)
        arguments = arguments_of(item.get("arguments"), (*path, "arguments"), log)
        return CallPart(call_id, str(item.get("name") or ""), arguments, path)
    if kind == "custom_tool_call":
        log.rest(item, _CALL, path)
        text = str(item.get("input") or "")
        return CallPart(call_id, str(item.get("name") or ""), text, path, custom=True)
    if kind in ("function_call_output", "custom_tool_call_output"):
        log.rest(item, _OUTPUT, path)
        return _result(item, call_id, path, log, custom=kind.startswith("custom"))
    if kind == "reasoning":
        summary = item.get("summary") or item.get("content") or ()
        texts = [str(part.get("text") or "") for part in summary if isinstance(part, dict)]
        return ReasoningPart("\n\n".join(texts), path)
    return _run_by_client(item, kind, path, log)


def _run_by_client(item: Any, kind: str, path: Path, log: ConversionLog) -> Part | None:
    """Shells, patches, the computer: a call of a tool of that name, and its result."""
    name = kind.removesuffix("_output").removesuffix("_call")
    by_client = name in _RUN_BY_CLIENT and item.get("execution") != "server"
    call_id = item.get("call_id") or (item.get("id") if name == "local_shell" else None)
    if not by_client or not call_id:
        why = "it stands on the server" if kind in ("item_reference", "compaction") else ""
        log.lose(path, kind, why)
        return None
    log.lose(path, kind, f"became a call of a tool {name!r}, or its result")
    rest = {key: value for key, value in item.items() if key not in _ITEM}
    if not kind.endswith("_output"):
        inner = rest.get("arguments", rest)
        return CallPart(str(call_id), name, arguments_of(inner, path, log), path)
    if "output" in rest:
        return _result(item, str(call_id), path, log)
    return ResultPart(str(call_id), name, (JsonPart(rest, path),), path)


def _result(
    item: Any, call_id: str, path: Path, log: ConversionLog, *, custom: bool = False
) -> ResultPart:
    output, where = item.get("output"), (*path, "output")
    items: list[TextPart | JsonPart | MediaPart] = []
    if isinstance(output, str):
        items = [TextPart(output, where)] if output else []
    elif isinstance(output, list) and all(isinstance(part, dict) for part in output):
        for number, part in enumerate(output):
            items += _output_part(part, (*where, number), log)
    elif isinstance(output, dict) and output.get("type") == "computer_screenshot":
        items = [medium.from_url(str(output.get("image_url")), where, "image")]
    elif output is not None:
        items = [JsonPart(output, where)]
    contents, error = unflagged_items(items)
    return ResultPart(call_id, "", contents, path, error, custom)


def _output_part(part: Any, path: Path, log: ConversionLog) -> list[Any]:
    if str(part.get("type")) in ("input_text", "output_text", "text", "input_image", "input_file"):
        return list(_part(part, path, log))
    log.lose(path, str(part.get("type")), "carried as JSON")
    return [JsonPart(part, path)]


def _parts(content: Any, path: Path, log: ConversionLog) -> list[Part]:
    if isinstance(content, str):
        return [TextPart(content, path)] if content else []
    parts: list[Part] = []
    for number, item in enumerate(content or ()):
        parts += _part(item, (*path, number), log)
    return parts


def _part(item: Any, path: Path, log: ConversionLog) -> list[TextPart | MediaPart]:
    kind = item.get("type")
    log.rest(item, _PART | {"detail"}, path)
    if kind in ("input_text", "output_text", "text", "summary_text"):
        text = item.get("text") or ""
        return [TextPart(text, (*path, "text"))] if text else []
    if kind == "refusal":
        log.lose(path, "refusal", "carried as text")
        return [TextPart(item.get("refusal") or "", path)]
    stored = f"openai:{item['file_id']}" if item.get("file_id") else ""
    if kind == "input_image":
        if item.get("detail") not in (None, "auto"):
            log.lose((*path, "detail"), "detail")
        if item.get("image_url"):
            return [medium.from_url(item["image_url"], path, "image")]
        return [MediaPart("image", "image/png", path, file=stored)]
    if kind == "input_file":
        return [_file(item, stored, path)]
    log.lose(path, str(kind))
    return []


def _file(item: Any, stored: str, path: Path) -> MediaPart:
    name = str(item.get("filename") or "")
    data = str(item.get("file_data") or "")
    if data.startswith("data:"):
        return medium.from_url(data, path, "document", name=name)
    if item.get("file_url"):
        return medium.from_url(item["file_url"], path, "document", name=name)
    mime = medium.guess(name, "application/pdf")
    return MediaPart("document", mime, path, data=medium.base64_of(data), file=stored, name=name)


def _tools(tree: Any, log: ConversionLog) -> tuple[Tool, ...]:
    tools = []
    for number, tool in enumerate(tree.get("tools") or ()):
        path = ("tools", number)
        if tool.get("type") not in ("function", "custom") or not tool.get("name"):
            log.lose(path, str(tool.get("type")), "a tool of the server")
            continue
        log.rest(tool, _TOOL, path)
        custom = None
        if tool["type"] == "custom":
            custom = {key: value for key, value in tool.items() if key != "type"}
        about, schema = str(tool.get("description") or ""), tool.get("parameters")
        tools.append(Tool(tool["name"], about, schema, path, tool.get("strict"), custom))
    return tuple(tools)


def _choice(tree: Any, log: ConversionLog) -> ToolChoice | None:
    value, path = tree.get("tool_choice"), ("tool_choice",)
    if value in ("auto", "none"):
        return ToolChoice(value, path)
    if value == "required":
        return ToolChoice("any", path)
    if isinstance(value, dict):
        if value.get("type") in ("function", "custom"):
            return ToolChoice("tool", path, str(value.get("name")))
        log.lose(path, "tool choice")
    return None


# --- writing -------------------------------------------------------------------------------------

_TARGET_RULES = TargetRules(late_system=True, takes_custom=True, unique_ids=True)


def write(neutral: NeutralRequest, target: ConversionTarget, log: ConversionLog) -> Any:
    """A body with ``input`` items; a head of one text becomes the instructions."""
    shaped = ordered(neutral, _TARGET_RULES, log)
    body = write_settings(neutral, _WRITTEN, log)
    head = list(shaped.head)
    first = head[0].parts[0] if head and len(head[0].parts) == 1 else None
    alone = bool(head) and (len(head) == 1 or head[0].name == "instructions")
    if alone and isinstance(first, TextPart) and not neutral.bare:
        body["instructions"] = first.text
        head = head[1:]
    items: list[Any] = []
    for turn in head:
        items.append(_message(OrderedTurn("system", list(turn.parts), turn.path, turn.name), log))
    custom = {p.id for s in shaped.steps for p in s.parts if isinstance(p, CallPart) and p.custom}
    for step in shaped.steps:
        if step.role == "assistant":
            if target.is_of(STRICT_ORDER):  # it takes nothing between a call and its output
                others, calls = calls_last(step, log)
                step.parts = [*others, *calls]
            items += _model_items(step, custom, target, log)
            continue
        results = [part for part in step.parts if isinstance(part, ResultPart)]
        items += [_write_result(result, custom, target, log) for result in results]
        if len(results) < len(step.parts):
            items.append(_message(step, log))
    body["input"] = items
    tools = tools_for(neutral, _TARGET_RULES, log)
    if tools:
        body["tools"] = [_write_tool(tool, target) for tool in tools]
    if choice := choice_for(neutral, tools, log):
        body["tool_choice"] = _write_choice(choice, target)
    return body


def _message(step: OrderedTurn, log: ConversionLog) -> Any:
    role = step.name if step.name in ("developer", "system") else step.role
    spoken = [part for part in step.parts if isinstance(part, (TextPart, MediaPart))]
    return {
        "type": "message", "role": role, "content": [_write_part(p, log) for p in spoken]
    }  # fmt: skip


def _write_part(part: TextPart | MediaPart, log: ConversionLog) -> Any:
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    owner, _, stored = part.file.partition(":")
    has_address = part.data or part.url.startswith(("http:", "https:"))
    if part.kind == "image" and has_address:
        return {"type": "input_image", "detail": "auto", "image_url": medium.data_url(part)}
    if part.kind == "image" and owner == "openai":
        return {"type": "input_image", "detail": "auto", "file_id": stored}
    named = {"filename": part.name} if part.name else {}
    if part.kind == "document" and part.data:
        named = named or {"filename": f"document.{medium.BEDROCK.get(part.mime, 'bin')}"}
        return {"type": "input_file", **named, "file_data": medium.data_url(part)}
    if part.kind == "document" and has_address:
        return {"type": "input_file", "file_url": part.url}
    if part.kind == "document" and owner == "openai":
        return {"type": "input_file", "file_id": stored}
    return {"type": "input_text", "text": medium.named(part, log).text}


def _model_items(
    step: OrderedTurn, custom: set[str], target: ConversionTarget, log: ConversionLog
) -> list[Any]:
    items: list[Any] = []
    for part in step.parts:
        if isinstance(part, CallPart):
            items.append(_write_call(part, target))
            continue
        if isinstance(part, MediaPart):
            part = medium.named(part, log)
        if not isinstance(part, TextPart):
            continue
        # a plain string: the API's types have lists of output parts only for stored messages
        items.append({"type": "message", "role": "assistant", "content": part.text})
    return items + [_write_result(result, custom, target, log) for result in step.results]


def _write_call(call: CallPart, target: ConversionTarget) -> Any:
    name, call_id = target.names(call.name), target.ids(call.id)
    if call.custom:
        return {"type": "custom_tool_call", "call_id": call_id, "name": name,
                "input": call.arguments}  # fmt: skip
    return {"type": "function_call", "call_id": call_id, "name": name,
            "arguments": paths.dump(call.arguments)}  # fmt: skip


def _write_result(
    result: ResultPart, custom: set[str], target: ConversionTarget, log: ConversionLog
) -> Any:
    parts: list[Any] = []
    for item in result.items:
        text = TextPart(json_text(item, log), item.path) if isinstance(item, JsonPart) else item
        parts.append(_write_part(text, log))
    if result.error:
        if parts and parts[0]["type"] == "input_text":
            parts[0]["text"] = flagged(parts[0]["text"])
        else:
            parts.insert(0, {"type": "input_text", "text": flagged("")})
    alone = len(parts) == 1 and parts[0]["type"] == "input_text"
    kind = "custom_tool_call_output" if result.id in custom else "function_call_output"
    output = parts[0]["text"] if alone else parts or ""
    return {"type": kind, "call_id": target.ids(result.id), "output": output}


def _write_tool(tool: Tool, target: ConversionTarget) -> Any:
    if tool.custom is not None:
        return {"type": "custom", **tool.custom}
    out: dict[str, Any] = {"type": "function", "name": target.names(tool.name)}
    out |= {"description": tool.description} if tool.description else {}
    # strict is on by default here, and off with every other provider
    return {**out, "parameters": tool.schema, "strict": bool(tool.strict)}


def _write_choice(choice: ToolChoice, target: ConversionTarget) -> Any:
    if choice.mode == "tool":
        return {"type": "function", "name": target.names(choice.name)}
    return "required" if choice.mode == "any" else choice.mode
