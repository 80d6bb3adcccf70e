"""Gemini CLI: ``~/.gemini/tmp/*/chats/session-*.json``, and ``.jsonl`` since 2026.

The older file is one object with all messages.  The newer one has its head in the first line, then
a line for each message; a message that is written again replaces the first, ``$set`` changes the
head, ``$rewindTo`` takes back a message and all behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trimtab.formats.gemini.rules import SENTINEL
from trimtab.logs.recording import Recording
from trimtab.logs.segments import LogSegment, project, recordings, seconds
from trimtab.pricing.call_usage import CallUsage, read_call


def is_gemini_cli(values: Sequence[Any]) -> bool:
    """A head with session and project, and messages of the types user and gemini."""
    heads = [v for v in values[:20] if isinstance(v, dict)]
    return any("sessionId" in v and "projectHash" in v and "parentUuid" not in v for v in heads)


def gemini_cli(values: Sequence[Any]) -> Iterator[Recording]:
    """The conversation; then what the user took back by a rewind."""
    head: dict[str, Any] = {}
    messages: dict[str, Any] = {}
    withdrawn: list[list[Any]] = []
    for value in values:
        if not isinstance(value, dict):
            continue
        if "$rewindTo" in value:
            ids = list(messages)
            target = str(value["$rewindTo"])
            removed = ids[ids.index(target) if target in messages else 0 :]
            if any(messages[id_].get("type") == "gemini" for id_ in removed):
                withdrawn.insert(0, list(messages.values()))
            for id_ in removed:
                del messages[id_]
            continue
        changes = value.get("$set")
        if isinstance(changes, dict) or "projectHash" in value:
            fields = dict(changes if isinstance(changes, dict) else value)
            listed = fields.pop("messages", None)
            head |= fields
            if isinstance(listed, list):
                listed = [m for m in listed if isinstance(m, dict)]
                messages = {str(m.get("id") or n): m for n, m in enumerate(listed)}
        elif "type" in value and "content" in value:
            messages[str(value.get("id") or f"line {len(messages)}")] = value
    id_ = str(head.get("sessionId") or "session")
    is_main = head.get("kind") != "subagent"
    directories = head.get("directories") or [""]
    for number, listed in enumerate([list(messages.values()), *withdrawn]):
        segment, model = _segment(listed)
        yield from recordings(
            [segment], f"{id_}~{number}" if number else id_, source=project(directories[0]),
            format="gemini", agent="gemini-cli", model=model,
            task=("branch" if number else "main") if is_main else "sidechain",
        )  # fmt: skip


def _segment(messages: Sequence[Mapping[str, Any]]) -> tuple[LogSegment, str | None]:
    """(contents as they are sent, the model used last)."""
    segment, model = LogSegment(), None
    for message in messages:
        parts, time = _parts(message.get("content")), seconds(message.get("timestamp"))
        if message.get("type") == "user":
            if parts and not _is_command(parts):
                segment.add({"role": "user", "parts": parts}, time)
        elif message.get("type") == "gemini":
            model = message.get("model") or model
            calls = [c for c in message.get("toolCalls") or () if isinstance(c, dict)]
            known = {part["functionCall"].get("id") for part in parts if "functionCall" in part}
            call_parts: list[dict[str, Any]] = [
                {"functionCall": {key: call[key] for key in ("id", "name", "args") if key in call}}
                for call in calls
                if call.get("id") not in known
            ]
            if (
                call_parts and not known
            ):  # the log has no signatures; the client sends this in a resume
                call_parts[0]["thoughtSignature"] = SENTINEL
            all_parts = parts + call_parts
            if all_parts:
                usage = _usage(message.get("tokens"), model, str(message.get("id") or ""))
                segment.add({"role": "model", "parts": all_parts}, time, usage)
            results = [part for call in calls for part in _result(call)]
            if results:
                segment.add({"role": "user", "parts": results}, time)
    return segment, model


def _parts(content: Any) -> list[dict[str, Any]]:
    """A content as parts: it may be a text, a part or a list of them."""
    listed = content if isinstance(content, list) else [content]
    parts = [{"text": part} if isinstance(part, str) else part for part in listed]
    return [part for part in parts if isinstance(part, dict) and part != {"text": ""}]


def _is_command(parts: Sequence[Mapping[str, Any]]) -> bool:
    """A command of the client, such as ``/stats``: the model never sees it."""
    text = str(parts[0].get("text") or "").lstrip()
    return len(parts) == 1 and text[:1] in ("/", "?")


def _result(call: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The parts of a call's result; a text becomes a function response.  A call that has none was
    not answered."""
    parts = _parts(call.get("result")) if call.get("result") else []
    return [
        {"functionResponse": {"id": call.get("id"), "name": call.get("name"),
                              "response": {"output": part["text"]}}}
        if set(part) == {"text"} else part
        for part in parts
    ]  # fmt: skip


def _usage(tokens: Any, model: str | None, id_: str) -> CallUsage | None:
    if not isinstance(tokens, dict):
        return None
    usage = {
        "promptTokenCount": tokens.get("input"), "candidatesTokenCount": tokens.get("output"),
        "cachedContentTokenCount": tokens.get("cached") or 0,
        "thoughtsTokenCount": tokens.get("thoughts") or 0,
    }  # fmt: skip
    return read_call(usage, model, id_)
