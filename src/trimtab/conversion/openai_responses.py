"""OpenAI Responses: read into neutral turns, and written from them.

Knows the item types of this format.  What the server holds or ran itself (stored conversations,
searches, compaction) cannot go along and is listed.
"""

from __future__ import annotations

from typing import Any

from trimtab import paths
from trimtab.conversion import media as medium
from trimtab.conversion.neutral import (
    Account,
    Call,
    Choice,
    Json,
    Media,
    Neutral,
    Part,
    Reasoning,
    Result,
    Setting,
    Text,
    Tool,
    Turn,
    read_settings,
    write_settings,
)
from trimtab.conversion.outcome import arguments_of, flagged, json_text, unflagged_items
from trimtab.conversion.shape import Demands, Step, calls_last, choice_for, shape, tools_for
from trimtab.conversion.target import Alphabet, Target
from trimtab.model import Path
from trimtab.rules.responses_items import STRICT_ORDER

alphabet = Alphabet(longest_id=64)
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


def read(tree: Any, account: Account) -> Neutral:
    """A body, or a bare list of items."""
    if isinstance(tree, list):
        return Neutral(tuple(_turns(tree, (), account)), bare=True)
    settings: dict[str, Setting] = {}
    read_settings(tree, _SETTINGS, (), settings)
    account.rest(tree, _BODY, ())
    items = tree.get("input") or []
    items = [{"role": "user", "content": items}] if isinstance(items, str) else items
    turns = _turns(items, ("input",), account)
    if isinstance(tree.get("instructions"), str) and tree["instructions"]:
        path: Path = ("instructions",)
        turns.insert(0, Turn("system", (Text(tree["instructions"], path),), path, "instructions"))
    return Neutral(tuple(turns), _tools(tree, account), _choice(tree, account), settings)


def _turns(items: Any, base: Path, account: Account) -> list[Turn]:
    """One turn a message or result; what the model says and calls in a row is one turn."""
    turns: list[Turn] = []
    spoken: list[Part] = []
    for number, item in enumerate(items):
        path = (*base, number)
        role = item.get("role")
        if item.get("type") in (None, "message") and role in _ROLES:
            account.rest(item, _ITEM, path)
            parts = _parts(item.get("content"), (*path, "content"), account)
        else:
            part = _item(item, path, account)
            parts = [] if part is None else [part]
            role = "user" if isinstance(part, Result) else "assistant"
            if not parts:
                continue
        if _ROLES[role] == "assistant":
            spoken += parts
            continue
        if spoken:
            turns.append(Turn("assistant", tuple(spoken), spoken[0].path))
            spoken = []
        name = role if _ROLES[role] == "system" else ""
        turns.append(Turn(_ROLES[role], tuple(parts), path, name))
    if spoken:
        turns.append(Turn("assistant", tuple(spoken), spoken[0].path))
    return turns


def _item(item: Any, path: Path, account: Account) -> Part | None:
    kind = str(item.get("type"))
    call_id = str(item.get("call_id") or item.get("id") or "")
    if kind == "function_call":
        account.rest(item, _CALL, path)
        arguments = arguments_of(item.get("arguments"), (*path, "arguments"), account)
        return Call(call_id, str(item.get("name") or ""), arguments, path)
    if kind == "custom_tool_call":
        account.rest(item, _CALL, path)
        text = str(item.get("input") or "")
        return Call(call_id, str(item.get("name") or ""), text, path, custom=True)
    if kind in ("function_call_output", "custom_tool_call_output"):
        account.rest(item, _OUTPUT, path)
        return _result(item, call_id, path, account, custom=kind.startswith("custom"))
    if kind == "reasoning":
        summary = item.get("summary") or item.get("content") or ()
        texts = [str(part.get("text") or "") for part in summary if isinstance(part, dict)]
        return Reasoning("\n\n".join(texts), path)
    return _run_by_client(item, kind, path, account)


def _run_by_client(item: Any, kind: str, path: Path, account: Account) -> Part | None:
    """Shells, patches, the computer: a call of a tool of that name, and its result."""
    name = kind.removesuffix("_output").removesuffix("_call")
    known = name in _RUN_BY_CLIENT and item.get("execution") != "server"
    call_id = item.get("call_id") or (item.get("id") if name == "local_shell" else None)
    if not known or not call_id:
        why = "it stands on the server" if kind in ("item_reference", "compaction") else ""
        account.lose(path, kind, why)
        return None
    account.lose(path, kind, f"became a call of a tool {name!r}, or its result")
    rest = {key: value for key, value in item.items() if key not in _ITEM}
    if not kind.endswith("_output"):
        inner = rest.get("arguments", rest)
        return Call(str(call_id), name, arguments_of(inner, path, account), path)
    if "output" in rest:
        return _result(item, str(call_id), path, account)
    return Result(str(call_id), name, (Json(rest, path),), path)


def _result(
    item: Any, call_id: str, path: Path, account: Account, *, custom: bool = False
) -> Result:
    output, where = item.get("output"), (*path, "output")
    items: list[Text | Json | Media] = []
    if isinstance(output, str):
        items = [Text(output, where)] if output else []
    elif isinstance(output, list) and all(isinstance(part, dict) for part in output):
        for number, part in enumerate(output):
            items += _output_part(part, (*where, number), account)
    elif isinstance(output, dict) and output.get("type") == "computer_screenshot":
        items = [medium.from_url(str(output.get("image_url")), where, "image")]
    elif output is not None:
        items = [Json(output, where)]
    shown, error = unflagged_items(items)
    return Result(call_id, "", shown, path, error, custom)


def _output_part(part: Any, path: Path, account: Account) -> list[Any]:
    if str(part.get("type")) in ("input_text", "output_text", "text", "input_image", "input_file"):
        return list(_part(part, path, account))
    account.lose(path, str(part.get("type")), "carried as JSON")
    return [Json(part, path)]


def _parts(content: Any, path: Path, account: Account) -> list[Part]:
    if isinstance(content, str):
        return [Text(content, path)] if content else []
    parts: list[Part] = []
    for number, item in enumerate(content or ()):
        parts += _part(item, (*path, number), account)
    return parts


def _part(item: Any, path: Path, account: Account) -> list[Text | Media]:
    kind = item.get("type")
    account.rest(item, _PART | {"detail"}, path)
    if kind in ("input_text", "output_text", "text", "summary_text"):
        text = item.get("text") or ""
        return [Text(text, (*path, "text"))] if text else []
    if kind == "refusal":
        account.lose(path, "refusal", "carried as text")
        return [Text(item.get("refusal") or "", path)]
    stored = f"openai:{item['file_id']}" if item.get("file_id") else ""
    if kind == "input_image":
        if item.get("detail") not in (None, "auto"):
            account.lose((*path, "detail"), "detail")
        if item.get("image_url"):
            return [medium.from_url(item["image_url"], path, "image")]
        return [Media("image", "image/png", path, file=stored)]
    if kind == "input_file":
        return [_file(item, stored, path)]
    account.lose(path, str(kind))
    return []


def _file(item: Any, stored: str, path: Path) -> Media:
    name = str(item.get("filename") or "")
    data = str(item.get("file_data") or "")
    if data.startswith("data:"):
        return medium.from_url(data, path, "document", name=name)
    if item.get("file_url"):
        return medium.from_url(item["file_url"], path, "document", name=name)
    mime = medium.guess(name, "application/pdf")
    return Media("document", mime, path, data=medium.base64_of(data), file=stored, name=name)


def _tools(tree: Any, account: Account) -> tuple[Tool, ...]:
    tools = []
    for number, tool in enumerate(tree.get("tools") or ()):
        path = ("tools", number)
        if tool.get("type") not in ("function", "custom") or not tool.get("name"):
            account.lose(path, str(tool.get("type")), "a tool of the server")
            continue
        account.rest(tool, _TOOL, path)
        custom = None
        if tool["type"] == "custom":
            custom = {key: value for key, value in tool.items() if key != "type"}
        about, schema = str(tool.get("description") or ""), tool.get("parameters")
        tools.append(Tool(tool["name"], about, schema, path, tool.get("strict"), custom))
    return tuple(tools)


def _choice(tree: Any, account: Account) -> Choice | None:
    value, path = tree.get("tool_choice"), ("tool_choice",)
    if value in ("auto", "none"):
        return Choice(value, path)
    if value == "required":
        return Choice("any", path)
    if isinstance(value, dict):
        if value.get("type") in ("function", "custom"):
            return Choice("tool", path, str(value.get("name")))
        account.lose(path, "tool choice")
    return None


# --- writing -------------------------------------------------------------------------------------

_DEMANDS = Demands(late_system=True, takes_custom=True, unique_ids=True)


def write(neutral: Neutral, target: Target, account: Account) -> Any:
    """A body with ``input`` items; a head of one text becomes the instructions."""
    shaped = shape(neutral, _DEMANDS, account)
    body = write_settings(neutral, _WRITTEN, account)
    head = list(shaped.head)
    first = head[0].parts[0] if head and len(head[0].parts) == 1 else None
    alone = bool(head) and (len(head) == 1 or head[0].name == "instructions")
    if alone and isinstance(first, Text) and not neutral.bare:
        body["instructions"] = first.text
        head = head[1:]
    items: list[Any] = []
    for turn in head:
        items.append(_message(Step("system", list(turn.parts), turn.path, turn.name), account))
    custom = {p.id for s in shaped.steps for p in s.parts if isinstance(p, Call) and p.custom}
    for step in shaped.steps:
        if step.role == "assistant":
            if target.is_of(STRICT_ORDER):  # it takes nothing between a call and its output
                others, calls = calls_last(step, account)
                step.parts = [*others, *calls]
            items += _model_items(step, custom, target, account)
            continue
        results = [part for part in step.parts if isinstance(part, Result)]
        items += [_write_result(result, custom, target, account) for result in results]
        if len(results) < len(step.parts):
            items.append(_message(step, account))
    body["input"] = items
    tools = tools_for(neutral, _DEMANDS, account)
    if tools:
        body["tools"] = [_write_tool(tool, target) for tool in tools]
    if choice := choice_for(neutral, tools, account):
        body["tool_choice"] = _write_choice(choice, target)
    return body


def _message(step: Step, account: Account) -> Any:
    role = step.name if step.name in ("developer", "system") else step.role
    spoken = [part for part in step.parts if isinstance(part, (Text, Media))]
    return {
        "type": "message", "role": role, "content": [_write_part(p, account) for p in spoken]
    }  # fmt: skip


def _write_part(part: Text | Media, account: Account) -> Any:
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    owner, _, stored = part.file.partition(":")
    there = part.data or part.url.startswith(("http:", "https:"))
    if part.kind == "image" and there:
        return {"type": "input_image", "detail": "auto", "image_url": medium.data_url(part)}
    if part.kind == "image" and owner == "openai":
        return {"type": "input_image", "detail": "auto", "file_id": stored}
    named = {"filename": part.name} if part.name else {}
    if part.kind == "document" and part.data:
        named = named or {"filename": f"document.{medium.BEDROCK.get(part.mime, 'bin')}"}
        return {"type": "input_file", **named, "file_data": medium.data_url(part)}
    if part.kind == "document" and there:
        return {"type": "input_file", "file_url": part.url}
    if part.kind == "document" and owner == "openai":
        return {"type": "input_file", "file_id": stored}
    return {"type": "input_text", "text": medium.named(part, account).text}


def _model_items(step: Step, custom: set[str], target: Target, account: Account) -> list[Any]:
    items: list[Any] = []
    for part in step.parts:
        if isinstance(part, Call):
            items.append(_write_call(part, target))
            continue
        if isinstance(part, Media):
            part = medium.named(part, account)
        if not isinstance(part, Text):
            continue
        # a plain string: the API's types have lists of output parts only for stored messages
        items.append({"type": "message", "role": "assistant", "content": part.text})
    return items + [_write_result(result, custom, target, account) for result in step.results]


def _write_call(call: Call, target: Target) -> Any:
    name, call_id = target.names(call.name), target.ids(call.id)
    if call.custom:
        return {"type": "custom_tool_call", "call_id": call_id, "name": name,
                "input": call.arguments}  # fmt: skip
    return {"type": "function_call", "call_id": call_id, "name": name,
            "arguments": paths.dump(call.arguments)}  # fmt: skip


def _write_result(result: Result, custom: set[str], target: Target, account: Account) -> Any:
    parts: list[Any] = []
    for item in result.items:
        text = Text(json_text(item, account), item.path) if isinstance(item, Json) else item
        parts.append(_write_part(text, account))
    if result.error:
        if parts and parts[0]["type"] == "input_text":
            parts[0]["text"] = flagged(parts[0]["text"])
        else:
            parts.insert(0, {"type": "input_text", "text": flagged("")})
    alone = len(parts) == 1 and parts[0]["type"] == "input_text"
    kind = "custom_tool_call_output" if result.id in custom else "function_call_output"
    output = parts[0]["text"] if alone else parts or ""
    return {"type": kind, "call_id": target.ids(result.id), "output": output}


def _write_tool(tool: Tool, target: Target) -> Any:
    if tool.custom is not None:
        return {"type": "custom", **tool.custom}
    out: dict[str, Any] = {"type": "function", "name": target.names(tool.name)}
    out |= {"description": tool.description} if tool.description else {}
    # strict is on by default here, and off with every other provider
    return {**out, "parameters": tool.schema, "strict": bool(tool.strict)}


def _write_choice(choice: Choice, target: Target) -> Any:
    if choice.mode == "tool":
        return {"type": "function", "name": target.names(choice.name)}
    return "required" if choice.mode == "any" else choice.mode
