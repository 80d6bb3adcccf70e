"""OpenAI Chat Completions: read into neutral turns, and written from them.

Knows the keys of this format and of the servers that speak it.  Knows no rule of order, save
that it has no error flag and no images in results.
"""

from __future__ import annotations

from typing import Any

from trimtab import paths
from trimtab.conversion import media as medium
from trimtab.conversion.chat_media import read_media, write_media
from trimtab.conversion.ids import Ordinals
from trimtab.conversion.marks import mark_of, with_mark
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
from trimtab.conversion.outcome import arguments_of, flagged, item_texts, unflagged_items
from trimtab.conversion.shape import Demands, Step, calls_last, choice_for, shape, tools_for
from trimtab.conversion.target import Alphabet, Target
from trimtab.model import Path

alphabet = Alphabet(longest_id=40)
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


def read(tree: Any, account: Account) -> Neutral:
    """A body, or a bare list of messages."""
    if isinstance(tree, list):
        return Neutral(_turns(tree, (), account), bare=True)
    settings: dict[str, Setting] = {}
    read_settings(tree, _SETTINGS, (), settings)
    if isinstance(tree.get("stop"), str):
        settings["stop"] = Setting([tree["stop"]], ("stop",))
    account.rest(tree, _BODY, ())
    return Neutral(
        _turns(tree.get("messages") or [], ("messages",), account),
        tuple(_tools(tree, account)),
        _choice(tree, account),
        settings,
    )


def _turns(messages: Any, base: Path, account: Account) -> tuple[Turn, ...]:
    unnamed = Ordinals()
    turns = []
    for number, message in enumerate(messages):
        path = (*base, number)
        role = message.get("role")
        if role in ("tool", "function"):
            parts: list[Part] = [_result(message, path, unnamed, account)]
            account.rest(message, _RESULT, path)
        else:
            parts = _parts(message, path, account)
            if role == "assistant":
                parts = [*_reasoning(message, path), *parts]
                parts += _calls(message, path, unnamed, account)
            account.rest(message, _MESSAGE, path)
        if role not in _ROLES:
            account.lose(path, "role", f"the role {role} became user")
        name = str(role) if _ROLES.get(role) == "system" else ""
        turns.append(Turn(_ROLES.get(role, "user"), tuple(parts), path, name))
    return tuple(turns)


def _parts(message: Any, path: Path, account: Account) -> list[Part]:
    content, mark = message.get("content"), mark_of(message)
    parts: list[Part] = []
    if isinstance(content, str):
        parts = [Text(content, (*path, "content"), mark)] if content else []
    elif isinstance(content, list):
        for number, item in enumerate(content):
            part = _part(item, (*path, "content", number), account)
            parts += [part] if part is not None else []
    if isinstance(message.get("refusal"), str):
        parts.append(_refusal(message["refusal"], (*path, "refusal"), account))
    return parts


def _refusal(text: str, path: Path, account: Account) -> Text:
    account.lose(path, "refusal", "carried as text")
    return Text(text, path)


def _part(item: Any, path: Path, account: Account) -> Text | Media | None:
    if isinstance(item, str):
        return Text(item, path)
    kind = item.get("type")
    mark = mark_of(item)
    if isinstance(item.get("text"), str) and kind in ("text", "input_text", "output_text"):
        account.rest(item, _PART, path)
        return Text(item["text"], (*path, "text"), mark)
    if kind == "refusal" and isinstance(item.get("refusal"), str):
        return _refusal(item["refusal"], path, account)
    found = read_media(item, kind, path, account)
    if found is None:
        account.lose(path, str(kind))
        return None
    account.rest(item, _PART, path)
    return found._replace(mark=mark)


def _reasoning(message: Any, path: Path) -> list[Part]:
    found: list[Part] = []
    for key in ("reasoning_content", "reasoning"):
        if isinstance(message.get(key), str) and message[key]:
            found.append(Reasoning(message[key], (*path, key), sealed=False))
    if message.get("reasoning_details"):
        found.append(Reasoning("", (*path, "reasoning_details")))
    return found


def _calls(message: Any, path: Path, unnamed: Ordinals, account: Account) -> list[Part]:
    calls: list[Part] = []
    for number, call in enumerate(message.get("tool_calls") or ()):
        where = (*path, "tool_calls", number)
        custom = call.get("type") == "custom"
        inner = call.get("custom" if custom else "function") or {}
        name = str(inner.get("name") or "")
        at = (*where, "custom", "input") if custom else (*where, "function", "arguments")
        value = inner.get(at[-1])
        if not custom:
            value = arguments_of(value, at, account)
        call_id = call.get("id") or unnamed.call(name)
        calls.append(Call(call_id, name, value, where, custom, mark_of(call)))
        account.rest(call, _CALL, where)
        account.rest(inner, _CALLED, (*where, at[-2]))
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        where, name = (*path, "function_call"), str(legacy.get("name") or "")
        value = arguments_of(legacy.get("arguments"), (*where, "arguments"), account)
        calls.append(Call(unnamed.call(name), name, value, where))
    return calls


def _result(message: Any, path: Path, unnamed: Ordinals, account: Account) -> Result:
    items: list[Any] = [p for p in _parts(message, path, account) if isinstance(p, (Text, Media))]
    shown, error = unflagged_items(items)
    error = error or message.get("is_error") is True or message.get("status") == "error"
    name = str(message.get("name") or "")
    call_id = message.get("tool_call_id") or unnamed.result(name)
    mark = next((item.mark for item in shown if not isinstance(item, Json) and item.mark), None)
    mark = mark_of(message) if mark is None else mark
    return Result(call_id, name, shown, path, error, mark=mark)


def _tools(tree: Any, account: Account) -> list[Tool]:
    tools = []
    for key in ("tools", "functions"):
        for number, tool in enumerate(tree.get(key) or ()):
            path = (key, number)
            inner = tool if key == "functions" else tool.get("function") or tool.get("custom")
            if not isinstance(inner, dict) or not inner.get("name"):
                account.lose(path, str(tool.get("type")), "a tool of the server")
                continue
            account.rest(inner, _FUNCTION | {"format"}, path)
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


def _choice(tree: Any, account: Account) -> Choice | None:
    for key in ("tool_choice", "function_call"):
        value, path = tree.get(key), (key,)
        if value in ("auto", "none"):
            return Choice(value, path)
        if value in ("required", "any"):
            return Choice("any", path)
        if isinstance(value, dict):
            inner = value.get("function") or value.get("custom") or value
            if isinstance(inner, dict) and isinstance(inner.get("name"), str):
                return Choice("tool", path, inner["name"])
            account.lose(path, key)
    return None


# --- writing -------------------------------------------------------------------------------------


def write(neutral: Neutral, target: Target, account: Account) -> Any:
    """A body with ``messages`` first after the model."""
    demands = Demands(
        late_system=True,
        takes_custom=True,
        takes_marks=target.is_of("claude"),
        takes_open_reasoning=target.is_of("deepseek", "kimi", "moonshot"),
    )
    shaped = shape(neutral, demands, account)
    messages: list[Any] = []
    for turn in shaped.head:
        step = Step("system", list(turn.parts), turn.path, turn.name)
        messages.append(_plain(step, account))
    for step in shaped.steps:
        if step.role == "assistant":
            messages += _model_turn(step, target, account)
        else:
            messages += _user_turn(step, target, account)
    body = write_settings(neutral, _WRITTEN, account)
    body["messages"] = messages
    tools = tools_for(neutral, demands, account)
    if tools:
        body["tools"] = [_write_tool(tool, target) for tool in tools]
    choice = choice_for(neutral, tools, account)
    if choice:
        body["tool_choice"] = _write_choice(choice, target)
    return body


def _plain(step: Step, account: Account) -> Any:
    role = "developer" if step.name == "developer" else step.role
    return {"role": role, "content": _content(step.parts, account)}


def _content(parts: list[Part], account: Account) -> Any:
    if len(parts) == 1 and isinstance(parts[0], Text) and parts[0].mark is None:
        return parts[0].text
    return [_write_part(part, account) for part in parts if isinstance(part, (Text, Media))]


def _write_part(part: Text | Media, account: Account) -> Any:
    out: Any = None
    if isinstance(part, Media):
        out = write_media(part)
        if out is None:
            part = medium.named(part, account)
    if isinstance(part, Text):
        out = {"type": "text", "text": part.text}
    return with_mark(out, part.mark)


def _model_turn(step: Step, target: Target, account: Account) -> list[Any]:
    others, calls = calls_last(step, account)
    spoken = [part for part in others if not isinstance(part, Reasoning)]
    texts: list[Part] = [
        medium.named(part, account) if isinstance(part, Media) else part for part in spoken
    ]
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if texts:
        message["content"] = _content(texts, account)
    thought = [part.text for part in others if isinstance(part, Reasoning)]
    if thought:
        message["reasoning_content"] = "\n\n".join(thought)
    if calls:
        message["tool_calls"] = [_write_call(call, target) for call in calls]
    elif not texts:
        message["content"] = ""
    moved: list[Part] = []
    messages = [message, *(_write_result(r, moved, target, account) for r in step.results)]
    return [*messages, *_moved(moved, account)]


def _user_turn(step: Step, target: Target, account: Account) -> list[Any]:
    results = [part for part in step.parts if isinstance(part, Result)]
    if not results:
        return [_plain(step, account)]
    moved: list[Part] = []
    messages = [_write_result(result, moved, target, account) for result in results]
    moved += [part for part in step.parts if not isinstance(part, Result)]
    return messages + _moved(moved, account)


def _moved(parts: list[Part], account: Account) -> list[Any]:
    return [{"role": "user", "content": _content(parts, account)}] if parts else []


def _write_call(call: Call, target: Target) -> Any:
    name, call_id = target.names(call.name), target.ids(call.id)
    if call.custom:
        inner = {"name": name, "input": call.arguments}
        out: dict[str, Any] = {"id": call_id, "type": "custom", "custom": inner}
    else:
        inner = {"name": name, "arguments": paths.dump(call.arguments)}
        out = {"id": call_id, "type": "function", "function": inner}
    return with_mark(out, call.mark)


def _write_result(result: Result, moved: list[Part], target: Target, account: Account) -> Any:
    texts, media = item_texts(result.items, account)
    for item in media:
        why = "moved behind the results of its turn, into a user message"
        account.lose(item.path, f"{item.kind} in a result", why)
        label = f"[{item.kind} of the result of {result.name or 'a tool'}]"
        moved += [Text(label, item.path), item]
    if result.error:
        texts[:1] = [flagged(texts[0] if texts else "")]
    content: Any = texts[0] if len(texts) == 1 else [{"type": "text", "text": t} for t in texts]
    if not texts:
        content = "[see the next user message]" if media else ""
    elif result.mark is not None:
        content = [{"type": "text", "text": text} for text in texts]
        with_mark(content[-1], result.mark)
    return {"role": "tool", "tool_call_id": target.ids(result.id), "content": content}


def _write_tool(tool: Tool, target: Target) -> Any:
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


def _write_choice(choice: Choice, target: Target) -> Any:
    if choice.mode == "tool":
        return {"type": "function", "function": {"name": target.names(choice.name)}}
    return "required" if choice.mode == "any" else choice.mode
