"""pi (``~/.pi/agent/sessions``) and OpenClaw (``~/.openclaw/agents/*/sessions``), built on pi.

The first line is the session; each further entry has ``id`` and ``parentId`` (the first version of
the format has neither: its order is that of the file).  A compaction says which entry is the first
that stays behind its summary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trimtab.logs.branches import Node, branches
from trimtab.logs.neutral import LoggedCall, LoggedReasoning, NeutralSegment, format_for, parts_of
from trimtab.logs.recording import Recording
from trimtab.logs.segments import project, recordings, seconds
from trimtab.pricing.call_usage import CallUsage, read_call

_ITEMS = ("message", "custom_message", "branch_summary", "compaction")


def is_pi(values: Sequence[Any]) -> bool:
    """A line of the type session with a cwd, and messages with a role."""
    head = values[0] if values and isinstance(values[0], dict) else {}
    return head.get("type") == "session" and "id" in head and ("cwd" in head or "version" in head)


def pi(values: Sequence[Any]) -> Iterator[Recording]:
    """The conversation, one recording between compactions; then what the user left by going back
    in the tree."""
    head = values[0]
    entries = [v for v in values if isinstance(v, dict)]
    is_openclaw = ".openclaw" in str(head.get("cwd")) or any(
        "openclaw" in str(e.get("customType")) for e in entries[:50]
    )
    id_ = str(head["id"])
    for number, branch in enumerate(branches(_nodes(entries))):
        model = _model([entries[n] for n in branch.items]) or head.get("modelId")
        own = _segments(entries, branch.items, branch.own, format_for(model))
        yield from recordings(
            own, f"{id_}~{number}" if number else id_, source=project(head.get("cwd")),
            format=format_for(model), agent="openclaw" if is_openclaw else "pi", model=model,
            task="branch" if number else "main",
        )  # fmt: skip


def _nodes(entries: Sequence[Mapping[str, Any]]) -> list[Node]:
    nodes = []
    for number, entry in enumerate(entries):
        message = _message(entry)
        nodes.append(Node(
            str(entry.get("id") or f"line {number}"), str(entry.get("parentId") or ""),
            is_item=entry.get("type") in _ITEMS, is_model=message.get("role") == "assistant",
            begins=message.get("role") == "user",
        ))  # fmt: skip
    return nodes


def _message(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    message = entry.get("message")
    return message if entry.get("type") == "message" and isinstance(message, dict) else {}


def _model(entries: Sequence[Mapping[str, Any]]) -> str | None:
    used = [_message(entry).get("model") for entry in entries]
    return next((str(model) for model in reversed(used) if model), None)


def _segments(
    entries: Sequence[Mapping[str, Any]], items: Sequence[int], own: frozenset[int], format: str
) -> list[NeutralSegment]:
    segments, is_own = [NeutralSegment(format=format)], [False]
    for place, number in enumerate(items):
        entry = entries[number]
        if entry["type"] == "compaction":
            segment = NeutralSegment(format=format)
            segment.say(parts_of(entry.get("summary")), seconds(entry.get("timestamp")))
            for kept in items[_first_kept(entries, items, place) : place]:
                if entries[kept]["type"] != "compaction":
                    _add(segment, entries[kept])
            segment.carried = len(segment.items)
            segments.append(segment)
            is_own.append(False)
        else:
            _add(segments[-1], entry)
        is_own[-1] |= number in own
    return [segment for segment, keep in zip(segments, is_own, strict=True) if keep]


def _first_kept(entries: Sequence[Mapping[str, Any]], items: Sequence[int], place: int) -> int:
    """The place in ``items`` of the first entry that a compaction keeps; its own if none."""
    compaction = entries[items[place]]
    first, index = compaction.get("firstKeptEntryId"), compaction.get("firstKeptEntryIndex")
    for n, number in enumerate(items[:place]):
        if first is not None and entries[number].get("id") == first:
            return n
        if first is None and isinstance(index, int) and number >= index:
            return n
    return place


def _add(segment: NeutralSegment, entry: Mapping[str, Any]) -> None:
    """One entry as a message, as pi sends it: answers that failed or were stopped stay behind."""
    time = seconds(entry.get("timestamp"))
    if entry["type"] != "message":
        segment.say(parts_of(entry.get("content") or entry.get("summary")), time)
        return
    message = _message(entry)
    content = message.get("content")
    match message.get("role"):
        case "user" | "custom":
            segment.say(parts_of(content), time)
        case "assistant" if message.get("stopReason") not in ("error", "aborted"):
            blocks = (
                [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
            )
            texts = [str(b.get("text") or "") for b in blocks if b.get("type") == "text"]
            calls = [
                LoggedCall(_call_id(b.get("id")), str(b.get("name")), b.get("arguments") or {})
                for b in blocks if b.get("type") == "toolCall"
            ]  # fmt: skip
            if isinstance(content, str):
                texts = [content]
            segment.answer(
                texts, calls, time, usage=_usage(entry), reasoning=_reasoning(blocks, message)
            )
        case "toolResult":
            segment.result(
                _call_id(message.get("toolCallId")), parts_of(content), time,
                failed=bool(message.get("isError")),
            )  # fmt: skip
        case "bashExecution" if not message.get("excludeFromContext"):
            output = message.get("output") or "(no output)"
            segment.say([f"Ran `{message.get('command')}`\n```\n{output}\n```"], time)
        case "branchSummary" | "compactionSummary":
            segment.say(parts_of(message.get("summary")), time)


def _reasoning(
    blocks: Sequence[Mapping[str, Any]], message: Mapping[str, Any]
) -> list[LoggedReasoning]:
    """Reasoning that goes back to the API that it came from."""
    if message.get("api") not in ("anthropic-messages", "openai-completions"):
        return []
    return [
        LoggedReasoning(str(block.get("thinking") or ""), str(block.get("thinkingSignature") or ""))
        for block in blocks
        if block.get("type") == "thinking"
    ]


def _call_id(id_: Any) -> str:
    """A call's id; those of Responses have the item's id behind a bar, which other APIs refuse."""
    return str(id_ or "").partition("|")[0]


def _usage(entry: Mapping[str, Any]) -> CallUsage | None:
    """What a call was billed.  A fork copies entries with their ids: they count once."""
    message = _message(entry)
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return None
    tokens = {
        "input_tokens": usage.get("input") or 0, "output_tokens": usage.get("output") or 0,
        "cache_read_input_tokens": usage.get("cacheRead") or 0,
        "cache_creation_input_tokens": usage.get("cacheWrite") or 0,
    }  # fmt: skip
    own_id = f"{entry['id']} {entry.get('timestamp')}" if entry.get("id") else ""
    return read_call(tokens, message.get("model"), str(message.get("responseId") or own_id))
