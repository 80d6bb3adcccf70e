"""Advice for the user about a request that is too large, derived from what fills it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from trimtab.reducers.base import utf8_bytes
from trimtab.transcript.model import Place
from trimtab.transcript.transcript import Transcript

MOST_SHARE = 0.5
"""Advice is given if one kind of content takes at least this share of the request."""

_DO = {
    "media": "send fewer or smaller ones, or name them by URL or file id",
    "result": "have it return less (a range, a filter, a page)",
    "call": "have it write to a file in several steps",
    "tools": "declare fewer of them",
    "system": "shorten it",
    "user": "put long material into a file that a tool reads in parts",
    "assistant": "start a new conversation from a summary of it",
}


def advice(transcript: Transcript, sizes: Iterable[tuple[Place, int]], unit: str) -> str:
    """One sentence, with its numbers in ``unit``; "" if no kind takes most of the request."""
    kinds, tools = Counter[str](), Counter[tuple[str, str]]()
    for place, size in sizes:
        kind = _kind(transcript, place)
        kinds[kind] += size
        tools[kind, transcript.tool(place) or ""] += size
    total = sum(kinds.values())
    if not total:
        return ""
    kind, size = kinds.most_common(1)[0]
    if kind not in _DO or size < MOST_SHARE * total:
        return ""
    named = max((n for k, n in tools if k == kind), key=lambda n: (tools[kind, n], n))
    return f"{_what(kind, named)} {size:,} of {total:,} {unit}: {_DO[kind]}."


def size_in_bytes(place: Place) -> int:
    """Bytes of a block, including content that is not text."""
    return utf8_bytes(place.block.text) + place.block.payload_bytes


def _kind(transcript: Transcript, place: Place) -> str:
    if place.block.kind != "text":
        return place.block.kind
    if place.message < 0:
        return "user"  # the input of Responses that is one text
    return "user" if transcript.messages[place.message].role == "user" else "assistant"


def _what(kind: str, tool: str) -> str:
    name = "".join(c for c in tool if c.isprintable())[:64]
    return {
        "media": "Images and documents take",
        "result": f"Tool results, most of them of {name or 'one tool'}, take",
        "call": f"What the model wrote into calls, most of them of {name or 'one tool'}, takes",
        "tools": "The definitions of the tools take",
        "system": "The system prompt takes",
        "user": "The user's own words take",
        "assistant": "What the model said takes",
    }[kind]
