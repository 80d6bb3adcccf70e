"""What a request says, word for word, whatever its format: the judge of conversions.

``atoms(request, format)`` lists (path, atom) in order: texts and images by role, calls, results
with their error flag.  Written from the formats' documentation; does not know the library.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Path = tuple[Any, ...]
Atom = tuple[Any, ...]
ERROR = "[tool error]"
"""How our conversion spells the error flag where a format has none."""


def atoms(request: Any, format: str) -> list[tuple[Path, Atom]]:
    """Every text, image, call and result with its place."""
    walk = {
        "openai-chat": _chat, "openai-responses": _responses, "anthropic": _anthropic,
        "bedrock": _bedrock, "gemini": _gemini,
    }[format]  # fmt: skip
    return list(walk(request))


def canon(value: Any) -> str:
    """JSON as text, comparable."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _text(role: str, text: str, path: Path) -> Iterator[tuple[Path, Atom]]:
    if text:
        yield path, (role, "text", text)


def _said(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _result(
    call_id: str, error: bool, texts: list[str], images: list[tuple[Path, str]], path: Path,
    flags: bool = True,
) -> Iterator[tuple[Path, Atom]]:  # fmt: skip
    texts = [text for text in texts if text not in ("", "(no output)")]
    if not flags and texts and (texts[0] == ERROR or texts[0].startswith(f"{ERROR}\n")):
        error, rest = True, texts[0][len(ERROR) + 1 :]
        texts = ([rest] if rest else []) + texts[1:]
    shown = tuple(text for text in texts if text != "[see the next user message]")
    yield path, ("result", call_id, error, shown)
    for where, image in images:
        yield where, ("result image", call_id, image)


def _data(url: str) -> str:
    return url.partition(";base64,")[2] or url


# --- OpenAI --------------------------------------------------------------------------------------

ROLES = {"developer": "system"}


def _chat(request: Any) -> Iterator[tuple[Path, Atom]]:
    base: Path = () if isinstance(request, list) else ("messages",)
    for number, message in enumerate(request["messages"] if base else request):
        role = ROLES.get(message["role"], message["role"])
        path = (*base, number)
        content = message.get("content")
        if role == "tool":
            texts, images = [], []
            for where, part in _listed(content, (*path, "content")):
                if part["type"] == "image_url":
                    images.append((where, _data(part["image_url"]["url"])))
                else:
                    texts.append(part["text"])
            yield from _result(message["tool_call_id"], False, texts, images, path, flags=False)
            continue
        for where, part in _listed(content, (*path, "content")):
            if part["type"] == "text":
                yield from _text(role, part["text"], (*where, "text"))
            elif part["type"] == "image_url":
                yield where, (role, "image", _data(part["image_url"]["url"]))
        for index, call in enumerate(message.get("tool_calls") or ()):
            if "custom" in call:
                inner, text = call["custom"], canon({"input": call["custom"]["input"]})
                yield (*path, "tool_calls", index), ("call", call["id"], inner["name"], text)
                continue
            inner = call["function"]
            try:
                arguments = canon(json.loads(inner["arguments"] or "{}"))
            except ValueError:
                arguments = canon({"text": inner["arguments"]})
            yield (*path, "tool_calls", index), ("call", call["id"], inner["name"], arguments)


def _listed(content: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(content, str):
        yield path, {"type": "text", "text": content}
    for number, part in enumerate(content if isinstance(content, list) else ()):
        yield (*path, number), part


def _responses(request: Any) -> Iterator[tuple[Path, Atom]]:
    base: Path = () if isinstance(request, list) else ("input",)
    if base and request.get("instructions"):
        yield ("instructions",), ("system", "text", request["instructions"])
    for number, item in enumerate(request["input"] if base else request):
        path = (*base, number)
        kind = item.get("type", "message")
        if kind == "message":
            role = ROLES.get(item["role"], item["role"])
            for where, part in _listed(item["content"], (*path, "content")):
                if part["type"] == "input_image":
                    yield where, (role, "image", _data(part["image_url"]))
                elif "text" in part:
                    yield from _text(role, part["text"], (*where, "text"))
        elif kind == "function_call":
            arguments = canon(json.loads(item["arguments"] or "{}"))
            yield path, ("call", item["call_id"], item["name"], arguments)
        elif kind == "custom_tool_call":
            text = canon({"input": item["input"]})
            yield path, ("call", item["call_id"], item["name"], text)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            texts, images = [], []
            for where, part in _listed(item["output"], (*path, "output")):
                if part["type"] == "input_image":
                    images.append((where, _data(part["image_url"])))
                else:
                    texts.append(part["text"])
            yield from _result(item["call_id"], False, texts, images, path, flags=False)


# --- Anthropic and Bedrock -----------------------------------------------------------------------


def _claude_image(part: Any) -> str:
    source = part["source"]
    return str(source.get("data") or source.get("url"))


def _anthropic(request: Any) -> Iterator[tuple[Path, Atom]]:
    base: Path = () if isinstance(request, list) else ("messages",)
    if base:
        for where, part in _listed(request.get("system"), ("system",)):
            yield from _text("system", part["text"], where)
    for number, message in enumerate(request["messages"] if base else request):
        role = message["role"]
        for where, part in _listed(message["content"], (*base, number, "content")):
            kind = part["type"]
            if kind == "text":
                yield from _text(role, part["text"], (*where, "text"))
            elif kind == "image":
                yield where, (role, "image", _claude_image(part))
            elif kind == "tool_use":
                yield where, ("call", part["id"], part["name"], canon(part["input"]))
            elif kind == "tool_result":
                texts, images = [], []
                for inner, item in _listed(part.get("content"), (*where, "content")):
                    if item["type"] == "image":
                        images.append((inner, _claude_image(item)))
                    else:
                        texts.append(item["text"] if item["type"] == "text" else _said(item))
                error = part.get("is_error") is True
                yield from _result(part["tool_use_id"], error, texts, images, where)


def _bedrock(request: Any) -> Iterator[tuple[Path, Atom]]:
    base: Path = () if isinstance(request, list) else ("messages",)
    for number, part in enumerate(request.get("system") or () if base else ()):
        if "text" in part:
            yield ("system", number), ("system", "text", part["text"])
    for number, message in enumerate(request["messages"] if base else request):
        role = message["role"]
        for index, block in enumerate(message["content"]):
            path = (*base, number, "content", index)
            if "text" in block:
                yield from _text(role, block["text"], (*path, "text"))
            elif "image" in block:
                yield path, (role, "image", _bedrock_image(block))
            elif "toolUse" in block:
                use = block["toolUse"]
                yield path, ("call", use["toolUseId"], use["name"], canon(use["input"]))
            elif "toolResult" in block:
                value, texts, images = block["toolResult"], [], []
                for place, item in enumerate(value["content"]):
                    where = (*path, "toolResult", "content", place)
                    if "image" in item:
                        images.append((where, _bedrock_image(item)))
                    elif "text" in item:
                        texts.append(item["text"])
                    elif "json" in item:
                        texts.append(_said(item["json"]))
                error = value.get("status") == "error"
                yield from _result(value["toolUseId"], error, texts, images, path)


def _bedrock_image(block: Any) -> str:
    source = block["image"]["source"]
    return str(source.get("bytes") or source["s3Location"]["uri"])


# --- Gemini --------------------------------------------------------------------------------------


def _gemini(request: Any) -> Iterator[tuple[Path, Atom]]:
    base: Path = () if isinstance(request, list) else ("contents",)
    head = request.get("systemInstruction", {}).get("parts", ()) if base else ()
    for number, part in enumerate(head):
        yield ("systemInstruction", "parts", number), ("system", "text", part["text"])
    counts: dict[str, int] = {}
    waiting: dict[str, list[str]] = {}
    for number, content in enumerate(request["contents"] if base else request):
        role = "assistant" if content["role"] == "model" else "user"
        for index, part in enumerate(content["parts"]):
            path = (*base, number, "parts", index)
            if "text" in part and not part.get("thought"):
                yield from _text(role, part["text"], (*path, "text"))
            elif "inlineData" in part or "fileData" in part:
                if (part.get("inlineData") or part["fileData"])["mimeType"].startswith("image/"):
                    yield path, (role, "image", _gemini_image(part))
            elif "functionCall" in part:
                call = part["functionCall"]
                name = call["name"]
                made = f"{name}:{counts.get(name, 0)}"
                if not call.get("id"):
                    counts[name] = counts.get(name, 0) + 1
                    waiting.setdefault(name, []).append(made)
                yield path, ("call", call.get("id") or made, name, canon(call["args"]))
            elif "functionResponse" in part:
                value = part["functionResponse"]
                call_id = value.get("id") or waiting[value["name"]].pop(0)
                error, texts = _response(value["response"])
                images = [
                    ((*path, "functionResponse", "parts", place), _gemini_image(item))
                    for place, item in enumerate(value.get("parts") or ())
                ]
                yield from _result(call_id, error, texts, images, path)


def _gemini_image(part: Any) -> str:
    return str((part.get("inlineData") or {}).get("data") or part["fileData"]["fileUri"])


def _response(value: Any) -> tuple[bool, list[str]]:
    if len(value) == 1:
        for key in ("output", "error"):
            if isinstance(value.get(key), str):
                return key == "error", [value[key]]
        if isinstance(value.get("error"), dict):
            return True, [_said(value["error"])]
    content = value.get("content")
    if isinstance(content, list) and content and value.keys() <= {"content", "isError"}:
        typed = [i for i in content if isinstance(i, dict) and i.get("type") in ("text", "json")]
        if len(typed) == len(content):
            texts = [i["text"] if i["type"] == "text" else _said(i["json"]) for i in typed]
            return value.get("isError") is True, texts
    return False, [_said(value)] if value else []
