"""Goose: ``goose session export --format json``, and the session files of versions before 1.10.

An export is one object with the session and its ``conversation``; an older file has the session in
its first line and a message in each further line.  (Today's sessions are in an SQLite database.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trimtab.logs.neutral import LoggedCall, LoggedReasoning, NeutralSegment, format_for, parts_of
from trimtab.logs.recording import Recording
from trimtab.logs.segments import project, recordings, seconds


def is_goose(values: Sequence[Any]) -> bool:
    """A session with a working_dir, and a conversation or messages."""
    head = values[0] if values and isinstance(values[0], dict) else {}
    if "working_dir" not in head:
        return False
    return "message_count" in head or "description" in head or "conversation" in head


def goose(values: Sequence[Any]) -> Iterator[Recording]:
    """The conversation as the model saw it."""
    head = values[0]
    conversation = head.get("conversation")
    if isinstance(conversation, dict):
        conversation = conversation.get("messages")
    messages = conversation if isinstance(conversation, list) else values[1:]
    config = head.get("model_config")
    model = config.get("model_name") if isinstance(config, dict) else None
    segment = NeutralSegment(format=format_for(model))
    for message in messages:
        if isinstance(message, dict) and _is_sent(message):
            _add(segment, message)
    yield from recordings(
        [segment], str(head.get("id") or "session"), source=project(head["working_dir"]),
        format=segment.format, agent="goose", model=model,
    )  # fmt: skip


def _is_sent(message: Mapping[str, Any]) -> bool:
    """Whether the model sees it: a compaction hides what it summarized from the model."""
    metadata = message.get("metadata")
    return not isinstance(metadata, dict) or metadata.get("agentVisible") is not False


def _add(segment: NeutralSegment, message: Mapping[str, Any]) -> None:
    time, content = seconds(message.get("created")), message.get("content")
    blocks = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
    spoken_parts = parts_of(content)
    if str(message.get("role")).lower() == "assistant":
        calls = [call for block in blocks if (call := _call(block))]
        reasoning = [
            LoggedReasoning(str(block.get("thinking")), str(block.get("signature") or ""))
            for block in blocks
            if block.get("type") == "thinking"
        ]
        texts = [part for part in spoken_parts if isinstance(part, str)]
        segment.answer(texts, calls, time, reasoning=reasoning)
        return
    for block in blocks:
        if block.get("type") == "toolResponse":
            parts, failed = _result(block.get("toolResult"))
            segment.result(str(block.get("id")), parts, time, failed=failed)
    segment.say(spoken_parts, time)


def _call(block: Mapping[str, Any]) -> LoggedCall | None:
    if block.get("type") not in ("toolRequest", "frontendToolRequest"):
        return None
    match block.get("toolCall"):
        case {"value": {"name": name, **rest}}:
            return LoggedCall(str(block.get("id")), str(name), rest.get("arguments") or {})
    return None


def _result(result: Any) -> tuple[list[Any], bool]:
    """(texts and images, whether it failed).  Older versions have the content itself as value."""
    match result:
        case {"status": "error", "error": error}:
            return [str(error)], True
        case {"value": {"content": content, **rest}}:
            return parts_of(content), bool(rest.get("isError"))
        case {"value": value}:
            return parts_of(value), False
    return [], False
