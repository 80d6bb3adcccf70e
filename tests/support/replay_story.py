"""Conversations for the replay: four model calls, every figure checked by hand, and a long one.

Knows OpenAI chat messages; has the library convert the long one.  Does not know any policy.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import trimtab
from trimtab.formats import FORMATS
from trimtab.logs.recording import Recording


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


WINDOW = 1_500
"""Outgrown by the long conversation in every format."""


def long_story(turns: int = 24) -> list[dict[str, Any]]:
    """A chat in which each call reads a file and the last ones come back to the first ones."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Never edit generated files. Count the callers of each part."}
    ]
    for n in range(turns):
        path = f"src/part_{n % 8}/file_{n}.py"
        old = f"and_again_{n - 12}" if n >= 12 else "nothing"
        arguments = json.dumps({"path": path, "about": f"the value of {old} in the old file"})
        call = {"id": f"c{n}", "type": "function"}
        call["function"] = {"name": "read", "arguments": arguments}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        body = "\n".join(
            f"    line {k} of the file says that value_{n}_{k} is used in the module"
            for k in range(9)
        )
        text = f"# {path}\ndef and_again_{n}(): the function that is called by all\n{body}\n"
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": text})
    messages.append({"role": "assistant", "content": "All and_again_1 callers are counted."})
    return messages


def recording(format: str = "openai-chat", **changes: Any) -> Recording:
    messages: Any = long_story()
    if format != "openai-chat":
        done = trimtab.convert({"messages": messages}, format, format="openai-chat")
        messages = done.request[FORMATS[format].messages_key]
    return Recording("made", f"long-{format}", format, messages, **changes)


SAMPLE = [recording("anthropic"), recording("openai-chat")]


def written(folder: Path) -> str:
    """The long conversation as a log in a new folder, beside a line that is none."""
    folder.mkdir()
    record = {"id": "long", "format": "openai-chat", "messages": long_story()}
    (folder / "mine.jsonl").write_text(json.dumps(record) + "\nbroken\n")
    return str(folder)


def timeless(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without CPU times, the one column that differs from run to run."""
    cut = copy.deepcopy(results)
    for result in cut:
        result["rows"] = [row[:-1] for row in result["rows"]]
    return cut
