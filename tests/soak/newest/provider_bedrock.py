"""What Bedrock's Converse refuses, in its words; what its model does not name passes.

Sources: the service model of botocore 1.44, the Converse guide, and refusals quoted in public
issues.
Where no refusal is public the words are ours: system messages are placed as Anthropic places them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any


def refusal(
    body: dict[str, Any], headers: dict[str, str] | None = None, dialect: str = ""
) -> str | None:
    """The provider's words, or None where it answers."""
    return next(_problems(body), None)


def _problems(body: dict[str, Any]) -> Iterator[str]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "The number of messages is zero: a conversation must start with a user message."
        return
    for n, message in enumerate(messages):
        if not isinstance(message.get("content"), list) or not message["content"]:
            yield f"The content field in the Message object at messages.{n} is empty."
            return
    yield from _blocks(body, messages)
    yield from _order(messages)
    yield from _pairs(messages)
    yield from _cache_points(body)


def _blocks(body: dict[str, Any], messages: list[Any]) -> Iterator[str]:
    images, uses_tools = 0, False
    for n, message in enumerate(messages):
        documents = any("document" in block for block in message["content"])
        texts = [block["text"] for block in message["content"] if "text" in block]
        if documents and not texts:
            yield f"messages.{n}: a document has to be accompanied by a text block"
        for m, block in enumerate(message["content"]):
            where = f"messages.{n}.content.{m}"
            if "text" in block and not block["text"].strip():
                yield f"The text field in the ContentBlock object at {where} is blank."
            if ("toolAddition" in block or "toolRemoval" in block) and message["role"] != "system":
                yield f"{where}: tool changes are only allowed in system messages"
            images += "image" in block
            use, done = block.get("toolUse"), block.get("toolResult")
            uses_tools = uses_tools or bool(use or done)
            if use and not re.fullmatch(r"[a-zA-Z0-9_.:-]{1,64}", use["toolUseId"]):
                yield f"{where}.toolUse.toolUseId: must satisfy pattern [a-zA-Z0-9_.:-]+"
            if use and not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", use["name"]):
                yield f"{where}.toolUse.name: must satisfy pattern [a-zA-Z0-9_-]+"
            if use and not isinstance(use.get("input"), dict):
                yield f"The format of the value at {where}.toolUse.input is invalid."
            for part in done["content"] if done else ():
                images += "image" in part
                if "cachePoint" in part:
                    yield f"{where}.toolResult.content: unknown member cachePoint"
            if done and done.get("status") == "error" and not done["content"]:
                yield f"{where}: toolResult with status error must have content"
    if uses_tools and not (body.get("toolConfig") or {}).get("tools"):
        yield (
            "The toolConfig field must be defined when using toolUse and toolResult content blocks."
        )
    if images > 20:
        yield f"too many images and documents: {images} + 0 > 20"


def _said(messages: list[Any]) -> list[tuple[int, Any]]:
    return [(n, m) for n, m in enumerate(messages) if m["role"] in ("user", "assistant")]


def _order(messages: list[Any]) -> Iterator[str]:
    said = _said(messages)
    if not said or said[0][1]["role"] != "user" or messages[0]["role"] != "user":
        yield "A conversation must start with a user message."
    for (_, before), (n, message) in pairwise(said):
        if before["role"] == message["role"]:
            yield (
                "A conversation must alternate between user and assistant roles. Make sure the "
                f"conversation alternates between user and assistant roles. (messages.{n})"
            )
    if said and said[-1][1]["role"] != "user":
        yield "The conversation must end with a user message."
    for n, message in enumerate(messages):
        if message["role"] != "system":
            continue
        if n == 0 or messages[n - 1]["role"] != "user":
            yield f"messages.{n}: role 'system' must directly follow a 'user' message"
        if n + 1 < len(messages) and messages[n + 1]["role"] != "assistant":
            yield f"messages.{n}: role 'system' must precede an 'assistant' message"


def _pairs(messages: list[Any]) -> Iterator[str]:
    seen: set[str] = set()
    said = _said(messages)
    for (n, message), following in zip(said, [*said[1:], None], strict=False):
        uses = [b["toolUse"] for b in message["content"] if "toolUse" in b]
        own = {b["toolResult"]["toolUseId"] for b in message["content"] if "toolResult" in b}
        for use in uses:
            if use["toolUseId"] in seen:
                yield f"messages.{n}: duplicate Ids found: {use['toolUseId']}"
            seen.add(use["toolUseId"])
            if use.get("type") == "server_tool_use" and use["toolUseId"] not in own:
                yield (
                    f"Expected toolResult blocks at messages.{n}.content for the following Ids: "
                    f"{use['toolUseId']}"
                )
        if message["role"] == "assistant":
            served = {u["toolUseId"] for u in uses if u.get("type") == "server_tool_use"}
            if own - served:
                yield f"messages.{n}: toolResult without a toolUse: {', '.join(own - served)}"
        asked = [u["toolUseId"] for u in uses if u.get("type") != "server_tool_use"]
        if message["role"] != "assistant" or following is None:
            continue
        m, after = following
        given = [b["toolResult"]["toolUseId"] for b in after["content"] if "toolResult" in b]
        missing = [id for id in asked if id not in given]
        if missing:
            yield (
                f"Expected toolResult blocks at messages.{m}.content for the following Ids: "
                + ", ".join(missing)
            )
        if len(given) > len(asked) or set(given) - set(asked):
            yield (
                f"The number of toolResult blocks at messages.{m}.content exceeds the number of "
                "toolUse blocks of previous turn."
            )
    if said and any("toolResult" in b for b in said[0][1]["content"]):
        yield (
            "The number of toolResult blocks at messages.0.content exceeds the number of toolUse "
            "blocks of previous turn."
        )


def _cache_points(body: dict[str, Any]) -> Iterator[str]:
    order = [(body.get("toolConfig") or {}).get("tools"), body.get("system"), body["messages"]]
    points = list(_values(order, "cachePoint"))
    if len(points) > 4:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {len(points)}."
    ttls = [point.get("ttl", "5m") for point in points]
    if "1h" in ttls and "5m" in ttls[: len(ttls) - ttls[::-1].index("1h")]:
        yield "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"


def _values(value: Any, key: str) -> Iterator[Any]:
    if isinstance(value, dict):
        for name, part in value.items():
            if name == key:
                yield part
            yield from _values(part, key)
    elif isinstance(value, list):
        for part in value:
            yield from _values(part, key)


def channels(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(channel, text) of everything said."""
    for message in body.get("messages") or ():
        role = {"user": "user", "assistant": "model"}.get(message["role"], "system")
        for block in message["content"]:
            if "toolUse" in block:
                yield "arguments", json.dumps(block["toolUse"]["input"], ensure_ascii=False)
            elif "toolResult" in block:
                yield "tool", json.dumps(block, ensure_ascii=False)
            elif "reasoningContent" in block:
                yield "thinking", json.dumps(block, ensure_ascii=False)
            elif "citationsContent" in block:
                yield role, json.dumps(block["citationsContent"]["content"], ensure_ascii=False)
                yield "tool", json.dumps(block["citationsContent"]["citations"])
            else:
                yield role, json.dumps(block, ensure_ascii=False)


def state(body: dict[str, Any]) -> set[str]:
    """Tools that system messages have added or withdrawn."""
    return {
        json.dumps(block, sort_keys=True)
        for message in body.get("messages") or ()
        for block in message["content"]
        if "toolAddition" in block or "toolRemoval" in block
    }
