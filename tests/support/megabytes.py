"""Great texts that take careless code long: one character, brackets, marks without end ..."""

from __future__ import annotations

import json

from blocks import ESC
from effort import large

GREAT = {
    "open tags": "<system-reminder>" * 60_000,
    "one character": "a" * large(1_000_000),
    "spaces": " " * large(1_000_000),
    "line breaks": "\n" * large(1_000_000),
    "carriage returns": "a\r" * large(500_000),
    "escapes": f"{ESC}[" * large(500_000),
    "emoji": "👩‍👩‍👧‍👦" * large(140_000),
    "marks without end": "e" + "\u0301" * large(1_000_000),
    "flags": "🇩🇪" * large(500_000),
    "lone surrogates": "\ud83d" * large(1_000_000),
    "one line": "lorem ipsum " * large(83_000),
    "brackets": "[" * large(1_000_000),
    "a JSON string": '{"a": "' + "b" * large(1_000_000) + '"}',
    "a JSON array": json.dumps(list(range(large(150_000)))),
    "one line again and again": "the same line as before\n" * large(42_000),
    "growing progress": "\r".join("#" * n for n in range(large(1_400))),
}
"""A megabyte each in the profile ``long``, a third of one in ``ci``."""
