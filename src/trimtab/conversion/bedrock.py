"""Reads Bedrock Converse into a neutral request, and writes one.

Payloads are base64 text, as they go over the wire, never bytes.  Cache points are blocks of their
own; they belong to the block before them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from trimtab.conversion import media as medium
from trimtab.conversion.ids import ConversionTarget, NameRules
from trimtab.conversion.neutral_request import (
    CallPart,
    ConversionLog,
    JsonPart,
    MediaPart,
    NeutralRequest,
    NeutralTurn,
    Part,
    ReasoningPart,
    ResultPart,
    Setting,
    TextPart,
    Tool,
    ToolChoice,
    read_settings,
    write_settings,
)
from trimtab.conversion.tool_payloads import NO_OUTPUT, arguments_of
from trimtab.conversion.turn_order import OrderedTurn, TargetRules, choice_for, ordered, tools_for
from trimtab.formats.bedrock.format import APART, dialect
from trimtab.formats.engine.base import payload_digest
from trimtab.formats.repair.content import BEGIN, GO_ON
from trimtab.jsontext.paths import Path

name_rules = NameRules("a-zA-Z0-9_.:-", 64)
"""toolUseId 1–64 of ``[a-zA-Z0-9_.:-]``, tool names 1–64 of ``[a-zA-Z0-9_-]`` (botocore 1.44.5)."""

_INFERENCE = {
    "maxTokens": "max_output", "temperature": "temperature", "topP": "top_p",
    "stopSequences": "stop",
}  # fmt: skip
_WRITTEN = {name: key for key, name in _INFERENCE.items()}
_BODY = frozenset(("modelId", "messages", "system", "toolConfig", "inferenceConfig"))
_USE = frozenset(("toolUseId", "name", "input"))
_RESULT = frozenset(("toolUseId", "content", "status"))
_SPEC = frozenset(("name", "description", "inputSchema", "strict"))
_MEDIA = frozenset(("format", "source", "name"))
_ROLES: dict[str, Any] = {"system": "system", "user": "user", "assistant": "assistant"}

# --- reading -------------------------------------------------------------------------------------


def read(tree: Any, log: ConversionLog) -> NeutralRequest:
    """A body, or a bare list of messages."""
    if isinstance(tree, list):
        return NeutralRequest(tuple(_turns(tree, (), log)), bare=True)
    settings: dict[str, Setting] = {}
    read_settings(tree, {"modelId": "model"}, (), settings)
    inference = tree.get("inferenceConfig") or {}
    read_settings(inference, _INFERENCE, ("inferenceConfig",), settings)
    log.rest(inference, frozenset(_INFERENCE), ("inferenceConfig",))
    log.rest(tree, _BODY, ())
    turns = _turns(tree.get("messages") or [], ("messages",), log)
    if tree.get("system"):
        head = _parts(tree["system"], ("system",), log)
        turns.insert(0, NeutralTurn("system", tuple(head), ("system",)))
    config = tree.get("toolConfig") or {}
    log.rest(config, frozenset(("tools", "toolChoice")), ("toolConfig",))
    return NeutralRequest(tuple(turns), _tools(config, log), _choice(config), settings)


def _turns(messages: Any, base: Path, log: ConversionLog) -> list[NeutralTurn]:
    turns = []
    for number, message in enumerate(messages):
        path = (*base, number)
        log.rest(message, frozenset(("role", "content")), path)
        parts = _parts(message.get("content"), (*path, "content"), log)
        turns.append(NeutralTurn(_ROLES.get(message.get("role"), "user"), tuple(parts), path))
    return turns


def _parts(content: Any, path: Path, log: ConversionLog) -> list[Part]:
    parts: list[Part] = []
    for number, item in enumerate(content or ()):
        where = (*path, number)
        if "cachePoint" in item:
            ttl = str((item["cachePoint"] or {}).get("ttl") or "")
            if parts and not isinstance(parts[-1], ReasoningPart):
                parts[-1] = parts[-1]._replace(mark=ttl)
            else:
                log.lose(where, "cache mark", "nothing that can carry it stands before it")
            continue
        parts += _part(item, where, log)
    return parts


def _part(item: Any, path: Path, log: ConversionLog) -> list[Part]:
    kind: str = next(iter(item), "")
    value: Any = item.get(kind)
    log.rest(item, frozenset((kind,)), path)
    where = (*path, kind)
    if kind == "text":
        return [TextPart(value, where)]
    if kind == "toolUse" and not value.get("type"):
        log.rest(value, _USE, where)
        arguments = arguments_of(value.get("input"), (*where, "input"), log)
        return [
            CallPart(str(value.get("toolUseId") or ""), str(value.get("name")), arguments, path)
        ]
    if kind == "toolResult" and not value.get("type"):
        return [_result(value, where, log)]
    if kind == "reasoningContent":
        text = (value.get("reasoningText") or {}).get("text")
        return [ReasoningPart(str(text or ""), path)]
    if kind == "citationsContent":
        log.lose(path, "citations", "the cited text was carried without its sources")
        texts = enumerate(value.get("content") or ())
        return [
            TextPart(t["text"], (*where, "content", n, "text")) for n, t in texts if "text" in t
        ]
    media = _media(kind, value, path, log)
    return [media] if media else []


def _result(value: Any, path: Path, log: ConversionLog) -> ResultPart:
    log.rest(value, _RESULT, path)
    items: list[TextPart | JsonPart | MediaPart] = []
    for number, item in enumerate(value.get("content") or ()):
        where = (*path, "content", number)
        if "text" in item:
            items.append(TextPart(item["text"], (*where, "text")))
        elif "json" in item:
            items.append(JsonPart(item["json"], (*where, "json")))
        else:
            kind, inner = next(iter(item.items()), ("", None))
            if kind in ("image", "document", "video"):
                media_part = _media(kind, inner, where, log)
                items += [media_part] if media_part else []
            else:
                log.lose(where, kind, "carried as JSON")
                items.append(JsonPart(item, where))
    error = value.get("status") == "error"
    return ResultPart(str(value.get("toolUseId") or ""), "", tuple(items), path[:-1], error)


def _media(kind: str, value: Any, path: Path, log: ConversionLog) -> MediaPart | None:
    if kind not in ("image", "document", "video", "audio"):
        log.lose(path, kind or "empty block")
        return None
    log.rest(value, _MEDIA, (*path, kind))
    source = value.get("source") or {}
    mime = medium.MIME.get(str(value.get("format")), "application/octet-stream")
    name = str(value.get("name") or "")
    if "bytes" in source:
        data, url = medium.base64_of(source["bytes"]), ""
    elif "text" in source:
        data, url, mime = medium.text_data(source["text"]), "", "text/plain"
    elif "s3Location" in source:
        data, url = "", str(source["s3Location"].get("uri"))
    else:
        log.lose(path, f"{kind} of blocks")
        return None
    media_kind: Any = kind
    return MediaPart(media_kind, mime, path, data=data, url=url, name=name)


def _tools(config: Any, log: ConversionLog) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    for number, item in enumerate(config.get("tools") or ()):
        path = ("toolConfig", "tools", number)
        if "cachePoint" in item and tools:
            tools[-1] = tools[-1]._replace(mark=str((item["cachePoint"] or {}).get("ttl") or ""))
        elif "toolSpec" in item:
            spec = item["toolSpec"]
            log.rest(spec, _SPEC, (*path, "toolSpec"))
            schema = (spec.get("inputSchema") or {}).get("json")
            about = str(spec.get("description") or "")
            tools.append(Tool(str(spec.get("name")), about, schema, path, spec.get("strict")))
        else:
            log.lose(path, next(iter(item), "tool"), "a tool of the server")
    return tuple(tools)


def _choice(config: Any) -> ToolChoice | None:
    value, path = config.get("toolChoice") or {}, ("toolConfig", "toolChoice")
    if "tool" in value:
        return ToolChoice("tool", path, str(value["tool"].get("name")))
    if "any" in value:
        return ToolChoice("any", path)
    return ToolChoice("auto", path) if "auto" in value else None


# --- writing -------------------------------------------------------------------------------------

_TARGET_RULES = TargetRules(
    joins_users=True, begins_with_user=True, ends_with_user=True, refuses_blanks=True,
    takes_marks=True, declares_tools=True, declares_always=True,
    unique_ids=True,
)  # fmt: skip


def write(neutral: NeutralRequest, target: ConversionTarget, log: ConversionLog) -> Any:
    """A body; ``modelId`` only where the caller named a model."""
    shaped = ordered(neutral, _TARGET_RULES, log)
    body: dict[str, Any] = {}
    inference = write_settings(neutral, {"model": "modelId", **_WRITTEN}, log)
    if "modelId" in inference:
        body["modelId"] = inference.pop("modelId")
    head = [part for turn in shaped.head for part in turn.parts if isinstance(part, TextPart)]
    if head:
        body["system"] = _blocks(head, target, log)
    body["messages"] = _messages(shaped.steps, target, log)
    if dialect(target.model) in APART:
        body["messages"] = list(_apart(body["messages"], log))
    tools = tools_for(neutral, _TARGET_RULES, log)
    if tools:
        body["toolConfig"] = {"tools": list(_tool_blocks(tools, target))}
        choice = choice_for(neutral, tools, log)
        if choice and choice.mode == "none":
            log.lose(choice.path, "tool choice", "Converse cannot forbid calls")
        elif choice:
            named = {"name": target.names(choice.name)} if choice.mode == "tool" else {}
            body["toolConfig"]["toolChoice"] = {choice.mode: named}
    else:
        choice_for(neutral, tools, log)
    if inference.get("temperature", 0) > 1:
        log.lose(neutral.settings["temperature"].path, "temperature", "1 is the highest here")
        inference["temperature"] = 1
    if inference:
        body["inferenceConfig"] = inference
    return body


def _messages(steps: list[OrderedTurn], target: ConversionTarget, log: ConversionLog) -> list[Any]:
    messages: list[Any] = []
    results: list[Part] = []
    for step in steps:
        if step.role == "assistant":
            if results:
                messages.append({"role": "user", "content": _blocks(results, target, log)})
            content = _blocks(step.parts, target, log)
            messages.append({"role": "assistant", "content": content})
            results = list(step.results)
        else:
            content = _blocks([*results, *step.parts], target, log)
            messages.append({"role": "user", "content": content})
            results = []
    if results:
        messages.append({"role": "user", "content": _blocks(results, target, log)})
    return messages


def _apart(messages: Iterable[Any], log: ConversionLog) -> Iterator[Any]:
    """For models that refuse text and tool blocks in one message: two, and a line between."""
    for message in messages:
        tools: list[Any] = []
        words: list[Any] = []
        last = words
        for block in message["content"]:
            if "cachePoint" not in block:
                last = tools if block.keys() & {"toolUse", "toolResult"} else words
            last.append(block)
        if not (tools and words):
            yield message
            continue
        log.notes["words and tool blocks told apart, which this model demands"] += 1
        first, second = {**message, "content": words}, {**message, "content": tools}
        if message["role"] == "assistant":
            yield from (first, {"role": "user", "content": [{"text": GO_ON}]}, second)
        else:
            yield from (second, {"role": "assistant", "content": [{"text": BEGIN}]}, first)


def _blocks(parts: Iterable[Part], target: ConversionTarget, log: ConversionLog) -> list[Any]:
    blocks: list[Any] = []
    for part in parts:
        blocks.append(_write_part(part, target, log))
        if part.mark is not None:  # type: ignore[union-attr]
            blocks.append(_point(part.mark))  # type: ignore[union-attr]
    documents = any("document" in block for block in blocks)
    if documents and not any("text" in block for block in blocks):
        # "a document must be sent together with a text" (API reference, DocumentBlock)
        log.notes["a text was added beside a document, which Converse demands"] += 1
        blocks.append({"text": "(document)"})
    return blocks


def _point(mark: str) -> Any:
    return {"cachePoint": {"type": "default", **({"ttl": mark} if mark else {})}}


def _write_part(part: Part, target: ConversionTarget, log: ConversionLog) -> Any:
    if isinstance(part, MediaPart):
        return _write_media(part, log)
    if isinstance(part, CallPart):
        name, call_id = target.names(part.name), target.ids(part.id)
        return {"toolUse": {"toolUseId": call_id, "name": name, "input": part.arguments}}
    if isinstance(part, ResultPart):
        return _write_result(part, target, log)
    return {"text": part.text}


def _write_result(result: ResultPart, target: ConversionTarget, log: ConversionLog) -> Any:
    content: list[Any] = []
    for item in result.items:
        if isinstance(item, MediaPart):
            content.append(_write_media(item, log))
        elif isinstance(item, JsonPart):
            content.append({"json": item.value})
        elif item.text.strip():
            content.append({"text": item.text})
        elif item.text:
            log.lose(item.path, "blank text", "a text of white space alone is refused")
    if not content:
        log.notes[f"empty tool results given the text {NO_OUTPUT!r}"] += 1
        content.append({"text": NO_OUTPUT})
    out: dict[str, Any] = {"toolUseId": target.ids(result.id), "content": content}
    if result.error:
        out["status"] = "error"
    return {"toolResult": out}


_ODD_NAME = re.compile(r"[^a-zA-Z0-9\s()\[\]-]+")
_SPACES = re.compile(r"\s{2,}")


def _write_media(part: MediaPart, log: ConversionLog) -> Any:
    form = medium.BEDROCK.get(part.mime)
    fits = form is not None and medium.kind_of(part.mime) == part.kind
    source: dict[str, Any] | None = None
    if part.data:
        source = {"bytes": part.data}
    elif part.url.startswith("s3:"):
        source = {"s3Location": {"uri": part.url}}
    if not fits or source is None:
        return {"text": medium.named(part, log).text}
    out: dict[str, Any] = {"format": form}
    if part.kind == "document":
        # name: 1–200 of letters, digits, single spaces, hyphens, brackets (API reference)
        name = _SPACES.sub(" ", _ODD_NAME.sub("-", part.name))[:200].strip()
        if part.name and name != part.name:
            log.lose(part.path, "name", f"spelled {name!r} here")
        out["name"] = name or f"document-{payload_digest(part.data or part.url)[:8]}"
    return {part.kind: {**out, "source": source}}


def _tool_blocks(tools: Iterable[Tool], target: ConversionTarget) -> Iterable[Any]:
    for tool in tools:
        spec: dict[str, Any] = {"name": target.names(tool.name)}
        spec |= {"description": tool.description} if tool.description.strip() else {}
        spec["inputSchema"] = {"json": tool.schema}
        spec |= {"strict": True} if tool.strict else {}
        yield {"toolSpec": spec}
        if tool.mark is not None:
            yield _point(tool.mark)
