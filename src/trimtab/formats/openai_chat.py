"""OpenAI Chat Completions: how its messages are read as blocks and written back.

Knows the keys of this format and of the servers that speak it (chat_parts.py reads what stands
inside a message, dialects.py tells whose reading it is).  Knows no rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.formats import dialects
from trimtab.formats.base import alone, compact, group_turns, other_block
from trimtab.formats.chat_parts import calls, long_flaw, read_part, reasoning, text_of
from trimtab.model import Block, Facts, Group, Message, Part, Path, Transcript

name = "openai-chat"
merges_roles = False
results_in_user = False
content_key = "content"
goes_with = alone

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_KNOWN = {"role", "content", "tool_calls", "function_call", "tool_call_id", "name", "refusal"}
_KNOWN |= {"cache_control", "prefix", "reasoning", "reasoning_content", "reasoning_details"}
head_keys = ("tools", "functions", "response_format")
_HEAD = ("tools", "functions")


def detect(tree: Any) -> str | None:
    """A ``messages`` list (or a bare list) whose items have a role this format uses."""
    messages = tree if isinstance(tree, list) else tree.get("messages")
    if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
        return None
    for message in messages:
        for key in ("tool_calls", "function_call", "tool_call_id", "reasoning_content"):
            if message.get(key) is not None:
                return f"a message has {key}"
        if message.get("role") in ("tool", "function", "developer"):
            return f"a message has the role {message['role']}"
    if isinstance(tree, dict) and _chat_tools(tree.get("tools")):
        return "tools are declared as functions"
    if messages and all(m.get("role") in _ROLES for m in messages):
        return "messages with role and content"
    return None


def _chat_tools(tools: Any) -> bool:
    return isinstance(tools, list) and any(
        isinstance(tool, dict) and tool.get("type") in ("function", "custom") and "name" not in tool
        for tool in tools
    )


def base(tree: Any) -> Path:
    """``("messages",)``, or ``()`` for a bare list of messages."""
    return () if isinstance(tree, list) else ("messages",)


def read_head(tree: Any) -> tuple[Block, ...]:
    """Tool definitions, one block each, and a response schema."""
    if not isinstance(tree, dict):
        return ()
    blocks = []
    for key in _HEAD:
        tools = tree.get(key)
        for index, tool in enumerate(tools if isinstance(tools, list) else ()):
            path = (key, index)
            blocks.append(Block("tools", path, path, compact(tool), sealed=True))
    if isinstance(tree.get("response_format"), dict):
        schema: Path = ("response_format",)
        blocks.append(Block("tools", schema, schema, compact(tree[schema[0]]), sealed=True))
    return tuple(blocks)


def read_facts(tree: Any, model: str | None) -> Facts:
    """Model and whose dialect it speaks, output limit, thinking mode, the declared tools."""
    if not isinstance(tree, dict):
        return dialects.spoken(Facts(model=model, bare=True), dialects.of_model(model))
    declared = [tool for key in _HEAD for tool in _items(tree.get(key)) if isinstance(tool, dict)]
    names = [(t.get("function") or t.get("custom") or t).get("name", "") for t in declared]
    model = model or tree.get("model")
    facts = Facts(
        model=model,
        max_output=tree.get("max_completion_tokens") or tree.get("max_tokens"),
        thinking=_thinking(tree) or dialects.thinking(model),
        tools=tuple(names) if declared else None,
    )
    return dialects.spoken(facts, dialects.of_model(model))


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _thinking(tree: Any) -> str:
    """What the request itself says: "enabled", "disabled", or "" for nothing."""
    asked = tree.get("thinking")
    if isinstance(asked, dict) and asked.get("type"):
        return str(asked["type"])
    if isinstance(tree.get("enable_thinking"), bool):
        return "enabled" if tree["enable_thinking"] else "disabled"
    return "disabled" if tree.get("reasoning_effort") == "none" else ""


def read_message(message: Any) -> Message:
    """One message; a ``tool`` message is one result part.  Whatever it is, a view comes back."""
    if not isinstance(message, dict):
        return Message("other", (other_block(message, ()),), (Part("other", ()),))
    role: Any = _ROLES.get(str(message.get("role")), "other")
    if role == "tool":
        return _result(message)
    blocks: list[Block] = []
    parts: list[Part] = []
    content = message.get("content")
    kind: Any = "system" if role == "system" else "text"
    if isinstance(content, str):
        if content or role != "assistant":
            blocks.append(Block(kind, ("content",), ("content",), content))
        if content:
            marked = "cache_control" in message
            parts.append(Part("text", ("content",), flaw=long_flaw(content), marked=marked))
    elif isinstance(content, list):
        for index, item in enumerate(content):
            found, part = read_part(item, ("content", index), kind)
            blocks += found
            parts.append(_told_apart(part, parts))
    for found, part in reasoning(message):
        blocks += found
        parts.append(part)
    for found, part in calls(message) if role == "assistant" else ():
        blocks += found
        parts.append(part)
    blocks += _more(message)
    if content is None and not any(p.kind == "call" for p in parts):
        parts.append(Part("text", ("content",), flaw="null"))
    listed, prefix = isinstance(content, list), message.get("prefix") is True
    return Message(role, tuple(blocks), tuple(parts), listed, type="prefix" if prefix else "")


def _told_apart(part: Part, before: list[Part]) -> Part:
    """The part; the result of a server's tool is flawed where no call stands before it."""
    if part.kind != "server-result":
        return part
    made = any(other.kind == "server-call" and other.id == part.id for other in before)
    return part if made else part._replace(flaw="server")


def _result(message: Any) -> Message:
    """A ``tool`` message, or a ``function`` message of old, which has a name for an id."""
    legacy, tool = message.get("role") == "function", message.get("name")
    call_id = f"function:{tool}" if legacy else text_of(message.get("tool_call_id"))
    content, flaw = message.get("content"), ""
    blocks: list[Block] = []
    if isinstance(content, str):
        path: Path = ("content",)
        failed = message.get("status") == "error"  # as LangChain keeps it
        block = Block("result", path, path, content, tool=tool, call_id=call_id, error=failed)
        blocks.append(block)
        flaw = long_flaw(content)
    elif isinstance(content, list):
        for index, item in enumerate(content):
            found, part = read_part(item, ("content", index), "result", tool, call_id)
            blocks += found
            flaw = flaw or (part.flaw if part.flaw == "long" else "")
    parts = [Part("result", (), call_id, () if legacy else ("tool_call_id",), tool or "", flaw)]
    if content is None:
        parts.append(Part("text", ("content",), flaw="null"))
    return Message("tool", (*blocks, *_more(message)), tuple(parts), isinstance(content, list))


def _more(message: Any) -> list[Block]:
    """Fields of the message that we do not know and that say something."""
    if message.keys() <= _KNOWN:
        return []
    return [
        other_block(value, (key,))
        for key, value in message.items()
        if key not in _KNOWN and value not in (None, [], {}, "") and not isinstance(value, bool)
    ]


def groups(transcript: Transcript) -> tuple[Group, ...]:
    """An assistant message with the ``tool`` messages that answer it."""
    return group_turns(transcript)


def text_part(text: str, *, marked: Any = None) -> Any:
    """``{"type": "text", "text": …}``."""
    return {"type": "text", "text": text} | ({"cache_control": marked} if marked else {})


def text_message(role: str, text: str, *, marked: Any = None) -> Any:
    """``{"role": …, "content": text}``; a list of one part where a breakpoint must be carried."""
    return {"role": role, "content": [text_part(text, marked=marked)] if marked else text}


def result_parts(calls: Sequence[Part], text: str) -> list[Any]:
    """One message for each call, in the style in which the call is written."""
    return [_answer(call, text) for call in calls]


def _answer(call: Part, text: str) -> Any:
    if call.path[:1] == ("content",):  # an Anthropic block
        part = {"type": "tool_result", "tool_use_id": call.id, "content": text, "is_error": True}
        return results_message([part])
    if call.id.startswith("function:"):
        return {"role": "function", "name": call.tool, "content": text}
    return {"role": "tool", "tool_call_id": call.id, "content": text}


def results_message(parts: list[Any]) -> Any:
    """A user message that holds result parts, as gateways take them in Anthropic's style."""
    return {"role": "user", "content": parts}


def mark_of(part: Any) -> Any:
    """The ``cache_control`` some servers accept on a part."""
    return part.get("cache_control") if isinstance(part, dict) else None
