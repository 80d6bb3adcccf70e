"""Gemini generateContent: reads contents and writes edits back.

It reads both spellings of the keys (camelCase and snake_case), and writes in the one it finds.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trimtab.formats.engine.base import (
    compact,
    linking_ids,
    media_block,
    other_block,
    text_or_none,
)
from trimtab.formats.engine.grouping import group_turns
from trimtab.formats.engine.parts import camel
from trimtab.formats.gemini.parts import PARTS
from trimtab.jsontext.paths import Path
from trimtab.transcript.model import Block, Facts, Group, Kind, Message, Part
from trimtab.transcript.transcript import Transcript

HEAD_KEYS = (
    *("systemInstruction", "system_instruction", "tools"),
    *("generationConfig", "generation_config"),
)

_BESIDE = {
    *("thought", "thoughtSignature", "thought_signature", "videoMetadata", "video_metadata"),
    *("partMetadata", "part_metadata", "mediaResolution", "media_resolution"),
}
"""Keys that a part may have beside its one value."""
_GENERATION = re.compile(r"gemini-(\d+)")


def either(tree: Any, camel: str) -> Any:
    """The value under a key in camelCase or in snake_case; None if it has neither."""
    if not isinstance(tree, dict):
        return None
    value = tree.get(camel)
    return tree.get(snake(camel)) if value is None else value


def snake(camel: str) -> str:
    """``functionCall`` → ``function_call``."""
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", camel)


def detect(tree: Any) -> str | None:
    """Detect a ``contents`` list, or a bare list whose items have ``parts``."""
    contents = tree if isinstance(tree, list) else tree.get("contents")
    if not isinstance(contents, list) or not all(isinstance(item, dict) for item in contents):
        return None
    if isinstance(tree, dict):
        return "the body has contents"
    if contents and all(isinstance(item.get("parts"), list) for item in contents):
        return "items have parts"
    return None


def is_own(message: Mapping[str, Any]) -> bool:
    """A message with parts."""
    return "parts" in message and "content" not in message


# --- beside the contents ---------------------------------------------------------------------


def _declarations(tree: Any) -> Iterator[tuple[Path, Any]]:
    """(path, definition) of every tool: each function separately, other tools whole."""
    tools = tree.get("tools")
    for start, tool in [(("tools",), tools)] if isinstance(tools, dict) else [
        (("tools", index), tool) for index, tool in enumerate(tools or ())
    ]:  # fmt: skip
        functions = either(tool, "functionDeclarations")
        if not isinstance(functions, list):
            yield start, tool
            continue
        key = "functionDeclarations" if "functionDeclarations" in tool else "function_declarations"
        for index, function in enumerate(functions):
            yield (*start, key, index), function
        for other in tool:
            if other != key:
                yield (*start, other), {other: tool[other]}


def read_head(tree: Any) -> tuple[Block, ...]:
    """The system instruction (one block for each text), the tools, and a response schema."""
    if not isinstance(tree, dict):
        return ()
    blocks = []
    for key in ("systemInstruction", "system_instruction"):
        system = tree.get(key)
        if isinstance(system, str):
            blocks.append(Block("system", (key,), (key,), system))
        parts = system.get("parts") if isinstance(system, dict) else None
        for index, part in enumerate(parts if isinstance(parts, list) else ()):
            path: Path = (key, "parts", index)
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                blocks.append(Block("system", (*path, "text"), path, part["text"]))
            else:
                blocks.append(other_block(part, path))
    for path, tool in _declarations(tree):
        blocks.append(Block("tools", path, path, compact(tool), sealed=True))
    for key in ("generationConfig", "generation_config"):
        config = tree.get(key)
        for inner, value in config.items() if isinstance(config, dict) else ():
            if inner.lower().replace("_", "") in ("responseschema", "responsejsonschema"):
                path = (key, inner)
                blocks.append(Block("tools", path, path, compact(value), sealed=True))
    return tuple(blocks)


def read_facts(tree: Any, model: str | None) -> Facts:
    """Model and its generation, ``maxOutputTokens``, declared tools, cached content."""
    if not isinstance(tree, dict):
        return Facts(model=model, dialect=dialect(model), bare=True)
    model = model or text_or_none(tree.get("model"))
    declared = [tool for _, tool in _declarations(tree)]
    most = either(either(tree, "generationConfig"), "maxOutputTokens")
    names = [str(tool["name"]) for tool in declared if isinstance(tool, dict) and "name" in tool]
    return Facts(
        model=model,
        dialect=dialect(model),
        max_output=most if isinstance(most, int) else None,
        tools=tuple(names) if declared else None,
        server_state=bool(either(tree, "cachedContent")),
    )


def dialect(model: str | None) -> str:
    """``gemini-3`` from version 3 on, ``gemini-3-image`` for its image models, else ``gemini-2``.

    A name without a version counts as ``gemini-2``, whose rules demand less.
    """
    match = _GENERATION.search((model or "").lower())
    if not match or int(match[1]) < 3:
        return "gemini-2"
    return "gemini-3-image" if "image" in (model or "").lower() else "gemini-3"


# --- one content -----------------------------------------------------------------------------

Read = tuple[list[Block], Part]


def read_message(message: Any) -> Message:
    """Read one content; a call or result without an id gets one by name and number: ``read#0``."""
    role: Any = PARTS.roles.get(message.get("role"), "other")
    items = message.get("parts")
    blocks: list[Block] = []
    parts: list[Part] = []
    if not isinstance(items, list) or not items:
        parts.append(Part("text", ("parts",), flaw="no-parts"))
    numbers: dict[tuple[str, str], int] = {}
    for index, item in enumerate(items if isinstance(items, list) else ()):
        part_blocks, part = _read_part(item, ("parts", index), numbers)
        blocks += part_blocks
        parts.append(part)
    if any(part.kind == "result" for part in parts):
        # Alone, an empty text is accepted (recorded); beside a function response it is refused.
        blank = {("parts", index) for index, item in enumerate(items or ())
                 if isinstance(item, dict) and item.get("text") == ""}  # fmt: skip
        parts = [p._replace(flaw="blank-beside") if p.path in blank else p for p in parts]
    return Message(role, tuple(blocks), tuple(parts), True)


def _read_part(item: Any, path: Path, numbers: dict[tuple[str, str], int]) -> Read:
    key = data_key(item)
    if key is None:
        return [other_block(item, path)], Part("other", path, flaw="no-data")
    read = _READERS.get(camel(key))
    if read is None or not isinstance(item[key], str if key == "text" else dict):
        return [other_block(item, path)], Part("other", path, tool=key, refers=linking_ids(item))
    blocks, part = read(item, key, path)
    if part.kind in ("call", "result") and not part.id_path:
        number = numbers.get((part.kind, part.tool), 0)
        numbers[part.kind, part.tool] = number + 1
        part = part._replace(id=f"{part.tool}#{number}")
        blocks = [replace(block, call_id=part.id) for block in blocks]
    return blocks, part


def data_key(item: Any) -> str | None:
    """The key of a part's one value; None if it has none."""
    if not isinstance(item, dict):
        return None
    return next((key for key in item if key not in _BESIDE and item[key] is not None), None)


def _signature(item: Any) -> str:
    value = either(item, "thoughtSignature")
    return value if isinstance(value, str) else ""


def _read_text(item: Any, key: str, path: Path) -> Read:
    sealed = item.get("thought") is True
    kind: Kind = "reasoning" if sealed else "text"
    where = path if sealed else (*path, "text")
    block = Block(
        kind, where, path, item["text"], sealed=sealed, payload_bytes=len(_signature(item))
    )
    return [block], Part("reasoning" if sealed else "text", path)


def _read_call(item: Any, key: str, path: Path) -> Read:
    call = item[key]
    arguments, tool = call.get("args"), str(call.get("name") or "")
    call_id, id_path = _id(call, (*path, key))
    flaw = "" if arguments is None or isinstance(arguments, dict) else "arguments"
    block = Block(
        "call", (*path, key, "args"), path, "" if arguments is None else compact(arguments),
        label=tool, tool=tool, call_id=call_id, spelling="json", sealed=bool(flaw),
        payload_bytes=len(_signature(item)),
    )  # fmt: skip
    flaw = flaw or ("" if _signature(item) else "unsigned")
    return [block], Part("call", path, call_id, id_path, tool, flaw)


def _id(value: Any, path: Path) -> tuple[str, Path]:
    """The given id and its path; ("", ()) if there is none."""
    call_id = value.get("id")
    return (call_id, (*path, "id")) if isinstance(call_id, str) and call_id else ("", ())


def _read_result(item: Any, key: str, path: Path) -> Read:
    result = item[key]
    tool = str(result.get("name") or "")
    call_id, id_path = _id(result, (*path, key))
    response = result.get("response")
    where: Path = (*path, key, "response")
    flaw = "" if response is None or isinstance(response, dict) else "response"
    blocks = []
    if response is not None:
        # A lone string is cut in place; any other object is replaced whole by {"result": text}.
        only = next(iter(response.items())) if not flaw and len(response) == 1 else ("", None)
        lone = isinstance(only[1], str)
        blocks.append(
            Block(
                "result", (*where, only[0]) if lone else where, path if lone else where,
                only[1] if isinstance(only[1], str) else compact(response),
                spelling="string" if lone else "part", tool=tool, call_id=call_id,
                error=not flaw and bool(response.get("error")), sealed=bool(flaw),
            )
        )  # fmt: skip
    media = result.get("parts")
    for index, inner in enumerate(media if isinstance(media, list) else ()):
        place: Path = (*path, key, "parts", index)
        blocks += [replace(b, call_id=call_id, tool=tool) for b in _read_part(inner, place, {})[0]]
    return blocks, Part("result", path, call_id, id_path, tool, flaw)


def _read_data(item: Any, key: str, path: Path) -> Read:
    """Inline bytes or a file: an image, a document, or a text in base64."""
    mime = str(either(item[key], "mimeType") or "")
    text = _plain_text(item[key], mime)
    if text is not None:
        return [Block("other", path, path, text, sealed=True)], Part("other", path)
    kind = "image" if mime.startswith("image/") else "document"
    block = media_block(item, path, kind)
    if _signature(item):  # an image that the model made: it is bound to its data
        block = replace(block, picture=None)
    return [block], Part("media", path)


def _plain_text(data: Any, mime: str) -> str | None:
    encoded = data.get("data")
    if mime != "text/plain" or not isinstance(encoded, str):
        return None
    try:
        raw = base64.b64decode(encoded.replace("-", "+").replace("_", "/"), validate=True)
        return raw.decode("utf-8")
    except ValueError:
        return None


def _read_code(item: Any, key: str, path: Path) -> Read:
    """Code that the provider wrote and ran itself, or its result later in the same content."""
    ran = camel(key) == "codeExecutionResult"
    id = item[key].get("id")
    return [other_block(item[key], path)], Part(
        "server-result" if ran else "server-call", path, id if isinstance(id, str) else ""
    )


_READERS: dict[str, Callable[[Any, str, Path], Read]] = {
    "text": _read_text,
    "inlineData": _read_data,
    "fileData": _read_data,
    "functionCall": _read_call,
    "functionResponse": _read_result,
    "executableCode": _read_code,
    "codeExecutionResult": _read_code,
}


def groups(transcript: Transcript) -> tuple[Group, ...]:
    """Model contents with the function responses that answer them.

    Closed if their numbers agree, because ids may be given on one side only.
    """
    return group_turns(transcript, by_count=True)


# --- what is written -------------------------------------------------------------------------


def text_part(text: str, *, marked: Any = None) -> Any:
    """``{"text": …}``; there are no cache breakpoints in this format."""
    return {"text": text}


def text_at(path: Path, text: str) -> Any:
    """The value that holds ``text`` at ``path``, which is not always a text part.

    A response must be an object.  A file inside a function response is replaced by a plain text
    file: only ``inlineData`` is allowed there, text/plain among its types (Gemini API
    documentation, multimodal function responses).
    """
    inner = path[path.index("parts") + 2 :] if "parts" in path else ()
    if not inner:
        return text_part(text)
    if inner[-1] == "response":
        return {"result": text}
    encoded = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    if inner[0] == "function_response":
        return {"inline_data": {"mime_type": "text/plain", "data": encoded}}
    return {"inlineData": {"mimeType": "text/plain", "data": encoded}}


def text_message(role: str, text: str, *, marked: Any = None) -> Any:
    """A content of one text."""
    return {"role": "model" if role == "assistant" else "user", "parts": [text_part(text)]}


def result_part(call: Part, text: str, *, snake_case: bool = False) -> Any:
    """A function response with ``text`` as its error; it has an id only if the call has one."""
    body: dict[str, Any] = {"id": call.id} if call.id_path else {}
    body |= {"name": call.tool, "response": {"error": text}}
    return {"function_response" if snake_case else "functionResponse": body}


def result_parts(calls: Sequence[Part], text: str) -> list[Any]:
    """One function response for each call, in snake_case if the path of the call's id is."""
    return [result_part(c, text, snake_case="function_call" in c.id_path) for c in calls]


def call_alone(message: Any, call: Any, words: str) -> list[Any]:
    """The content with ``words``, this call and its signature; thoughts are removed."""
    parts = [text_part(words)] if words else []
    return [{**message, "parts": [*parts, call]}]


def answered(result: Any, text: str, *, marked: Any = None) -> Any:
    """The function response with ``text`` as content; a response of one string keeps its key."""
    key = data_key(result) or "functionResponse"
    response = result[key].get("response")
    values = list(response.items()) if isinstance(response, dict) else []
    lone = len(values) == 1 and isinstance(values[0][1], str)
    kept = {name: v for name, v in result[key].items() if name not in ("response", "parts")}
    content_key = values[0][0] if lone else "result"
    return {**result, key: {**kept, "response": {content_key: text}}}
