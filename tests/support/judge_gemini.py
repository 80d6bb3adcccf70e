"""An independent judge of Gemini requests: would generateContent accept this, and how big is it.

Written from the provider's documentation and quoted refusals alone.  Sizes by the convention of
sizes.py.  Does not know the library under test: nothing of it is imported here, so that both can
only agree by being right.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import unreadable
from sizes import IMAGE_TOKENS, MESSAGE_TOKENS, PAIR_TOKENS, compact, o200k, request_bytes

__all__ = ["images", "problems", "request_bytes", "result_chars", "tokens"]

AROUND = {"thought", "thoughtSignature", "videoMetadata", "partMetadata", "mediaResolution"}


def problems(request: Any, model: str | None = None) -> list[str]:
    """Each reason for which the provider would refuse; [] when it would accept."""
    if found := unreadable.problems(request):
        return found
    body = request if isinstance(request, dict) else {"contents": request}
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        return ["contents: at least one is required"]
    camel = [_camel(content) for content in contents]
    cached = bool(_camel({k: v for k, v in body.items() if k != "contents"}).get("cachedContent"))
    found = [text for n, content in enumerate(camel) for text in _content(n, content)]
    found += _turns(camel, cached)
    if _version(body.get("model") or model) >= 3:
        if "image" not in (body.get("model") or model or ""):
            found += _signatures(camel)
        if camel[-1].get("role") == "model":
            found.append("last: requests ending with a model turn are not supported")
    return found


def _version(model: str | None) -> int:
    found = re.search(r"gemini-(\d+)", model or "")
    return int(found[1]) if found else 0


def _camel(value: Any) -> Any:
    """The same with the API's own keys in camelCase; what callers put inside stays as it is."""
    if isinstance(value, list):
        return [_camel(item) for item in value]
    if not isinstance(value, dict):
        return value
    free = ("args", "response")
    return {
        _camel_key(key): item if key in free else _camel(item)
        for key, item in value.items()
        if item is not None or key in free
    }


def _camel_key(key: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), key)


def _parts(content: Any) -> list[Any]:
    parts = content.get("parts")
    return parts if isinstance(parts, list) else []


def _of(content: Any, key: str) -> list[Any]:
    return [part[key] for part in _parts(content) if isinstance(part, dict) and key in part]


def _content(number: int, content: Any) -> Iterator[str]:
    if content.get("role", "user") not in ("user", "model", "function"):
        yield f"{number}: no such role {content.get('role')!r}"
    if not _parts(content):
        yield f"{number}: parts must not be empty"
    for place, part in enumerate(_parts(content)):
        keys = [key for key in part if key not in AROUND] if isinstance(part, dict) else []
        if not keys:
            yield f"{number}.{place}: required oneof field 'data'"
        elif part.get("text") == "" and _of(content, "functionResponse"):
            yield f"{number}.{place}: an empty text beside a function response"
        for key, inner in (("functionCall", "args"), ("functionResponse", "response")):
            value = part.get(key) if isinstance(part, dict) else None
            if isinstance(value, dict) and not isinstance(value.get(inner), (dict, type(None))):
                yield f"{number}.{place}: {inner} is not an object"
        for media in (part.get("functionResponse") or {}).get("parts", []) if keys else []:
            if not any(key in media for key in ("inlineData", "fileData")):
                yield f"{number}.{place}: a function response holds files alone"


def _turns(contents: list[Any], cached: bool) -> Iterator[str]:
    """Each run of model contents with calls is followed by one content with as many responses."""
    number = 0
    while number < len(contents):
        first = number
        while number < len(contents) and contents[number].get("role") == "model":
            number += 1
        end = number
        while number < len(contents) and contents[number].get("role") != "model":
            number += 1
        calls = [call for content in contents[first:end] for call in _of(content, "functionCall")]
        if calls and first == 0 and not cached:
            yield f"{first}: a function call turn comes after a user turn or a response turn"
        answers = [_of(content, "functionResponse") for content in contents[end:number]]
        right = answers[0] if answers else []
        if len(right) != len(calls) and not (cached and first == end == 0):
            kind = "after a function call turn" if not calls else "as many as calls"
            yield f"{end}: {len(right)} function responses for {len(calls)} calls, {kind}"
        elif calls:
            yield from _ids(end, calls, right)
        if any(answers[1:]):
            yield f"{end}: function responses behind the content right after the calls"


def _ids(number: int, calls: list[Any], answers: list[Any]) -> Iterator[str]:
    """Ids given on both sides agree; one side may leave them out."""
    called = Counter(call["id"] for call in calls if call.get("id"))
    answered = Counter(answer["id"] for answer in answers if answer.get("id"))
    unknown = sum((answered - called).values())
    if unknown > len(calls) - sum(called.values()):
        yield f"{number}: responses with ids that no call has: {dict(answered - called)}"


def _signatures(contents: list[Any]) -> Iterator[str]:
    """In the current turn, which begins at the user's newest words, each step's first call."""
    start = 0
    for number, content in enumerate(contents):
        words = content.get("role") != "model" and any(_of(content, "text"))
        if words and not _of(content, "functionResponse"):
            start = number
    step: list[Any] = []
    for number in range(start, len(contents)):
        content = contents[number]
        if content.get("role") != "model":
            step = []
            continue
        calls = [part for part in _parts(content) if "functionCall" in part]
        if calls and not step and not calls[0].get("thoughtSignature"):
            name = calls[0]["functionCall"].get("name")
            yield f"{number}: function call {name} is missing a thought_signature"
        step += calls


# --- sizes ----------------------------------------------------------------------------------------


def tokens(request: Any, count: Callable[[str], int] | None = None) -> int:
    """Tokens of every string the model reads, + 4 a content, + 10 a call or response."""
    count = count or o200k()
    return sum(count(part) if isinstance(part, str) else part for part in _read(request))


def _read(request: Any) -> Iterator[str | int]:
    body = request if isinstance(request, dict) else {"contents": request}
    head = {_camel_key(key): value for key, value in body.items()}
    system = head.get("systemInstruction")
    if isinstance(system, str):
        yield system
    for part in (system or {}).get("parts", []) if isinstance(system, dict) else []:
        yield part["text"] if isinstance(part.get("text"), str) else compact(part)
    tools = head.get("tools") or []
    for tool in [tools] if isinstance(tools, dict) else tools:
        functions = tool.get("functionDeclarations", tool.get("function_declarations"))
        yield from map(compact, functions if functions is not None else [tool])
        if functions is not None:
            yield from (compact({k: v}) for k, v in tool.items() if "eclarations" not in k)
    for key, value in (head.get("generationConfig") or {}).items():
        if _camel_key(key) in ("responseSchema", "responseJsonSchema"):
            yield compact(value)
    for content in body["contents"]:
        yield MESSAGE_TOKENS
        for part in content.get("parts") or []:
            yield from _part(part)


def _part(part: Any) -> Iterator[str | int]:
    given = {key: value for key, value in part.items() if value is not None}
    kind: str
    value: Any
    kind, value = next(
        ((_camel_key(key), value) for key, value in given.items() if _camel_key(key) not in AROUND),
        ("", None),
    )
    if kind == "text" and isinstance(value, str):
        yield value
    elif kind == "functionCall":
        yield PAIR_TOKENS
        yield value.get("name") or ""
        yield compact(value["args"]) if value.get("args") is not None else ""
    elif kind == "functionResponse":
        yield PAIR_TOKENS
        yield _response(value)
        for media in value.get("parts") or []:
            yield from _part(media)
    elif kind in ("inlineData", "fileData"):
        yield _media(part, value)
    elif kind in ("executableCode", "codeExecutionResult"):
        yield PAIR_TOKENS
        yield compact(value)
    else:
        yield compact(part)


def _response(value: Any) -> str:
    response = value.get("response")
    if isinstance(response, dict) and len(response) == 1:
        (only,) = response.values()
        if isinstance(only, str):
            return only
    return "" if response is None else compact(response)


def _media(part: Any, value: Any) -> str | int:
    mime = value.get("mimeType") or value.get("mime_type") or ""
    if mime.startswith("image/"):
        return IMAGE_TOKENS
    if mime == "text/plain" and isinstance(value.get("data"), str):
        try:
            plain = value["data"].replace("-", "+").replace("_", "/")
            return base64.b64decode(plain, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            pass
    return max(IMAGE_TOKENS, len(compact(part)) // 20)


def result_chars(request: Any) -> list[int]:
    """Characters of each function response, in order."""
    contents = request["contents"] if isinstance(request, dict) else request
    return [
        len(_response(value))
        for content in contents
        for value in _of(_camel(content), "functionResponse")
    ]


def images(request: Any) -> int:
    """How many files the model looks at, those inside function responses included."""
    contents = request["contents"] if isinstance(request, dict) else request
    parts = [part for content in contents for part in _parts(_camel(content))]
    for part in list(parts):
        parts += part.get("functionResponse", {}).get("parts", [])
    files = [part.get("inlineData") or part.get("fileData") for part in parts]
    return sum(bool(file) and file.get("mimeType") != "text/plain" for file in files)
