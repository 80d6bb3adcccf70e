"""Tool names that a provider's pattern refuses: found and respelled wherever a request names a
tool, in every format.

A name keeps one spelling over all requests: it depends on the name alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.formats.engine.rule import Finding, Repair, Scan, reports
from trimtab.jsontext.paths import Path, Set
from trimtab.transcript.transcript import Transcript

NAME = "name_format"
OPENAI_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ANTHROPIC_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
"""What each provider takes by its newest words."""
EVERYWHERE = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
"""What all of them take, by older words too: after a refusal only this counts as a name."""

_NAMED = (
    "tool_use",
    "tool",
    "function_call",
    "custom_tool_call",
    "function_result",
    "function",
    "custom",
)
"""Types of parts, items and choices whose ``name`` is a tool's."""
_WRAPPERS = (
    *("function", "custom", "functionCall", "functionResponse", "function_call", "toolUse"),
    *("function_response", "toolSpec", "tool"),
)
"""Keys of objects with a tool's ``name``."""
_LISTS = ("tools", "functions", "functionDeclarations", "function_declarations")
"""Keys of lists of definitions."""
_INSIDE = (
    *("messages", "contents", "content", "parts", "tool_calls", "tool_choice", "toolConfig"),
    *("tool_config", "functionCallingConfig", "function_calling_config", "toolChoice"),
    *("allowed_tools", "input", "steps"),
)
"""Keys below which names are looked for; arguments, schemas and results are not."""
_ALLOWED = ("allowedFunctionNames", "allowed_function_names")


def tool_names(tree: Any, path: Path = (), *, named: bool = False) -> Iterator[tuple[Path, str]]:
    """(path, name) of every place of a request that names a tool of the client's."""
    if isinstance(tree, list):
        for index, item in enumerate(tree):
            yield from tool_names(item, (*path, index), named=named)
    if not isinstance(tree, dict):
        return
    is_own = named or tree.get("type") in _NAMED or tree.get("role") in ("tool", "function")
    if is_own and isinstance(tree.get("name"), str):
        yield (*path, "name"), tree["name"]
    if tree.get("type") == "tool_reference" and isinstance(tree.get("tool_name"), str):
        yield (*path, "tool_name"), tree["tool_name"]
    for key, value in tree.items():
        if key in _ALLOWED and isinstance(value, list):
            yield from (((*path, key, n), v) for n, v in enumerate(value) if isinstance(v, str))
        elif (key in _WRAPPERS and isinstance(value, dict)) or key in _LISTS:
            yield from tool_names(value, (*path, key), named=True)
        elif key in _INSIDE and not (key == "input" and isinstance(value, dict)):
            yield from tool_names(value, (*path, key))


def respelled(name: str) -> str:
    """A spelling that every provider takes: the same for the same name, on every machine."""
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    kept = re.sub("[^a-zA-Z0-9_-]", "_", name) or "tool"
    first = "" if re.match("[a-zA-Z_]", kept) else "_"
    return f"{f'{first}{kept}'[:55]}_{digest}"


def scan_tool_names(allowed: re.Pattern[str], *, blank: bool = False) -> Scan:
    """A scan for names outside of ``allowed`` in calls and definitions; after a refusal, for those
    that any provider might refuse.  ``blank``: for empty names, too, which else have a row of their
    own."""

    @reports(NAME)
    def scan(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
        wanted = EVERYWHERE if NAME in transcript.facts.refused else allowed
        declared = [(("tools",), tool) for tool in transcript.facts.tools or ()]
        called = (
            ((*transcript.base, number, *part.path), part.tool)
            for number, message in enumerate(transcript.messages)
            for part in message.calls
        )
        for path, tool in (*declared, *called):
            if not wanted.fullmatch(tool) and (blank or tool.strip()):
                yield Finding(NAME, path, f"tool {tool!r}", wanted)

    scan_function: Scan = scan
    return scan_function


def respell_names(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Tool names respelled in definitions, calls, results and choices alike."""
    allowed: re.Pattern[str] = findings[0].data
    whole = tree if transcript.base else {"messages": tree}
    drop = 0 if transcript.base else 1
    found = [(path[drop:], name) for path, name in tool_names(whole)]
    wrong = [(path, name) for path, name in found if not allowed.fullmatch(name)]
    ops = tuple(Set(path, respelled(name)) for path, name in wrong)
    names = ", ".join(sorted({respelled(name) for _, name in wrong}))
    if ops:
        yield Repair(findings[0].path, f"tool name(s) respelled: {names}", ops)
