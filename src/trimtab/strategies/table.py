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
from typing import NamedTuple

from trimtab.jsontext import dump
from trimtab.strategies.cells import cell, listed, path, spelled, text_cell
from trimtab.strategies.columns import (
    MISSING,
    MOST_COLUMNS,
    Column,
    constant,
    dense,
    leaves,
    shared,
)
from trimtab.strategies.json_tree import Members

_ADDRESS = re.compile(r"[^\t]{7,}/|[0-9]{4}-(?:[0-9]{2}-)*")
"""What is written once where all values begin with it: addresses up to a slash, the year of a
date.  Ids stay whole: they are what the next call will name."""


class Written(NamedTuple):
    """A column as text: its header, and its cells ("" is a missing one) unless all are told."""

    header: str
    cells: list[str] | None


def table(records: Sequence[Members]) -> list[str] | None:
    """Header and rows as lines, in the order of the records; None where they share too little."""
    keys, fits = shared(records)
    if 5 * sum(fits) < 4 * len(records) or not dense(records, keys):
        return None
    regular = [dict(record) for record, fit in zip(records, fits, strict=True) if fit]
    columns = leaves((), keys, regular)
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
    if not constant(column):
        return None
    return Written(f"{path(column.keys)}={spelled(column.values[0])}", None)


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
