"""Anthropic Messages: reads content blocks and writes edits back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trimtab.formats.anthropic.parts import CONTENT, PARTS
from trimtab.formats.engine.base import (
    breakpoint_facts,
    compact,
    in_result,
    linking_ids,
    mark_of,
    media_block,
    other_block,
    text_or_none,
    text_part,
)
from trimtab.formats.engine.grouping import group_turns, tool_state
from trimtab.formats.engine.parts import Speaker
from trimtab.jsontext.paths import Path
from trimtab.transcript.model import Block, Facts, Group, Message, Part, PartKind
from trimtab.transcript.transcript import Transcript

_PARTS = {
    *("tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "compaction"),
    *("mcp_tool_use", "mcp_tool_result", "mcp_tool_listing", "container_upload", "browser_state"),
    *("tool_reference", "tool_addition", "tool_removal", "tool_search_tool_result"),
}
_TOOL_BLOCKS = ("tool_use", "tool_result", "server_tool_use")
VERSIONS = ("2023-06-01", "2026-10-21")
"""Versions of the API.  Its SDK sends the newest from 2.0 on, which refuses some of what the oldest
takes."""
HEAD_KEYS = ("system", "tools")
_DATED = re.compile(r"[a-z]_20\d{6}$")
"""The type of a tool that the API knows: ``code_execution_20260120``."""
_SAMPLING = ("temperature", "top_p", "top_k")
_DEFERRING = re.compile(r"claude(?!.?(?:[123]|v\d|instant)\b)")
"""Models that know ``defer_loading``: Claude from 4 on
(https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool)."""
_ID = re.compile(r"[a-zA-Z0-9_-]+")


def detect(tree: Any) -> str | None:
    """Detect content blocks or keys that only this format has, or a top-level ``system``."""
    messages = tree if isinstance(tree, list) else tree.get("messages")
    if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
        return None
    if any("tool_calls" in m or m.get("role") in ("tool", "function") for m in messages):
        return None
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and part.get("type") in _PARTS:
                return f"a message has a {part['type']} block"
            if isinstance(part, dict) and part.get("type") == "image" and "source" in part:
                return "an image has a source"
    if isinstance(tree, dict):
        if any(isinstance(t, dict) and "input_schema" in t for t in tree.get("tools") or ()):
            return "tools have an input_schema"
        if any(
            isinstance(t, dict) and _DATED.search(str(t.get("type")))
            for t in tree.get("tools") or ()
        ):
            return "a tool's type ends with a date"
        if tree.get("system") is not None:
            return "the system prompt is next to the messages"
        for key in ("anthropic_version", "anthropic_beta", "stop_sequences", "thinking"):
            if key in tree:
                return f"the body has {key}"
        if str(tree.get("model", "")).startswith("claude") and "max_tokens" in tree:
            return "the model is a Claude and max_tokens is given"
    return None


def is_own(message: Mapping[str, Any]) -> bool:
    """A message with one of its blocks for tools, which is not chat's in other respects."""
    if message.get("role") in ("tool", "function") or message.get("tool_calls"):
        return False
    parts = (part for part in _as_list(message.get("content")) if isinstance(part, dict))
    return any(part.get("type") in _TOOL_BLOCKS for part in parts)


def version_in(headers: Mapping[str, str]) -> str:
    """The version of the API that a header names, if it is not the oldest."""
    version = headers.get("anthropic-version", "")
    return version if version in VERSIONS[1:] else ""


def facts_in(facts: Facts, version: str) -> Facts:
    """The facts of a request to this version of the API."""
    return replace(facts, version=version)


def read_head(tree: Any) -> tuple[Block, ...]:
    """The system prompt (one block for each text) and the tool definitions."""
    if not isinstance(tree, dict):
        return ()
    blocks = []
    system = tree.get("system")
    if isinstance(system, str):
        blocks.append(Block("system", ("system",), ("system",), system))
    if system is not None and not isinstance(system, (str, list)):
        blocks.append(other_block(system, ("system",)))
    for index, part in enumerate(system if isinstance(system, list) else ()):
        path: Path = ("system", index)
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            blocks.append(Block("system", (*path, "text"), path, part["text"]))
        else:
            blocks.append(other_block(part, path))
    for index, tool in enumerate(tree.get("tools") or ()):
        path = ("tools", index)
        text = compact(_unmarked(tool))
        blocks.append(Block("tools", path, path, text, sealed=True, deferred=_deferred(tool)))
    return tuple(blocks)


def _deferred(tool: Any) -> str:
    """The name of a tool with ``defer_loading``; "" for any other.  Only when a search has found it
    does its definition enter the prompt
    (https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool)."""
    if isinstance(tool, dict) and tool.get("defer_loading") is True:
        return str(tool.get("name") or "")
    return ""


def _unmarked(part: Any) -> Any:
    """The part without its cache breakpoint: the model does not read it and clients move it."""
    if isinstance(part, dict) and "cache_control" in part:
        return {key: value for key, value in part.items() if key != "cache_control"}
    return part


def read_facts(tree: Any, model: str | None) -> Facts:
    """Model, ``max_tokens``, thinking mode, declared tools, places of cache breakpoints."""
    if not isinstance(tree, dict):
        return Facts(model=model, bare=True)
    tools = tree.get("tools")
    thinking = tree.get("thinking")
    model = model or text_or_none(tree.get("model"))
    marked = [
        (key, index)
        for key in HEAD_KEYS
        for index, part in enumerate(_as_list(tree.get(key)))
        if mark_of(part) is not None
    ]
    return Facts(
        model=model,
        dialect="anthropic",
        max_output=tree.get("max_tokens"),
        thinking=str(thinking.get("type", "")) if isinstance(thinking, dict) else "",
        tools=tuple(str(t.get("name", "")) for t in tools) if tools else None,
        extra={
            "marked_head": marked,
            "compacting": bool(tree.get("compaction")),
            "container": tree.get("container") is not None,
            "more_tools": _has_more_tools(tree),
            "defers": bool(_DEFERRING.search((model or "").lower())),
            **breakpoint_facts(_breakpoints(tree)),
            "sampling": tuple(key for key in _SAMPLING if key in tree),
        },
        managed=_is_managed(tree.get("context_management")),
    )


def _breakpoints(tree: Any) -> Iterator[tuple[Path, Any]]:
    """(path, ``cache_control``) of each part that carries one, in the API's order."""
    for key in ("tools", "system"):
        yield from _marks_in(tree.get(key), (key,))
    for number, message in enumerate(_as_list(tree.get("messages"))):
        content = message.get("content") if isinstance(message, dict) else None
        for index, part in enumerate(_as_list(content)):
            path: Path = ("messages", number, "content", index)
            if isinstance(part, dict):
                yield from _marks_in(part.get("content"), (*path, "content"))
            if (mark := mark_of(part)) is not None:
                yield path, mark


def _marks_in(parts: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    for index, part in enumerate(_as_list(parts)):
        if (mark := mark_of(part)) is not None:
            yield (*path, index), mark


def _has_more_tools(tree: Any) -> bool:
    """Whether tools may be had that ``tools`` does not name: those of toolsets and MCP servers, and
    those that a message adds."""
    if tree.get("mcp_servers"):
        return True
    if any("toolset" in str(tool.get("type", "")) for tool in _dicts(tree.get("tools"))):
        return True
    added = (one for m in _dicts(tree.get("messages")) if m.get("role") == "system"
             for one in _dicts(m.get("content")))  # fmt: skip
    return any(one.get("type") == "tool_addition" for one in added)


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    return (one for one in _as_list(value) if isinstance(one, dict))


def _is_managed(management: Any) -> bool:
    """Whether ``context_management`` tells the API to clear or compact content itself; thinking of
    which all is kept (Claude Code asks for that) is not."""
    edits = _as_list(management.get("edits")) if isinstance(management, dict) else []
    return any(not isinstance(edit, dict) or edit.get("keep") != "all" for edit in edits)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def read_message(message: Any) -> Message:
    """Read one message: each content block becomes a part with its blocks."""
    role: Any = PARTS.roles.get(message.get("role"), "other")
    content = message.get("content")
    if isinstance(content, str):
        kind: Any = "system" if role == "system" else "text"
        block = Block(kind, ("content",), ("content",), content)
        part = Part("text", ("content",), flaw="" if content.strip() else "empty")
        return Message(role, (block,), (part,), False)
    blocks: list[Block] = []
    parts: list[Part] = []
    if isinstance(content, (dict, tuple)) and content:
        blocks.append(other_block(content, ("content",)))
        parts.append(Part("other", ("content",), flaw="not-list"))
    elif role == "system" and content == [] and message.get("output_config") is not None:
        pass  # it only sets options, and is accepted anywhere
    elif not isinstance(content, list) or not content:
        parts.append(Part("text", ("content",), flaw="no-parts"))
    for index, item in enumerate(_as_list(content)):
        part_blocks, part = _read_part(item, ("content", index), role)
        blocks += part_blocks
        parts.append(part)
    blocks += [
        other_block(value, (key,))
        for key, value in message.items()
        if key not in ("role", "content") and value not in (None, "", [], {})
    ]
    return Message(
        role, tuple(blocks), tuple(parts), isinstance(content, list),
        inner_marks=tuple(_inner_marks(content)), tool_state=tuple(tool_state(content)),
    )  # fmt: skip


def _inner_marks(content: Any) -> Iterator[Path]:
    """Breakpoints on the parts of a tool result's content."""
    for index, part in enumerate(_as_list(content)):
        inner = part.get("content") if isinstance(part, dict) else None
        for number, item in enumerate(_as_list(inner)):
            if mark_of(item) is not None:
                yield ("content", index, "content", number)


def _read_part(part: Any, path: Path, role: Speaker) -> tuple[list[Block], Part]:
    """Read one content block: its blocks and its part."""
    type, row = PARTS.part(CONTENT, part, role)
    marked = mark_of(part) is not None
    if type == "text":
        return _read_text(part, path, role, marked)
    if row.kind == "other" and type in CONTENT:  # misplaced
        own = str(part.get("id") or part.get("tool_use_id") or "")
        return [other_block(_unmarked(part), path)], Part(
            "other", path, own, tool=type, flaw="misplaced", marked=marked
        )
    if row.kind == "call":
        return _read_call(part, path, marked)
    if row.kind == "result":
        call_id = str(part.get("tool_use_id", ""))
        blocks = list(_read_result(part, path, call_id))
        listed = isinstance(part.get("content"), list)
        flaw = _empty_inner([b.text for b in blocks if b.kind == "result"]) if listed else ""
        return blocks, Part(
            "result", path, call_id, (*path, "tool_use_id"), flaw=flaw, marked=marked
        )
    if row.kind == "reasoning":
        return [_read_thinking(part, path)], Part("reasoning", path, flaw=_thinking_flaw(part))
    if row.kind == "compaction":
        return _read_compaction(part, path, marked)
    if row.kind == "media":
        flaw = "document" if row.medium == "document" and role == "assistant" else ""
        return [_media(part, path, row.medium)], Part("media", path, flaw=flaw, marked=marked)
    block = other_block(_unmarked(part), path)
    if row.kind in ("server-call", "server-result"):
        return [block], Part(
            row.kind, path, str(part.get(row.id[0], "")), (*path, *row.id), type, marked=marked,
            refers=_callers(part),
        )  # fmt: skip
    tool = str(part.get("type")) if isinstance(part, dict) else "None"
    return [block], Part("other", path, tool=tool, marked=marked, refers=linking_ids(part))


def _read_text(part: Any, path: Path, role: Speaker, marked: bool) -> tuple[list[Block], Part]:
    text = part.get("text")
    if not isinstance(text, str):
        return [other_block(part, path)], Part("text", path, flaw="empty", marked=marked)
    flaw = "" if text.strip() else "empty-marked" if marked else "empty"
    if role == "user" and part.get("citations"):
        flaw = flaw or "citations"
    block = Block("system" if role == "system" else "text", (*path, "text"), path, text)
    return [block], Part("text", path, flaw=flaw, marked=marked)


def _empty_inner(texts: list[str]) -> str:
    """The flaw of a result by its texts: one is empty, or only white space."""
    if "" in texts:
        return "empty-inner"
    return "blank-inner" if any(not text.strip() for text in texts) else ""


def _callers(part: Any) -> tuple[str, ...]:
    """The id of the server's call on whose behalf this tool was called: code that it runs."""
    return linking_ids(part.get("caller"))


def _read_compaction(part: Any, path: Path, marked: bool) -> tuple[list[Block], Part]:
    """Read a summary made by the API: the model reads it, no edit changes it.  Without content it
    means that compaction failed, and is ignored (anthropic 2.12: ``BetaCompactionBlockParam``)."""
    content, changes = part.get("content"), part.get("tool_changes")
    text = content if isinstance(content, str) else ""
    if changes:
        text += "\n" + compact(changes)
    block = Block("other", path, path, text, sealed=True, identity="compaction")
    if content is None:
        return [block], Part("other", path, marked=marked)
    flaw = "empty-compaction" if content == "" else ""
    signed = "signed" if isinstance(part.get("signature"), str) else ""
    kind: PartKind = "compaction" if isinstance(content, str) and content else "other"
    return [block], Part(kind, path, tool=signed, flaw=flaw, marked=marked)


def _read_call(part: Any, path: Path, marked: bool) -> tuple[list[Block], Part]:
    value, tool, call_id = part.get("input"), str(part.get("name", "")), str(part.get("id", ""))
    flaw = "arguments" if not isinstance(value, dict) else ""
    if not flaw and not _ID.fullmatch(call_id):
        flaw = "id"
    block = Block(
        "call", (*path, "input"), path, compact(value), label=tool, tool=tool,
        call_id=call_id, spelling="json", sealed=flaw == "arguments",
    )  # fmt: skip
    return [block], Part("call", path, call_id, (*path, "id"), tool, flaw, marked, _callers(part))


def _read_result(part: Any, path: Path, call_id: str) -> Iterator[Block]:
    content, error = part.get("content"), part.get("is_error") is True
    if isinstance(content, str):
        yield Block("result", (*path, "content"), path, content, call_id=call_id, error=error)
    elif content is not None and not isinstance(content, list):
        yield in_result(other_block(content, (*path, "content")), call_id)
    for index, item in enumerate(_as_list(content)):
        inner: Path = (*path, "content", index)
        kind = item.get("type") if isinstance(item, dict) else None
        if kind == "text" and isinstance(item.get("text"), str):
            yield Block(
                "result", (*inner, "text"), inner, item["text"], call_id=call_id, error=error
            )
        elif medium := PARTS.part(CONTENT, item)[1].medium:
            yield in_result(_media(item, inner, medium), call_id)
        elif kind == "search_result":
            yield from _search_result(item, inner, call_id, error)
        else:
            yield in_result(other_block(item, inner), call_id)


def _search_result(item: Any, path: Path, call_id: str, error: bool) -> Iterator[Block]:
    """Read a search result: its texts can be shortened, its title and source cannot."""
    rest = {key: value for key, value in item.items() if key not in ("content", "cache_control")}
    yield in_result(other_block(rest, path), call_id)
    for number, part in enumerate(_as_list(item.get("content"))):
        inner: Path = (*path, "content", number)
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield Block(
                "result", (*inner, "text"), inner, part["text"], call_id=call_id, error=error
            )
        else:
            yield in_result(other_block(part, inner), call_id)


def _media(part: Any, path: Path, kind: str) -> Block:
    """An image or a document; a text document costs the tokens of its text."""
    block = media_block(part, path, kind)
    source = part.get("source")
    inner = source if isinstance(source, dict) else {}
    text = inner.get("data") if inner.get("type") == "text" else None
    if inner.get("type") == "content":
        text = compact(inner.get("content"))
    if kind != "document" or not isinstance(text, str):
        return block
    return replace(block, text=text, fixed_tokens=0)


def _read_thinking(part: Any, path: Path) -> Block:
    if part.get("type") == "thinking":
        text = part.get("thinking")
        text = text if isinstance(text, str) else ""
        signature = part.get("signature")
        return Block(
            "reasoning", path, path, text, sealed=True, identity=_short(part, "signature"),
            signature_chars=len(signature) if isinstance(signature, str) else 0,
        )  # fmt: skip
    data = str(part.get("data", ""))
    return Block(
        "reasoning", path, path, "", sealed=True, fixed_tokens=len(data) // 5,
        identity=_short(part, "data"),
    )  # fmt: skip


def _short(part: Any, key: str) -> str:
    """``key`` if the part has such a payload, else "".

    A sealed payload may be re-encrypted in transit, so only its presence enters a ref.  Blocks
    differ by their thinking text, or by the ordinal if there is none.
    """
    return key if part.get(key) else ""


def _thinking_flaw(part: Any) -> str:
    if part.get("type") == "thinking":
        if not isinstance(part.get("signature"), str):
            return "signature"
        if not part.get("thinking") and not part.get("signature"):
            return "blank-thinking"
    return ""


def groups(transcript: Transcript) -> tuple[Group, ...]:
    """Assistant messages up to and including the results that answer them."""
    return group_turns(transcript)


def result_parts(calls: Sequence[Part], text: str) -> list[Any]:
    """One ``tool_result`` for each call, marked as an error."""
    return [
        {"type": "tool_result", "tool_use_id": call.id, "content": text, "is_error": True}
        for call in calls
    ]


def call_alone(message: Any, call: Any, words: str) -> list[Any]:
    """The message with ``words`` and this call; thinking is removed."""
    content = [text_part(words)] if words else []
    return [{**message, "content": [*content, _unmarked(call)]}]


def answered(result: Any, text: str, *, marked: Any = None) -> Any:
    """The ``tool_result`` with ``text`` as its content, not marked as an error."""
    lost = ("content", "is_error", "cache_control")
    kept = {key: value for key, value in result.items() if key not in lost}
    return {**kept, "content": text} | ({"cache_control": marked} if marked else {})
