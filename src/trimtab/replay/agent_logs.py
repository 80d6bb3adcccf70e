"""Reads session files of coding agents as recordings: Claude Code, Codex, opencode.

After a compaction by the client a new recording starts, because later requests no longer repeat
the earlier messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from trimtab.pricing.call_usage import CallUsage, read_call
from trimtab.replay.recording import Recording


@dataclass
class _Segment:
    """Items between two compactions, with their times and the billed usage of model calls.

    ``carried``: how many leading items the compaction put in place of the earlier history.
    """

    items: list[Any] = field(default_factory=list)
    times: list[float | None] = field(default_factory=list)
    usages: list[CallUsage | None] = field(default_factory=list)
    carried: int = 0
    window: int = 0

    def add(self, item: Any, time: float | None, usage: CallUsage | None = None) -> None:
        self.items.append(item)
        self.times.append(time)
        self.usages.append(usage)


def seconds(stamp: Any) -> float | None:
    """``"2026-01-28T22:26:39.918Z"`` → seconds since the epoch; None for what is no time."""
    try:
        if isinstance(stamp, (int, float)) and not isinstance(stamp, bool):
            time = stamp / 1000 if stamp > 1e11 else float(stamp)
            datetime.fromtimestamp(time, UTC)
            return time
        return datetime.fromisoformat(str(stamp).replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _project(cwd: Any) -> str:
    return PurePosixPath(str(cwd).replace("\\", "/")).name if cwd else ""


def _recordings(segments: Sequence[_Segment], id_: str, **common: Any) -> Iterator[Recording]:
    for number, segment in enumerate(segments):
        recording = Recording(
            id=f"{id_}#{number}" if len(segments) > 1 else id_, messages=segment.items,
            times=tuple(segment.times) if any(segment.times) else (),
            usages=tuple(segment.usages) if any(segment.usages) else (),
            session=id_, carried=segment.carried if number else 0, window=segment.window, **common,
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
    common: dict[str, Any] = {
        "source": _project(header.get("cwd")), "format": "anthropic", "agent": "claude-code",
    }  # fmt: skip
    main = [v for v in lines if not v.get("isSidechain")]
    yield from _recordings(_claude_segments(main), id_, model=model, task="main", **common)
    sides: dict[str, list[Any]] = {}
    for value in lines:
        if value.get("isSidechain"):
            sides.setdefault(str(value.get("agentId") or "side"), []).append(value)
    for name, side in sides.items():
        rows = _claude_segments(side)
        yield from _recordings(rows, f"{id_}/{name}", model=model, task="sidechain", **common)


def _claude_segments(lines: Sequence[Mapping[str, Any]]) -> list[_Segment]:
    """Messages in the order of the file; pieces of one answer share an id and are joined."""
    segments, answers, seen = [_Segment()], dict[str, int](), set[str]()
    for line in lines:
        if line.get("uuid") in seen or line.get("isApiErrorMessage"):
            continue
        seen.add(str(line.get("uuid")))
        message = line["message"]
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant") or str(message.get("model"))[:1] == "<":
            continue
        if line.get("isCompactSummary") and segments[-1].items:
            segments.append(_Segment(carried=1))
            answers = {}
        segment, usage = segments[-1], _claude_usage(message) if role == "assistant" else None
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
    return segments


def _claude_usage(message: Mapping[str, Any]) -> CallUsage | None:
    return read_call(message.get("usage"), message.get("model"), str(message.get("id") or ""))


# --- Codex ------------------------------------------------------------------------------------


def is_codex(values: Sequence[Any]) -> bool:
    """``rollout-*.jsonl``: lines with a type and a payload."""
    kinds = ("session_meta", "response_item", "turn_context", "event_msg")
    return any(
        isinstance(v, dict) and v.get("type") in kinds and isinstance(v.get("payload"), dict)
        for v in values[:20]
    )


def codex(values: Sequence[Any]) -> Iterator[Recording]:
    """The items sent to Responses; after a compaction, beginning with the replaced history."""
    meta: Mapping[str, Any] = {}
    model: str | None = None
    segments, before = [_Segment()], None
    for value in values:
        if not isinstance(value, dict) or not isinstance(value.get("payload"), dict):
            continue
        payload, time = value["payload"], seconds(value.get("timestamp"))
        match value.get("type"):
            case "session_meta":
                meta = meta or payload
            case "turn_context":
                model = payload.get("model") or model
            case "response_item":
                segments[-1].add(payload, time)
            case "event_msg" if payload.get("type") == "token_count":
                before = _codex_usage(payload, model, before, segments[-1])
            case "compacted":
                replacement = _replacement(payload)
                segments.append(_Segment(carried=len(replacement)))
                for item in replacement:
                    segments[-1].add(item, time)
    instructions = meta.get("base_instructions") or meta.get("instructions")
    yield from _recordings(
        segments, str(meta.get("id") or "rollout"), source=_project(meta.get("cwd")),
        format="openai-responses", model=model, agent="codex",
        system=instructions.get("text") if isinstance(instructions, dict) else instructions,
    )  # fmt: skip


def _codex_usage(
    payload: Mapping[str, Any], model: str | None, before: Any, segment: _Segment
) -> Any:
    """Record a token count as the usage of the model's last item; return its running total.

    The client logs the same count again without a new call: then the running total is unchanged
    and the count is ignored.
    """
    info = payload.get("info")
    if not isinstance(info, Mapping) or info.get("total_token_usage") == before:
        return before
    usage = read_call(info.get("last_token_usage"), model)
    own_items = range(segment.carried, len(segment.items))
    last_said = next(
        (number for number in reversed(own_items) if _is_said(segment.items[number])), None
    )
    if usage is not None and last_said is not None:
        segment.usages[last_said] = usage
        segment.window = info.get("model_context_window") or segment.window
    return info.get("total_token_usage")


def _is_said(item: Mapping[str, Any]) -> bool:
    """Whether the model wrote this item."""
    kind = str(item.get("type", ""))
    return kind == "reasoning" or kind.endswith("_call") or item.get("role") == "assistant"


def _replacement(payload: Mapping[str, Any]) -> list[Any]:
    history = payload.get("replacement_history")
    if isinstance(history, list):
        return [item for item in history if isinstance(item, dict)]
    return [{"type": "message", "role": "user", "content": str(payload.get("message", ""))}]


# --- opencode ---------------------------------------------------------------------------------


def is_opencode(values: Sequence[Any]) -> bool:
    """The output of ``opencode export``: info, and messages that consist of info and parts."""
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
    """The conversation as Anthropic messages (opencode's log has a format of its own)."""
    info = value.get("info") or {}
    segment, model = _Segment(), None
    for message in value.get("messages") or ():
        about, parts = message.get("info") or {}, message.get("parts") or ()
        time = seconds((about.get("time") or {}).get("created"))
        if about.get("role") == "user":
            texts = [_text(p) for p in parts if p.get("type") == "text" and p.get("text")]
            if texts:
                segment.add({"role": "user", "content": texts}, time)
            continue
        model = about.get("modelID") or model
        for answer, results, tokens in _steps(parts):
            usage = _opencode_usage(tokens, model)
            segment.add({"role": "assistant", "content": answer}, time, usage)
            if results:
                segment.add({"role": "user", "content": results}, time)
    yield from _recordings(
        [segment], str(info.get("id") or "session"), source=_project(info.get("directory")),
        format="anthropic", model=model, agent="opencode",
    )  # fmt: skip


def _opencode_usage(tokens: Any, model: str | None) -> CallUsage | None:
    """The billed usage of a step; opencode reports cached tokens separately from the input."""
    if not isinstance(tokens, Mapping) or not isinstance(tokens.get("input"), int):
        return None
    cache = tokens.get("cache") or {}
    usage = {
        "input_tokens": tokens["input"], "cache_read_input_tokens": cache.get("read") or 0,
        "cache_creation_input_tokens": cache.get("write") or 0,
        "output_tokens": (tokens.get("output") or 0) + (tokens.get("reasoning") or 0),
    }  # fmt: skip
    return read_call(usage, model)


def _text(part: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "text", "text": part.get("text", "")}


def _steps(parts: Sequence[Mapping[str, Any]]) -> Iterator[tuple[list[Any], list[Any], Any]]:
    """(parts of the answer, results of its tool calls, its tokens) of each model call."""
    answer: list[Any] = []
    results: list[Any] = []
    tokens: Any = None
    for part in parts:
        kind = part.get("type")
        if kind == "step-start" and answer:
            yield answer, results, tokens
            answer, results, tokens = [], [], None
        elif kind == "step-finish":
            tokens = part.get("tokens")
        elif kind == "text" and part.get("text"):
            answer.append(_text(part))
        elif kind == "tool":
            state = part.get("state") or {}
            call_id = str(part.get("callID") or part.get("id") or "")
            failed = state.get("status") == "error"
            output = state.get("error") if failed else state.get("output")
            answer.append({
                "type": "tool_use", "id": call_id, "name": str(part.get("tool", "")),
                "input": state.get("input") or {},
            })  # fmt: skip
            result = {"type": "tool_result", "tool_use_id": call_id, "content": str(output or "")}
            results.append(result | ({"is_error": True} if failed else {}))
    if answer:
        yield answer, results, tokens
