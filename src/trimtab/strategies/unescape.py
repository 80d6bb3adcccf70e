r"""JSON that spells letters as ``\u0434``: the letters themselves, at a fifth of the tokens.

Knows JSON escapes.  Exact: writing each character above ASCII as an escape again gives the
original, character for character.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from trimtab.model import Block
from trimtab.strategies.base import Config, Offer, smaller

LEAST = 16
"""Escapes; fewer are not worth a changed block."""
_ESCAPE = re.compile(
    r"\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|u([0-9a-f]{4})|.)", re.DOTALL
)
_UPPER = re.compile(r"\\u(?=[0-9a-f]{0,3}[A-F])[0-9A-Fa-f]{4}")


def unescape(block: Block, config: Config) -> Iterator[Offer]:
    """One offer for a tool result, loss 0: printable characters above ASCII as themselves.

    Nothing unless the result is JSON, all ASCII, with lower-case escapes throughout: only then
    can the original be told from what is shown.
    """
    if block.kind != "result" or block.text.count("\\u") < LEAST or not block.text.isascii():
        return
    if _UPPER.search(block.text):
        return
    try:  # hooks that keep next to nothing: a 50 MB result must not become a tree
        json.loads(block.text, object_pairs_hook=bool, parse_int=bool, parse_float=bool)
    except (ValueError, RecursionError):
        return
    text = _ESCAPE.sub(_character, block.text)
    if smaller(text, block.text, config.count):
        yield Offer("replace", text, 0.0, "unescape", "characters instead of \\u escapes")


def _character(match: re.Match[str]) -> str:
    high, low, code = match.groups()
    if high:
        char = chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    elif code:
        char = chr(int(code, 16))
    else:
        return match[0]
    return char if char > "\x7f" and char.isprintable() else match[0]
