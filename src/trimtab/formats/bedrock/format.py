"""Bedrock Converse: reads content blocks and writes edits back.

It also derives the model family from a model id, and marks parts that are malformed in themselves.
Source of the shapes: botocore's service model of bedrock-runtime.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trimtab.formats.bedrock.parts import CONTENT, PARTS
from trimtab.formats.engine.base import (
    breakpoint_facts,
    compact,
    linking_ids,
    media_block,
    other_block,
)
from trimtab.formats.engine.parts import PartRow
from trimtab.jsontext.paths import Path
from trimtab.transcript.model import Block, Facts, Message, Part

HEAD_KEYS = ("system", "toolConfig", "outputConfig")

ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MEDIA = tuple(key for key, row in CONTENT.items() if isinstance(row, PartRow) and row.medium)
_PARTS = (*CONTENT, "guardContent", "citationsContent", "searchResult")
_BODY = (
    *("inferenceConfig", "toolConfig", "modelId", "additionalModelRequestFields"),
    *("guardrailConfig", "performanceConfig", "outputConfig"),
)
_FAMILIES = (
    ("bedrock-anthropic", re.compile(r"claude|anthropic")),
    ("bedrock-nova", re.compile(r"\bnova\b")),
    ("bedrock-llama", re.compile(r"llama|\bmeta\.")),
    ("bedrock-mistral", re.compile(r"mixtral|stral|\bmistral\.")),
    ("bedrock-deepseek", re.compile(r"deepseek")),
    ("bedrock-nemotron", re.compile(r"nemotron")),
)
APART = frozenset({"bedrock-llama", "bedrock-mistral"})
"""Families that refuse text and tool parts in one turn; Claude, Nova, Qwen and Kimi accept it."""
_NAMED = re.compile(r"(?:[a-z-]+\.)?[a-z0-9]+\.[a-z0-9]")


def dialect(model: str | None) -> str:
    """``bedrock-`` and the model family in a model id.

    ``us.anthropic.claude-…`` → bedrock-anthropic, ``amazon.nova-pro-v1:0`` → bedrock-nova, any
    other model name → bedrock-other.  No id, or the ARN of a profile, gives bedrock-anthropic, as
    it does for the token factor.
    """
    name = (model or "").lower()
    for family, pattern in _FAMILIES:
        if pattern.search(name):
            return family
    return "bedrock-other" if _NAMED.match(name) else "bedrock-anthropic"


def detect(tree: Any) -> str | None:
    """Detect keys of a body that only this format has, or content blocks without a ``type``."""
    messages = tree if isinstance(tree, list) else tree.get("messages")
    if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
        return None
    for key in _BODY if isinstance(tree, dict) else ():
        if key in tree:
            return f"the body has {key}"
    for message in messages:
        for part in _items(message.get("content")):
            if isinstance(part, dict) and "type" not in part:
                own_key = next((key for key in _PARTS if key in part), None)
                if own_key:
                    return f"a message has a {own_key} block without a type"
    return None


def is_own(message: Mapping[str, Any]) -> bool:
    """A message with a call or a result of this format."""
    parts = (part for part in _items(message.get("content")) if isinstance(part, dict))
    return any("type" not in part and ("toolUse" in part or "toolResult" in part) for part in parts)


# --- outside the messages --------------------------------------------------------------------


def read_head(tree: Any) -> tuple[Block, ...]:
    """System texts, tool definitions and an output schema; cache points are not blocks."""
    if not isinstance(tree, dict):
        return ()
    blocks: list[Block] = []
    system = tree.get("system")
    if isinstance(system, str):
        blocks.append(Block("system", ("system",), ("system",), system))
    for index, part in enumerate(_items(system)):
        blocks += _read_part(part, ("system", index), "system")[0]
    for index, tool in enumerate(_tools(tree)):
        if mark_of(tool) is None:
            path: Path = ("toolConfig", "tools", index)
            blocks.append(Block("tools", path, path, compact(tool), sealed=True))
    if isinstance(tree.get("outputConfig"), dict):
        schema: Path = ("outputConfig",)
        blocks.append(Block("tools", schema, schema, compact(tree["outputConfig"]), sealed=True))
    return tuple(blocks)


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _inner(part: Any, key: str) -> Any:
    """The object under a key, or an empty one."""
    value = part.get(key) if isinstance(part, dict) else None
    return value if isinstance(value, dict) else {}


def _tools(tree: Any) -> list[Any]:
    return _items(_inner(tree, "toolConfig").get("tools"))


def read_facts(tree: Any, model: str | None) -> Facts:
    """Model and family, ``maxTokens``, thinking mode, declared tools.

    ``extra``: paths of the cache points outside the messages (``marked_head``) and of empty system
    texts (``empty_system``), and the key that requests thinking
    (``thinking_key``).
    """
    body = isinstance(tree, dict)
    model = model or (tree.get("modelId") if body else None)
    family = dialect(model)
    if not body:
        apart = family in APART
        return Facts(model=model, dialect=family, alternates=True, apart=apart, bare=True)
    fields = _inner(tree, "additionalModelRequestFields")
    key = "reasoning_config" if "reasoning_config" in fields else "thinking"
    tools = _tools(tree)
    names = tuple((i, _tool_name(tool)) for i, tool in enumerate(tools) if mark_of(tool) is None)
    system = _items(tree.get("system"))
    marked: list[Path] = [("toolConfig", "tools", i) for i, t in enumerate(tools) if mark_of(t)]
    marked += [("system", i) for i, part in enumerate(system) if mark_of(part)]
    empty = [
        ("system", i) for i, p in enumerate(system) if isinstance(p, dict) and p == {"text": ""}
    ]
    return Facts(
        model=model,
        dialect=family,
        max_output=_inner(tree, "inferenceConfig").get("maxTokens"),
        thinking=str(_inner(fields, key).get("type", "")),
        tools=tuple(tool for _, tool in names) if "toolConfig" in tree else None,
        alternates=True,
        apart=family in APART,
        extra={
            "marked_head": tuple(marked),
            "empty_system": tuple(empty),
            "thinking_key": key,
            **breakpoint_facts(_breakpoints(tree)),
        },
    )


def _breakpoints(tree: Any) -> Iterator[tuple[Path, Any]]:
    """(path, cache point) in the API's order: tools, system, messages."""
    lists: list[tuple[Path, Any]] = [(("toolConfig", "tools"), _tools(tree))]
    lists.append((("system",), _items(tree.get("system"))))
    for number, message in enumerate(_items(tree.get("messages"))):
        content = message.get("content") if isinstance(message, dict) else None
        lists.append((("messages", number, "content"), _items(content)))
    for path, items in lists:
        for index, item in enumerate(items):
            if (mark := mark_of(item)) is not None:
                yield (*path, index), _inner(item, "cachePoint") or mark


def _tool_name(tool: Any) -> str:
    spec = _inner(tool, "toolSpec") or _inner(tool, "systemTool")
    return str(spec.get("name", ""))


# --- messages --------------------------------------------------------------------------------


def read_message(message: Any) -> Message:
    """Read one message: each content block becomes a part with its blocks, cache points marks."""
    role: Any = PARTS.roles.get(message.get("role"), "other")
    content = message.get("content")
    if not isinstance(content, list):
        text = content if isinstance(content, str) else ""
        block = Block(_kind(role), ("content",), ("content",), text)
        part = Part("text", ("content",), flaw="no-list")
        return Message(role, (block,) if text else (), (part,), False)
    blocks: list[Block] = []
    parts: list[Part] = []
    marks: list[Part] = []
    for index, item in enumerate(content):
        path: Path = ("content", index)
        if mark_of(item) is not None:
            before = content[index - 1] if index else None
            marks.append(Part("other", path, flaw=_stray(before), marked=True))
            continue
        part_blocks, part = _read_part(item, path, role)
        blocks += part_blocks
        parts.append(part)
    if not parts:
        parts.append(Part("text", ("content",), flaw="no-parts"))
        marks = []  # a repair replaces the whole content, marks included
    return Message(role, tuple(blocks), tuple(parts), True, tuple(marks))


def _stray(before: Any) -> str:
    """Why a cache point after the part ``before`` caches nothing; "" if it does cache."""
    if not isinstance(before, dict):
        return "first" if before is None else ""
    if "reasoningContent" in before:
        return "after-reasoning"
    return "" if _is_pdf(before) else "after-document"


def _kind(role: str) -> Any:
    return "system" if role == "system" else "text"


def _read_part(part: Any, path: Path, role: str) -> tuple[list[Block], Part]:
    """Read one content block: its blocks and its part."""
    if not isinstance(part, dict):
        return [other_block(part, path)], Part("other", path)
    if isinstance(part.get("text"), str):
        block = Block(_kind(role), (*path, "text"), path, part["text"])
        return [block], Part("text", path, flaw="" if part["text"].strip() else "empty")
    of_model = "toolUse" in part or "reasoningContent" in part
    misplaced = (of_model and role != "assistant") or ("toolResult" in part and role == "system")
    if misplaced:
        return [other_block(part, path)], Part("other", path, flaw="misplaced")
    if isinstance(part.get("toolUse"), dict):
        return _read_call(part, path, role)
    if isinstance(part.get("toolResult"), dict):
        return _read_answer(part, path, role)
    if isinstance(part.get("reasoningContent"), dict):
        return _read_reasoning(part, path)
    if mark_of(part) is not None:
        return [], Part("other", path, marked=True)
    blocks, kind = _read_content(part, path, _kind(role))
    file = "video" in part or not _is_pdf(part)
    media = "document" if "document" in part else ""
    unknown = linking_ids(part) if kind == "other" else ()
    name = media or (next(iter(part), "") if unknown else "")
    return blocks, Part(kind, path, tool=name, flaw="file" if file else "", refers=unknown)


def _is_pdf(part: Any) -> bool:
    """False for a document other than PDF; True for PDF and for anything that is no document."""
    return bool(_inner(part, "document").get("format", "pdf") == "pdf")


def _read_content(part: Any, path: Path, kind: Any) -> tuple[list[Block], Any]:
    """Read what both messages and tool results may contain: media, quotations, unknown parts."""
    for key in _MEDIA:
        if isinstance(part.get(key), dict):
            return [_read_media(part, path, key)], "media"
    guarded = _inner(part, "guardContent")
    if isinstance(_inner(guarded, "text").get("text"), str):
        leaf = (*path, "guardContent", "text", "text")
        return [Block(kind, leaf, path, guarded["text"]["text"])], "other"
    if isinstance(guarded.get("image"), dict):
        return [media_block(part, path, "image")], "media"
    for key in ("citationsContent", "searchResult"):
        if isinstance(part.get(key), dict):
            return list(_read_quoted(part[key], path, key, kind)), "other"
    return [other_block(part, path)], "other"


def _read_media(part: Any, path: Path, key: str) -> Block:
    """Media at a fixed cost; a document given as text costs the tokens of that text."""
    block = media_block(part, path, "image" if key == "image" else "document")
    source = _inner(part[key], "source")
    pieces = [source, *_items(source.get("content"))]
    texts = [p["text"] for p in pieces if isinstance(p, dict) and isinstance(p.get("text"), str)]
    if key == "document" and texts:
        return replace(block, text="\n".join(texts), fixed_tokens=0, payload_bytes=0)
    kind: Any = key
    return replace(block, media=kind)


def _read_quoted(value: Any, path: Path, key: str, kind: Any) -> Iterator[Block]:
    """A block for each quoted text, and one sealed block for their sources."""
    for index, piece in enumerate(_items(value.get("content"))):
        if isinstance(piece, dict) and isinstance(piece.get("text"), str):
            yield Block(kind, (*path, key, "content", index, "text"), path, piece["text"])
    rest = {name: inner for name, inner in value.items() if name != "content"}
    if rest:
        yield other_block(rest, (*path, key))


def _read_call(part: Any, path: Path, role: str) -> tuple[list[Block], Part]:
    use = part["toolUse"]
    call_id, tool = str(use.get("toolUseId", "")), str(use.get("name", ""))
    id_path = (*path, "toolUse", "toolUseId")
    if use.get("type") == "server_tool_use":
        return [other_block(part, path)], Part("server-call", path, call_id, id_path, tool)
    flaw = "" if isinstance(use.get("input"), dict) else "arguments"
    if not flaw and not ID.fullmatch(call_id):
        flaw = "id"
    block = Block(
        "call", (*path, "toolUse", "input"), path, compact(use.get("input")), label=tool,
        tool=tool, call_id=call_id if role == "assistant" else None, spelling="json",
        sealed=flaw == "arguments",
    )  # fmt: skip
    return [block], Part("call", path, call_id, id_path, tool, flaw)


def _read_answer(part: Any, path: Path, role: str) -> tuple[list[Block], Part]:
    result = part["toolResult"]
    call_id = str(result.get("toolUseId", ""))
    id_path = (*path, "toolResult", "toolUseId")
    if role == "assistant":
        return [other_block(part, path)], Part("server-result", path, call_id, id_path)
    blocks = list(_read_result(result, path, call_id))
    return blocks, Part("result", path, call_id, id_path, flaw=_result_flaw(result, call_id))


def _result_flaw(result: Any, call_id: str) -> str:
    content = result.get("content")
    if not isinstance(content, list):
        return "result-no-list"
    if not ID.fullmatch(call_id):
        return "id"
    if any(isinstance(i, dict) and "json" in i and not _is_object(i["json"]) for i in content):
        return "json"
    if all(item == {"text": ""} for item in content) and result.get("status") == "error":
        return "empty-error"
    return "" if content else "empty-result"


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _read_result(result: Any, path: Path, call_id: str) -> Iterator[Block]:
    """The blocks of a result.  A reduced JSON object is replaced by a text part."""
    error = result.get("status") == "error"
    content = result.get("content")
    if isinstance(content, str):
        leaf = (*path, "toolResult", "content")
        yield Block("result", leaf, path, content, call_id=call_id, error=error)
    for index, item in enumerate(_items(content)):
        inner: Path = (*path, "toolResult", "content", index)
        if isinstance(item, dict) and isinstance(item.get("text"), str):
            leaf = (*inner, "text")
            yield Block("result", leaf, inner, item["text"], call_id=call_id, error=error)
        elif isinstance(item, dict) and "json" in item:
            text = compact(item["json"])
            yield Block("result", inner, inner, text, spelling="part", call_id=call_id, error=error)
        elif isinstance(item, dict):
            for block in _read_content(item, inner, "result")[0]:
                yield replace(block, call_id=call_id, error=error)
        else:
            yield replace(other_block(item, inner), call_id=call_id)


def _read_reasoning(part: Any, path: Path) -> tuple[list[Block], Part]:
    """Reasoning text, or its encrypted form (characters of its base64 / 5)."""
    thought = _inner(part["reasoningContent"], "reasoningText")
    if thought:
        text, signature = thought.get("text"), thought.get("signature")
        signed = isinstance(signature, str) and signature != ""
        block = Block(
            "reasoning", path, path, text if isinstance(text, str) else "", sealed=True,
            identity="signature" if signed else "", signature_chars=len(signature or ""),
        )  # fmt: skip
        return [block], Part("reasoning", path, flaw="" if signed else "signature")
    data = compact(part["reasoningContent"].get("redactedContent", "")).strip('"')
    block = Block(
        "reasoning", path, path, "", sealed=True, fixed_tokens=len(data) // 5, identity="data"
    )
    return [block], Part("reasoning", path)


# --- written back ----------------------------------------------------------------------------


def text_part(text: str, *, marked: Any = None) -> Any:
    """``{"text": …}``; a cache point is a separate part in this format, so it can't be carried."""
    return {"text": text}


def text_message(role: str, text: str, *, marked: Any = None) -> Any:
    """A message of one text, followed by the cache point ``marked`` if there is one."""
    points = [{"cachePoint": marked}] if marked is not None else []
    return {"role": role, "content": [text_part(text), *points]}


def result_parts(calls: Sequence[Part], text: str) -> list[Any]:
    """One ``toolResult`` for each call, marked as an error."""
    return [
        {"toolResult": {"toolUseId": call.id, "content": [text_part(text)], "status": "error"}}
        for call in calls
    ]


def call_alone(message: Any, call: Any, words: str) -> list[Any]:
    """The message with ``words`` and this call; reasoning is removed."""
    content = [text_part(words)] if words else []
    return [{**message, "content": [*content, call]}]


def answered(result: Any, text: str, *, marked: Any = None) -> Any:
    """The ``toolResult`` with ``text`` as its content, not marked as an error."""
    inner = result["toolResult"]
    kept = {key: value for key, value in inner.items() if key not in ("content", "status")}
    return {**result, "toolResult": {**kept, "content": [text_part(text)]}}


def mark_of(part: Any) -> Any:
    """The value of ``cachePoint``, or None."""
    return part.get("cachePoint") if isinstance(part, dict) else None
