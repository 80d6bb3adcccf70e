"""Generated JSON texts, spelled oddly: numbers, escapes, layout, duplicate keys, surrogates, BOM.

Knows JSON, not requests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from trimtab.jsontext.paths import Path

SPACE = st.sampled_from(["", "", "", " ", "\n  ", "\t", "\r\n "])
NUMBERS = ["0", "-0", "1.10", "1E5", "1e400", "-1e-400", "12", "0.1e+1", "9" * 30, "2.5", "NaN"]
CHARS = 'ab"\\/\n\t ,:[]{}é😀\u2028\u007f'


@st.composite
def string_sources(draw: st.DrawFn) -> str:
    """A JSON string whose characters are spelled in any legal way, lone surrogates among them."""
    out = ""
    for char in draw(st.text(st.sampled_from(CHARS), max_size=6)):
        units = [f"\\u{unit:04{draw(st.sampled_from('xX'))}}" for unit in utf16(char)]
        spellings = [
            "".join(units),
            json.dumps(char)[1:-1],
            json.dumps(char, ensure_ascii=False)[1:-1],
        ]
        out += draw(st.sampled_from([*spellings, "\\/"] if char == "/" else spellings))
    return f'"{out}{draw(st.sampled_from(["", "", "", chr(92) + "ud800"]))}"'


def utf16(char: str) -> list[int]:
    data = char.encode("utf-16-be")
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]


@st.composite
def containers(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    items = draw(st.lists(inner, max_size=5))
    keys = st.sampled_from(
        ['"a"', '"A"', '"\\u0061"', '"b"', '"c"', '""', '"é"', '"\\/"', '"\\ud800"']
    )
    is_object = draw(st.booleans())
    parts = []
    for item in items:
        key = f"{draw(keys)}{draw(SPACE)}:{draw(SPACE)}" if is_object else ""
        parts.append(f"{draw(SPACE)}{key}{item}{draw(SPACE)}")
    body = ",".join(parts) or draw(SPACE)
    return f"{{{body}}}" if is_object else f"[{body}]"


LEAVES = st.sampled_from([*NUMBERS, "true", "null"]) | string_sources()
VALUES = st.recursive(LEAVES, containers, max_leaves=6)
SOURCES = st.builds(
    lambda bom, before, value, after: bom + before + value + after,
    st.sampled_from(["", "", "\ufeff"]),
    SPACE,
    st.recursive(containers(LEAVES), containers, max_leaves=15),
    SPACE,
)


def every_path(tree: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    if isinstance(tree, (dict, list)):
        for key, child in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from every_path(child, (*path, key))
