"""What an answer says was billed: tokens of input, from the cache and into it, and of output.

Knows the words of the five formats for it, as JSON and as objects of the providers' clients.  Does
not know what was sent, nor what a token costs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Billed:
    """Tokens of one model call: ``input_tokens`` of the whole prompt, of which ``read`` came from
    the cache and ``written`` went into it; ``output_tokens`` with the thinking that is billed."""

    input_tokens: int
    output_tokens: int = 0
    read: int = 0
    written: int = 0


_WITHIN = ("usage", "usageMetadata", "usage_metadata", "message", "response", "metadata")
"""Where a usage stands in an answer, or in an event of a stream."""
_INPUT = (
    "prompt_tokens", "input_tokens", "inputTokens", "promptTokenCount", "prompt_token_count",
)  # fmt: skip
_OUTPUT = (
    "completion_tokens", "output_tokens", "outputTokens", "candidatesTokenCount",
    "candidates_token_count",
)  # fmt: skip
_THOUGHT = ("thoughtsTokenCount", "thoughts_token_count")  # Gemini counts them beside the output
_DETAILS = (
    "prompt_tokens_details", "input_tokens_details", "input_token_details",
)  # fmt: skip
_APART = (  # (read, written): these are not part of the input count beside them
    ("cache_read_input_tokens", "cache_creation_input_tokens"),
    ("cacheReadInputTokens", "cacheWriteInputTokens"),
)
_READ = (
    "cached_tokens", "cache_read", "cachedContentTokenCount", "cached_content_token_count",
    "prompt_cache_hit_tokens",
)  # fmt: skip
_WRITTEN = ("cache_creation", "cache_write_tokens")


def billed(answer: Any) -> Billed | None:
    """The usage in an answer, an event of a stream, or a usage by itself; None where there is none.

    >>> billed({"usage": {"input_tokens": 5, "cache_read_input_tokens": 95, "output_tokens": 7}})
    Billed(input_tokens=100, output_tokens=7, read=95, written=0)
    """
    for usage in _usages(_plain(answer)):
        if (given := _number(usage, _INPUT)) is not None:
            return _read_usage(usage, given)
    return None


def _read_usage(usage: Mapping[str, Any], given: int) -> Billed:
    output = (_number(usage, _OUTPUT) or 0) + (_number(usage, _THOUGHT) or 0)
    details = next((d for k in _DETAILS if isinstance(d := usage.get(k), Mapping)), {})
    read, written = _number(details, _READ), _number(details, _WRITTEN)
    if read is not None or written is not None or "prompt_tokens" in usage:
        read = _number(usage, _READ) if read is None else read
        return Billed(_whole(usage, given, read or 0), output, read or 0, written or 0)
    for names in _APART:
        if any(name in usage for name in names):
            apart = [_number(usage, (name,)) or 0 for name in names]
            return Billed(given + sum(apart), output, *apart)
    return Billed(given, output, _number(usage, _READ) or 0)


def _whole(usage: Mapping[str, Any], given: int, read: int) -> int:
    """The whole prompt where a gateway counts only what was not in the cache: a part of it cannot
    be more than all."""
    apart = max([read, *(_number(usage, (name,)) or 0 for name, _ in _APART)])
    return given + apart if apart > given else given


def _usages(value: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """The value itself and what stands in it under the names of a usage, outermost first."""
    if not isinstance(value, Mapping) or depth > 3:
        return
    yield value
    for name in _WITHIN:
        yield from _usages(_plain(value.get(name)), depth + 1)


def _plain(value: Any) -> Any:
    """An object of a client, or JSON as text, as the mapping that it stands for."""
    if isinstance(value, (str, bytes, bytearray)):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return None
    if value is None or isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(warnings=False) if _takes_warnings(value) else dump()
    return vars(value) if hasattr(value, "__dict__") else None


def _takes_warnings(value: Any) -> bool:
    """Whether this is a model of pydantic, which warns of values that its schema does not name."""
    return hasattr(value, "__pydantic_validator__")


def _number(values: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        number = values.get(name)
        if type(number) is int and number >= 0:
            return number
    return None
