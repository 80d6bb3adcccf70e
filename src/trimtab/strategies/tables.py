"""A JSON text with its lists of records apart, each as a table.

Knows where in a JSON text, or in JSON lines, lists of objects stand, and when a table of them
pays.  Does not know how a table is made nor what may be left out of one.

What comes of it: a note how to read it, the JSON with ``<table 1>`` for each list, the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trimtab.strategies.cells import spelled
from trimtab.strategies.json_tree import MAX_DEPTH, Members, parse
from trimtab.strategies.table import table

LEAST_ROWS = 3
LEAST_GAIN = 40
"""Characters that a table must save beside its name."""


@dataclass(frozen=True)
class Tables:
    """``head``: the JSON around the lists, "" where one list is all there is; ``lines``: whether
    it was JSON lines; each of ``tables`` begins with its header."""

    head: str
    lines: bool
    tables: tuple[list[str], ...]

    @property
    def rows(self) -> list[list[str]]:
        """The rows of each table."""
        return [one[1:] for one in self.tables]

    def text(self, rows: Sequence[Iterable[str]], note: str = "") -> str:
        """As the model reads it, with these rows; ``note`` stands behind how it is read."""
        parts = [self._legend(note), *([self.head] if self.head else [])]
        for number, (one, inside) in enumerate(zip(self.tables, rows, strict=True), 1):
            parts += [f"<table {number}>", one[0], *inside]
        return "\n".join(parts)

    def _legend(self, note: str) -> str:
        """How to read the tables: only what is needed for these."""
        said = ["first row keys, tab-separated; plain cell = string, empty = no such key"]
        headers = "\t".join(one[0] for one in self.tables).split("\t")
        if any(header.endswith("[]") for header in headers):
            said.append("x[] = list of strings")
        if any("=" in header for header in headers):
            said.append("x=… said once for all rows")
        if any(header.endswith("+*") for header in headers):
            said.append("* = cell")
        said += [note] if note else []
        return f"[JSON {'lines ' if self.lines else ''}as table: {'; '.join(said)}]"


def as_tables(text: str, least_gain: int = LEAST_GAIN) -> str | None:
    """The text with its lists of records as tables; None if it is no JSON or has no such list."""
    tree, lines = read(text)
    laid = None if tree is None else lay(tree, lines=lines, least_gain=least_gain)
    return None if laid is None else laid.text(laid.rows)


def lay(tree: Any, *, lines: bool, least_gain: int = LEAST_GAIN) -> Tables | None:
    """The tree with each list of records that is smaller as a table apart; None if none is."""
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
    return Tables("" if id(tree) in names else spelled(tree, names), lines, tuple(tables))


def read(text: str) -> tuple[Any, bool]:
    """The parsed JSON, or the objects of JSON lines as a list and True.

    (None, False) if it is neither, or nested too deep to walk.
    """
    begin = text[:64].lstrip(" \t\n\r")[:1]
    if begin not in ("{", "["):
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
