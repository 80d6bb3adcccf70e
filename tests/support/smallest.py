"""What is enough for a request, whatever its length: an upper bound of its minimum.

Counted from what may not go: the head, the newest step with its results cut, of what the user said
before the beginnings, a frame for each message that is gone, and the markers.  Knows the wire
formats; does not know the library, but for the fields of its refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import judge
import judge_bedrock
import judge_gemini
import judge_interactions
import judge_responses
from sizes import request_bytes

_JUDGES: dict[str, Any] = {
    "openai-responses": judge_responses, "bedrock": judge_bedrock, "gemini": judge_gemini,
    "gemini-interactions": judge_interactions,
}  # fmt: skip


class Left(NamedTuple):
    """At most so much is left: of an older text of the user, of a result of the newest step, of a
    message that is gone, and of all that is gone together."""

    words: int
    result: int
    frame: int
    markers: int


TOKENS = Left(200, 200, 24, 200)
BYTES = Left(1_200, 1_200, 200, 2_000)
RESULT_CHARS = 120
"""No result has to be longer than this."""


def assert_due(refusal: Any, request: Any, format: str) -> None:
    """A ``CannotFit`` without pins asks for no more than is enough."""
    most = {
        "window": lambda: enough(request, format, _tokens(format), TOKENS),
        "request_bytes": lambda: enough(request, format, request_bytes, BYTES),
        "result_chars": lambda: RESULT_CHARS,
    }[refusal.limit]()
    assert refusal.allowed < refusal.minimum <= most, f"{most:,} are enough: {refusal}"


def enough_tokens(request: Any, format: str) -> int:
    """Tokens into which it fits."""
    return enough(request, format, _tokens(format), TOKENS)


def enough(request: Any, format: str, size: Callable[[Any], int], left: Left) -> int:
    """The bound, in the unit of ``size``."""
    key, items = _items(request)
    head = size(_with(request, key, []))
    newest, total = _newest_step(items), head + left.markers
    for number, item in enumerate(items):
        alone = _with(request, key, [item])
        whole, results = size(alone) - head, _results(item)
        total += left.frame
        if _role(item) == "system" or _images(alone, format):
            total += whole
        elif number >= newest:
            total += min(whole, left.result * results) if results else whole
        elif _role(item) == "user" and not results:
            total += min(whole, left.words)
    return total


def _tokens(format: str) -> Callable[[Any], int]:
    other = _JUDGES.get(format)
    return other.tokens if other else lambda request: judge.tokens(request, format)


def _images(request: Any, format: str) -> int:
    other = _JUDGES.get(format)
    return other.images(request) if other else judge.images(request, format)


def _items(request: Any) -> tuple[str, list[Any]]:
    if isinstance(request, list):
        return "", request
    key = next(key for key in ("messages", "input", "contents") if key in request)
    return key, request[key]


def _with(request: Any, key: str, items: list[Any]) -> Any:
    return {**request, key: items} if key else items


def _role(item: Any) -> str:
    """Whose it is: "system", "user" or "model"; what carries results is the user's."""
    role = item.get("role") or ""
    if role in ("system", "developer"):
        return "system"
    if role in ("user", "tool", "function") or _is_result(item) or item.get("type") == "user_input":
        return "user"
    return "model"


def _is_result(item: Any) -> bool:
    kind = str(item.get("type"))
    return kind == "function_result" or (kind.endswith("_output") and kind != "model_output")


def _results(item: Any) -> int:
    """How many tool results it carries."""
    if item.get("role") in ("tool", "function") or _is_result(item):
        return 1
    parts = item.get("content") or item.get("parts") or ()
    return sum(
        part.get("type") == "tool_result" or "toolResult" in part or "functionResponse" in part
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, dict)
    )


def _newest_step(items: list[Any]) -> int:
    """Where the model's last turn begins; before the user's last words only where it has results of
    calls that stand there."""
    start = len(items)
    while start and _role(items[start - 1]) != "model":
        start -= 1
    pairs, before = list(_pairs(items)), -1
    while start != before:
        before = start
        start = min([start, *(call for call, result in pairs if call < start <= result)])
        while start and _role(items[start - 1]) == "model":
            start -= 1
    return start


def _pairs(items: list[Any]) -> Iterator[tuple[int, int]]:
    """Indices of calls and results that are items of their own: the first result of an id answers
    the first call that waits."""
    waiting: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        key = str(item.get("call_id"))
        if "call_id" in item and not _is_result(item):
            waiting.setdefault(key, []).append(number)
        elif waiting.get(key):
            yield waiting[key].pop(0), number
