"""What Gemini's generateContent refuses, in its words; parts that it does not name pass.

Sources: ai.google.dev (function calling, thought signatures) and refusals quoted in public issues.
Where no refusal is public the words are ours: tools that the server ran.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any


def refusal(
    body: dict[str, Any], headers: dict[str, str] | None = None, dialect: str = ""
) -> str | None:
    """The provider's words, or None where it answers."""
    return next(_problems(body, dialect != "gemini-2.5"), None)


def _problems(body: dict[str, Any], signs: bool) -> Iterator[str]:
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        yield "* GenerateContentRequest.contents: contents is not specified"
        return
    for n, content in enumerate(contents):
        parts = content.get("parts")
        if not isinstance(parts, list) or not parts:
            yield (
                "Unable to submit request because it must include at least one parts field, which "
                f"describes the prompt input. (contents[{n}])"
            )
            return
        if content.get("role", "user") not in ("user", "model", "function"):
            yield "Please use a valid role: user, model."
        for m, part in enumerate(parts):
            if not set(part) - {"thought", "thoughtSignature"} or part.get("text") == "":
                yield (
                    f"GenerateContentRequest.contents[{n}].parts[{m}].data: required oneof field "
                    "'data' must have one initialized field"
                )
    yield from _turns(contents)
    yield from _server_tools(contents)
    if signs:
        yield from _signatures(contents)


def _of(content: dict[str, Any], key: str) -> list[Any]:
    return [part[key] for part in content["parts"] if key in part]


def _role(content: dict[str, Any]) -> str:
    return "model" if content.get("role") == "model" else "user"


def _turns(contents: list[Any]) -> Iterator[str]:
    if _role(contents[0]) != "user":
        yield "Please ensure that the conversation starts with a user turn."
    if _role(contents[-1]) != "user":
        yield "Please ensure that single turn requests end with a user role or a function response."
    for before, content in zip([None, *contents], contents, strict=False):
        calls = _of(before, "functionCall") if before else []
        answers, asked = _of(content, "functionResponse"), _of(content, "functionCall")
        if asked and (before is None or _role(before) != "user"):
            yield (
                "Please ensure that function call turn comes immediately after a user turn or "
                "after a function response turn."
            )
        if answers and not calls:
            yield (
                "Please ensure that function response turn comes immediately after a function "
                "call turn."
            )
        if calls and (
            len(answers) != len(calls)
            or Counter(c["name"] for c in calls) != Counter(a["name"] for a in answers)
            or {c.get("id") for c in calls} != {a.get("id") for a in answers}
        ):
            yield (
                "Please ensure that the number of function response parts is equal to the number "
                "of function call parts of the function call turn."
            )


def _server_tools(contents: list[Any]) -> Iterator[str]:
    waiting: set[Any] = set()
    for content in contents:
        for part in content["parts"]:
            if "toolCall" in part:
                waiting.add(part["toolCall"].get("id"))
            if "toolResponse" in part:
                if part["toolResponse"].get("id") not in waiting:
                    yield "Tool response has no matching tool call."
                waiting.discard(part["toolResponse"].get("id"))
    if waiting:
        yield "Tool call has no matching tool response."


def _signatures(contents: list[Any]) -> Iterator[str]:
    """From the newest content of the user's own on, the first call of each step is signed."""
    begin = max(
        (
            n
            for n, c in enumerate(contents)
            if _role(c) == "user" and not _of(c, "functionResponse")
        ),
        default=0,
    )
    for n, content in enumerate(contents[begin:], begin):
        first = next((part for part in content["parts"] if "functionCall" in part), None)
        if first is not None and not first.get("thoughtSignature"):
            yield (
                "Function call is missing a thought_signature in functionCall parts. This is "
                "required for tools to work correctly. Additional data, function call "
                f"`default_api:{first['functionCall']['name']}`, position {n}."
            )


def channels(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(channel, text) of everything said."""
    for content in body.get("contents") or ():
        for part in content["parts"]:
            text = json.dumps(part, ensure_ascii=False)
            if part.get("thought"):
                yield "thinking", text
            elif {"functionCall", "toolCall", "executableCode"} & set(part):
                yield "arguments", text
            elif {"functionResponse", "toolResponse", "codeExecutionResult"} & set(part):
                yield "tool", text
            else:
                yield ("user" if _role(content) == "user" else "model"), text


def state(body: dict[str, Any]) -> set[str]:
    """generateContent has no tool state."""
    return set()
