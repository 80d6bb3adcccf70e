"""The columns that records share: one a leaf, with a value for each record.

Knows objects that share their keys.  Does not know how a column is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from trimtab.strategies.cells import spelled
from trimtab.strategies.json_tree import Members

MOST_COLUMNS, MOST_SHAPES = 96, 512
MISSING: Any = object()


class Column(NamedTuple):
    """One leaf that records share: a value for each regular record, or MISSING."""

    keys: tuple[str, ...]
    values: list[Any]


def shared(records: Sequence[Members]) -> tuple[list[str], list[bool]]:
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


def dense(records: Sequence[Members], keys: list[str]) -> bool:
    """Whether at least two fifths of the cells would say something."""
    return 5 * sum(map(len, records)) >= 2 * len(keys) * len(records)


def leaves(above: tuple[str, ...], keys: list[str], rows: list[Any]) -> list[Column]:
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
        if 5 * len(objects) < 4 * given or constant(column):
            columns.append(column)
            continue
        below, fits = shared(objects)
        if 5 * sum(fits) < 4 * given or not dense(objects, below):
            columns.append(column)
            continue
        alike = {id(value) for value, fit in zip(objects, fits, strict=True) if fit}
        rest = [MISSING if id(value) in alike else value for value in values]
        if len(alike) < given:
            columns.append(Column(here, rest))
        inner = [dict(value) if id(value) in alike else MISSING for value in values]
        columns += leaves(here, below, inner)
    return columns


def constant(column: Column) -> bool:
    """Whether the same stands in each row, in the same spelling."""
    first = column.values[0]
    if first is MISSING or any(type(value) is not type(first) for value in column.values):
        return False
    text = spelled(first)
    return all(value == first and spelled(value) == text for value in column.values)
