"""Copilot CLI: ``~/.copilot/session-state/*/events.jsonl``.

Each line is an event with ``type``, ``data``, ``id`` and ``parentId``.  Events of a subagent name
the tool call that started it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trimtab.formats import FORMATS
from trimtab.logs.branches import Node, branches
from trimtab.logs.neutral import LoggedCall, NeutralSegment, format_for, parts_of
from trimtab.logs.recording import Recording
from trimtab.logs.segments import project, recordings, seconds

_ITEMS = (
    "user.message", "assistant.message", "tool.execution_complete", "system.notification",
    "session.compaction_complete",
)  # fmt: skip

_FOR_THE_MODEL = "<system_notification>"
"""How a notification begins that the model is told; others are for the screen."""


def is_copilot_cli(values: Sequence[Any]) -> bool:
    """Events of a session: a type with a dot, and data."""
    return any(
        isinstance(v, dict)
        and str(v.get("type")) in ("session.start", "user.message", "assistant.message")
        and isinstance(v.get("data"), dict)
        for v in values[:20]
    )


def copilot_cli(values: Sequence[Any]) -> Iterator[Recording]:
    """The conversation, one recording between compactions; then what was taken back; then each
    subagent."""
    events = [v for v in values if isinstance(v, dict) and isinstance(v.get("data"), dict)]
    data = [event["data"] for event in events if event.get("type") == "session.start"]
    head: Mapping[str, Any] = data[0] if data else {}
    context = head.get("context")
    cwd = context.get("cwd") if isinstance(context, dict) else None
    id_ = str(head.get("sessionId") or "session")
    sides: dict[str, list[Any]] = {"": []}
    for event in events:
        sides.setdefault(str(event["data"].get("parentToolCallId") or ""), []).append(event)
    prompts = _prompts(events)
    for name, side in sides.items():
        side_id = f"{id_}/{name}" if name else id_
        for number, branch in enumerate(branches(_nodes(side))):
            chosen = [side[n] for n in branch.items]
            model = _model(chosen) or _model(events)
            start = [] if name else [e for e in events if e.get("type") == "system.message"]
            system = next((str(e["data"].get("content")) for e in start), None)
            yield from recordings(
                _segments(chosen, format_for(model), system, prompts.get(name)),
                f"{side_id}~{number}" if number else side_id, source=project(cwd),
                format=format_for(model), agent="copilot-cli", model=model,
                system=system if FORMATS[format_for(model)].system_key else None,
                task="sidechain" if name else "branch" if number else "main",
            )  # fmt: skip


def _nodes(events: Sequence[Mapping[str, Any]]) -> list[Node]:
    """Events as nodes; what follows a rewind hangs below the event that it went back to."""
    parents = {str(e.get("id")): str(e.get("parentId") or "") for e in events}
    nodes = []
    for number, event in enumerate(events):
        kind, data = event.get("type"), event["data"]
        parent = str(event.get("parentId") or "")
        if kind == "session.snapshot_rewind":
            parent = parents.get(str(data.get("upToEventId")), parent)
        nodes.append(Node(
            str(event.get("id") or f"line {number}"), parent,
            is_item=kind in _ITEMS, is_model=kind == "assistant.message",
        ))  # fmt: skip
    return nodes


def _prompts(events: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Call → the prompt that it gave to a subagent."""
    prompts: dict[str, str] = {}
    for event in events:
        for call in event["data"].get("toolRequests") or ():
            match call:
                case {"toolCallId": str(id_), "arguments": {"prompt": str(prompt)}}:
                    prompts[id_] = prompt
    return prompts


def _model(events: Sequence[Mapping[str, Any]]) -> str | None:
    """The model used last."""
    for event in reversed(events):
        data = event["data"]
        if model := data.get("model") or data.get("newModel") or data.get("selectedModel"):
            return str(model)
    return None


def _segments(
    events: Sequence[Mapping[str, Any]], format: str, system: str | None, prompt: str | None
) -> list[NeutralSegment]:
    def begun() -> NeutralSegment:
        segment = NeutralSegment(format=format)
        if system is not None and not FORMATS[format].system_key:
            segment.add({"role": "system", "content": system}, None)
        return segment

    segments = [begun()]
    if prompt is not None:
        segments[0].say([prompt], None)
    for event in events:
        data, time = event["data"], seconds(event.get("timestamp"))
        match event["type"]:
            case "session.compaction_complete":
                if data.get("success") is not False and data.get("summaryContent"):
                    segments.append(begun())
                    segments[-1].say([str(data["summaryContent"])], time)
                    segments[-1].carried = len(segments[-1].items)
            case "user.message":
                sent = data.get("transformedContent") or data.get("content")
                segments[-1].say(parts_of(sent), time)
            case "system.notification":
                content = str(data.get("content") or "")
                if content.startswith(_FOR_THE_MODEL):
                    segments[-1].say([content], time)
            case "assistant.message":
                segments[-1].answer([str(data.get("content") or "")], _calls(data), time)
            case "tool.execution_complete":
                _add_result(segments[-1], data, time)
    return segments


def _calls(data: Mapping[str, Any]) -> list[LoggedCall]:
    requests = [r for r in data.get("toolRequests") or () if isinstance(r, dict)]
    return [
        LoggedCall(str(r.get("toolCallId")), str(r.get("name")), r.get("arguments") or {})
        for r in requests
    ]


def _add_result(segment: NeutralSegment, data: Mapping[str, Any], time: float | None) -> None:
    """The result as the model saw it; of a failed call, the error."""
    result, error = data.get("result"), data.get("error")
    content = result.get("content") if isinstance(result, dict) else result
    if content is None and isinstance(error, dict):
        content = error.get("message")
    segment.result(
        str(data.get("toolCallId")), parts_of(content), time, failed=data.get("success") is False
    )
