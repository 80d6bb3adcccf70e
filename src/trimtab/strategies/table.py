"""Records as a table: the keys once, then a row each, from which every value can be told.

Knows objects that share their keys.  Does not know where they stand nor whether a table pays.

The header names the columns, tab-separated.  ``author.name``: a member of a member.  ``tags[]``:
cells are lists of strings, ``a,b``, or JSON.  ``kind="x"``: the same in each row, no cells.
``url="https://a.b/"+*``: the cell is what comes after.  ``url="https://a.b/"+id+".html"``: told
from another column, no cells.  Cells that are missing at the end of a row are left out, and a
row that begins with ``{`` and has no tab is a record that does not fit the columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from trimtab.jsontext import dump
from trimtab.strategies.cells import cell, listed, path, spelled, text_cell
from trimtab.strategies.json_cut import Members

MOST_COLUMNS, MOST_SHAPES = 96, 512
_ADDRESS = re.compile(r"[^\t]{7,}/|[0-9]{4}-(?:[0-9]{2}-)*")
"""What is written once where all values begin with it: addresses up to a slash, the year of a
date.  Ids stay whole: they are what the next call will name."""
MISSING: Any = object()


class Column(NamedTuple):
    """One leaf that records share: a value for each regular record, or MISSING."""

    keys: tuple[str, ...]
    values: list[Any]


class Written(NamedTuple):
    """A column as text: its header, and its cells ("" is a missing one) unless all are told."""

    header: str
    cells: list[str] | None


def table(records: Sequence[Members]) -> list[str] | None:
    """Header and rows as lines, in the order of the records; None where they share too little."""
    keys, fits = _shared(records)
    if 5 * sum(fits) < 4 * len(records) or not _dense(records, keys):
        return None
    regular = [dict(record) for record, fit in zip(records, fits, strict=True) if fit]
    columns = _leaves((), keys, regular)
    if len(columns) > MOST_COLUMNS:
        return None
    written = _written(columns)
    rows = zip(*(column.cells for column in written if column.cells is not None), strict=True)
    lines = ["\t".join(column.header for column in written)]
    for record, fit in zip(records, fits, strict=True):
        line = "\t".join(next(rows)).rstrip("\t") if fit else ""
        alone = line[:1] in ("", "{") and "\t" not in line
        lines.append(spelled(record) if alone else line)
    return lines


def _shared(records: Sequence[Members]) -> tuple[list[str], list[bool]]:
    """All keys in the order that most records have them in, and which records keep to it."""
    shapes = [tuple([key for key, _ in record]) for record in records]
    different = dict.fromkeys(shapes)
    order: list[str] = []
    for keys in different:
        place = 0
        for key in keys:
            if key not in order:
                order.insert(place, key)
            place = order.index(key) + 1
        if len(order) > MOST_COLUMNS or len(different) > MOST_SHAPES:
            return [], [False] * len(records)
    places = {key: place for place, key in enumerate(order)}
    kept = {keys for keys in different if keys and _rising([places[key] for key in keys])}
    return order, [shape in kept for shape in shapes]


def _rising(places: list[int]) -> bool:
    return all(one < other for one, other in pairwise(places))


def _dense(records: Sequence[Members], keys: list[str]) -> bool:
    """Whether at least two fifths of the cells would say something."""
    return 5 * sum(map(len, records)) >= 2 * len(keys) * len(records)


def _leaves(above: tuple[str, ...], keys: list[str], rows: list[Any]) -> list[Column]:
    """The columns of these keys; where the values of one are alike objects, those of its own.

    Before these stands a column for the few values that are something else.
    """
    columns = []
    for key in keys:
        here = (*above, key)
        values = [MISSING if row is MISSING else row.get(key, MISSING) for row in rows]
        column = Column(here, values)
        objects = [value for value in values if isinstance(value, Members)]
        given = len(values) - values.count(MISSING)
        if 5 * len(objects) < 4 * given or _constant(column) is not None:
            columns.append(column)
            continue
        below, fits = _shared(objects)
        if 5 * sum(fits) < 4 * given or not _dense(objects, below):
            columns.append(column)
            continue
        alike = {id(value) for value, fit in zip(objects, fits, strict=True) if fit}
        rest = [MISSING if id(value) in alike else value for value in values]
        if len(alike) < given:
            columns.append(Column(here, rest))
        inner = [dict(value) if id(value) in alike else MISSING for value in values]
        columns += _leaves(here, below, inner)
    return columns


def _written(columns: list[Column]) -> list[Written]:
    told = {at: same for at, c in enumerate(columns) if (same := _constant(c)) is not None}
    texts = [
        at for at, column in enumerate(columns)
        if at not in told and all(type(value) is str for value in column.values)
    ]  # fmt: skip
    sources: set[int] = set()
    for at in texts:
        for other in texts:
            if at in sources or other == at or other in told:
                continue
            found = _derived(columns[at], columns[other])
            if found is not None:
                told[at] = found
                sources.add(other)
                break
    if len(told) == len(columns):  # a row must say something
        del told[0]
    return [told.get(at) or _cells(column) for at, column in enumerate(columns)]


def _constant(column: Column) -> Written | None:
    first = column.values[0]
    if first is MISSING or any(type(value) is not type(first) for value in column.values):
        return None
    text = spelled(first)
    same = all(value == first and spelled(value) == text for value in column.values)
    return Written(f"{path(column.keys)}={text}", None) if same else None


def _derived(column: Column, other: Column) -> Written | None:
    """``"before"+other+"after"`` if that holds in every row."""
    key = other.values[0]
    before, found, after = column.values[0].partition(key or "\t")
    if len(found) < 3 or any(
        value != before + key + after
        for value, key in zip(column.values, other.values, strict=True)
    ):
        return None
    end = f"+{dump(after)}" if after else ""
    return Written(f"{path(column.keys)}={dump(before)}+{path(other.keys)}{end}", None)


def _cells(column: Column) -> Written:
    name, values = path(column.keys), column.values
    given = [value for value in values if value is not MISSING]
    if all(type(value) is list for value in given):
        lists = [listed(value) for value in given]
        if lists.count(None) * 2 < len(lists):
            return Written(
                f"{name}[]",
                ["" if value is MISSING else listed(value) or spelled(value) for value in values],
            )
    if len(given) > 2 and all(type(value) is str for value in given):
        found = _ADDRESS.match(_beginning(given))
        if found:
            start = found[0]
            return Written(
                f"{name}={dump(start)}+*",
                ["" if value is MISSING else text_cell(value[len(start) :]) for value in values],
            )
    return Written(name, ["" if value is MISSING else cell(value) for value in values])


def _beginning(texts: list[str]) -> str:
    """What all of them begin with."""
    low, high = min(texts), max(texts)
    end = next((n for n, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    return low[:end]
