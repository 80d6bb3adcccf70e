"""What recall needs of a request, by the format's table: its history, and the model's turns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from trimtab.formats import FORMATS


def texts(content: Any) -> list[str]:
    """The texts of a content, stripped of surrounding whitespace."""
    if isinstance(content, str):
        return [content.strip()]
    parts = content if isinstance(content, list) else []
    values = [part.get("text") for part in parts if isinstance(part, dict)]
    return [text.strip() for text in values if isinstance(text, str)]


def texts_and_calls(format: str, message: Any) -> list[str]:
    """The texts and calls of a model's message, as the client must send them back."""
    table = FORMATS[format].table
    parts = list(table.read(message))
    spoken = [part.payload.strip() for part in parts if part.kind == "text"]
    calls = [part for part in parts if part.kind == "call"]
    if not table.ids_optional:
        return [*spoken, *(call.id for call in calls)]
    # A stream brings one text in many parts.
    return ["".join(spoken), *(_named(call.name, call.payload) for call in calls)]


def _named(name: str, arguments: Any) -> str:
    if isinstance(arguments, str):
        with suppress(ValueError):
            arguments = json.loads(arguments)
    return f"{name} {json.dumps(arguments, sort_keys=True)}"


def history(format: str, body: Any) -> list[Any]:
    """The messages of a request; a plain text counts as one user message."""
    messages = body.get(FORMATS[format].table.messages)
    if isinstance(messages, str):
        return [FORMATS[format].text_message("user", messages)]
    return messages if isinstance(messages, list) else []


def with_turn(format: str, body: Any, real: list[Any], results: list[Any]) -> Any:
    """The request, extended by a model turn and the results of its recalls."""
    kind = FORMATS[format]
    if kind.results_in_user and results:
        results = [kind.results_message(results)]
    return {**body, kind.table.messages: [*history(format, body), *real, *results]}


def runs(format: str, messages: list[Any]) -> Iterator[tuple[int, int]]:
    """The (start, end) of each model turn: one message, or consecutive items; end is exclusive."""
    table, at = FORMATS[format].table, 0

    def is_model(message: Any) -> bool:
        return isinstance(message, dict) and table.speaker(message) == "assistant"

    while at < len(messages):
        end = at
        while end < len(messages) and is_model(messages[end]):
            end += 1
            if not table.of_items:
                break
        if end > at:
            yield at, end
        at = max(end, at + 1)
