"""Qwen Code: ``~/.qwen/projects/*/chats/*.jsonl``.

A line has ``uuid``, ``parentUuid`` and a message of Gemini's format.  A system line of the subtype
``chat_compression`` has the history that took the place of the earlier one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trimtab.logs.branches import Branch, Node, chains
from trimtab.logs.recording import Recording
from trimtab.logs.segments import LogSegment, project, recordings, seconds
from trimtab.pricing.call_usage import read_call

_NOT_SENT = ("realtime_message", "code_mode_tool_result")
"""Subtypes of lines with a message that is no part of the history."""


def is_qwen_code(values: Sequence[Any]) -> bool:
    """Lines with uuid, parentUuid and a message that has parts."""
    return any(
        isinstance(v, dict) and "parentUuid" in v and "sessionId" in v and "parts" in _message(v)
        for v in values[:200]
    )


def qwen_code(values: Sequence[Any]) -> Iterator[Recording]:
    """The conversation, one recording between compressions; then what was taken back by a rewind;
    then each subagent."""
    lines = _joined([v for v in values if isinstance(v, dict) and v.get("uuid")])
    header = next((v for v in lines if v.get("sessionId")), {})
    id_ = str(header.get("sessionId") or "session")
    for own, branch, branch_id, task in chains(lines, id_, _nodes):
        used = [own[n]["model"] for n in branch.items if own[n].get("model")]
        yield from recordings(
            _segments(own, branch), branch_id, source=project(header.get("cwd")), format="gemini",
            agent="qwen-code", model=str(used[-1]) if used else None, task=task,
        )  # fmt: skip


def _message(line: Mapping[str, Any]) -> Mapping[str, Any]:
    message = line.get("message")
    return message if isinstance(message, dict) else {}


def _joined(lines: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """One line for each uuid: a message may be written in several, which share it."""
    joined: dict[str, Mapping[str, Any]] = {}
    for line in lines:
        before = joined.get(str(line["uuid"]))
        if before is not None:
            old, new = _message(before).get("parts") or [], _message(line).get("parts") or []
            message = {**_message(line), "parts": old if old == new else [*old, *new]}
            line = {**before, **line, "message": message}
        joined[str(line["uuid"])] = line
    return list(joined.values())


def _is_sent(line: Mapping[str, Any]) -> bool:
    is_message = line.get("type") in ("user", "assistant", "tool_result")
    return is_message and bool(_message(line).get("parts")) and line.get("subtype") not in _NOT_SENT


def _compressed(line: Mapping[str, Any]) -> list[Any] | None:
    """The history that a compression leaves; None for any other line."""
    payload = line.get("systemPayload")
    history = payload.get("compressedHistory") if isinstance(payload, dict) else None
    is_compression = line.get("subtype") == "chat_compression" and isinstance(history, list)
    return history if is_compression else None


def _nodes(lines: Sequence[Mapping[str, Any]]) -> list[Node]:
    return [
        Node(
            str(line["uuid"]), str(line.get("parentUuid") or ""),
            is_item=_is_sent(line) or _compressed(line) is not None,
            is_model=_message(line).get("role") == "model",
            begins=line.get("type") == "user",
        )
        for line in lines
    ]  # fmt: skip


def _segments(lines: Sequence[Mapping[str, Any]], branch: Branch) -> list[LogSegment]:
    segments, own = [LogSegment()], [False]
    for number in branch.items:
        line, time = lines[number], seconds(lines[number].get("timestamp"))
        if (history := _compressed(line)) is not None:
            segments.append(LogSegment(carried=len(history)))
            own.append(False)
            for content in history:
                segments[-1].add(content, time)
        elif _answers_more(line, segments[-1]):
            last = segments[-1].items[-1]
            segments[-1].items[-1] = {**last, "parts": [*last["parts"], *_message(line)["parts"]]}
        else:
            usage = read_call(line.get("usageMetadata"), line.get("model"), str(line["uuid"]))
            message = _message(line)
            is_model = message.get("role") == "model"
            content = {"role": message.get("role") or "user", "parts": message["parts"]}
            segments[-1].add(content, time, usage if is_model else None)
            segments[-1].window = line.get("contextWindowSize") or segments[-1].window
        own[-1] |= number in branch.own
    return [segment for segment, is_own in zip(segments, own, strict=True) if is_own]


def _answers_more(line: Mapping[str, Any], segment: LogSegment) -> bool:
    """Whether a line has another result of the model's last turn: each call has a line of its own,
    and all go out in one content."""
    last = segment.items[-1] if segment.items else None
    return bool(
        line.get("type") == "tool_result"
        and last
        and all(isinstance(part, dict) and "functionResponse" in part for part in last["parts"])
    )
