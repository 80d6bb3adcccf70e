"""Reads one input item of OpenAI Responses as blocks and parts, and writes results as items.

The keys are those of openai-python's ``response_input_item_param``.  A part's ``flaw`` names what
is wrong with the item on its own, whatever stands around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from trimtab.formats.engine import payloads
from trimtab.formats.engine.base import (
    compact,
    in_result,
    json_flaw,
    linking_ids,
    media_block,
    other_block,
    payload_digest,
)
from trimtab.formats.engine.parts import OTHER, PartRow, row_of
from trimtab.formats.openai_responses.parts import CONTENT, ITEMS, PARTS
from trimtab.jsontext.paths import Path
from trimtab.transcript.model import Block, Message, Part, PartKind
from trimtab.transcript.tokens import IMAGE_TOKENS, SEALED_CHARS_PER_TOKEN

MARK = "prompt_cache_breakpoint"
LONGEST_ID = 64
_SEALED = re.compile(r"[A-Za-z0-9+/_=-]+")
"""Encrypted content is base64; anything else "could not be decrypted or parsed"."""

_SEALED_CALLS = ("computer_call", "program", "tool_search_call")
"""Calls whose arguments no edit changes."""
TYPES = frozenset({"message", *ITEMS})
"""Every item type that is read.  Items of other types are sent unchanged."""

_KNOWN = {"type", "id", "call_id", "role", "name", "status", "phase", "caller", "execution"}
_KNOWN |= {"fingerprint", "created_by", "max_output_length", "acknowledged_safety_checks"}
"""Keys that cost no tokens, or whose tokens are counted elsewhere."""


def read_message(item: Any) -> Message:
    """Reads one item.  An item of unknown shape becomes a message of role "other"."""
    if not isinstance(item, dict):
        return Message(
            "other", (other_block(item, ()),), (Part("other", (), flaw="item"),), framed=False
        )
    kind = item.get("type") or ("message" if "role" in item else "")
    if kind == "message":
        return _message(item)
    row = row_of(ITEMS, kind, item) or OTHER
    if row.kind == "reasoning":
        return _reasoning(item)
    if row.kind.endswith("result"):
        return _result(item, kind, row)
    if row.kind.endswith("call") and row.id == ("call_id",):
        return _call(item, kind, row)
    return _single(item, str(kind), row)


def _id(item: Any) -> str | None:
    value = item.get("id")
    return value if value is None or isinstance(value, str) else compact(value)


def _view(
    role: Any, item: Any, blocks: list[Block], parts: tuple[Part, ...], *known_keys: str,
    kind: str, listed: bool = False,
) -> Message:  # fmt: skip
    """The message, with one more block for each unknown key that has a value."""
    more = [
        other_block(value, (key,))
        for key, value in item.items()
        if key not in _KNOWN and key not in known_keys and _says_something(value)
    ]
    return Message(
        role, (*blocks, *more), parts, listed, id=_id(item), type=kind, framed=kind == "message"
    )


def _says_something(value: Any) -> bool:
    return value not in (None, [], {}, "") and not isinstance(value, bool)


# --- messages --------------------------------------------------------------------------------


def _message(item: Any) -> Message:
    role = PARTS.roles.get(str(item.get("role")), "other")
    content = item.get("content")
    kind: Any = "system" if role == "system" else "text"
    path: Path = ("content",)
    if isinstance(content, str):
        blocks = [Block(kind, path, path, content)]
        return _view(role, item, blocks, (Part("text", path),), "content", kind="message")
    if not isinstance(content, list):
        parts = (Part("text", path, flaw="null"),)
        return _view(role, item, [], parts, "content", kind="message")
    blocks = []
    message_parts: list[Part] = []
    for index, part in enumerate(content):
        if role == "assistant" and not (_is(part, "output_text") or _is(part, "refusal")):
            # The API takes no user content in the model's message, so none can replace it.
            blocks += _sealed(_content(part, (*path, index), kind))
        else:
            blocks += _content(part, (*path, index), kind)
        marked = isinstance(part, dict) and part.get(MARK) is not None
        flaw = "speaker" if role == "assistant" and _is(part, "input_text") else ""
        message_parts.append(Part(_part_kind(blocks[-1]), (*path, index), flaw=flaw, marked=marked))
    return _view(role, item, blocks, tuple(message_parts), "content", kind="message", listed=True)


def _sealed(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        yield replace(block, sealed=block.media != "" or block.sealed)


def _is(part: Any, kind: str) -> bool:
    return isinstance(part, dict) and part.get("type") == kind


def _part_kind(block: Block) -> PartKind:
    return "media" if block.kind == "media" else "text" if block.kind != "other" else "other"


def _content(
    part: Any, path: Path, kind: Any, call_id: str | None = None, error: bool = False
) -> Iterator[Block]:
    """The blocks of one content part: its citations first, then the part itself."""
    if isinstance(part, dict):
        if part.get("annotations"):
            yield other_block(part["annotations"], (*path, "annotations"))
        row = row_of(CONTENT, part.get("type"), part) or OTHER
        if row.kind == "text" and isinstance(part.get(row.payload[0]), str):
            leaf = (*path, *row.payload)
            yield Block(kind, leaf, path, part[row.payload[0]], call_id=call_id, error=error)
            return
        if row.medium:
            yield in_result(media_block(part, path, row.medium), call_id)
            return
    yield in_result(other_block(part, path), call_id)


# --- reasoning, calls, results ---------------------------------------------------------------


def _reasoning(item: Any) -> Message:
    """One block for the whole item: reasoning is removed as a whole or not at all."""
    texts = [
        part["text"]
        for key in ("summary", "content")
        for part in (item.get(key) if isinstance(item.get(key), list) else ())
        if isinstance(part, dict) and isinstance(part.get("text"), str)
    ]
    known_keys = _KNOWN | {"summary", "content", "encrypted_content"}
    more = [compact(v) for k, v in item.items() if k not in known_keys and _says_something(v)]
    payload, flaw = _encrypted(item)
    block = Block(
        "reasoning", (), (), "\n".join(texts), label="\n".join(more), sealed=True,
        fixed_tokens=payload // SEALED_CHARS_PER_TOKEN, payload_bytes=payload,
        identity=_id(item) or "",
    )  # fmt: skip
    part = Part("reasoning", (), flaw=flaw)
    return Message("assistant", (block,), (part,), id=_id(item), type="reasoning", framed=False)


def _encrypted(item: Any) -> tuple[int, str]:
    """(chars, flaw) of a payload that only the provider can decrypt."""
    payload = item.get("encrypted_content")
    if not isinstance(payload, str) or not payload:
        return 0, ""
    return len(payload), "" if _SEALED.fullmatch(payload) else "sealed"


def _call(item: Any, kind: str, row: PartRow) -> Message:
    key, spelling = str(row.payload[0]), row.spelling
    key = "actions" if kind == "computer_call" and "action" not in item else key
    value = item.get(key)
    tool = str(item.get("name") or row.named or kind.removesuffix("_call"))
    call_id = _call_id(item, kind)
    text = value if isinstance(value, str) else "" if value is None else compact(value)
    flaw = "arguments" if spelling.endswith("string") and not isinstance(value, str) else ""
    if not flaw and spelling == "json-string" and text:
        flaw = json_flaw(text)
    never = kind in _SEALED_CALLS
    sealed = never or flaw == "arguments" or (spelling == "json" and value is None)
    block = Block(
        "call", (key,), (), text, label=str(item.get("name") or ""), tool=tool, call_id=call_id,
        spelling="string" if never else spelling, sealed=sealed,
    )  # fmt: skip
    id_path: Path = ("id",) if kind == "local_shell_call" and not item.get("call_id") else ()
    part = Part(
        "server-call" if _by_server(item, kind) else "call", (), call_id,
        id_path or ("call_id",), tool, flaw,
    )  # fmt: skip
    return _view("assistant", item, [block], (part,), key, kind=kind)


def _call_id(item: Any, kind: str) -> str:
    value = item.get("call_id")
    if not value and kind.startswith("local_shell_call"):
        value = item.get("id")
    return value if isinstance(value, str) else "" if value is None else compact(value)


def _by_server(item: Any, kind: str) -> bool:
    """Whether the server runs this tool search, so that the client sends no result for it."""
    if not kind.startswith("tool_search"):
        return False
    return item.get("execution") == "server" or not item.get("call_id")


def _result(item: Any, kind: str, row: PartRow) -> Message:
    key, call_id = str(row.payload[0]), _call_id(item, kind)
    value, error = item.get(key), item.get("status") in ("failed", "incomplete")
    reader = _READERS.get(kind, _output)
    blocks = list(reader(value, (key,), call_id, error))
    ids: Path = ("id",) if kind == "local_shell_call_output" and "call_id" not in item else ()
    part = Part(
        "server-result" if _by_server(item, kind) else "result", (), call_id,
        ids or ("call_id",), " ".join(_found_tools(value)) if key == "tools" else "",
        "" if _well_shaped(kind, value) else "output",
    )  # fmt: skip
    return _view("tool", item, blocks, (part,), key, kind=kind)


def _found_tools(tools: Any) -> Iterator[str]:
    """Names of the tools that a search found, including those inside namespaces."""
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict):
            yield str(tool.get("name") or "")
            yield from _found_tools(tool.get("tools"))


def _well_shaped(kind: str, value: Any) -> bool:
    if kind in ("function_call_output", "custom_tool_call_output"):
        return isinstance(value, (str, list))
    if kind == "shell_call_output":
        return isinstance(value, list)
    if kind == "apply_patch_call_output":
        return value is None or isinstance(value, str)
    return isinstance(value, str) or kind in ("computer_call_output", "tool_search_output")


def _output(value: Any, path: Path, call_id: str, error: bool) -> Iterator[Block]:
    """A text, or a list of texts, images and files."""
    if isinstance(value, str):
        yield Block("result", path, path, value, call_id=call_id, error=error)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _content(part, (*path, index), "result", call_id, error)
    elif value is not None:
        yield in_result(other_block(value, path), call_id)


def _shell(value: Any, path: Path, call_id: str, error: bool) -> Iterator[Block]:
    """Chunks of ``stdout`` and ``stderr``, each with the command's exit."""
    for index, chunk in enumerate(value if isinstance(value, list) else ()):
        inner: Path = (*path, index)
        outcome = chunk.get("outcome") if isinstance(chunk, dict) else None
        if not isinstance(outcome, dict):
            yield in_result(other_block(chunk, inner), call_id)
            continue
        failed = error or outcome.get("exit_code") != 0
        for key in ("stdout", "stderr"):
            if isinstance(chunk.get(key), str):
                at = (*inner, key)
                yield Block("result", at, at, chunk[key], call_id=call_id, error=failed)
        yield in_result(other_block(outcome, (*inner, "outcome")), call_id)


def _picture(value: Any, path: Path, call_id: str, error: bool) -> Iterator[Block]:
    """A screenshot.  It is sealed: the API accepts only another screenshot in its place."""
    block = media_block(value, path, "image")
    yield replace(block, kind="other", media="", call_id=call_id, sealed=True)


def _whole(value: Any, path: Path, call_id: str, error: bool) -> Iterator[Block]:
    """Output of a server or definitions of tools: counted, never edited."""
    text = value if isinstance(value, str) else "" if value is None else compact(value)
    yield Block("other", path, path, text, call_id=call_id, sealed=True)


_READERS: Mapping[str, Callable[[Any, Path, str, bool], Iterator[Block]]] = {
    "shell_call_output": _shell,
    "computer_call_output": _picture,
    "program_output": _whole,
    "tool_search_output": _whole,
}

# --- everything else -------------------------------------------------------------------------


def _single(item: Any, kind: str, row: PartRow) -> Message:
    """Items without a partner: server calls, compactions, references and unknown types."""
    role: Any = row.speaker or "other"
    part = Part("other", (), tool=kind, refers=linking_ids(item))
    shown, fixed, payload, image = item, 0, 0, None
    if row.kind == "server-call":
        part = Part("server-call", (), str(item.get("id") or ""), tool=kind)
    if kind == "compaction":
        payload, flaw = _encrypted(item)
        fixed = payload // SEALED_CHARS_PER_TOKEN
        part = Part("other" if flaw else "compaction", (), flaw=flaw)
        shown = {k: v for k, v in item.items() if k not in _KNOWN and k != "encrypted_content"}
    if kind == "image_generation_call" and item.get("result"):
        payload, fixed, image = len(str(item["result"])), IMAGE_TOKENS, item["result"]
        shown = {key: value for key, value in item.items() if key != "result"}
    text = compact(shown) if shown else ""
    block = Block(
        "other", (), (), text, sealed=True, fixed_tokens=fixed, payload_bytes=payload,
        identity=payload_digest(image) if image else "",
        picture=payloads.picture(item) if image else None,
    )  # fmt: skip
    return Message(role, (block,), (part,), id=_id(item), type=kind, framed=False)


def output_item(kind: str, call_id: str, text: str) -> Any:
    """A result item for one call, by the call's type; None where the type allows no text result."""
    if kind in ("function_call", "custom_tool_call"):
        return {"type": f"{kind}_output", "call_id": call_id, "output": text}
    if kind == "local_shell_call":
        return {"type": "local_shell_call_output", "id": call_id, "output": text}
    if kind == "shell_call":
        ended = {"type": "exit", "exit_code": 1}
        chunk = {"stdout": "", "stderr": text, "outcome": ended}
        return {"type": "shell_call_output", "call_id": call_id, "output": [chunk]}
    if kind == "apply_patch_call":
        return {
            "type": "apply_patch_call_output", "call_id": call_id, "status": "failed",
            "output": text,
        }  # fmt: skip
    if kind == "tool_search_call":
        return {
            "type": "tool_search_output", "call_id": call_id, "execution": "client",
            "status": "completed", "tools": [],
        }  # fmt: skip
    return None
