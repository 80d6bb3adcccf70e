"""OpenAI Chat Completions: reads messages into blocks and writes edits back.

It reads OpenAI's content parts and calls, the reasoning fields of other servers, and the Anthropic
blocks that gateways accept inside chat messages; ``dialects`` names the provider.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.formats.engine.base import (
    compact,
    in_result,
    json_flaw,
    linking_ids,
    media_block,
    other_block,
    payload_digest,
    text_or_none,
    text_part,
)
from trimtab.formats.engine.grouping import tool_state
from trimtab.formats.engine.parts import OTHER, row_of
from trimtab.formats.openai_chat import dialects
from trimtab.formats.openai_chat.parts import CONTENT, PARTS
from trimtab.jsontext.paths import Path
from trimtab.transcript.model import Block, Facts, Message, Part
from trimtab.transcript.tokens import SEALED_CHARS_PER_TOKEN

ROLES = {**PARTS.roles, **dict.fromkeys(PARTS.items, "tool")}
_KNOWN = {"role", "content", "tool_calls", "function_call", "tool_call_id", "name", "refusal"}
_KNOWN |= {"cache_control", "prefix", "reasoning", "reasoning_content", "reasoning_details"}
HEAD_KEYS = ("tools", "functions", "response_format")
_HEAD = ("tools", "functions")


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
    """The model, its provider's dialect, the output limit, thinking mode and declared tools."""
    if not isinstance(tree, dict):
        return dialects.with_dialect(Facts(model=model, bare=True))
    declared = [tool for key in _HEAD for tool in _items(tree.get(key)) if isinstance(tool, dict)]
    names = [(t.get("function") or t.get("custom") or t).get("name", "") for t in declared]
    model = model or text_or_none(tree.get("model"))
    facts = Facts(
        model=model,
        max_output=tree.get("max_completion_tokens") or tree.get("max_tokens"),
        thinking=_thinking(tree) or dialects.thinking(model),
        tools=tuple(names) if declared else None,
    )
    return dialects.with_dialect(facts)


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _thinking(tree: Any) -> str:
    """The thinking mode set by the request: "enabled", "disabled", or "" if it sets none."""
    thinking = tree.get("thinking")
    if isinstance(thinking, dict) and thinking.get("type"):
        return str(thinking["type"])
    if isinstance(tree.get("enable_thinking"), bool):
        return "enabled" if tree["enable_thinking"] else "disabled"
    return "disabled" if tree.get("reasoning_effort") == "none" else ""


def read_message(message: Any) -> Message:
    """Read one message; a ``tool`` message is one result part.  Never raises."""
    if not isinstance(message, dict):
        return Message("other", (other_block(message, ()),), (Part("other", ()),))
    role: Any = ROLES.get(str(message.get("role")), "other")
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
            part_blocks, part = read_part(item, ("content", index), kind)
            blocks += part_blocks
            parts.append(part)
    for part_blocks, part in reasoning(message):
        blocks += part_blocks
        parts.append(part)
    for part_blocks, part in calls(message) if role == "assistant" else ():
        blocks += part_blocks
        parts.append(part)
    if role == "other" and (ids := linking_ids(message)):
        parts.append(Part("other", (), refers=ids))
    blocks += _more(message)
    if content is None and not _says_otherwise(message, parts):
        parts.append(Part("text", ("content",), flaw="null"))
    listed, prefix = isinstance(content, list), message.get("prefix") is True
    return Message(
        role, tuple(blocks), tuple(parts), listed, type="prefix" if prefix else "",
        tool_state=tuple(tool_state(content)),
    )  # fmt: skip


def _says_otherwise(message: Any, parts: list[Part]) -> bool:
    """Whether something else than content is said: a call, reasoning, speech, a refusal."""
    spoken = any(part.kind in ("call", "reasoning") for part in parts)
    return spoken or bool(message.get("audio") or message.get("refusal"))


def _result(message: Any) -> Message:
    """Read a ``tool`` message, or a legacy ``function`` message, which has a name and no id."""
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
            part_blocks, part = read_part(item, ("content", index), "result", tool, call_id)
            blocks += part_blocks
            flaw = flaw or (part.flaw if part.flaw == "long" else "")
    parts = [Part("result", (), call_id, () if legacy else ("tool_call_id",), tool or "", flaw)]
    if content is None:
        parts.append(Part("text", ("content",), flaw="null"))
    return Message(
        "tool", (*blocks, *_more(message)), tuple(parts), isinstance(content, list),
        tool_state=tuple(tool_state(content)),
    )  # fmt: skip


def _more(message: Any) -> list[Block]:
    """Blocks for unknown fields of the message that are not empty."""
    if message.keys() <= _KNOWN:
        return []
    return [
        other_block(value, (key,))
        for key, value in message.items()
        if key not in _KNOWN and value not in (None, [], {}, "") and not isinstance(value, bool)
    ]


def result_parts(calls: Sequence[Part], text: str) -> list[Any]:
    """One message for each call, in the style in which the call is written."""
    return [_answer(call, text) for call in calls]


def may_anchor(message: Message, part: Part) -> bool:
    """Whether the call is in ``tool_calls``, where each has an id."""
    return part.path[:1] == ("tool_calls",)


def call_alone(message: Any, call: Any, words: str) -> list[Any]:
    """The message with this call and its reasoning, which some providers require."""
    lost = ("content", "tool_calls", "function_call", "refusal", "audio", "cache_control")
    kept = {key: value for key, value in message.items() if key not in lost}
    content = words or ("" if message.get("content") == "" else None)
    return [{"role": "assistant", "content": content, **kept, "tool_calls": [call]}]


def answered(result: Any, text: str, *, marked: Any = None) -> Any:
    """The ``tool`` message with ``text`` as its content."""
    lost = ("content", "status", "cache_control")
    kept = {key: value for key, value in result.items() if key not in lost}
    return {**kept, "content": [text_part(text, marked=marked)] if marked else text}


def _answer(call: Part, text: str) -> Any:
    if call.path[:1] == ("content",):  # an Anthropic block
        part = {"type": "tool_result", "tool_use_id": call.id, "content": text, "is_error": True}
        return {"role": "user", "content": [part]}
    if call.id.startswith("function:"):
        return {"role": "function", "name": call.tool, "content": text}
    return {"role": "tool", "tool_call_id": call.id, "content": text}


# --- the parts of a message: its content, its reasoning and its calls ---

LONGEST_STRING = 10_485_760
"""Most characters of one string that OpenAI accepts (1,048,576 in 2024)."""

Read = tuple[list[Block], Part]


def read_part(
    part: Any, path: Path, kind: Any, tool: str | None = None, call_id: str | None = None
) -> Read:
    """Read one item of a content list: its blocks and its part."""
    marked = isinstance(part, dict) and "cache_control" in part
    type_ = part.get("type") if isinstance(part, dict) else None
    row = row_of(CONTENT, type_, part) or OTHER
    if row.payload == ("text",) and isinstance(part.get("text"), str):
        text = part["text"]
        block = Block(kind, (*path, "text"), path, text, tool=tool, call_id=call_id)
        return [block], Part("text", path, flaw=long_flaw(text), marked=marked)
    if row.medium:
        return [in_result(media_block(part, path, row.medium), call_id)], Part(
            "media", path, marked=marked
        )
    if type_ == "refusal" and isinstance(part.get("refusal"), str):
        block = Block(kind, (*path, "refusal"), path, part["refusal"], call_id=call_id)
        return [block], Part("text", path, marked=marked)
    if type_ == "tool_use":
        return _tool_use(part, path, marked)
    if type_ == "tool_result":
        return _tool_result(part, path, marked)
    if type_ in ("thinking", "redacted_thinking"):
        return [_thinking_part(part, path)], Part("reasoning", path)
    block = in_result(other_block(part, path), call_id)
    if row.kind in ("server-call", "server-result"):
        other = text_of(part.get("id") or part.get("tool_use_id"))
        return [block], Part(
            row.kind, path, other, tool=str(type_), marked=marked,
            refers=linking_ids(part.get("caller")),
        )  # fmt: skip
    return [block], Part(
        "other", path, tool=text_of(type_), marked=marked, refers=linking_ids(part)
    )


def long_flaw(text: str) -> str:
    """The flaw of a text that is too long for one string."""
    return "long" if len(text) > LONGEST_STRING else ""


def text_of(value: Any) -> str:
    """An id or a name as text, whatever its type."""
    return value if isinstance(value, str) else "" if value is None else compact(value)


# --- Anthropic's blocks inside a chat message ------------------------------------------------


def _tool_use(part: Any, path: Path, marked: bool) -> Read:
    value, tool, call_id = part.get("input"), text_of(part.get("name")), text_of(part.get("id"))
    sound = isinstance(value, dict)
    block = Block(
        "call", (*path, "input"), path, "" if value is None else compact(value), label=tool,
        tool=tool, call_id=call_id, spelling="json", sealed=not sound,
    )  # fmt: skip
    flaw = "" if sound else "input"
    refers = linking_ids(part.get("caller"))
    return [block], Part("call", path, call_id, (*path, "id"), tool, flaw, marked, refers)


def _tool_result(part: Any, path: Path, marked: bool) -> Read:
    call_id, error = text_of(part.get("tool_use_id")), part.get("is_error") is True
    content, blocks = part.get("content"), list[Block]()
    at: Path = (*path, "content")
    if isinstance(content, str):
        blocks.append(Block("result", at, at, content, call_id=call_id, error=error))
    for index, item in enumerate(content if isinstance(content, list) else ()):
        blocks += read_part(item, (*at, index), "result", call_id=call_id)[0]
    return blocks, Part("result", path, call_id, (*path, "tool_use_id"), marked=marked)


def _thinking_part(part: Any, path: Path) -> Block:
    """Mistral's thinking is a list of texts, Anthropic's one text with a signature."""
    text = part.get("thinking")
    data = part.get("data")
    return Block(
        "reasoning", path, path,
        text if isinstance(text, str) else "" if text is None else compact(text), sealed=True,
        fixed_tokens=len(data) // SEALED_CHARS_PER_TOKEN if isinstance(data, str) else 0,
        identity="data" if data else "",
    )  # fmt: skip


# --- beside the content ----------------------------------------------------------------------


def reasoning(message: Any) -> Iterator[Read]:
    """The reasoning fields of a message; each is removed whole or not at all."""
    for key in ("reasoning_content", "reasoning"):
        text = message.get(key)
        if isinstance(text, str):
            block = Block("reasoning", (key,), (key,), text, sealed=True)
            yield [block] if text else [], Part("reasoning", (key,), flaw="" if text else "blank")
    if details := message.get("reasoning_details"):
        path: Path = ("reasoning_details",)
        items = [d for d in details if isinstance(d, dict)] if isinstance(details, list) else []
        texts = [d.get("text") or d.get("summary") or "" for d in items]
        sealed = sum(len(str(d.get("data") or "")) // SEALED_CHARS_PER_TOKEN for d in items)
        block = Block(
            "reasoning", path, path, "\n".join(text for text in map(str, texts) if text),
            sealed=True, fixed_tokens=sealed, identity=payload_digest(details),
        )  # fmt: skip
        yield [block], Part("reasoning", path)


def calls(message: Any) -> Iterator[Read]:
    """Function calls, custom tool calls, and the legacy ``function_call``."""
    tool_calls = message.get("tool_calls")
    for index, call in enumerate(tool_calls if isinstance(tool_calls, list) else ()):
        yield _call(call if isinstance(call, dict) else {}, ("tool_calls", index))
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        path, tool = ("function_call",), text_of(legacy.get("name"))
        block = Block(
            "call", (*path, "arguments"), path, text_of(legacy.get("arguments")), label=tool,
            tool=tool, call_id=f"function:{tool}", spelling="json-string",
            sealed=not isinstance(legacy.get("arguments"), str),
        )  # fmt: skip
        yield [block], Part("call", path, f"function:{tool}", tool=tool)


def _call(call: Any, path: Path) -> Read:
    custom = call.get("type") == "custom"
    outer, key = ("custom", "input") if custom else ("function", "arguments")
    inner = call.get(outer)
    inner = inner if isinstance(inner, dict) else {}
    text, tool, call_id = inner.get(key), text_of(inner.get("name")), text_of(call.get("id"))
    flaw = "arguments"
    if isinstance(text, str):
        flaw = long_flaw(text) or ("" if custom else json_flaw(text))
    block = Block(
        "call", (*path, outer, key), path, text if isinstance(text, str) else compact(text),
        label=tool, tool=tool, call_id=call_id, sealed=flaw == "arguments",
        spelling="string" if custom else "json-string",
    )  # fmt: skip
    return [block], Part("call", path, call_id, (*path, "id"), tool, flaw)
