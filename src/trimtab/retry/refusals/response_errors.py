"""Finds errors sent with HTTP 200, in a body or in an event of a stream, in the six formats."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from trimtab.formats import FORMATS

Verdict = Literal["", "content", "refused"]
"""The verdict on one event: undecided (""), content for the client, or a refusal."""

_WINDOW = "model_context_window_exceeded"
_ANSWERS = [format.rewriter.answers for format in FORMATS.values()]
_BEGINNINGS = frozenset(("keepalive", "ping", *(kind for one in _ANSWERS for kind in one.opening)))
"""Events that say only that something begins."""
_STOPS = [one.stop for one in _ANSWERS if one.stop]
_CONTENT = (*FORMATS["openai-chat"].table.parts, "refusal", "audio")


def event_verdict(event: Any) -> Verdict:
    """The verdict on one parsed event of a stream."""
    if not isinstance(event, Mapping):
        return "content"
    kind = event.get("type")
    if event.get("error") or kind in ("error", "response.failed") or _code_beside(event):
        return "refused"
    if kind in _BEGINNINGS:
        return ""
    if _WINDOW in (_stop(event.get("delta")), _stop(event)):
        return "refused"
    if isinstance(event.get("choices"), list):
        return _of_choices(event["choices"])
    return "content"


def _of_choices(choices: list[Any]) -> Verdict:
    choice = choices[0] if choices and isinstance(choices[0], Mapping) else {}
    message = choice.get("delta") or choice.get("message") or {}
    if isinstance(message, Mapping) and any(message.get(key) for key in _CONTENT):
        return "content"
    if _stop(choice) == _WINDOW:
        return "refused"
    return "content" if _stop(choice) or not choices else ""


def error_in_body(body: bytes | str | Any) -> Any:
    """The error in a body that is not a stream; None if the body is an answer."""
    tree = _parsed(body)
    if isinstance(tree, list) and tree:
        tree = tree[0]
    if not isinstance(tree, Mapping):
        return b"" if not body else None
    if tree.get("error") and not tree.get("output"):
        return tree
    if tree.get("status") == "failed" or _code_beside(tree):
        return tree
    whole = isinstance(tree.get("choices"), list) and _of_choices(tree["choices"]) == "refused"
    empty = not tree.get("content") and not _said_by(tree.get("output"))
    return tree if whole or (_stop(tree) == _WINDOW and empty) else None


def _code_beside(tree: Mapping[str, Any]) -> Any:
    """MiniMax's status code in ``base_resp``; not 0 for an error."""
    status = tree.get("base_resp")
    return isinstance(status, Mapping) and not tree.get("choices") and status.get("status_code")


def _said_by(output: Any) -> Any:
    """The content of a Converse answer; any other ``output`` as it is."""
    message = output.get("message") if isinstance(output, Mapping) else None
    return message.get("content") if isinstance(message, Mapping) else output


def _stop(value: Any) -> Any:
    answer = value if isinstance(value, Mapping) else {}
    return next((answer[key] for key in _STOPS if answer.get(key)), None)


def prompt_tokens(body: bytes | str | Any) -> int | None:
    """All prompt tokens by an answer's usage, cached ones included; None if it has no usage."""
    tree = _parsed(body)
    if not isinstance(tree, Mapping):
        return None
    if type(tree.get("prompt_eval_count")) is int:
        return int(tree["prompt_eval_count"])
    around = tree.get("response") or tree.get("message")  # the last event of Responses, the first
    if "usage" not in tree and isinstance(around, Mapping):  # of Messages
        tree = around
    usage = tree.get("usage") or tree.get("usageMetadata")
    if not isinstance(usage, Mapping):
        return None
    for key in ("prompt_tokens", "promptTokenCount"):
        if type(usage.get(key)) is int:
            return int(usage[key]) + _left_out(usage, int(usage[key]))
    names = ("input_tokens", "inputTokens")
    tokens = next((usage[name] for name in names if type(usage.get(name)) is int), None)
    if tokens is None:
        return None
    more = ("cache_read_input_tokens", "cache_creation_input_tokens",
            "cacheReadInputTokens", "cacheWriteInputTokens")  # fmt: skip
    return int(tokens + sum(usage[name] for name in more if type(usage.get(name)) is int))


def _left_out(usage: Mapping[str, Any], total: int) -> int:
    """Cached tokens that a gateway left out of its total: known by being more than the total."""
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    return cached if type(cached) is int and cached > total else 0


def _parsed(body: Any) -> Any:
    if not isinstance(body, (bytes, bytearray, str)):
        return body
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
