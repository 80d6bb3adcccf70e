"""Session logs of coding agents with usage, and logs of runs against the strict provider."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trimtab_lab.testing import StrictProvider

MODEL = "claude-sonnet-4-5-20250929"
START = 1_790_000_000.0
"""2026-09-21, seconds since the epoch."""


def stamp(seconds: float) -> str:
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S.000Z}"


def claude_usage(read: int, five: int, hour: int, plain: int, output: int) -> dict[str, Any]:
    return {
        "input_tokens": plain, "cache_read_input_tokens": read,
        "cache_creation_input_tokens": five + hour, "output_tokens": output,
        "cache_creation": {"ephemeral_5m_input_tokens": five, "ephemeral_1h_input_tokens": hour},
    }  # fmt: skip


def claude_line(
    role: str, content: Any, seconds: float, *, session: str = "s1", answer: str = "",
    usage: Mapping[str, Any] | None = None, model: str = MODEL, **more: Any,
) -> dict[str, Any]:  # fmt: skip
    """One line of a session file of Claude Code."""
    message: dict[str, Any] = {"role": role, "content": content}
    if role == "assistant":
        message |= {"id": answer, "model": model, "usage": usage}
    return {
        "type": role, "uuid": f"{session}-{seconds}-{answer}-{str(content)[:40]}",
        "parentUuid": None, "sessionId": session, "cwd": "/home/me/project",
        "timestamp": stamp(seconds), "message": message, **more,
    }  # fmt: skip


def codex_line(kind: str, payload: Any, seconds: float) -> dict[str, Any]:
    """One line of a rollout file of Codex."""
    return {"timestamp": stamp(seconds), "type": kind, "payload": payload}


def as_lines(values: Sequence[Any]) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def words(seed: int, count: int) -> str:
    rng = random.Random(seed)
    return " ".join(f"{rng.choice(_WORDS)}{rng.randrange(1000)}" for _ in range(count))


_WORDS = ("parser", "window", "socket", "ledger", "prefix", "module", "column", "handle")


def provider_run(
    seed: int,
    turns: int,
    gaps: Sequence[float],
    *,
    marked: bool = True,
    counter: Callable[[str], int] | str = "o200k",
) -> tuple[list[dict[str, Any]], StrictProvider]:
    """A conversation with the strict provider, whose cache expires by the same clock.

    Returns the logged requests with their answers, and the provider with its own records.
    """
    rng, now = random.Random(seed), [START + seed * 100_000.0]
    provider = StrictProvider(
        window=200_000, counter=counter, clock=lambda: now[0],
        answer=f"I read it. {words(seed, 60)}",
    )  # fmt: skip
    messages: list[dict[str, Any]] = []
    log: list[dict[str, Any]] = []
    system = [{"type": "text", "text": words(seed, 700)}]
    for turn in range(turns):
        if turn:
            now[0] += gaps[(turn - 1) % len(gaps)]
        text = words(1000 * seed + turn, rng.randrange(100, 900))
        part: dict[str, Any] = {"type": "text", "text": text}
        messages = [*messages, {"role": "user", "content": [part]}]
        sent = [*messages[:-1], {"role": "user", "content": [_marked(part) if marked else part]}]
        body = {"model": MODEL, "max_tokens": 500, "system": system, "messages": sent}
        response = provider.respond("POST", "/v1/messages", "", {}, json.dumps(body).encode())
        answer = json.loads(b"".join(response.chunks))
        assert response.status == 200, answer
        plain = {**body, "messages": messages}
        log.append({"time": now[0], "request": plain, "response": answer})
        messages = [*messages, {"role": "assistant", "content": answer["content"]}]
    return log, provider


def _marked(part: dict[str, Any]) -> dict[str, Any]:
    return {**part, "cache_control": {"type": "ephemeral"}}
