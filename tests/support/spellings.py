"""JSON as careless clients write it, and where in such a text a value stands.

``json_text(request)`` draws bytes that parse to the request again, oddly spelled;
``span(text, path)`` finds a value's own characters, so that a test can say which bytes must not
have changed.  Knows JSON; knows no request format and not the library under test.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from json.decoder import scanstring
from typing import Any

from hypothesis import strategies as st

BLANK = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True)
class Spelling:
    """How one client writes JSON."""

    escapes: str  # none | ascii | letters | slash
    gap: str  # between tokens
    numbers: str  # plain | exponent | long
    twin_keys: bool  # the first key of each object stands there twice; the last one counts
    surrogate: bool  # long strings end in half of a surrogate pair, as cut strings do
    bom: bool
    end: str


SPELLINGS = st.builds(
    Spelling,
    st.sampled_from(["none", "ascii", "letters", "slash"]),
    st.sampled_from(["", " ", "\n  ", "\t", "\r\n"]),
    st.sampled_from(["plain", "exponent", "long"]),
    st.booleans(),
    st.sampled_from([False, False, True]),
    st.sampled_from([False, False, False, True]),
    st.sampled_from(["", "\n", " \n\n"]),
)


def json_text(request: Any) -> st.SearchStrategy[bytes]:
    """The request as odd JSON bytes; parsed they equal it (but for added surrogates)."""
    return SPELLINGS.map(lambda spelling: spell(request, spelling))


def spell(request: Any, spelling: Spelling) -> bytes:
    """One request in one spelling."""
    text = "".join(_value(request, spelling)) + spelling.end
    return (b"\xef\xbb\xbf" if spelling.bom else b"") + text.encode("utf-8", "surrogatepass")


def _value(value: Any, spelling: Spelling) -> Iterator[str]:
    gap = spelling.gap
    if isinstance(value, dict):
        pairs = list(value.items())
        if spelling.twin_keys and pairs:
            pairs = [(pairs[0][0], "shadowed"), *pairs]
        yield "{" + gap
        for number, (key, item) in enumerate(pairs):
            yield ("," if number else "") + gap + _string(key, spelling) + gap + ":" + gap
            yield from _value(item, spelling)
        yield gap + "}"
    elif isinstance(value, list):
        yield "["
        for number, item in enumerate(value):
            yield ("," if number else "") + gap
            yield from _value(item, spelling)
        yield gap + "]"
    elif isinstance(value, str):
        yield _string(value, spelling)
    else:
        yield _number(value, spelling)


def _number(value: Any, spelling: Spelling) -> str:
    plain = json.dumps(value)
    if not isinstance(value, float) or "e" in plain or spelling.numbers == "plain":
        return plain
    return f"{plain}E+0" if spelling.numbers == "exponent" else f"{plain}00"


def _string(text: str, spelling: Spelling) -> str:
    written = json.dumps(text, ensure_ascii=spelling.escapes in ("ascii", "letters"))
    if spelling.escapes == "letters" and len(written) < 40 and "\\" not in written:
        written = written.replace("e", "\\u0065")
    elif spelling.escapes == "slash":
        written = written.replace("/", "\\/")
    if spelling.surrogate and len(text) > 60:
        written = written[:-1] + '\\uDC00"'
    return written


# --- where a value stands -------------------------------------------------------------------------


def span(text: str, path: tuple[str | int, ...]) -> tuple[int, int]:
    """(start, end) of the value at a path, of twin keys the last one; KeyError without one."""
    at = _skip(text, 1 if text.startswith("\ufeff") else 0)
    for step in path:
        at = _member(text, at, step)
    return at, _end(text, at)


def _skip(text: str, at: int) -> int:
    found = BLANK.match(text, at)
    return found.end() if found else at


def _member(text: str, at: int, step: str | int) -> int:
    """Where the member ``step`` of the object or array at ``at`` begins."""
    kind, found, number = text[at], -1, 0
    at = _skip(text, at + 1)
    while text[at] not in "]}":
        key: str | int = number
        if kind == "{":
            key, at = scanstring(text, at + 1, False)
            at = _skip(text, _skip(text, at) + 1)
        if key == step:
            found = at
        at = _skip(text, _end(text, at))
        at = _skip(text, at + 1) if text[at] == "," else at
        number += 1
    if found < 0:
        raise KeyError(step)
    return found


def _end(text: str, at: int) -> int:
    return json.JSONDecoder(strict=False).raw_decode(text, at)[1]
