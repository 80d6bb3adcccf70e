"""Tool names that a provider's pattern refuses: found and respelled wherever a request names a
tool, in every format.

A name keeps one spelling over all requests: it depends on the name alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from trimtab.formats.engine.parts import PartRow, PartTable, camel
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

_CHOICES = ("function", "custom", "tool")
"""Types of a choice, which has the name of a tool beside it or in an object of that key."""
_ALLOWED = "allowedFunctionNames"


class _Words(NamedTuple):
    """Where the requests of one format name tools."""

    types: frozenset[str]
    """Types of parts, items and choices, and roles, whose ``name`` is a tool's."""
    wrappers: frozenset[str]
    """Keys of objects with a tool's ``name``."""
    lists: frozenset[str]
    """Keys of lists of definitions."""
    inside: frozenset[str]
    """Keys below which names are looked for; arguments, schemas and results are not."""


def _words_of(table: PartTable) -> _Words:
    tools = table.tools
    contents = {key: part for key, part in table.parts.items() if not isinstance(part, PartRow)}
    rows = {**table.items}
    for content in contents.values():
        rows |= content
    named = [
        (type, row)
        for type, variants in rows.items()
        for row in (variants if isinstance(variants, tuple) else (variants,))
        if row.kind in ("call", "result") and row.name and not row.named
    ]
    alone = (key for key, part in table.parts.items() if isinstance(part, PartRow) and part.name)
    within = (row.name[0] for _, row in named if len(row.name) > 1)
    lists = {tools.path[-1], "functions", tools.listed}
    inside = {table.messages, *contents, *tools.choice, *tools.path, "content", "allowed_tools"}
    return _Words(
        frozenset((*_CHOICES, *(type for type, row in named if len(row.name) == 1))),
        frozenset(map(str, (*_CHOICES, *alone, *within, *tools.within[:1]))) - lists,
        frozenset(map(str, lists)),
        frozenset(map(str, inside)) - lists,
    )


def tool_names(tree: Any, table: PartTable) -> Iterator[tuple[Path, str]]:
    """(path, name) of every place of a request that names a tool of the client's."""
    return _names_in(tree, (), _words_of(table), named=False)


def _names_in(tree: Any, path: Path, words: _Words, *, named: bool) -> Iterator[tuple[Path, str]]:
    if isinstance(tree, list):
        for index, item in enumerate(tree):
            yield from _names_in(item, (*path, index), words, named=named)
    if not isinstance(tree, dict):
        return
    is_own = named or tree.get("type") in words.types or tree.get("role") in words.types
    if is_own and isinstance(tree.get("name"), str):
        yield (*path, "name"), tree["name"]
    if tree.get("type") == "tool_reference" and isinstance(tree.get("tool_name"), str):
        yield (*path, "tool_name"), tree["tool_name"]
    for key, value in tree.items():
        spelled = {key, camel(key)}
        if camel(key) == _ALLOWED and isinstance(value, list):
            yield from (((*path, key, n), v) for n, v in enumerate(value) if isinstance(v, str))
        elif (spelled & words.wrappers and isinstance(value, dict)) or spelled & words.lists:
            yield from _names_in(value, (*path, key), words, named=True)
        elif spelled & words.inside and not (key == "input" and isinstance(value, dict)):
            yield from _names_in(value, (*path, key), words, named=False)


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
    whole = tree if transcript.base else {transcript.format.messages_key: tree}
    drop = 0 if transcript.base else 1
    found = tool_names(whole, transcript.format.table)
    wrong = [(path[drop:], name) for path, name in found if not allowed.fullmatch(name)]
    ops = tuple(Set(path, respelled(name)) for path, name in wrong)
    names = ", ".join(sorted({respelled(name) for _, name in wrong}))
    if ops:
        yield Repair(findings[0].path, f"tool names respelled: {names}", ops)
