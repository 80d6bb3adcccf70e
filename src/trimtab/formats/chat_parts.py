"""The parts of a chat message: what stands in its content, its reasoning, its calls.

Knows OpenAI's content parts and calls, the reasoning fields of other servers, and the Anthropic
blocks that gateways take inside chat messages.  Does not know messages as a whole, nor any rule.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from trimtab.formats.base import compact, media_block, other_block, payload_digest
from trimtab.model import Block, Part, PartKind, Path
from trimtab.tokens import SEALED_CHARS_PER_TOKEN

LONGEST_STRING = 10_485_760
"""Characters of one string that OpenAI takes (1,048,576 in 2024)."""

_MEDIA = {
    "image_url": "image",
    "input_image": "image",
    "image": "image",
    "file": "document",
    "document": "document",
    "input_audio": "document",
}
_TEXTS = ("text", "input_text", "output_text")
Read = tuple[list[Block], Part]


def read_part(
    part: Any, path: Path, kind: Any, tool: str | None = None, call_id: str | None = None
) -> Read:
    """One item of a content list: its blocks, and the item as rules see it."""
    marked = isinstance(part, dict) and "cache_control" in part
    type_ = part.get("type") if isinstance(part, dict) else None
    if type_ in _TEXTS and isinstance(part.get("text"), str):
        text = part["text"]
        block = Block(kind, (*path, "text"), path, text, tool=tool, call_id=call_id)
        return [block], Part("text", path, flaw=long_flaw(text), marked=marked)
    if type_ in _MEDIA:
        return [owned(media_block(part, path, _MEDIA[type_]), call_id)], Part(
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
        return [_thinking(part, path)], Part("reasoning", path)
    block = owned(other_block(part, path), call_id)
    if isinstance(type_, str) and type_.endswith(("_tool_use", "_tool_result")):  # a server's
        side: PartKind = "server-call" if type_.endswith("use") else "server-result"
        other = text_of(part.get("id") or part.get("tool_use_id"))
        return [block], Part(side, path, other, tool=type_, marked=marked)
    return [block], Part("other", path, marked=marked)


def long_flaw(text: str) -> str:
    """The flaw of a text that is too long for one string."""
    return "long" if len(text) > LONGEST_STRING else ""


def text_of(value: Any) -> str:
    """An id or a name as text, whatever it came as."""
    return value if isinstance(value, str) else "" if value is None else compact(value)


def owned(block: Block, call_id: str | None) -> Block:
    """The same block, known to belong to a tool result."""
    if call_id is None:
        return block
    return Block(
        block.kind, block.path, block.item, block.text, spelling=block.spelling, call_id=call_id,
        sealed=block.sealed, fixed_tokens=block.fixed_tokens, media=block.media,
        payload_bytes=block.payload_bytes, identity=block.identity,
    )  # fmt: skip


# --- Anthropic's blocks inside a chat message ------------------------------------------------


def _tool_use(part: Any, path: Path, marked: bool) -> Read:
    value, tool, call_id = part.get("input"), text_of(part.get("name")), text_of(part.get("id"))
    sound = isinstance(value, dict)
    block = Block(
        "call", (*path, "input"), path, "" if value is None else compact(value), label=tool,
        tool=tool, call_id=call_id, spelling="json", sealed=not sound,
    )  # fmt: skip
    flaw = "" if sound else "input"
    return [block], Part("call", path, call_id, (*path, "id"), tool, flaw, marked)


def _tool_result(part: Any, path: Path, marked: bool) -> Read:
    call_id, error = text_of(part.get("tool_use_id")), part.get("is_error") is True
    content, blocks = part.get("content"), list[Block]()
    at: Path = (*path, "content")
    if isinstance(content, str):
        blocks.append(Block("result", at, at, content, call_id=call_id, error=error))
    for index, item in enumerate(content if isinstance(content, list) else ()):
        blocks += read_part(item, (*at, index), "result", call_id=call_id)[0]
    return blocks, Part("result", path, call_id, (*path, "tool_use_id"), marked=marked)


def _thinking(part: Any, path: Path) -> Block:
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
    """The reasoning fields of a message; each goes as a whole or not at all."""
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
    """Function calls, custom tools' calls, and the one ``function_call`` of old."""
    found = message.get("tool_calls")
    for index, call in enumerate(found if isinstance(found, list) else ()):
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
        flaw = long_flaw(text) or ("" if custom else _json_flaw(text))
    block = Block(
        "call", (*path, outer, key), path, text if isinstance(text, str) else compact(text),
        label=tool, tool=tool, call_id=call_id, sealed=flaw == "arguments",
        spelling="string" if custom else "json-string",
    )  # fmt: skip
    return [block], Part("call", path, call_id, (*path, "id"), tool, flaw)


def _no_constant(name: str) -> None:
    raise ValueError(name)


_STRICT = json.JSONDecoder(parse_constant=_no_constant).decode


def _json_flaw(text: str) -> str:
    """ "json" for arguments that a strict parser would not take."""
    try:
        _STRICT(text)
    except (ValueError, RecursionError):
        return "json"
    return ""
