"""Advice for the user about a request that is too large, derived from what fills it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from trimtab.jsontext.parsing import dump
from trimtab.jsontext.paths import Path, escape
from trimtab.planning.tool_definitions import tool_sizes, tools_take
from trimtab.reducers.base import utf8_bytes
from trimtab.transcript.model import Place
from trimtab.transcript.transcript import Transcript

MAX_SHARE = 0.5
"""Advice is given if one kind of content takes at least this share of the request."""

_DO = {
    "media": "send fewer or smaller ones, or name them by URL or file id",
    "result": "have it return less (a range, a filter, a page)",
    "call": "have it write to a file in several steps",
    "system": "shorten it",
    "user": "put long material into a file that a tool reads in parts",
    "assistant": "start a new conversation from a summary of it",
}


def advice(transcript: Transcript, sizes: Iterable[tuple[Place, int]], unit: str) -> str:
    """One sentence, with its numbers in ``unit``; "" if no kind takes most of the request."""
    kinds, tools = Counter[str](), Counter[tuple[str, str]]()
    rows = dict(sizes)
    for place, size in rows.items():
        kind = _kind(transcript, place)
        kinds[kind] += size
        tools[kind, transcript.tool(place) or ""] += size
    total = sum(kinds.values())
    if not total:
        return ""
    kind, size = kinds.most_common(1)[0]
    if kind not in (*_DO, "tools") or size < MAX_SHARE * total:
        return ""
    if kind == "tools" and (definitions := tool_sizes(rows, rows.__getitem__)):
        return tools_take(definitions, f"{total:,} {unit}", transcript.format)
    if kind == "tools":
        return f"The schema of the answer takes {size:,} of {total:,} {unit}: make it smaller."
    named = max((n for k, n in tools if k == kind), key=lambda n: (tools[kind, n], n))
    return f"{_what(kind, named)} {size:,} of {total:,} {unit}: {_DO[kind]}."


def advice_beside(tree: Any, read: int) -> str:
    """One sentence that names the value in which most bytes of a request are, where most of it is
    in no block; "" elsewhere.  ``read``: bytes of the blocks."""
    whole = utf8_bytes(dump(tree))
    if whole - read < MAX_SHARE * whole:
        return ""
    path: Path = ()
    size, value = whole, tree
    while True:
        inner: Any = value.items() if isinstance(value, dict) else ()
        inner = enumerate(value) if isinstance(value, list) else inner
        sizes = {key: utf8_bytes(dump(child)) for key, child in inner}
        key = max(sizes, key=lambda key: sizes[key], default=None)
        if key is None or sizes[key] < MAX_SHARE * whole:
            break
        path, size, value = (*path, key), sizes[key], value[key]
    return (
        f"{escape(path) or 'The body'} takes {size:,} of {whole:,} bytes, most of it in fields "
        "that are sent as they are: leave them out or make them smaller."
    )


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
        "system": "The system prompt takes",
        "user": "The user's own words take",
        "assistant": "What the model said takes",
    }[kind]
