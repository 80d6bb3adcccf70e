"""Writes the lists of records in a JSON text as tables, without loss.

The result has three parts: a note on how to read it, the JSON with ``<table 1>`` in place of each
list, and the tables.  A table is a header line, then one line per record.

The header names the columns, separated by tabs:

    author.name                     a member of a member
    tags[]                          cells are lists of strings (a,b), or JSON
    kind="x"                        the same value in each row; the column has no cells
    url="https://a.b/"+*            each value begins so; the cell has the rest
    url="https://a.b/"+id+".html"   derived from another column; the column has no cells

A cell is JSON; a cell that is not JSON is a plain string; an empty cell means no value.  Missing
cells at the end of a row are left out.  A line that begins with ``{`` and has no tab is a whole
record that does not fit the columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from trimtab.jsontext.parsing import dump
from trimtab.reducers.json_tree import MAX_DEPTH, Literal, Members, parse

# --- a JSON text and its tables ---

MIN_ROWS = 3
MIN_GAIN = 40
"""Characters that a table must save, not counting its name."""


@dataclass(frozen=True)
class Tables:
    """``head``: the JSON around the lists; "" where the text is a single list.  ``lines``: the text
    was JSON lines.  ``tables``: lines of each table, its header first."""

    head: str
    lines: bool
    tables: tuple[list[str], ...]

    @property
    def rows(self) -> list[list[str]]:
        """The rows of each table."""
        return [one[1:] for one in self.tables]

    def text(self, rows: Sequence[Iterable[str]], note: str = "") -> str:
        """The text for the model, with these rows; ``note`` is added to the legend."""
        parts = [self._legend(note), *([self.head] if self.head else [])]
        for number, (one, inside) in enumerate(zip(self.tables, rows, strict=True), 1):
            parts += [f"<table {number}>", one[0], *inside]
        return "\n".join(parts)

    def _legend(self, note: str) -> str:
        """How to read the tables; only the notations that they use."""
        legend = ["first row keys, tab-separated; plain cell = string, empty = no such key"]
        headers = "\t".join(one[0] for one in self.tables).split("\t")
        if any(header.endswith("[]") for header in headers):
            legend.append("x[] = list of strings")
        if any("=" in header for header in headers):
            legend.append("x=… said once for all rows")
        if any(header.endswith("+*") for header in headers):
            legend.append("* = cell")
        legend += [note] if note else []
        return f"[JSON {'lines ' if self.lines else ''}as table: {'; '.join(legend)}]"


def as_tables(text: str, min_gain: int = MIN_GAIN) -> str | None:
    """The text with its lists of records as tables; None if it is not JSON or has no such list."""
    tree, lines = read_json(text)
    laid = None if tree is None else lay_out(tree, lines=lines, min_gain=min_gain)
    return None if laid is None else laid.text(laid.rows)


def lay_out(tree: Any, *, lines: bool, min_gain: int = MIN_GAIN) -> Tables | None:
    """Moves each list of records that gets smaller into a table; None if none gets smaller."""
    tables: list[list[str]] = []
    names: dict[int, str] = {}
    for records in record_lists(tree):
        rows = record_table(records)
        if rows is None:
            continue
        saved = len(to_json(records)) - sum(map(len, rows)) - len(rows)
        if saved >= min_gain:
            tables.append(rows)
            names[id(records)] = f"<table {len(tables)}>"
    if not tables:
        return None
    return Tables("" if id(tree) in names else to_json(tree, names), lines, tuple(tables))


def read_json(text: str) -> tuple[Any, bool]:
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
        values = [parse(line) for line in text.split("\n") if line.strip()]
    except ValueError:
        return None
    return values if all(isinstance(one, Members) for one in values) else None


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


def record_lists(tree: Any) -> Iterator[list[Members]]:
    """Lists of at least three objects and nothing else, the outermost, in the order of the text."""
    if isinstance(tree, Members):
        for _, value in tree:
            yield from record_lists(value)
    elif isinstance(tree, list):
        if len(tree) >= MIN_ROWS and all(isinstance(one, Members) and one for one in tree):
            yield tree
        else:
            for value in tree:
                yield from record_lists(value)


# --- one table ---

_ADDRESS = re.compile(r"[^\t]{7,}/|[0-9]{4}-(?:[0-9]{2}-)*")
"""A common prefix that is written once: an address up to a slash, or the year of a date.  Ids stay
whole, because the next call will name them."""


class WrittenColumn(NamedTuple):
    """A column as text: header and cells ("": no value); ``cells`` is None where the header alone
    gives every value."""

    header: str
    cells: list[str] | None


def record_table(records: Sequence[Members]) -> list[str] | None:
    """Header and one line per record; None where the records share too few keys."""
    keys, fits = shared_keys(records)
    if 5 * sum(fits) < 4 * len(records) or not is_dense(records, keys):
        return None
    regular = [dict(record) for record, fit in zip(records, fits, strict=True) if fit]
    columns = leaf_columns((), keys, regular)
    if len(columns) > MAX_COLUMNS:
        return None
    written = _written(columns)
    rows = zip(*(column.cells for column in written if column.cells is not None), strict=True)
    lines = ["\t".join(column.header for column in written)]
    for record, fit in zip(records, fits, strict=True):
        line = "\t".join(next(rows)).rstrip("\t") if fit else ""
        alone = line[:1] in ("", "{") and "\t" not in line
        lines.append(to_json(record) if alone else line)
    return lines


def _written(columns: list[Column]) -> list[WrittenColumn]:
    fixed = {at: same for at, c in enumerate(columns) if (same := _constant(c)) is not None}
    texts = [
        at for at, column in enumerate(columns)
        if at not in fixed and all(type(value) is str for value in column.values)
    ]  # fmt: skip
    sources: set[int] = set()
    for at in texts:
        for other in texts:
            if at in sources or other == at or other in fixed:
                continue
            derived = _derived(columns[at], columns[other])
            if derived is not None:
                fixed[at] = derived
                sources.add(other)
                break
    if len(fixed) == len(columns):  # a row needs at least one cell
        del fixed[0]
    return [fixed.get(at) or _cells(column) for at, column in enumerate(columns)]


def _constant(column: Column) -> WrittenColumn | None:
    if not is_constant(column):
        return None
    return WrittenColumn(f"{column_name(column.keys)}={to_json(column.values[0])}", None)


def _derived(column: Column, other: Column) -> WrittenColumn | None:
    """The column as ``"before"+other+"after"``; None unless that gives every value."""
    key = other.values[0]
    before, middle, after = column.values[0].partition(key or "\t")
    if len(middle) < 3 or any(
        value != before + key + after
        for value, key in zip(column.values, other.values, strict=True)
    ):
        return None
    end = f"+{dump(after)}" if after else ""
    return WrittenColumn(
        f"{column_name(column.keys)}={dump(before)}+{column_name(other.keys)}{end}", None
    )


def _cells(column: Column) -> WrittenColumn:
    name, values = column_name(column.keys), column.values
    given = [value for value in values if value is not MISSING]
    if all(type(value) is list for value in given):
        lists = [joined_strings(value) for value in given]
        if lists.count(None) * 2 < len(lists):
            return WrittenColumn(
                f"{name}[]",
                [
                    "" if value is MISSING else joined_strings(value) or to_json(value)
                    for value in values
                ],
            )
    if len(given) > 2 and all(type(value) is str for value in given):
        match = _ADDRESS.match(_beginning(given))
        if match:
            start = match[0]
            return WrittenColumn(
                f"{name}={dump(start)}+*",
                ["" if value is MISSING else text_cell(value[len(start) :]) for value in values],
            )
    return WrittenColumn(name, ["" if value is MISSING else to_cell(value) for value in values])


def _beginning(texts: list[str]) -> str:
    """The longest common prefix."""
    low, high = min(texts), max(texts)
    end = next((n for n, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    return low[:end]


# --- the columns that records share: one per leaf, with a value for each record ---

MAX_COLUMNS, MAX_SHAPES = 96, 512
MISSING: Any = object()


class Column(NamedTuple):
    """One leaf that records share: a value for each regular record, or MISSING."""

    keys: tuple[str, ...]
    values: list[Any]


def shared_keys(records: Sequence[Members]) -> tuple[list[str], list[bool]]:
    """All keys in one common order, and for each record whether its keys follow that order."""
    shapes = [tuple([key for key, _ in record]) for record in records]
    different = dict.fromkeys(shapes)
    order: list[str] = []
    for keys in different:
        place = 0
        for key in keys:
            if key not in order:
                order.insert(place, key)
            place = order.index(key) + 1
        if len(order) > MAX_COLUMNS or len(different) > MAX_SHAPES:
            return [], [False] * len(records)
    places = {key: place for place, key in enumerate(order)}
    kept = {keys for keys in different if keys and _rising([places[key] for key in keys])}
    return order, [shape in kept for shape in shapes]


def _rising(places: list[int]) -> bool:
    return all(one < other for one, other in pairwise(places))


def is_dense(records: Sequence[Members], keys: list[str]) -> bool:
    """Whether at least two fifths of the cells would have a value."""
    return 5 * sum(map(len, records)) >= 2 * len(keys) * len(records)


def leaf_columns(above: tuple[str, ...], keys: list[str], rows: list[Any]) -> list[Column]:
    """One column per key.  A key whose values are mostly objects of one shape gets a column for
    each member instead; values that do not fit stay in a column of the key, before those.
    """
    columns = []
    for key in keys:
        here = (*above, key)
        values = [MISSING if row is MISSING else row.get(key, MISSING) for row in rows]
        column = Column(here, values)
        objects = [value for value in values if isinstance(value, Members)]
        given = len(values) - values.count(MISSING)
        if 5 * len(objects) < 4 * given or is_constant(column):
            columns.append(column)
            continue
        below, fits = shared_keys(objects)
        if 5 * sum(fits) < 4 * given or not is_dense(objects, below):
            columns.append(column)
            continue
        alike = {id(value) for value, fit in zip(objects, fits, strict=True) if fit}
        rest = [MISSING if id(value) in alike else value for value in values]
        if len(alike) < given:
            columns.append(Column(here, rest))
        inner = [dict(value) if id(value) in alike else MISSING for value in values]
        columns += leaf_columns(here, below, inner)
    return columns


def is_constant(column: Column) -> bool:
    """Whether every row has the same value in the same spelling."""
    first = column.values[0]
    if first is MISSING or any(type(value) is not type(first) for value in column.values):
        return False
    text = to_json(first)
    return all(value == first and to_json(value) == text for value in column.values)


# --- cells ---

_JSON_SCALAR = re.compile(
    r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null|NaN|-?Infinity"
)
_SIMPLE_KEY = re.compile(r"[^\W\d][\w-]*")


def to_json(value: Any, names: Mapping[int, str] | None = None) -> str:
    """Compact JSON of a parsed tree.  Numbers keep their spelling; duplicate keys are kept.

    ``names``: ``id`` of a list → text to write in its place.  Recursive: check the tree's depth
    first.
    """
    if names and id(value) in names:
        return names[id(value)]
    if isinstance(value, Literal):
        return str(value)
    if isinstance(value, Members):
        inside = (f"{dump(key)}:{to_json(inner, names)}" for key, inner in value)
        return "{" + ",".join(inside) + "}"
    if isinstance(value, list):
        return "[" + ",".join(to_json(inner, names) for inner in value) + "]"
    return dump(value)


def needs_no_quotes(text: str) -> bool:
    """Whether a text can be a cell unquoted: printable, on one line, no start of JSON."""
    if not text or text[0] in '[{"< ' or text[-1] == " ":
        return False
    return text.isprintable()


def to_cell(value: Any) -> str:
    """One value as a cell, nested values as JSON.  Never empty; holds no tab and no line break."""
    if type(value) is str and not _JSON_SCALAR.fullmatch(value):
        return text_cell(value)
    return to_json(value)


def text_cell(text: str) -> str:
    """A string as a cell of a column that has only strings: ``280`` needs no quotes there."""
    return text if needs_no_quotes(text) else dump(text)


def joined_strings(value: Any) -> str | None:
    """A list of strings as ``a,b,c``; None where it has to be JSON."""
    if type(value) is not list or not all(value):
        return None
    if any(type(item) is not str or "," in item for item in value):
        return None
    joined = ",".join(value)
    return joined if needs_no_quotes(joined) else None


def column_name(keys: tuple[str, ...]) -> str:
    """``author.name``; a key that is not a plain word as a JSON string."""
    return ".".join(key if _SIMPLE_KEY.fullmatch(key) else dump(key) for key in keys)
