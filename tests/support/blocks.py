"""Blocks, texts and arguments to try reducers on.

Knows ``Block`` and a simple token count; asserts nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from trimtab.reducers import HANDLE, Config, Offer, levels, text_levels
from trimtab.transcript.model import Block

ESC = "\x1b"


def count(text: str) -> int:
    return (len(text.encode("utf-8", "surrogatepass")) + 3) // 4


CONFIG = Config(count)
RECALL = Config(count, recall=True)


def block(text: str, kind: str = "result", **facts: Any) -> Block:
    return Block(kind, ("content",), ("content",), text, tool=facts.pop("tool", "Read"), **facts)  # type: ignore[arg-type]


def call(arguments: str, **facts: Any) -> Block:
    return block(arguments, "call", spelling=facts.pop("spelling", "json-string"), **facts)


def offers(*args: Any, **kwargs: Any) -> list[Offer]:
    return list(levels(*args, **kwargs))


LOG = "".join(f"2024-05-0{i % 9} step {i}: wrote shard-{i * 7919} ok\n" for i in range(400))


JSON_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=200),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=9), inner, max_size=6)
    ),
    max_leaves=30,
)

PIECE = st.sampled_from([
    "word ", "line one\n", "  \n", "\r\n", "50%\r", "\t", f"{ESC}[31m", f"{ESC}[", f"{ESC}]8;;x",
    "👩‍👩‍👧‍👦", "é́̂", "🇩🇪", "🇫🇷", "日本", "\ud83d\ude00", "\ud83d", "\x00", '"', "\\", HANDLE,
    '{"a": 1}',
    "[1 lines cut]", "[the line above, 2 more times]",
    "the same line again\n" * 4, "x" * 90, "7 " * 60,
])  # fmt: skip
TEXT = st.lists(st.tuples(PIECE, st.integers(1, 30)), max_size=14).map(
    lambda runs: "".join(piece * times for piece, times in runs)
)
ARGUMENTS = st.dictionaries(st.text(max_size=12), JSON_VALUE | TEXT, max_size=5).map(json.dumps)
KINDS = ("result", "text", "call", "reasoning", "other")


def all_levels(item: Block, config: Config) -> Iterator[Offer]:
    yield from text_levels(item, config) if item.kind == "text" else levels(item, config)


def lone_surrogates(text: str) -> int:
    return len(
        re.findall("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]", text)
    )
