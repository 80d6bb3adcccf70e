"""An independent judge of Gemini Interactions: would the API accept this, and how big is it.

Written from Google's documentation, the types of google-genai and quoted refusals alone.  Sizes by
the convention of sizes.py.  Does not know the library under test: nothing of it is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import unreadable
from sizes import IMAGE_TOKENS, MESSAGE_TOKENS, PAIR_TOKENS, compact, o200k, request_bytes

__all__ = ["images", "problems", "request_bytes", "result_chars", "thought_problems", "tokens"]

CONTENTS = ("text", "image", "document", "audio", "video")
OF_SERVER = (
    *("code_execution", "file_search", "google_maps", "google_search", "mcp_server_tool"),
    *("processing", "retrieval", "tool_search", "url_context"),
)
SERVER_CALLS = {f"{tool}_call" for tool in OF_SERVER}
SERVER_RESULTS = {f"{tool}_result" for tool in OF_SERVER}
BY_MODEL = {"model_output", "thought", "function_call"} | SERVER_CALLS | SERVER_RESULTS


def problems(request: Any, model: str | None = None) -> list[str]:
    """Each reason for which the API would refuse; [] when it would accept."""
    if found := unreadable.problems(request):
        return found
    body = request if isinstance(request, dict) else {"input": request}
    held = any(body.get(key) for key in ("previous_interaction_id", "cached_content"))
    given = body.get("input")
    if not given:
        return [] if held or body.get("continuation_token") else ["input: required"]
    if not isinstance(given, list):
        return []
    found = [text for n, step in enumerate(given) for text in _step(n, step)]
    return found or list(_pairing(given, held))


def kind_of(step: dict[str, Any]) -> str:
    return str(step.get("type") or ("turn" if "role" in step else ""))


def _by_model(step: dict[str, Any]) -> bool:
    return kind_of(step) in BY_MODEL or step.get("role") == "model"


def _step(number: int, step: Any) -> Iterator[str]:
    if not isinstance(step, dict):
        yield f"{number}: not a step"
        return
    kind = kind_of(step)
    content = step.get("content")
    if kind in ("user_input", "model_output", "turn") and not isinstance(content, (str, list)):
        yield f"{number}: no content"
    if kind == "function_call" and not isinstance(step.get("arguments"), (dict, type(None))):
        yield f"{number}: arguments are not an object"
    if kind == "function_result" and step.get("result") is None:
        yield f"{number}: missing result in content of type function_result"


def _pairing(steps: list[Any], held: bool) -> Iterator[str]:
    """Behind each run of the model's steps stand the results of its calls, as many."""
    number = 0
    while number < len(steps):
        first = number
        while number < len(steps) and _by_model(steps[number]):
            number += 1
        called = [step.get("id") or "" for step in steps[first:number] if _is_call(step)]
        end = number
        while number < len(steps) and kind_of(steps[number]) == "function_result":
            number += 1
        answered = [step.get("call_id") or "" for step in steps[end:number]]
        if len(set(called)) < len(called) or "" in called:
            yield f"{first}: calls without an id of their own: {called}"
        yield from (f"{end}: call {name} has no result" for name in set(called) - set(answered))
        for name in answered:
            if answered.count(name) > 1 and name in called:
                yield f"{end}: a second result for {name}"
            elif name not in called and not held:
                yield f"{end}: no call {name!r} stands right before this result"
        number += number == first  # somebody else's step


def _is_call(step: dict[str, Any]) -> bool:
    return kind_of(step) == "function_call"


def thought_problems(original: Any, sent: Any) -> list[str]:
    """How ``sent`` breaks the rule that thoughts go back as they came, all or none of a response.

    A call that stays with its own arguments still has the thoughts that stood right before the
    steps it was made with.
    """
    known = [step for step in _steps(original) if kind_of(step) == "thought"]
    known += [unreadable.all_as_sent(step) for step in known]
    kept = [step for step in _steps(sent) if kind_of(step) == "thought"]
    return ["a thought was changed" for step in kept if step not in known]


def _steps(request: Any) -> list[Any]:
    given = request.get("input") if isinstance(request, dict) else request
    return [s for s in given if isinstance(s, dict)] if isinstance(given, list) else []


# --- sizes ----------------------------------------------------------------------------------------


def tokens(request: Any, count: Callable[[str], int] | None = None) -> int:
    """Tokens of every string the model reads, + 4 a message, + 10 a call or result."""
    count = count or o200k()
    return sum(count(part) if isinstance(part, str) else part for part in _read(request))


def _read(request: Any) -> Iterator[str | int]:
    body = request if isinstance(request, dict) else {"input": request}
    said = body.get("system_instruction")
    yield said if isinstance(said, str) else compact(said) if said else ""
    yield from (compact(tool) for tool in body.get("tools") or [])
    yield compact(body["response_format"]) if body.get("response_format") else ""
    given = body.get("input")
    if isinstance(given, str):
        yield MESSAGE_TOKENS
        yield given
    elif isinstance(given, dict):
        yield from _content(given)
    for step in given if isinstance(given, list) else []:
        yield from _read_step(step) if isinstance(step, dict) else [compact(step)]


def _read_step(step: dict[str, Any]) -> Iterator[str | int]:
    kind = kind_of(step)
    if kind in ("user_input", "model_output", "turn"):
        yield MESSAGE_TOKENS
        yield from _contents(step.get("content"))
        yield compact(step["error"]) if step.get("error") is not None else ""
    elif kind in CONTENTS:
        yield MESSAGE_TOKENS
        yield from _content(step)
    elif kind == "function_call":
        yield PAIR_TOKENS
        yield step.get("name") or ""
        yield compact(step["arguments"]) if step.get("arguments") is not None else ""
    elif kind == "function_result":
        yield PAIR_TOKENS
        result = step.get("result")
        shown = isinstance(result, (str, list, type(None)))
        yield from _contents(result) if shown else [compact(result)]
    elif kind == "thought":
        yield "\n".join(part["text"] for part in step.get("summary") or [])
        yield len(step.get("signature") or "") // 5
    else:
        yield PAIR_TOKENS if kind in SERVER_CALLS | SERVER_RESULTS else 0
        yield compact({key: step[key] for key in step if key not in ("type", "signature")})
        yield len(step.get("signature") or "") // 5


def _contents(value: Any) -> Iterator[str | int]:
    if isinstance(value, str):
        yield value
    for content in value if isinstance(value, list) else []:
        yield from _content(content)


def _content(content: Any) -> Iterator[str | int]:
    kind = content.get("type") if isinstance(content, dict) else ""
    yield compact(content["annotations"]) if kind and content.get("annotations") else ""
    if kind == "text":
        yield content["text"]
    elif kind == "image":
        yield IMAGE_TOKENS
    elif kind in CONTENTS:
        yield max(IMAGE_TOKENS, len(compact(content)) // 20)
    else:
        yield compact(content)


def result_chars(request: Any) -> list[int]:
    """Characters of the text in each function result, in order."""
    found = []
    for step in _steps(request):
        if kind_of(step) == "function_result":
            result = step.get("result")
            parts = result if isinstance(result, list) else [{"text": result}]
            found.append(sum(len(part.get("text") or "") for part in parts))
    return found


def images(request: Any) -> int:
    """How many files stand in steps and results."""
    return sum(
        isinstance(content, dict) and content.get("type") in CONTENTS[1:]
        for step in _steps(request)
        for key in ("content", "result")
        for content in (step.get(key) if isinstance(step.get(key), list) else [])
    )
