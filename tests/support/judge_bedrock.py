"""An independent judge of Bedrock Converse requests: would they be taken, and how big are they.

Written from refusals quoted in public, recorded requests and botocore's service model alone.
Nothing of the library under test is imported.  ``problems`` is the provider's reading by family
of models, ``parameter_problems`` botocore's own validation, ``tokens`` the published convention.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import unreadable
from sizes import IMAGE_TOKENS, MESSAGE_TOKENS, PAIR_TOKENS, compact, o200k

ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
FILES = ("image", "document", "video", "audio")


def problems(request: Any, model: str | None = None) -> list[str]:
    """Each reason for which the provider would refuse; [] when it would accept."""
    if found := unreadable.problems(request):
        return found
    body = request if isinstance(request, dict) else {"messages": request}
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return ["messages: empty"]
    if bad := [n for n, m in enumerate(messages) if not isinstance(m.get("content"), list)]:
        return [f"{n}: content is no list" for n in bad]
    family = _family(model or body.get("modelId"))
    found = [problem for number, m in enumerate(messages) for problem in _message(number, m)]
    found += _order(messages, family, model or body.get("modelId") or "")
    found += _pairs(messages, family)
    found += _mixture(messages, family)
    found += _points(body, messages, family)
    found += _media(messages)
    if isinstance(request, dict):
        found += _declared(body, messages)
    found += _thinking(body, messages, family, model or body.get("modelId") or "")
    return found


@lru_cache(maxsize=1)
def _converse() -> Any:
    """(validator, input shape) of botocore; None where it is not installed."""
    try:
        import botocore.session
        from botocore.validate import ParamValidator
    except ImportError:
        return None
    service = botocore.session.get_session().get_service_model("bedrock-runtime")
    return ParamValidator(), service.operation_model("Converse").input_shape


def parameter_problems(request: Any, model: str | None = None) -> list[str]:
    """What botocore's parameter validation says; [] where it passes or is not installed."""
    found = _converse()
    if found is None:
        return []
    body = dict(request) if isinstance(request, dict) else {"messages": request}
    body.setdefault("modelId", model or "anthropic.claude-sonnet-4-5-20250929-v1:0")
    report = found[0].validate(body, found[1])
    return report.generate_report().splitlines() if report.has_errors() else []


# --- the provider's rules -------------------------------------------------------------------------


def _family(model: str | None) -> str:
    name = (model or "").lower()
    for family in ("claude", "nova", "llama", "deepseek", "nemotron"):
        if family in name:
            return family
    if "mistral" in name or "mixtral" in name or "pixtral" in name:
        return "mistral"
    return (
        "other" if re.match(r"[a-z]+(\.|-[a-z]+\.)[a-z]", name) and "arn:" not in name else "claude"
    )


def _message(number: int, message: dict[str, Any]) -> Iterator[str]:
    if message.get("role") not in ("user", "assistant", "system"):
        yield f"{number}: no such role"
    content = message["content"]
    if not [block for block in content if "cachePoint" not in block]:
        yield f"{number}: the content field in the message is empty"
    for place, block in enumerate(content):
        where = f"{number}.{place}"
        if "text" in block and not str(block["text"]).strip():
            yield f"{where}: the text field is blank"
        speakers = {
            "toolUse": ("assistant",),
            "reasoningContent": ("assistant",),
            "toolResult": ("user", "assistant"),
        }
        for kind, allowed in speakers.items():
            if kind in block and message.get("role") not in allowed:
                yield f"{where}: a {kind} block of {message.get('role')}"
        if "toolUse" in block:
            use = block["toolUse"]
            if not isinstance(use.get("input"), dict):
                yield f"{where}: input is no object"
            if not NAME.fullmatch(str(use.get("name", ""))):
                yield f"{where}: tool name {use.get('name')!r}"
            if not ID.fullmatch(str(use.get("toolUseId", ""))):
                yield f"{where}: toolUseId {use.get('toolUseId')!r}"
        if "toolResult" in block:
            yield from _result(where, block["toolResult"])


def _result(where: str, result: dict[str, Any]) -> Iterator[str]:
    if not ID.fullmatch(str(result.get("toolUseId", ""))):
        yield f"{where}: toolUseId {result.get('toolUseId')!r}"
    content = result.get("content")
    if not isinstance(content, list):
        yield f"{where}: content of a toolResult is no list"
        return
    if result.get("status") == "error" and not [item for item in content if item != {"text": ""}]:
        yield f"{where}: content cannot be empty when status value is error"
    if any("json" in item and not isinstance(item["json"], dict) for item in content):
        yield f"{where}: json is no object"


def _order(messages: list[Any], family: str, model: str) -> Iterator[str]:
    roles = [message.get("role") for message in messages]
    spoken = [role for role in roles if role != "system"]
    if spoken[:1] != ["user"]:
        yield "a conversation must start with a user message"
    for number in range(1, len(roles)):
        if roles[number] == roles[number - 1] != "system":
            yield f"{number}: a conversation must alternate between user and assistant roles"
    late = family == "claude" and _version(model) >= (4, 6)
    if roles[-1] == "assistant" and (family == "llama" or late):
        yield "the conversation must end with a user message"


def _version(model: str) -> tuple[int, int]:
    found = re.search(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2})(?!\d))?", model.lower())
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def _of(message: dict[str, Any], key: str) -> list[dict[str, Any]]:
    return [block[key] for block in message["content"] if isinstance(block.get(key), dict)]


def _own(message: dict[str, Any]) -> list[str]:
    """Ids of the calls that the client has to answer."""
    return [str(u.get("toolUseId")) for u in _of(message, "toolUse") if "type" not in u]


def _pairs(messages: list[Any], family: str) -> Iterator[str]:
    for number, message in enumerate(messages):
        results = [str(r.get("toolUseId")) for r in _of(message, "toolResult")]
        if message["role"] == "assistant":
            yield from _server(number, message)
            calls = _own(message)
            if len(set(calls)) < len(calls):
                yield f"{number}: toolUse blocks contain duplicate ids"
            behind = messages[number + 1] if number + 1 < len(messages) else {"content": []}
            given = [str(r.get("toolUseId")) for r in _of(behind, "toolResult")]
            if missing := [call for call in calls if call not in given]:
                yield f"{number + 1}: expected toolResult blocks for {missing}"
            continue
        before = messages[number - 1] if number else {"role": "", "content": []}
        calls = _own(before) if before["role"] == "assistant" else []
        if len(results) > len(calls) or [r for r in results if r not in calls]:
            yield f"{number}: the number of toolResult blocks exceeds the toolUse blocks"
        if [r for r, times in Counter(results).items() if times > 1]:
            yield f"{number}: toolResult blocks contain duplicate ids"
        real = [block for block in message["content"] if "cachePoint" not in block]
        if family == "claude" and any("toolResult" in b for b in real[len(results) :]):
            yield f"{number}: did not find {len(results)} tool_result blocks at the beginning"


def _server(number: int, message: dict[str, Any]) -> Iterator[str]:
    called: set[str] = set()
    for block in message["content"]:
        if isinstance(block.get("toolUse"), dict) and "type" in block["toolUse"]:
            called.add(str(block["toolUse"].get("toolUseId")))
        elif "toolResult" in block and str(block["toolResult"].get("toolUseId")) not in called:
            yield f"{number}: a toolResult in a message of the model without its call"


def _mixture(messages: list[Any], family: str) -> Iterator[str]:
    for number, message in enumerate(messages):
        key = "toolUse" if message["role"] == "assistant" else "toolResult"
        real = [block for block in message["content"] if "cachePoint" not in block]
        rest = [block for block in real if key not in block]
        if not rest or len(rest) == len(real):
            continue
        if family in ("llama", "mistral"):
            yield f"{number}: conversation and tool blocks cannot be provided in the same turn"
        if family == "claude" and key == "toolResult" and any(_is_file(block) for block in rest):
            yield f"{number}: a document or video beside a toolResult"


def _is_file(block: dict[str, Any]) -> bool:
    return "video" in block or block.get("document", {}).get("format", "pdf") != "pdf"


def _points(body: dict[str, Any], messages: list[Any], family: str) -> Iterator[str]:
    count = 0
    for part in [*(body.get("system") or []), *((body.get("toolConfig") or {}).get("tools") or [])]:
        count += "cachePoint" in part
    for number, message in enumerate(messages):
        for place, block in enumerate(message["content"]):
            if "cachePoint" not in block:
                continue
            count += 1
            before = message["content"][place - 1] if place else None
            if before is None:
                yield f"{number}.{place}: there is nothing available to cache"
            elif "reasoningContent" in before:
                yield f"{number}.{place}: cache point after a reasoning block"
            elif family == "claude" and "document" in before and _is_file(before):
                yield f"{number}.{place}: cache point after a document that is no PDF"
    if count > 4:
        yield f"{count} cache points"


def _media(messages: list[Any]) -> Iterator[str]:
    count = 0
    for number, message in enumerate(messages):
        inside = [item for r in _of(message, "toolResult") for item in r.get("content") or []]
        count += sum(any(key in block for key in FILES) for block in [*message["content"], *inside])
        keys = {key for block in message["content"] for key in block}
        if "document" in keys and "text" not in keys:
            yield f"{number}: a text block must be included when using documents"
    if count > 20:
        yield f"too many images and documents: {count} > 20"


def _declared(body: dict[str, Any], messages: list[Any]) -> Iterator[str]:
    config = body.get("toolConfig")
    used = any("toolUse" in b or "toolResult" in b for m in messages for b in m["content"])
    if used and not config:
        yield "the toolConfig field must be defined"
    if config is not None and not (config or {}).get("tools"):
        yield "toolConfig.tools: at least one"
    for tool in (config or {}).get("tools") or []:
        spec = tool.get("toolSpec") or tool.get("systemTool")
        if spec and not NAME.fullmatch(str(spec.get("name", ""))):
            yield f"toolConfig: tool name {spec.get('name')!r}"
    if any(part == {"text": ""} for part in body.get("system") or []):
        yield "system: an empty text"


def _thinking(body: dict[str, Any], messages: list[Any], family: str, model: str) -> Iterator[str]:
    for number, message in enumerate(messages):
        for reasoning in _of(message, "reasoningContent"):
            unsigned = "redactedContent" not in reasoning and not (
                reasoning.get("reasoningText") or {}
            ).get("signature")
            if unsigned and family in ("claude", "deepseek"):
                yield f"{number}: reasoning content without a signature"
    asked = (body.get("additionalModelRequestFields") or {}).get("thinking") or {}
    if family != "claude" or asked.get("type") != "enabled" or _version(model) >= (5, 1):
        return
    loop = [m for m in messages if m["role"] != "system"][-2:]
    open_loop = len(loop) == 2 and _of(loop[1], "toolResult") and loop[0]["content"]
    if open_loop and "reasoningContent" not in loop[0]["content"][0]:
        yield "last tool turn: expected thinking first"


# --- sizes ----------------------------------------------------------------------------------------


def tokens(request: Any, count: Callable[[str], int] | None = None) -> int:
    """Tokens of every string the model reads, + 4 a message, + 10 a call or result."""
    count = count or o200k()
    return sum(count(part) if isinstance(part, str) else part for part in _read(request))


def images(request: Any) -> int:
    """How many images, documents and videos the messages carry, those in results included."""
    messages = request["messages"] if isinstance(request, dict) else request
    return sum(
        any(key in item for key in FILES)
        for message in messages
        for block in message["content"]
        for item in [block, *(block.get("toolResult") or {}).get("content", [])]
    )


def result_chars(request: Any) -> list[int]:
    """Characters of the text in each tool result that answers a call of the client, in order."""
    messages = request["messages"] if isinstance(request, dict) else request
    return [
        sum(len(text) for text in _block(block) if isinstance(text, str))
        for message in messages
        if message["role"] == "user"
        for block in message["content"]
        if "toolResult" in block
    ]


def _read(request: Any) -> Iterator[str | int]:
    body = request if isinstance(request, dict) else {"messages": request}
    for part in body.get("system") or []:
        yield from _block(part)
    for tool in (body.get("toolConfig") or {}).get("tools") or []:
        if "cachePoint" not in tool:
            yield compact(tool)
    if "outputConfig" in body:
        yield compact(body["outputConfig"])
    for message in body["messages"]:
        yield MESSAGE_TOKENS
        content = message["content"]
        for block in content if isinstance(content, list) else [{"text": content}]:
            yield from _block(block, own=message["role"] != "assistant")


def _block(block: Any, own: bool = True) -> Iterator[str | int]:
    if "cachePoint" in block:
        return
    if isinstance(block.get("text"), str):
        yield block["text"]
    elif "toolUse" in block:
        yield PAIR_TOKENS
        use = block["toolUse"]
        yield from [compact(block)] if "type" in use else [use["name"], compact(use.get("input"))]
    elif "toolResult" in block and not own:
        yield PAIR_TOKENS
        yield compact(block)
    elif "toolResult" in block:
        yield PAIR_TOKENS
        for item in block["toolResult"].get("content") or []:
            yield from [compact(item["json"])] if "json" in item else _block(item)
    elif "reasoningContent" in block:
        text = block["reasoningContent"].get("reasoningText")
        sealed = str(block["reasoningContent"].get("redactedContent", ""))
        yield text["text"] if text else len(sealed) // 5
    elif "guardContent" in block and "text" in block["guardContent"]:
        yield block["guardContent"]["text"]["text"]
    elif "searchResult" in block or "citationsContent" in block:
        quoted = block.get("searchResult") or block["citationsContent"]
        yield from [piece["text"] for piece in quoted["content"]]
        yield compact({key: value for key, value in quoted.items() if key != "content"})
    elif "document" in block and "text" in block["document"]["source"]:
        yield block["document"]["source"]["text"]
    elif any(key in block for key in (*FILES, "guardContent")):
        large = 0 if "image" in block else len(compact(block)) // 20
        yield max(IMAGE_TOKENS, large)
    else:
        yield compact(block)
