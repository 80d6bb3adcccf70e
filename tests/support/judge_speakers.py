"""An independent judge: is anybody's text sent in another's name.

It reads requests of all six formats as they go over the wire and compares what arrived with what
is sent: no piece of 40 characters may stand under a speaker where in what arrived only another had
it.  It does not know the library under test: nothing of it is imported here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

PIECE = 40
HEADER = 80
SPEAKERS = ("user", "model", "tool")
MARKER = re.compile(r"\[[\d,]+ (?:earlier (?:step|message)s?\b[^\n]*|chars cut)\]")
RECORD = re.compile(r"\[[\d,]+ earlier (?:step|message)s?, of which this record is left[^\n]*\]\n")
STEP = re.compile(r"\d+(?:–\d+)?:? ")
"""What a record begins the line of a step with."""
LABEL = ',"metadata":{"compressed":true}'
"""What is written into an article of a JSON list that was shortened."""


def foreign_pieces(arrived: Any, sent: Any) -> list[tuple[str, str]]:
    """(speaker, piece) of what is sent in the name of somebody who never had it; the first of
    each text."""
    return Arrived(arrived).foreign(sent)


class Arrived:
    """Who said what in a request as it came; read once, for any number of requests sent for it.

    What is JSON counts as its speaker's without the spaces between its values too.
    """

    def __init__(self, request: Any) -> None:
        self.texts = {
            who: {text for one in said for text in (one, without_spaces(one))}
            for who, said in by_speaker(request).items()
        }
        self.own = {who: "\0".join(said) for who, said in self.texts.items()}
        self.tools = {name for name, _ in calls(request)}
        self.given = "\0".join(text for _, call in calls(request) for text in strings(call))
        self.known = {
            who: {piece for text in said for piece in pieces(text)}
            for who, said in self.texts.items()
        }

    def foreign(self, sent: Any) -> list[tuple[str, str]]:
        """(speaker, piece) as ``foreign_pieces`` gives them."""
        found = []
        for who, said in by_speaker(sent).items():
            for text in said:
                if text in self.texts[who]:
                    continue
                own = without_record(text, self.given) if who == "tool" else text
                own = re.sub(rf"\s*{MARKER.pattern}\s*", "\0", own.replace(LABEL, ""))
                own = without_headers(own, self.tools, 0 if who != "tool" else HEADER)
                bad = next((piece for piece in pieces(own) if self._is_foreign(who, piece)), None)
                if bad is not None:
                    found.append((who, bad))
        return found

    def _is_foreign(self, who: str, piece: str) -> bool:
        if piece in self.known[who] or not any(piece in known for known in self.known.values()):
            return False
        # Two lines of one's own meet where those between them went, as they stood with another.
        rows = [row for row in piece.split("\n") if row.strip()]
        return "\n" not in piece or not all(row in self.own[who] for row in rows)


def without_record(text: str, given: str) -> str:
    """The text with what its record says of calls left out: a line for each step, and below it
    lines of what the call was ``given``.  They are beside the call's result, and nobody's words."""
    match = RECORD.search(text)
    if match is None:
        return text
    rows = (
        "\0" if STEP.match(row) or (row[1:] and row[1:] in given) else row[1:]
        for row in text[match.end() :].split("\n")
    )
    return text[: match.end()] + "\n".join(rows)


def without_headers(text: str, tools: set[str], most: int) -> str:
    """A note's header may name its call: the tool, and at most ``most`` characters; so may the
    marker of a result that was left out, by the tool alone."""
    rows = []
    for row in text.replace("\0", "\0\n").split("\n"):
        named = [tool for tool in tools if row.startswith(f"# {tool}")]
        is_header = any(len(row) <= len(f"# {tool}") + (most and most + 1) for tool in named)
        marked = [tool for tool in tools if row.startswith(f"[{tool} ")]
        row = row[len(max(marked, key=len)) + 1 :] if marked else row
        rows.append("\0" if is_header else row)
    return "\n".join(rows)


def pieces(text: str) -> Iterator[str]:
    """Every 40 characters in a row."""
    for start in range(len(text) - PIECE + 1):
        yield text[start : start + PIECE]


def by_speaker(request: Any) -> dict[str, list[str]]:
    """All texts of a request, by who says them."""
    said: dict[str, list[str]] = {who: [] for who in SPEAKERS}
    for who, text in texts_of(request):
        if who in said:
            said[who] += strings(text)
    return said


def strings(value: Any) -> list[str]:
    """The strings in a value; of a text that is JSON, itself and those in it."""
    if isinstance(value, str):
        found = [value]
        if value[:1] in '{["' and value[-1:] in '}]"':
            try:
                inner = json.loads(value)
            except ValueError:
                return found
            found += [] if inner == value else strings(inner)
        return found
    if isinstance(value, dict):
        return [text for item in value.values() for text in strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in strings(item)]
    return []


def without_spaces(text: str) -> str:
    """Of a text that is JSON, the same values with nothing between them; else the text."""
    if text[:1] not in "{[" or text[-1:] not in "}]":
        return text
    try:
        json.loads(text)
    except ValueError:
        return text
    return re.sub(r'("(?:[^"\\]|\\.)*")|\s+', r"\1", text)


def messages_of(request: Any) -> list[Any]:
    if isinstance(request, list):
        return request
    for key in ("messages", "input", "contents"):
        if isinstance(request.get(key), list):
            found: list[Any] = request[key]
            return found
        if isinstance(request.get(key), str):
            return [{"role": "user", "content": request[key]}]
    return []


def texts_of(request: Any) -> Iterator[tuple[str, Any]]:
    """(speaker, text or value) of everything that is said."""
    for message in messages_of(request):
        role = message.get("role")
        kind = str(message.get("type") or "")
        if kind == "reasoning":
            yield "model", [message.get("summary"), message.get("content")]
        elif kind.endswith(("_output", "_result")) and kind != "model_output":
            yield "tool", [message.get("output"), message.get("result"), message.get("tools")]
        elif kind.endswith("_call") or kind == "program":
            yield "model", {k: v for k, v in message.items() if k not in ("id", "call_id", "type")}
        elif role in ("tool", "function") and "parts" not in message:
            yield "tool", message.get("content")
        else:
            by_model = role in ("assistant", "model") or kind in ("model_output", "thought")
            who = "model" if by_model else "user"
            who = "system" if role in ("system", "developer") else who
            yield from _message(message, who)


def _message(message: Any, who: str) -> Iterator[tuple[str, Any]]:
    for key in ("tool_calls", "function_call", "reasoning_content", "reasoning", "refusal"):
        if message.get(key):
            yield "model", message[key]
            for call in message[key] if isinstance(message[key], list) else ():
                yield "model", (call.get("function") or {}).get("arguments")
    content = message.get("content", message.get("parts"))
    if isinstance(content, str):
        yield who, content
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict):
            continue
        kind = str(part.get("type") or "")
        if kind == "tool_result" or "toolResult" in part:
            yield "tool", part.get("content", part.get("toolResult"))
        elif "functionResponse" in part or "function_response" in part:
            yield "tool", part.get("functionResponse", part.get("function_response"))
        elif kind == "tool_use":
            yield "model", part.get("input")
        elif "toolUse" in part or "functionCall" in part or "function_call" in part:
            yield "model", part
        else:
            yield who, {k: v for k, v in part.items() if k not in ("type", "signature")}


def calls(request: Any) -> Iterator[tuple[str, Any]]:
    """(tool, call) of every call."""
    for message in messages_of(request):
        if str(message.get("type") or "").endswith("_call"):
            yield str(message.get("name") or message["type"].removesuffix("_call")), message
        for call in message.get("tool_calls") or ():
            inner = call.get("function") or call.get("custom") or {}
            yield str(inner.get("name")), call
        content = message.get("content", message.get("parts"))
        for part in content if isinstance(content, list) else ():
            for key in ("toolUse", "functionCall", "function_call"):
                if isinstance(part, dict) and isinstance(part.get(key), dict):
                    yield str(part[key].get("name")), part
            if isinstance(part, dict) and part.get("type") == "tool_use":
                yield str(part.get("name")), part
