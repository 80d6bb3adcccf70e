"""Claude Code: ``~/.claude/projects/**/*.jsonl``.

A line has ``uuid``, ``parentUuid`` and a message of Anthropic's format; the pieces of one streamed
answer are lines of their own that share ``message.id``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trimtab.logs.branches import Branch, Node, chains
from trimtab.logs.recording import Recording
from trimtab.logs.segments import LogSegment, project, recordings, seconds
from trimtab.pricing.call_usage import CallUsage, read_call


def is_claude_code(values: Sequence[Any]) -> bool:
    """Lines with uuid, parentUuid and a message.  Qwen Code's have these too: it is asked first."""
    return any(
        isinstance(v, dict) and "parentUuid" in v and v.get("type") in ("user", "assistant")
        for v in values[:200]
    )


def claude_code(values: Sequence[Any]) -> Iterator[Recording]:
    """The conversation, one recording between compactions; then what the user took back by a
    rewind; then each sidechain (subagent)."""
    lines = [v for v in values if isinstance(v, dict) and (v.get("uuid") or _message(v))]
    header = next((v for v in lines if v.get("sessionId")), {})
    models = (_message(v).get("model") for v in lines)
    model = next((m for m in models if isinstance(m, str) and m[:1] != "<"), None)
    id_ = str(header.get("sessionId") or "session")
    common: dict[str, Any] = {
        "source": project(header.get("cwd")), "format": "anthropic", "agent": "claude-code",
        "model": model,
    }  # fmt: skip
    for own, branch, branch_id, task in chains(lines, id_, _nodes):
        yield from recordings(_segments(own, branch), branch_id, task=task, **common)


def _message(line: Mapping[str, Any]) -> Mapping[str, Any]:
    message = line.get("message")
    return message if isinstance(message, dict) else {}


def _blocks(message: Mapping[str, Any], kind: str, key: str) -> tuple[str, ...]:
    """The values under ``key`` of a message's blocks of this type."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else ()
    return tuple(str(b.get(key)) for b in blocks if isinstance(b, dict) and b.get("type") == kind)


def _nodes(lines: Sequence[Mapping[str, Any]]) -> list[Node]:
    nodes: list[Node] = []
    seen = set[str]()
    for number, line in enumerate(lines):
        message, uuid = _message(line), str(line.get("uuid") or f"line {number}")
        role = message.get("role")
        results = _blocks(message, "tool_result", "tool_use_id")
        nodes.append(Node(
            uuid, str(line.get("parentUuid") or line.get("logicalParentUuid") or ""),
            seconds(line.get("timestamp")),
            is_item=role in ("user", "assistant") and uuid not in seen
            and not line.get("isApiErrorMessage") and str(message.get("model"))[:1] != "<",
            is_model=role == "assistant",
            answer=str(message.get("id") or "") if role == "assistant" else "",
            calls=_blocks(message, "tool_use", "id"), results=results,
            begins=role == "user" and not results and not line.get("isCompactSummary"),
        ))  # fmt: skip
        seen.add(uuid)
    return nodes


def _segments(lines: Sequence[Mapping[str, Any]], branch: Branch) -> list[LogSegment]:
    """The messages of a branch; pieces of one answer are joined.  Segments before the fork belong
    to the newer branch."""
    segments, answers, own = [LogSegment()], dict[str, int](), [False]
    for number in branch.items:
        line = lines[number]
        message = line["message"]
        role, content = message["role"], message.get("content")
        if line.get("isCompactSummary") and segments[-1].items:
            segments.append(LogSegment(carried=1))
            answers = {}
            own.append(False)
        own[-1] |= number in branch.own
        segment, usage = segments[-1], _usage(message) if role == "assistant" else None
        place = answers.get(str(message.get("id"))) if role == "assistant" else None
        if place is not None and isinstance(content, list):
            answer = segment.items[place]
            answer["content"] = [*answer["content"], *content]
            segment.usages[place] = usage or segment.usages[place]  # the last piece is complete
            continue
        item = {"role": role, "content": content}
        if role == "assistant" and isinstance(content, list) and message.get("id"):
            answers[str(message["id"])] = len(segment.items)
        segment.add(item, seconds(line.get("timestamp")), usage)
    return [segment for segment, is_own in zip(segments, own, strict=True) if is_own]


def _usage(message: Mapping[str, Any]) -> CallUsage | None:
    return read_call(message.get("usage"), message.get("model"), str(message.get("id") or ""))
