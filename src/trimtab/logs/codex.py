"""Codex: ``~/.codex/sessions/**/rollout-*.jsonl``, lines with a type and a payload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trimtab.logs.recording import Recording
from trimtab.logs.segments import LogSegment, project, recordings, seconds
from trimtab.pricing.call_usage import read_call


def is_codex(values: Sequence[Any]) -> bool:
    """``rollout-*.jsonl``: lines with a type and a payload."""
    kinds = ("session_meta", "response_item", "turn_context", "event_msg")
    return any(
        isinstance(v, dict) and v.get("type") in kinds and isinstance(v.get("payload"), dict)
        for v in values[:20]
    )


def codex(values: Sequence[Any]) -> Iterator[Recording]:
    """The items sent to Responses; after a compaction, beginning with the replaced history.  Then
    what the user took back."""
    meta: Mapping[str, Any] = {}
    model: str | None = None
    segments, before = [LogSegment()], None
    withdrawn: list[LogSegment] = []
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
                before = _usage(payload, model, before, segments[-1])
            case "event_msg" if payload.get("type") == "thread_rolled_back":
                kept = _rolled_back(segments[-1], payload.get("num_turns"))
                if any(map(_is_said, segments[-1].items[len(kept.items) :])):
                    withdrawn.insert(0, segments[-1])
                segments[-1] = kept
            case "compacted":
                replacement = _replacement(payload)
                segments.append(LogSegment(carried=len(replacement)))
                for item in replacement:
                    segments[-1].add(item, time)
    instructions = meta.get("base_instructions") or meta.get("instructions")
    id_ = str(meta.get("id") or "rollout")
    common: dict[str, Any] = {
        "source": project(meta.get("cwd")), "format": "openai-responses", "model": model,
        "agent": "codex",
        "system": instructions.get("text") if isinstance(instructions, dict) else instructions,
    }  # fmt: skip
    yield from recordings(segments, id_, **common)
    for number, segment in enumerate(withdrawn, 1):
        yield from recordings([segment], f"{id_}~{number}", task="branch", **common)


def _usage(payload: Mapping[str, Any], model: str | None, before: Any, segment: LogSegment) -> Any:
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


_CONTEXT = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions")
"""How messages begin that the client writes in the user's name."""


def _rolled_back(segment: LogSegment, turns: Any) -> LogSegment:
    """A segment without the last ``turns`` messages of the user and all that followed."""
    user_turns = [number for number, item in enumerate(segment.items) if _is_user_turn(item)]
    count = turns if isinstance(turns, int) and turns > 0 else 1
    end = user_turns[-min(count, len(user_turns))] if user_turns else len(segment.items)
    return LogSegment(
        segment.items[:end], segment.times[:end], segment.usages[:end],
        min(segment.carried, end), segment.window,
    )  # fmt: skip


def _is_user_turn(item: Mapping[str, Any]) -> bool:
    if item.get("role") != "user":
        return False
    content = item.get("content")
    first = content[0] if isinstance(content, list) and content else {"text": content}
    text = str(first.get("text") or "") if isinstance(first, dict) else ""
    return not text.lstrip().startswith(_CONTEXT)


def _is_said(item: Mapping[str, Any]) -> bool:
    """Whether the model wrote this item."""
    kind = str(item.get("type", ""))
    return kind == "reasoning" or kind.endswith("_call") or item.get("role") == "assistant"


def _replacement(payload: Mapping[str, Any]) -> list[Any]:
    history = payload.get("replacement_history")
    if isinstance(history, list):
        return [item for item in history if isinstance(item, dict)]
    return [{"type": "message", "role": "user", "content": str(payload.get("message", ""))}]
