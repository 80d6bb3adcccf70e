"""Lists of records in a JSON result as tables: the same values, each key once.

Knows where in a JSON text lists of objects stand and when a table of them pays.  Does not know how
a table is made.

What comes of it: a note how to read it, the JSON with ``<table 1>`` for each list, the tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trimtab.model import Block
from trimtab.strategies.base import Config, Offer, smaller
from trimtab.strategies.cells import spelled
from trimtab.strategies.json_cut import MAX_DEPTH, Members, parse
from trimtab.strategies.table import table

LEAST_ROWS = 3
LEAST_GAIN = 40
"""Characters that a table must save beside its name."""


def records(block: Block, config: Config) -> Iterator[Offer]:
    """One offer for a JSON result with lists of records, loss 0; nothing if none pays."""
    if block.kind != "result":
        return
    text = as_tables(block.text)
    if text is not None and smaller(text, block.text, config.count):
        yield Offer("replace", text, 0.0, "table", "records as rows, each key once")


def as_tables(text: str, least_gain: int = LEAST_GAIN) -> str | None:
    """The text with its lists of records as tables; None if it is no JSON or has no such list."""
    tree, lines = read(text)
    if tree is None:
        return None
    tables: list[list[str]] = []
    names: dict[int, str] = {}
    for found in lists(tree):
        rows = table(found)
        if rows is None:
            continue
        saved = len(spelled(found)) - sum(map(len, rows)) - len(rows)
        if saved >= least_gain:
            tables.append(rows)
            names[id(found)] = f"<table {len(tables)}>"
    if not tables:
        return None
    head = spelled(tree, names)
    parts = [legend(tables, lines=lines), *([] if id(tree) in names else [head])]
    for number, rows in enumerate(tables, 1):
        parts += [f"<table {number}>", *rows]
    return "\n".join(parts)


def legend(tables: list[list[str]], *, lines: bool = False) -> str:
    """How to read the tables: only what is needed for these."""
    said = ["first row keys, tab-separated; plain cell = string, empty = no such key"]
    headers = "\t".join(rows[0] for rows in tables).split("\t")
    if any(header.endswith("[]") for header in headers):
        said.append("x[] = list of strings")
    if any("=" in header for header in headers):
        said.append("x=… said once for all rows")
    if any(header.endswith("+*") for header in headers):
        said.append("* = cell")
    return f"[JSON {'lines ' if lines else ''}as table: {'; '.join(said)}]"


def read(text: str) -> tuple[Any, bool]:
    """The parsed JSON, or the list of the objects of JSON lines and True; (None, False) if
    neither, or nested too deep to walk."""
    begin = text[:64].lstrip(" \t\n\r")[:1]
    if begin not in ("{", "[") or text.count("{") < LEAST_ROWS:
        return None, False
    try:
        tree, lines = parse(text), False
    except ValueError:
        tree, lines = _json_lines(text), True
    return (None, False) if tree is None or _deep(tree) else (tree, lines)


def _json_lines(text: str) -> Any:
    if "\n{" not in text:
        return None
    try:
        found = [parse(line) for line in text.split("\n") if line.strip()]
    except ValueError:
        return None
    return found if all(isinstance(one, Members) for one in found) else None


def _deep(tree: Any) -> bool:
    level = [tree]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for one in level
            for inner in ([value for _, value in one] if isinstance(one, Members) else one)
            if isinstance(inner, list)
        ]
        if not level:
            return False
    return True


def lists(tree: Any) -> Iterator[list[Members]]:
    """Lists of at least three objects and nothing else, the outermost, in the order of the text."""
    if isinstance(tree, Members):
        for _, value in tree:
            yield from lists(value)
    elif isinstance(tree, list):
        if len(tree) >= LEAST_ROWS and all(isinstance(one, Members) and one for one in tree):
            yield tree
        else:
            for value in tree:
                yield from lists(value)
