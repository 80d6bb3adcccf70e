"""Bedrock Converse: read into neutral turns, and written from them.

Knows the keys of this format as they go over the wire: payloads are base64 text, never bytes.
Cache points are blocks of their own here; they belong to the block before them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from trimtab.conversion import media as medium
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
from trimtab.conversion.outcome import NO_OUTPUT, arguments_of
from trimtab.conversion.shape import Demands, Step, choice_for, shape, tools_for
from trimtab.conversion.target import Alphabet, Target
from trimtab.formats.base import payload_digest
from trimtab.formats.bedrock import APART, dialect
from trimtab.model import Path
from trimtab.rules.content import BEGIN, GO_ON

alphabet = Alphabet("a-zA-Z0-9_.:-", 64)
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


def read(tree: Any, account: Account) -> Neutral:
    """A body, or a bare list of messages."""
    if isinstance(tree, list):
        return Neutral(tuple(_turns(tree, (), account)), bare=True)
    settings: dict[str, Setting] = {}
    read_settings(tree, {"modelId": "model"}, (), settings)
    inference = tree.get("inferenceConfig") or {}
    read_settings(inference, _INFERENCE, ("inferenceConfig",), settings)
    account.rest(inference, frozenset(_INFERENCE), ("inferenceConfig",))
    account.rest(tree, _BODY, ())
    turns = _turns(tree.get("messages") or [], ("messages",), account)
    if tree.get("system"):
        head = _parts(tree["system"], ("system",), account)
        turns.insert(0, Turn("system", tuple(head), ("system",)))
    config = tree.get("toolConfig") or {}
    account.rest(config, frozenset(("tools", "toolChoice")), ("toolConfig",))
    return Neutral(tuple(turns), _tools(config, account), _choice(config), settings)


def _turns(messages: Any, base: Path, account: Account) -> list[Turn]:
    turns = []
    for number, message in enumerate(messages):
        path = (*base, number)
        account.rest(message, frozenset(("role", "content")), path)
        parts = _parts(message.get("content"), (*path, "content"), account)
        turns.append(Turn(_ROLES.get(message.get("role"), "user"), tuple(parts), path))
    return turns


def _parts(content: Any, path: Path, account: Account) -> list[Part]:
    parts: list[Part] = []
    for number, item in enumerate(content or ()):
        where = (*path, number)
        if "cachePoint" in item:
            ttl = str((item["cachePoint"] or {}).get("ttl") or "")
            if parts and not isinstance(parts[-1], Reasoning):
                parts[-1] = parts[-1]._replace(mark=ttl)
            else:
                account.lose(where, "cache mark", "nothing that can carry it stands before it")
            continue
        parts += _part(item, where, account)
    return parts


def _part(item: Any, path: Path, account: Account) -> list[Part]:
    kind: str = next(iter(item), "")
    value: Any = item.get(kind)
    account.rest(item, frozenset((kind,)), path)
    where = (*path, kind)
    if kind == "text":
        return [Text(value, where)]
    if kind == "toolUse" and not value.get("type"):
        account.rest(value, _USE, where)
        arguments = arguments_of(value.get("input"), (*where, "input"), account)
        return [Call(str(value.get("toolUseId") or ""), str(value.get("name")), arguments, path)]
    if kind == "toolResult" and not value.get("type"):
        return [_result(value, where, account)]
    if kind == "reasoningContent":
        text = (value.get("reasoningText") or {}).get("text")
        return [Reasoning(str(text or ""), path)]
    if kind == "citationsContent":
        account.lose(path, "citations", "the cited text was carried without its sources")
        texts = enumerate(value.get("content") or ())
        return [Text(t["text"], (*where, "content", n, "text")) for n, t in texts if "text" in t]
    found = _media(kind, value, path, account)
    return [found] if found else []


def _result(value: Any, path: Path, account: Account) -> Result:
    account.rest(value, _RESULT, path)
    items: list[Text | Json | Media] = []
    for number, item in enumerate(value.get("content") or ()):
        where = (*path, "content", number)
        if "text" in item:
            items.append(Text(item["text"], (*where, "text")))
        elif "json" in item:
            items.append(Json(item["json"], (*where, "json")))
        else:
            kind, inner = next(iter(item.items()))
            if kind in ("image", "document", "video"):
                found = _media(kind, inner, where, account)
                items += [found] if found else []
            else:
                account.lose(where, kind, "carried as JSON")
                items.append(Json(item, where))
    error = value.get("status") == "error"
    return Result(str(value.get("toolUseId") or ""), "", tuple(items), path[:-1], error)


def _media(kind: str, value: Any, path: Path, account: Account) -> Media | None:
    if kind not in ("image", "document", "video", "audio"):
        account.lose(path, kind or "empty block")
        return None
    account.rest(value, _MEDIA, (*path, kind))
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
        account.lose(path, f"{kind} of blocks")
        return None
    media_kind: Any = kind
    return Media(media_kind, mime, path, data=data, url=url, name=name)


def _tools(config: Any, account: Account) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    for number, item in enumerate(config.get("tools") or ()):
        path = ("toolConfig", "tools", number)
        if "cachePoint" in item and tools:
            tools[-1] = tools[-1]._replace(mark=str((item["cachePoint"] or {}).get("ttl") or ""))
        elif "toolSpec" in item:
            spec = item["toolSpec"]
            account.rest(spec, _SPEC, (*path, "toolSpec"))
            schema = (spec.get("inputSchema") or {}).get("json")
            about = str(spec.get("description") or "")
            tools.append(Tool(str(spec.get("name")), about, schema, path, spec.get("strict")))
        else:
            account.lose(path, next(iter(item), "tool"), "a tool of the server")
    return tuple(tools)


def _choice(config: Any) -> Choice | None:
    value, path = config.get("toolChoice") or {}, ("toolConfig", "toolChoice")
    if "tool" in value:
        return Choice("tool", path, str(value["tool"].get("name")))
    if "any" in value:
        return Choice("any", path)
    return Choice("auto", path) if "auto" in value else None


# --- writing -------------------------------------------------------------------------------------

_DEMANDS = Demands(
    joins_users=True, begins_with_user=True, ends_with_user=True, refuses_blanks=True,
    takes_marks=True, declares_tools=True, declares_always=True,
    unique_ids=True,
)  # fmt: skip


def write(neutral: Neutral, target: Target, account: Account) -> Any:
    """A body; ``modelId`` only where the caller named a model."""
    shaped = shape(neutral, _DEMANDS, account)
    body: dict[str, Any] = {}
    inference = write_settings(neutral, {"model": "modelId", **_WRITTEN}, account)
    if "modelId" in inference:
        body["modelId"] = inference.pop("modelId")
    head = [part for turn in shaped.head for part in turn.parts if isinstance(part, Text)]
    if head:
        body["system"] = _blocks(head, target, account)
    body["messages"] = _messages(shaped.steps, target, account)
    if dialect(target.model) in APART:
        body["messages"] = list(_apart(body["messages"], account))
    tools = tools_for(neutral, _DEMANDS, account)
    if tools:
        body["toolConfig"] = {"tools": list(_tool_blocks(tools, target))}
        choice = choice_for(neutral, tools, account)
        if choice and choice.mode == "none":
            account.lose(choice.path, "tool choice", "Converse cannot forbid calls")
        elif choice:
            named = {"name": target.names(choice.name)} if choice.mode == "tool" else {}
            body["toolConfig"]["toolChoice"] = {choice.mode: named}
    else:
        choice_for(neutral, tools, account)
    if inference.get("temperature", 0) > 1:
        account.lose(neutral.settings["temperature"].path, "temperature", "1 is the highest here")
        inference["temperature"] = 1
    if inference:
        body["inferenceConfig"] = inference
    return body


def _messages(steps: list[Step], target: Target, account: Account) -> list[Any]:
    messages: list[Any] = []
    results: list[Part] = []
    for step in steps:
        if step.role == "assistant":
            if results:
                messages.append({"role": "user", "content": _blocks(results, target, account)})
            content = _blocks(step.parts, target, account)
            messages.append({"role": "assistant", "content": content})
            results = list(step.results)
        else:
            content = _blocks([*results, *step.parts], target, account)
            messages.append({"role": "user", "content": content})
            results = []
    if results:
        messages.append({"role": "user", "content": _blocks(results, target, account)})
    return messages


def _apart(messages: Iterable[Any], account: Account) -> Iterator[Any]:
    """For models that refuse words and tool blocks in one message: two, and a line between."""
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
        account.notes["words and tool blocks told apart, which this model demands"] += 1
        first, second = {**message, "content": words}, {**message, "content": tools}
        if message["role"] == "assistant":
            yield from (first, {"role": "user", "content": [{"text": GO_ON}]}, second)
        else:
            yield from (second, {"role": "assistant", "content": [{"text": BEGIN}]}, first)


def _blocks(parts: Iterable[Part], target: Target, account: Account) -> list[Any]:
    blocks: list[Any] = []
    for part in parts:
        blocks.append(_write_part(part, target, account))
        if part.mark is not None:  # type: ignore[union-attr]
            blocks.append(_point(part.mark))  # type: ignore[union-attr]
    documents = any("document" in block for block in blocks)
    if documents and not any("text" in block for block in blocks):
        # "a document must be sent together with a text" (API reference, DocumentBlock)
        account.notes["a text was added beside a document, which Converse demands"] += 1
        blocks.append({"text": "(document)"})
    return blocks


def _point(mark: str) -> Any:
    return {"cachePoint": {"type": "default", **({"ttl": mark} if mark else {})}}


def _write_part(part: Part, target: Target, account: Account) -> Any:
    if isinstance(part, Media):
        return _write_media(part, account)
    if isinstance(part, Call):
        name, call_id = target.names(part.name), target.ids(part.id)
        return {"toolUse": {"toolUseId": call_id, "name": name, "input": part.arguments}}
    if isinstance(part, Result):
        return _write_result(part, target, account)
    return {"text": part.text}


def _write_result(result: Result, target: Target, account: Account) -> Any:
    content: list[Any] = []
    for item in result.items:
        if isinstance(item, Media):
            content.append(_write_media(item, account))
        elif isinstance(item, Json):
            content.append({"json": item.value})
        elif item.text.strip():
            content.append({"text": item.text})
        elif item.text:
            account.lose(item.path, "blank text", "a text of white space alone is refused")
    if not content:
        account.notes[f"empty tool results given the text {NO_OUTPUT!r}"] += 1
        content.append({"text": NO_OUTPUT})
    out: dict[str, Any] = {"toolUseId": target.ids(result.id), "content": content}
    if result.error:
        out["status"] = "error"
    return {"toolResult": out}


_ODD_NAME = re.compile(r"[^a-zA-Z0-9\s()\[\]-]+")
_SPACES = re.compile(r"\s{2,}")


def _write_media(part: Media, account: Account) -> Any:
    form = medium.BEDROCK.get(part.mime)
    fits = form is not None and medium.kind_of(part.mime) == part.kind
    source: dict[str, Any] | None = None
    if part.data:
        source = {"bytes": part.data}
    elif part.url.startswith("s3:"):
        source = {"s3Location": {"uri": part.url}}
    if not fits or source is None:
        return {"text": medium.named(part, account).text}
    out: dict[str, Any] = {"format": form}
    if part.kind == "document":
        # name: 1–200 of letters, digits, single spaces, hyphens, brackets (API reference)
        name = _SPACES.sub(" ", _ODD_NAME.sub("-", part.name))[:200].strip()
        if part.name and name != part.name:
            account.lose(part.path, "name", f"spelled {name!r} here")
        out["name"] = name or f"document-{payload_digest(part.data or part.url)[:8]}"
    return {part.kind: {**out, "source": source}}


def _tool_blocks(tools: Iterable[Tool], target: Target) -> Iterable[Any]:
    for tool in tools:
        spec: dict[str, Any] = {"name": target.names(tool.name)}
        spec |= {"description": tool.description} if tool.description.strip() else {}
        spec["inputSchema"] = {"json": tool.schema}
        spec |= {"strict": True} if tool.strict else {}
        yield {"toolSpec": spec}
        if tool.mark is not None:
            yield _point(tool.mark)
