"""Gemini Interactions: reads the steps of ``input`` into blocks and writes edits back.

The shapes are those of google-genai 3.4 (``CreateModelInteraction``, ``Step``, ``Content``) and the
older ``role``/``content`` turns.  ``input`` is a text, one content, a list of contents, or a list
of steps; each item of a list is read as one message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trimtab.formats.engine import own_tools
from trimtab.formats.engine.base import (
    compact,
    in_result,
    linking_ids,
    media_block,
    other_block,
)
from trimtab.formats.gemini.format import dialect
from trimtab.formats.gemini_interactions.parts import CONTENT, PARTS, STEPS
from trimtab.jsontext.paths import Path
from trimtab.transcript.model import Block, Facts, Message, Part
from trimtab.transcript.tokens import MESSAGE_TOKENS, SEALED_CHARS_PER_TOKEN

HEAD_KEYS = ("system_instruction", "tools", "response_format", "input")

_SHARED = ("function_call", "file_search_call", "tool_search_call")
"""Types of steps that OpenAI Responses has too."""
_OWN_STEPS = frozenset({"user_input", "model_output", *STEPS}.difference(_SHARED))
"""Types of steps that no other format has."""
_OWN_KEYS = (
    *("previous_interaction_id", "generation_config", "system_instruction", "agent"),
    *("agent_config", "response_modalities", "continuation_token"),
)
"""Keys of a body that no other format with an ``input`` has."""


def detect(tree: Any) -> str | None:
    """Detect a key or a step that only this format has."""
    if isinstance(tree, dict):
        if "messages" in tree or "contents" in tree:
            return None
        value = tree.get("input")
        own_key = next((key for key in _OWN_KEYS if tree.get(key) is not None), None)
        if own_key and (value is not None or own_key == "previous_interaction_id"):
            return f"the body has {own_key}"
        first = value[0] if isinstance(value, list) and value else value
        return _by_content(first) or (_by_items(value) if isinstance(value, list) else None)
    return _by_items(tree)


def _by_items(items: list[Any]) -> str | None:
    for item in items:
        if isinstance(item, dict):
            kind = item.get("type")
            if kind in _OWN_STEPS:
                return f"a step is of type {kind}"
            own_call = kind == "function_call" and "call_id" not in item
            if own_call and isinstance(item.get("arguments"), dict):
                return "a call has its arguments as an object"
            if item.get("role") == "model" and "content" in item:
                return "a turn of the role model"
    return None


def _by_content(item: Any) -> str | None:
    if isinstance(item, dict) and item.get("type") in CONTENT and "role" not in item:
        return f"the input has a content of type {item['type']}"
    return None


def is_own(message: Mapping[str, Any]) -> bool:
    """A step of the user, the model or a tool."""
    kind = message.get("type")
    if message.get("role") is not None:
        return False
    return kind in ("user_input", "model_output", "function_result") or (
        kind == "function_call" and "call_id" not in message
    )


def read_head(tree: Any) -> tuple[Block, ...]:
    """System instruction, tools, response schema; ``input`` if it is a text or a content."""
    if not isinstance(tree, dict):
        return ()
    blocks = []
    prompt = tree.get("system_instruction")
    path: Path = ("system_instruction",)
    if isinstance(prompt, str):
        blocks.append(Block("system", path, path, prompt))
    elif prompt:
        blocks.append(other_block(prompt, path))
    tools = tree.get("tools")
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        path = ("tools", index)
        blocks.append(Block("tools", path, path, compact(tool), sealed=True))
    if isinstance(tree.get("response_format"), (dict, list)):
        path = ("response_format",)
        blocks.append(Block("tools", path, path, compact(tree["response_format"]), sealed=True))
    value = tree.get("input")
    path = ("input",)
    if isinstance(value, str):  # equals one user message
        blocks.append(Block("text", path, path, value, fixed_tokens=MESSAGE_TOKENS))
    elif isinstance(value, dict):
        blocks += [_below(block, path) for block in _content(value, (), "text")]
    return tuple(blocks)


def _below(block: Block, path: Path) -> Block:
    return replace(block, path=(*path, *block.path), item=(*path, *block.item))


def read_facts(tree: Any, model: str | None) -> Facts:
    """Model, ``max_output_tokens``, tools, whether the server holds earlier turns."""
    if not isinstance(tree, dict):
        return Facts(model=model, dialect=dialect(model), bare=True)
    model = model or tree.get("model") or tree.get("agent")
    model = model if isinstance(model, str) else None
    tools = tree.get("tools")
    named = [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    config = tree.get("generation_config")
    most = config.get("max_output_tokens") if isinstance(config, dict) else None
    return Facts(
        model=model,
        dialect=dialect(model),
        max_output=most if isinstance(most, int) else None,
        tools=tuple(str(t.get("name") or t.get("type") or "") for t in named) if named else None,
        server_state=any(
            tree.get(key) is not None for key in ("previous_interaction_id", "cached_content")
        ),
        extra={"asks": bool(tree.get("input") or tree.get("continuation_token"))},
    )


# --- one step --------------------------------------------------------------------------------


def read_message(step: Any) -> Message:
    """Read one step, turn or content; an unknown one is read as it is."""
    if not isinstance(step, dict):
        return Message(
            "other", (other_block(step, ()),), (Part("other", (), flaw="step"),), framed=False
        )
    kind = str(step.get("type") or "")
    if kind == "function_call":
        return _call(step)
    if kind == "function_result":
        return _result(step)
    if kind == "thought":
        return _thought(step)
    if kind in ("user_input", "model_output") or (not kind and "role" in step):
        return _words(step, kind)
    if kind in CONTENT:
        blocks = tuple(_content(step, (), "text"))
        return Message("user", blocks, (_part_of(blocks[-1], ()),), type=kind)
    return _single(step, kind)


def _words(step: Any, kind: str) -> Message:
    """A message of the user or the model: a text, or a list of contents."""
    role = PARTS.roles.get(kind or str(step.get("role")), "other")
    value = step.get("content")
    path: Path = ("content",)
    if isinstance(value, str):
        block = Block("text", path, path, value)
        return Message(role, (block,), (Part("text", path),), type=kind or "turn")
    blocks: list[Block] = []
    parts: list[Part] = []
    for index, content in enumerate(value if isinstance(value, list) else ()):
        blocks += _content(content, (*path, index), "text")
        parts.append(_part_of(blocks[-1], (*path, index)))
    if step.get("error") is not None:
        blocks.append(other_block(step["error"], ("error",)))
    if not isinstance(value, list):
        parts.append(Part("text", path if "content" in step else (), flaw="no-content"))
    return Message(role, tuple(blocks), tuple(parts), isinstance(value, list), type=kind or "turn")


def _part_of(block: Block, path: Path) -> Part:
    kind: Any = {"text": "text", "media": "media"}.get(block.kind, "other")
    return Part(kind, path)


def _content(content: Any, path: Path, kind: Any) -> Iterator[Block]:
    """The blocks of one content: its annotations, then the content itself."""
    if isinstance(content, dict):
        if content.get("annotations"):
            yield other_block(content["annotations"], (*path, "annotations"))
        what = content.get("type")
        if what == "text" and isinstance(content.get("text"), str):
            yield Block(kind, (*path, "text"), path, content["text"])
            return
        if what in CONTENT and CONTENT[what].medium:
            yield media_block(content, path, CONTENT[what].medium)
            return
    yield other_block(content, path)


def _thought(step: Any) -> Message:
    """One block for the whole thought: it is sent unchanged, or removed with its step."""
    summary = step.get("summary")
    texts = [
        part["text"]
        for part in (summary if isinstance(summary, list) else ())
        if isinstance(part, dict) and isinstance(part.get("text"), str)
    ]
    signature = step.get("signature")
    size = len(signature) if isinstance(signature, str) else 0
    block = Block(
        "reasoning", (), (), "\n".join(texts), sealed=True,
        fixed_tokens=size // SEALED_CHARS_PER_TOKEN, payload_bytes=size,
    )  # fmt: skip
    return Message("assistant", (block,), (Part("reasoning", ()),), type="thought", framed=False)


def _call(step: Any) -> Message:
    arguments, tool = step.get("arguments"), str(step.get("name") or "")
    call_id, id_path = _id(step, "id")
    flaw = "" if arguments is None or isinstance(arguments, dict) else "arguments"
    block = Block(
        "call", ("arguments",), (), "" if arguments is None else compact(arguments),
        label=tool, tool=tool, call_id=call_id, spelling="json",
        sealed=bool(flaw) or arguments is None,
    )  # fmt: skip
    part = Part("call", (), call_id, id_path, tool, flaw)
    return Message("assistant", (block,), (part,), type="function_call", framed=False)


def _id(step: Any, key: str) -> tuple[str, Path]:
    text = step.get(key)
    return (text, (key,)) if isinstance(text, str) else ("", (key,))


def _result(step: Any) -> Message:
    """A result: a text, a list of contents, or an object, which a text can replace as a whole."""
    value, tool = step.get("result"), str(step.get("name") or "")
    call_id, id_path = _id(step, "call_id")
    error = step.get("is_error") is True
    path: Path = ("result",)
    blocks: list[Block] = []
    if isinstance(value, str):
        blocks.append(Block("result", path, path, value, tool=tool or None, error=error))
    elif isinstance(value, list):
        for index, content in enumerate(value):
            blocks += [
                replace(block, tool=tool or None, error=error)
                for block in _content(content, (*path, index), "result")
            ]
    elif value is not None:
        blocks.append(
            Block("result", path, path, compact(value), spelling="part", tool=tool or None,
                  error=error)
        )  # fmt: skip
    flaw = "" if value is not None else "result"
    part = Part("result", (), call_id, id_path, tool, flaw)
    own_blocks = tuple(in_result(block, call_id) for block in blocks)
    return Message("tool", own_blocks, (part,), type="function_result", framed=False)


def _single(step: Any, kind: str) -> Message:
    """Steps of tools that Google runs, and unknown steps: sent unchanged."""
    row, part = STEPS.get(kind), Part("other", (), tool=kind, refers=linking_ids(step))
    if row is not None:  # of a tool of theirs
        part = Part(row.kind, (), str(step.get(row.id[0]) or ""), tool=kind)
    role: Any = "assistant" if row else "other"
    signature = step.get("signature")
    size = len(signature) if isinstance(signature, str) else 0
    shown = {key: value for key, value in step.items() if key not in ("type", "signature")}
    block = Block(
        "other", (), (), compact(shown) if shown else "", sealed=True, payload_bytes=size,
        fixed_tokens=size // SEALED_CHARS_PER_TOKEN,
    )  # fmt: skip
    state = (((), ""),) if kind == "tool_search_result" else ()
    return Message(role, (block,), (part,), type=kind, framed=False, tool_state=state)


# --- writing ---------------------------------------------------------------------------------


def text_part(text: str, *, marked: Any = None) -> Any:
    """``{"type": "text", "text": …}``; there are no cache breakpoints in this format."""
    return {"type": "text", "text": text}


def text_at(path: Path, text: str) -> Any:
    """A text content; the bare text if it replaces a whole result."""
    return text if path and path[-1] == "result" else text_part(text)


def text_message(role: str, text: str, *, marked: Any = None) -> Any:
    """A step of one text."""
    kind = "model_output" if role == "assistant" else "user_input"
    return {"type": kind, "content": [text_part(text)]}


def result_parts(calls: Sequence[Part], text: str) -> list[Any]:
    """One ``function_result`` step for each call."""
    return [
        {"type": "function_result", "call_id": call.id, "name": call.tool, "result": text}
        for call in calls
    ]


def call_alone(message: Any, call: Any, words: str) -> list[Any]:
    """The call, after a step with ``words`` if there are any."""
    return [text_message("assistant", words), call] if words else [call]


def answered(result: Any, text: str, *, marked: Any = None) -> Any:
    """The ``function_result`` with ``text`` as its result, not marked as an error."""
    kept = {key: value for key, value in result.items() if key not in ("result", "is_error")}
    return {**kept, "result": text}


def why_no_tool(body: Mapping[str, Any]) -> str:
    """The provider keeps the interaction, or its input is neither a text nor a list of steps."""
    if body.get("store") is not False or body.get("previous_interaction_id"):
        return own_tools.STATE
    value = body.get(PARTS.messages)
    if isinstance(value, str):
        return ""
    steps = value if isinstance(value, list) else [None]
    of_steps = all(isinstance(s, dict) and s.get("type") not in (None, *CONTENT) for s in steps)
    return "" if of_steps else own_tools.PARTS
