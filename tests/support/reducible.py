"""For each reducer a conversation that has something for it: an early result, call or thought.

Knows the wire formats, and the reducers by name.
"""

from __future__ import annotations

import base64
import json
import random
from typing import Any

from output_facts import NAMES, output
from retrieval_cases import articles
from shapes import items_of, session
from tool_calls import Step, conversation

FILE = "".join(f"def function_{n}(value_{n * 7919}): return value_{n * 31}\n" for n in range(60))
NUMBERED = "".join(f"{n:6}\t{line}\n" for n, line in enumerate(FILE.splitlines(), 1))
PAGE = "".join(f"<div class='a{n}'><p style='x'>Paragraph {n} says {n * 7919}.</p></div>"
               for n in range(80))  # fmt: skip
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
MINIFIED = "".join(f"function f{n}(a,b){{return a.x{n}+b[{n * 7919}]}};" for n in range(400))
READ = Step("Read", {"file_path": "a.py"}, FILE)
ROWS = [{"id": n, "name": f"n{n}", "price": n * 31, "tags": ["a", "b"]} for n in range(60)]
STEPS = {
    "line_numbers": [Step("Read", {"file_path": "b.py"}, NUMBERED)],
    "unescape": [Step("say", {"q": 1}, json.dumps({"text": "äöü€日本" * 200}))],
    "respell": [Step("settings", {}, json.dumps(dict(enumerate(ROWS[:20])), indent=4))],
    "duplicates": [READ, READ],
    "failed_inputs": [
        Step("edit", {"file_path": "c.py", "oldString": FILE, "newString": "x"},
             "oldString not found in content", True),
    ],
    "articles": [Step("search", {"q": 3}, json.dumps({"articles": articles(6)}))],
    "records": [Step("rows", {"q": 1}, json.dumps(ROWS))],
    "blobs": [Step("key", {}, base64.b64encode(random.Random(1).randbytes(6_000)).decode())],
    "html_text": [Step("fetch", {"q": 4}, f"<html><body>{PAGE}</body></html>")],
    "digest": [Step("bash", {"command": "make"}, output(NAMES[0]))],
    "long_lines": [Step("fetch", {"q": 5}, MINIFIED)],
    "cut": [READ],
    "arguments": [Step("Write", {"file_path": "d.py", "content": FILE}, "ok")],
    "media": [Step("look", {}, "a picture")],
    "markers": [READ],
}  # fmt: skip
KINDS = {
    "line_numbers": "line-numbers", "duplicates": "duplicate", "failed_inputs": "failed-input",
    "records": "table", "html_text": "page-text", "digest": "output-digest",
    "long_lines": "head-and-tail", "cut": "head-and-tail", "markers": "marker",
}  # fmt: skip
"""The kind of edit that each makes here, where it is not called like the reducer."""
TALK = [Step("ask", {"n": n}, f"answer {n} is {n * 7919}") for n in range(12)]
THOUGHT = "I think of the parser again. " * 30
UNSAID = ("openai-chat", "gemini")
"""Formats whose thoughts here are a part of a call, so that none can go alone."""


def kind_of(reducer: str) -> str:
    """What an edit of this reducer is called."""
    return KINDS.get(reducer, reducer)


def reducible(reducer: str, format: str) -> dict[str, Any]:
    """The conversation for this reducer."""
    known = {*STEPS, "reasoning"}
    assert reducer in known, f"give the reducer {reducer!r} a row in STEPS of reducible.py"
    if reducer == "reasoning":
        return _thoughtful(format)
    body = conversation(format, *STEPS[reducer], *TALK)
    if reducer == "media":
        _put_picture(format, items_of(body))
    return body


def _thoughtful(format: str) -> dict[str, Any]:
    body = session(format, steps=30, lines=1)
    for item in items_of(body):
        if item.get("type") == "reasoning":
            item["summary"] = [{"type": "summary_text", "text": THOUGHT}]
        for part in item.get("content") or item.get("parts") or ():
            if isinstance(part, dict) and part.get("type") == "thinking":
                part["thinking"] = THOUGHT
            elif isinstance(part, dict) and "reasoningContent" in part:
                part["reasoningContent"]["reasoningText"]["text"] = THOUGHT
    return body


def _put_picture(format: str, items: list[dict[str, Any]]) -> None:
    """Into the first result; into the user's first message where results hold none."""
    url = f"data:image/png;base64,{PIXEL}"
    if format == "openai-chat":
        words = {"type": "text", "text": items[0]["content"]}
        items[0]["content"] = [words, {"type": "image_url", "image_url": {"url": url}}]
    elif format == "openai-responses":
        items[2]["output"] = [{"type": "input_image", "image_url": url, "detail": "high"}]
    elif format == "anthropic":
        source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
        items[2]["content"][0]["content"] = [{"type": "image", "source": source}]
    elif format == "bedrock":
        picture = {"image": {"format": "png", "source": {"bytes": PIXEL}}}
        items[2]["content"][0]["toolResult"]["content"] = [picture]
    else:
        items[0]["parts"].append({"inlineData": {"mimeType": "image/png", "data": PIXEL}})
