"""Unwraps the envelopes that providers, gateways and SDKs put around an error, innermost first."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_DEPTH = 6
_CHARS = 20_000
"""Only so many chars of a text are read; errors are short."""
_ITEMS = 3
_TEXTS = ("message", "Message", "msg", "detail", "details", "error_description", "title",
          "status_msg")  # fmt: skip
_TAGS = ("code", "error_code", "Code", "type", "status", "__type", "finish_reason", "stop_reason",
         "stopReason")  # fmt: skip
_INSIDE = (
    *("error", "Error", "errors", "response", "metadata", "raw", "last_error", "detail", "details"),
    *("delta", "base_resp"),
)
_SSE = re.compile(r"^(?:event|data|id|retry)?:", re.MULTILINE)
_NUMBERS = ("n_prompt_tokens", "n_ctx", "prompt_eval_count")


@dataclass(frozen=True, slots=True)
class NestedError:
    """One error as one envelope gives it: its text, its codes, its machine-readable numbers."""

    text: str
    tags: str = ""
    numbers: Mapping[str, int] = field(default_factory=dict)
    place: str = ""
    """Where in the request the error is, as ``param`` or pydantic's ``loc`` say it."""


def nested_errors(body: Any) -> Iterator[NestedError]:
    """Every error in ``body``, the innermost first; none for an empty body."""
    yield from _walk(body, 0)


def _walk(value: Any, depth: int) -> Iterator[NestedError]:
    if depth > _DEPTH or value is None:
        return
    if isinstance(value, (bytes, bytearray, memoryview)):
        value = bytes(value)[: 4 * _CHARS].decode("utf-8", "replace")
    if isinstance(value, str):
        yield from _text(value[:_CHARS], depth)
    elif isinstance(value, Mapping):
        yield from _object(value, depth)
    elif isinstance(value, (list, tuple)):
        for item in value[:_ITEMS]:
            yield from _walk(item, depth + 1)


def _text(text: str, depth: int) -> Iterator[NestedError]:
    """The errors in JSON within ``text`` (prose may surround it), then the text itself."""
    stripped = text.strip()
    if not stripped:
        return
    if _SSE.match(stripped):
        for line in stripped.splitlines():
            if line.startswith("data:"):
                yield from _walk(line[5:], depth + 1)
        return
    inner = _json_within(stripped)
    if inner is not None:
        yield from _walk(inner, depth + 1)
    if inner is None or stripped[0] not in "{[":
        yield NestedError(stripped)


def _json_within(text: str) -> Any:
    """The first JSON object or list in ``text``, or a Python literal of one; None if there is
    none."""
    start = min((at for at in (text.find("{"), text.find("[{")) if at >= 0), default=-1)
    if start < 0:
        return None
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, start)[0]
    except RecursionError:
        return None
    except ValueError:
        pass
    try:
        return ast.literal_eval(text[start : text.rindex("}") + 1])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _object(error: Mapping[Any, Any], depth: int) -> Iterator[NestedError]:
    for key in _INSIDE:
        if key in error and not isinstance(error[key], (int, float)):
            yield from _walk(error[key], depth + 1)
    if isinstance(error.get("message"), (Mapping, list)):
        yield from _walk(error["message"], depth + 1)
    if error.get("raw") == "ERROR":
        yield NestedError("", "raw:ERROR")
    for key, value in error.items():
        named = isinstance(key, str) and key.endswith(("Exception", "Error"))
        if named and isinstance(value, Mapping):
            yield from _walk({"code": key, **value}, depth + 1)
    if isinstance(error.get("choices"), list):
        yield from _walk(error["choices"][:1], depth + 1)
    texts = [error[key] for key in _TEXTS if isinstance(error.get(key), str)]
    for text in texts:
        if "{" in text:
            yield from _walk(text, depth + 1)
    param = error.get("param")
    if isinstance(param, str) and " " in param:
        texts.append(param)
    tags = [str(error[key]) for key in _TAGS if isinstance(error.get(key), (str, int))]
    numbers = {key: error[key] for key in _NUMBERS if type(error.get(key)) is int}
    if texts or tags or numbers:
        yield NestedError("\n".join(texts)[:_CHARS], " ".join(tags), numbers, _place(error))


def _place(error: Mapping[Any, Any]) -> str:
    """``param``, or ``loc`` with its steps joined: ``body.messages.3.reasoning_content``."""
    loc, param = error.get("loc"), error.get("param")
    if isinstance(loc, (list, tuple)):
        return ".".join(str(step) for step in loc)
    return param if isinstance(param, str) and " " not in param else ""
