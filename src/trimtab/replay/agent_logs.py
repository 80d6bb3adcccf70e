"""Session files of coding agents as recordings: Claude Code, Codex, opencode.

After a compaction by the client a new recording starts, because later requests no longer repeat
what came before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from trimtab.replay.recording import Recording


@dataclass
class _Segment:
    """Items and their times between two compactions."""

    items: list[Any] = field(default_factory=list)
    times: list[float | None] = field(default_factory=list)

    def add(self, item: Any, time: float | None) -> None:
        self.items.append(item)
        self.times.append(time)


def _seconds(stamp: Any) -> float | None:
    """``"2026-01-28T22:26:39.918Z"`` → seconds since the epoch."""
    if isinstance(stamp, (int, float)) and not isinstance(stamp, bool):
        return stamp / 1000 if stamp > 1e11 else float(stamp)
    try:
        return datetime.fromisoformat(str(stamp).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def _project(cwd: Any) -> str:
    return PurePosixPath(str(cwd).replace("\\", "/")).name if cwd else ""


def _recordings(segments: Sequence[_Segment], id_: str, **rest: Any) -> Iterator[Recording]:
    for number, segment in enumerate(segments):
        recording = Recording(
            id=f"{id_}#{number}" if len(segments) > 1 else id_, messages=segment.items,
            times=tuple(segment.times) if any(segment.times) else (), **rest,
        )  # fmt: skip
        if recording.turns:
            yield recording


# --- Claude Code ------------------------------------------------------------------------------


def is_claude_code(values: Sequence[Any]) -> bool:
    """``.claude/projects/**/*.jsonl``: lines with uuid, parentUuid and a message."""
    return any(
        isinstance(v, dict) and "parentUuid" in v and v.get("type") in ("user", "assistant")
        for v in values[:200]
    )


def claude_code(values: Sequence[Any]) -> Iterator[Recording]:
    """The main conversation, one recording between compactions; then each sidechain."""
    lines = [v for v in values if isinstance(v, dict) and isinstance(v.get("message"), dict)]
    header = next((v for v in lines if v.get("sessionId")), {})
    models = (v["message"].get("model") for v in lines)
    model = next((m for m in models if isinstance(m, str) and m[:1] != "<"), None)
    id_ = str(header.get("sessionId") or "session")
    rest: dict[str, Any] = {"source": _project(header.get("cwd")), "format": "anthropic"}
    main = [v for v in lines if not v.get("isSidechain")]
    yield from _recordings(_claude_segments(main), id_, model=model, task="main", **rest)
    sides: dict[str, list[Any]] = {}
    for value in lines:
        if value.get("isSidechain"):
            sides.setdefault(str(value.get("agentId") or "side"), []).append(value)
    for name, side in sides.items():
        rows = _claude_segments(side)
        yield from _recordings(rows, f"{id_}/{name}", model=model, task="sidechain", **rest)


def _claude_segments(lines: Sequence[Mapping[str, Any]]) -> list[_Segment]:
    """Messages in the order of the file; pieces of one answer share an id and are joined."""
    segments, answers, seen = [_Segment()], dict[str, Any](), set[str]()
    for line in lines:
        if line.get("uuid") in seen or line.get("isApiErrorMessage"):
            continue
        seen.add(str(line.get("uuid")))
        message = line["message"]
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant") or str(message.get("model"))[:1] == "<":
            continue
        if line.get("isCompactSummary") and segments[-1].items:
            segments.append(_Segment())
            answers = {}
        answer = answers.get(str(message.get("id"))) if role == "assistant" else None
        if answer is not None and isinstance(content, list):
            answer["content"] = [*answer["content"], *content]
            continue
        item = {"role": role, "content": content}
        if role == "assistant" and isinstance(content, list) and message.get("id"):
            answers[str(message["id"])] = item
        segments[-1].add(item, _seconds(line.get("timestamp")))
    return segments


# --- Codex ------------------------------------------------------------------------------------


def is_codex(values: Sequence[Any]) -> bool:
    """``rollout-*.jsonl``: lines with a type and a payload."""
    kinds = ("session_meta", "response_item", "turn_context", "event_msg")
    return any(
        isinstance(v, dict) and v.get("type") in kinds and isinstance(v.get("payload"), dict)
        for v in values[:20]
    )


def codex(values: Sequence[Any]) -> Iterator[Recording]:
    """The items sent to Responses; a compaction starts from the history that replaced them."""
    meta: Mapping[str, Any] = {}
    model: str | None = None
    segments = [_Segment()]
    for value in values:
        if not isinstance(value, dict) or not isinstance(value.get("payload"), dict):
            continue
        payload, time = value["payload"], _seconds(value.get("timestamp"))
        match value.get("type"):
            case "session_meta":
                meta = meta or payload
            case "turn_context":
                model = payload.get("model") or model
            case "response_item":
                segments[-1].add(payload, time)
            case "compacted":
                segments.append(_Segment())
                for item in _replacement(payload):
                    segments[-1].add(item, time)
    said = meta.get("base_instructions") or meta.get("instructions")
    yield from _recordings(
        segments, str(meta.get("id") or "rollout"), source=_project(meta.get("cwd")),
        format="openai-responses", model=model,
        system=said.get("text") if isinstance(said, dict) else said,
    )  # fmt: skip


def _replacement(payload: Mapping[str, Any]) -> list[Any]:
    history = payload.get("replacement_history")
    if isinstance(history, list):
        return [item for item in history if isinstance(item, dict)]
    return [{"type": "message", "role": "user", "content": str(payload.get("message", ""))}]


# --- opencode ---------------------------------------------------------------------------------


def is_opencode(values: Sequence[Any]) -> bool:
    """What ``opencode export`` prints: info, and messages that consist of info and parts."""
    first = values[0] if values else None
    messages = first.get("messages") if isinstance(first, dict) else None
    return (
        isinstance(messages, list)
        and bool(messages)
        and isinstance(messages[0], dict)
        and isinstance(messages[0].get("parts"), list)
        and isinstance(messages[0].get("info"), dict)
    )


def opencode(value: Mapping[str, Any]) -> Iterator[Recording]:
    """The conversation as Anthropic messages (opencode keeps no provider's own format)."""
    info = value.get("info") or {}
    segment, model = _Segment(), None
    for message in value.get("messages") or ():
        about, parts = message.get("info") or {}, message.get("parts") or ()
        time = _seconds((about.get("time") or {}).get("created"))
        if about.get("role") == "user":
            texts = [_text(p) for p in parts if p.get("type") == "text" and p.get("text")]
            if texts:
                segment.add({"role": "user", "content": texts}, time)
            continue
        model = about.get("modelID") or model
        for said, results in _steps(parts):
            segment.add({"role": "assistant", "content": said}, time)
            if results:
                segment.add({"role": "user", "content": results}, time)
    yield from _recordings(
        [segment], str(info.get("id") or "session"), source=_project(info.get("directory")),
        format="anthropic", model=model,
    )  # fmt: skip


def _text(part: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "text", "text": part.get("text", "")}


def _steps(parts: Sequence[Mapping[str, Any]]) -> Iterator[tuple[list[Any], list[Any]]]:
    """(what the model said, the results of its calls) of each call of the model."""
    said: list[Any] = []
    results: list[Any] = []
    for part in parts:
        kind = part.get("type")
        if kind == "step-start" and said:
            yield said, results
            said, results = [], []
        elif kind == "text" and part.get("text"):
            said.append(_text(part))
        elif kind == "tool":
            state = part.get("state") or {}
            call_id = str(part.get("callID") or part.get("id") or "")
            failed = state.get("status") == "error"
            output = state.get("error") if failed else state.get("output")
            said.append({
                "type": "tool_use", "id": call_id, "name": str(part.get("tool", "")),
                "input": state.get("input") or {},
            })  # fmt: skip
            result = {"type": "tool_result", "tool_use_id": call_id, "content": str(output or "")}
            results.append(result | ({"is_error": True} if failed else {}))
    if said:
        yield said, results
