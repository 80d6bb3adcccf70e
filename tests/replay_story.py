"""A conversation of four model calls, small enough to check every figure of the replay by hand.

Knows OpenAI chat messages.  Does not know the library.
"""

from __future__ import annotations

import json
from typing import Any


def _call(number: int, tool: str, **arguments: str) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    calls = [{"id": f"c{number}", "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _result(number: int, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text}


MODULE = (
    "def parse_line(text):\n"
    "    return the text cut to MAX_CHARS when it is long\n"
    "MAX_CHARS = 80 in this old module\n"
)
CALLERS = "src/app/main.py calls parse_line with each line of the input file\n"

MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "Never touch the tests in any way. Fix the limit of the parser."},
    _call(1, "read", path="src/app/parser.py"),
    _result(1, MODULE),
    _call(2, "grep", pattern="parse_line"),
    _result(2, CALLERS),
    _call(3, "edit", path="src/app/parser.py", old="MAX_CHARS = 80 in this old module"),
    _result(3, "ok"),
    {"role": "assistant", "content": "MAX_CHARS of src/app/parser.py is used in src/app/main.py."},
]
