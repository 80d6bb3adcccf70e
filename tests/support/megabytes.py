"""A megabyte of what takes careless code long: one character, brackets, marks without end ..."""

from __future__ import annotations

import json

from blocks import (
    ESC,
)

MEGABYTE = {
    "one character": "a" * 1_000_000,
    "spaces": " " * 1_000_000,
    "line breaks": "\n" * 1_000_000,
    "carriage returns": "a\r" * 500_000,
    "escapes": f"{ESC}[" * 500_000,
    "emoji": "👩‍👩‍👧‍👦" * 140_000,
    "marks without end": "e" + "\u0301" * 1_000_000,
    "flags": "🇩🇪" * 500_000,
    "lone surrogates": "\ud83d" * 1_000_000,
    "one line": "lorem ipsum " * 83_000,
    "brackets": "[" * 1_000_000,
    "a JSON string": '{"a": "' + "b" * 1_000_000 + '"}',
    "a JSON array": json.dumps(list(range(150_000))),
    "one line again and again": "the same line as before\n" * 42_000,
    "growing progress": "\r".join("#" * n for n in range(1_400)),
}
