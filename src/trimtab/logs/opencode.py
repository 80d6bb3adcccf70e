"""opencode: the output of ``opencode export``.  Messages consist of info and parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trimtab.logs.recording import Recording
from trimtab.logs.segments import LogSegment, project, recordings, seconds
from trimtab.pricing.call_usage import CallUsage, read_call


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


def opencode(values: Sequence[Any]) -> Iterator[Recording]:
    """The conversation as Anthropic messages (opencode's log has a format of its own)."""
    value: Mapping[str, Any] = values[0]
    info = value.get("info") or {}
    segment, model = LogSegment(), None
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
            usage = _usage(tokens, model)
            segment.add({"role": "assistant", "content": answer}, time, usage)
            if results:
                segment.add({"role": "user", "content": results}, time)
    yield from recordings(
        [segment], str(info.get("id") or "session"), source=project(info.get("directory")),
        format="anthropic", model=model, agent="opencode",
    )  # fmt: skip


def _usage(tokens: Any, model: str | None) -> CallUsage | None:
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
