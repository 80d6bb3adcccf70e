"""Our own records, request bodies and logs of requests, as recordings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, zip_longest
from typing import Any

from trimtab import formats
from trimtab.errors import TrimtabError
from trimtab.formats import FORMATS
from trimtab.formats.registry import MESSAGE_LISTS
from trimtab.logs.claude_code import claude_code
from trimtab.logs.codex import codex
from trimtab.logs.recording import Recording
from trimtab.logs.segments import seconds
from trimtab.pricing.call_usage import CallUsage, read_call

FoundRecording = tuple[int, Recording | str]
"""(line number, recording or the reason why there is none)."""

_BODY_KEYS = ("body", "request", "request_body", "requestBody", "payload", "kwargs")
_ANSWER_KEYS = ("response", "response_body", "responseBody", "result", "output")
_TIME_KEYS = ("time", "timestamp", "ts", "created_at", "date")
_BESIDE = {"model", "modelId", "system", "instructions", "systemInstruction", "tools", "toolConfig"}


def request_recordings(
    lines: Sequence[tuple[int, Any]], *, source: str, origin: str
) -> Iterator[FoundRecording]:
    """The conversation of each record, and those that logged requests make together."""
    log: list[tuple[int, Recording]] = []
    for line, value in lines:
        try:
            if _is_record(value):
                for found in _record(value, source):
                    yield line, found.renamed(source=found.source or source, origin=origin)
                continue
            recording = _logged(value, f"{source}:{line}")
        except (TrimtabError, TypeError, ValueError, KeyError, AttributeError) as error:
            yield line, f"{type(error).__name__}: {error}".replace("\n", " ")[:160]
            continue
        if recording is None:
            yield line, _what(value)
        else:
            log.append((line, recording.renamed(source=source, origin=origin)))
    yield from _joined(log)


def _what(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"no request or record: an object with the keys {', '.join(list(value)[:5])}"
    return f"no request or record: a {type(value).__name__}"


# --- our own records -------------------------------------------------------------------------


def _is_record(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("format"), str)
        and isinstance(value.get("messages"), list)
    )


def _record(record: Mapping[str, Any], source: str) -> Iterator[Recording]:
    """A record: native items of ``format``, or the raw lines of a session."""
    meta = record.get("meta") or {}
    name, id_ = record["format"], str(record.get("id") or source)
    task = str(meta.get("category") or meta.get("kind") or "")
    if name in ("claude-code-jsonl", "codex-jsonl"):
        read = claude_code if name.startswith("claude") else codex
        parts = [part for part in read(record["messages"]) if part.turns]
        for number, part in enumerate(parts):
            yield part.renamed(source="", id=f"{id_}#{number}", task=task)
        return
    if name not in FORMATS:
        raise ValueError(f"no format {name!r}")
    messages, system = record["messages"], record.get("system")
    if not FORMATS[name].system_key and system is not None:
        messages = [{"role": "system", "content": system}, *messages]
        system = None
    times = meta.get("times") or ()
    yield Recording(
        source="", id=id_, format=name, messages=messages, model=record.get("model"),
        system=system, tools=record.get("tools"), params=meta.get("params") or {},
        times=tuple(times) if len(times) == len(messages) else (), task=task,
    )  # fmt: skip


# --- bodies and logs of requests -------------------------------------------------------------


def _logged(value: Any, id_: str) -> Recording | None:
    """A recording of a body, a bare list of messages, or a log line with a body and maybe its
    answer; None for anything else."""
    answer: Any = None
    body = value
    if isinstance(value, dict) and not _is_body(value):
        for key in _BODY_KEYS:
            inner = value.get(key)
            if isinstance(inner, str) and inner[:1] in ("{", "["):
                inner = json.loads(inner)
            if isinstance(inner, dict) and not _is_body(inner) and "body" in inner:
                inner = inner["body"]
            if _is_body(inner):
                body = inner
                break
        else:
            return None
        answer = next((value[key] for key in _ANSWER_KEYS if value.get(key) is not None), None)
    if not isinstance(body, (dict, list)) or not body:
        return None
    format, _ = formats.find(body)
    if isinstance(body, list):
        return Recording("", id_, format.name, body)
    messages = body.get(format.messages_key)
    if not isinstance(messages, list):
        return None
    tools = body.get(format.table.tools.path[0])
    params = {k: v for k, v in body.items() if k not in _BESIDE and k != format.messages_key}
    model, answered = body.get("model") or body.get("modelId"), _answer(answer)
    return Recording(
        "", id_, format.name, [*messages, *answered], model=model, tools=tools, params=params,
        usages=_usages(len(messages), answered, _usage(_body_of(answer), model, _time(value))),
        times=_times(len(messages), answered, _time(value)),
        system=body.get("system") or body.get("instructions") or body.get("systemInstruction"),
    )  # fmt: skip


def _usage(answer: Any, model: Any, when: float | None) -> CallUsage | None:
    """What an answer was billed, with its id: a line that is in the log twice counts once.

    With its time, as some servers count their ids from 1 at each start.
    """
    id_ = answer.get("id") if isinstance(answer, Mapping) else None
    return read_call(answer, model, f"{id_} {when}" if id_ and when is not None else "")


def _usages(before: int, answer: Sequence[Any], usage: CallUsage | None) -> tuple[Any, ...]:
    """``Recording.usages`` with an answer's usage at its first item."""
    return (*[None] * before, usage, *[None] * (len(answer) - 1)) if answer and usage else ()


def _time(line: Any) -> float | None:
    """The time of a log line, None where it has none."""
    values = (line.get(key) for key in _TIME_KEYS) if isinstance(line, dict) else iter(())
    return next((time for time in map(seconds, values) if time is not None), None)


def _times(before: int, answer: Sequence[Any], when: float | None) -> tuple[float | None, ...]:
    """``Recording.times`` with the time of the log line at its answer's first item."""
    if not answer or when is None:
        return ()
    return (*[None] * before, when, *[None] * (len(answer) - 1))


def _is_body(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, dict) for item in value)
    if not isinstance(value, dict):
        return False
    return any(isinstance(value.get(key), list) for key in MESSAGE_LISTS)


def _answer(answer: Any) -> list[Any]:
    """The model's message in a provider's answer, as items of a history; [] if unreadable."""
    answer = _body_of(answer)
    if not isinstance(answer, dict):
        return []
    match answer:
        case {"choices": [{"message": dict(message)}, *_]}:
            return [{"role": "assistant", **message}]
        case {"output": {"message": dict(message)}} | {"candidates": [{"content": dict(message)}]}:
            return [message]
        case {"output": [*items]} | {"role": "assistant", "content": [*_], "output": [*items]}:
            return items
        case {"role": "assistant", "content": content}:
            return [{"role": "assistant", "content": content}]
    return []


def _body_of(answer: Any) -> Any:
    """The body of an answer that was logged as text, or with its envelope."""
    if isinstance(answer, str) and answer[:1] == "{":
        try:
            answer = json.loads(answer)
        except ValueError:
            return None
    if isinstance(answer, dict) and isinstance(answer.get("body"), dict):
        return answer["body"]
    return answer


def _joined(log: Sequence[tuple[int, Recording]]) -> Iterator[FoundRecording]:
    """Join requests that each repeat the previous one into one conversation; keep the longest.

    Logs interleave conversations, so a request joins the first open one that it extends.
    """
    joined: list[tuple[int, Recording]] = []
    by_start: dict[str, list[int]] = {}
    for line, recording in log:
        start = json.dumps([recording.format, recording.messages[:1]], sort_keys=True, default=str)
        places = by_start.setdefault(start, [])
        for place in places:
            shared = _shared(joined[place][1].messages, recording.messages)
            # The older one's last answer may be written differently when it is sent back.
            if shared >= min(max(len(joined[place][1].messages) - 1, 1), len(recording.messages)):
                if _pays_again(joined[place][1], recording):
                    continue
                if len(recording.messages) >= len(joined[place][1].messages):
                    joined[place] = (joined[place][0], _going_on(joined[place][1], recording))
                break
        else:
            places.append(len(joined))
            joined.append((line, recording))
    yield from joined


def _pays_again(old: Recording, new: Recording) -> bool:
    """Whether ``new`` was billed for what ``old`` was billed for as well: an answer that was asked
    for anew.  As a recording of its own it stays in the bill."""
    if len(new.messages) < len(old.messages):
        return any(usage and usage not in old.usages for usage in new.usages)
    pairs = zip(old.usages, new.usages, strict=False)
    return any(before and now and before != now for before, now in pairs)


def _going_on(old: Recording, new: Recording) -> Recording:
    """``new``, which continues ``old``, with the usages and times of both."""

    def both(before: Sequence[Any], now: Sequence[Any]) -> tuple[Any, ...]:
        pairs = zip_longest(before, now[: len(new.messages)])
        values = tuple(first if later is None else later for first, later in pairs)
        missing = len(new.messages) - len(values)
        return (*values, *[None] * missing)[: len(new.messages)] if before or now else ()

    return new.renamed(
        id=old.id, usages=both(old.usages, new.usages), times=both(old.times, new.times)
    )


def _shared(old: Sequence[Any], new: Sequence[Any]) -> int:
    """How many leading messages are equal."""
    pairs = zip(count(), old, new, strict=False)
    return next((n for n, a, b in pairs if a != b), min(len(old), len(new)))
