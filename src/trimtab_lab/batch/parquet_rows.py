"""Reads Parquet files by row groups, and writes rows back with the same column types.

A column may have JSON text or nested values; JSON text is written back as JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import IO, Any

from trimtab.errors import InvalidRequest, MissingExtra
from trimtab.jsontext.parsing import dump
from trimtab_lab.batch import files

ROWS = 64
"""Rows read and written at a time; small, because a row is a conversation."""


def module(name: str) -> Any:
    """A module of pyarrow.  Raises MissingExtra."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtra("Parquet needs pyarrow: pip install 'trimtab[batch]'") from None


def _file(name: str, file: IO[bytes]) -> Any:
    parquet = module("pyarrow.parquet")
    try:
        return parquet.ParquetFile(file)
    except module("pyarrow").ArrowInvalid as error:
        raise InvalidRequest(f"{name} is no Parquet: {error}; write it anew") from None


def row_groups(name: str, size: int) -> Iterator[tuple[int, int, int]]:
    """(first row group, end row group, bytes) of runs of about ``size`` bytes."""
    with files.opened(name) as file:
        meta = _file(name, file).metadata
        start, held = 0, 0
        for number in range(meta.num_row_groups):
            weight = meta.row_group(number).total_byte_size
            if held and held + weight > size:
                yield start, number, held
                start, held = number, 0
            held += weight
        if meta.num_row_groups:
            yield start, meta.num_row_groups, held


def rows(name: str, start: int, end: int) -> Iterator[tuple[int, dict[str, Any], int]]:
    """(number of the row in the file, its values, its bytes) of some row groups."""
    with files.opened(name) as file:
        source = _file(name, file)
        groups = range(start, end)
        number = sum(source.metadata.row_group(group).num_rows for group in range(start))
        total = sum(source.metadata.row_group(group).total_byte_size for group in groups)
        count = sum(source.metadata.row_group(group).num_rows for group in groups)
        for some in source.iter_batches(batch_size=ROWS, row_groups=list(groups)):
            for row in some.to_pylist():
                yield number, row, total // max(count, 1)
                number += 1


def schema(name: str) -> Any:
    """The columns of a file and their types."""
    with files.opened(name) as file:
        return _file(name, file).schema_arrow


def to_record(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as a record: JSON text is parsed, nulls are left out."""
    return {key: _value(value) for key, value in row.items() if value is not None}


def _value(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return _without_nulls(value)


def _without_nulls(value: Any) -> Any:
    """``value`` without nulls in objects: they only mean that other rows have such a key."""
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_without_nulls(one) for one in value]
    return value


def to_row(row: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> Any:
    """``row`` with the keys that differ between ``before`` and ``after``; JSON text stays text."""
    changed = {
        key: dump(value) if isinstance(row.get(key), str) else value
        for key, value in after.items()
        if value is not before.get(key)
    }
    return {**row, **changed}


class RowWriter:
    """Writes rows in the types of a schema, a row group every ``ROWS``."""

    def __init__(self, file: IO[bytes], columns: Any) -> None:
        self._arrow, self.columns = module("pyarrow"), columns
        self._writer = module("pyarrow.parquet").ParquetWriter(file, columns, compression="zstd")
        self._rows: list[Mapping[str, Any]] = []

    def problem(self, row: Mapping[str, Any]) -> str:
        """Why a row can't be written with these types without loss; "" if it can."""
        try:
            table = self._arrow.Table.from_pylist([row], schema=self.columns)
        except (self._arrow.ArrowException, TypeError, ValueError, OverflowError) as error:
            return str(error)
        back = table.to_pylist()[0]
        for key, value in row.items():
            if _without_nulls(back.get(key)) != _without_nulls(value):
                return f"the type of the column {key} has no room for what is in it now"
        return ""

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row; it is written with the next row group."""
        self._rows.append(row)
        if len(self._rows) >= ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            table = self._arrow.Table.from_pylist(self._rows, schema=self.columns)
            self._writer.write_table(table)
            self._rows = []

    def close(self) -> None:
        """Write the remaining rows and the end of the file."""
        self._flush()
        self._writer.close()
