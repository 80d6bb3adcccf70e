"""Splits the files of a corpus into shards, and reads the records of a shard.

Shards depend on the files and the shard size alone, not on the number of processes.
A plain file of JSON lines is cut anywhere: a line belongs to the shard in which it begins.  The
session log of a coding agent is never cut: its lines make conversations together.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

from trimtab.errors import InvalidRequest
from trimtab.settings import Settings
from trimtab_lab.batch import files, parquet_rows, session_logs

LINES = (".jsonl", ".ndjson")
KINDS = {
    **dict.fromkeys(LINES, "lines"), **{f"{end}.gz": "packed" for end in LINES},
    ".json": "document", ".json.gz": "document", ".parquet": "parquet",
}  # fmt: skip
"""File suffix → how the file is read: JSON lines, gzipped JSON lines, one JSON value per file, or
rows."""
BY_LINE = ("lines", "packed")
"""The kinds in which a record is a line."""
_PACKED_TIMES = 5
"""Estimated bytes of JSON per byte of gzip, for shards of small files; 4 to 8 in recorded
sessions."""


_READ_BYTES = 1_000_000


class Piece(NamedTuple):
    """A part of one file: bytes ``start`` to ``end``, or row groups; the whole file if it can't be
    split."""

    name: str
    kind: str
    start: int
    end: int


@dataclass(frozen=True)
class Shard:
    """A unit of work that is read, fitted and written together."""

    number: int
    pieces: tuple[Piece, ...]
    size: int
    """Bytes of input."""

    @property
    def kind(self) -> str:
        """How its pieces are read."""
        return self.pieces[0].kind

    @property
    def suffix(self) -> str:
        """The suffix of the output file, like that of the input."""
        return {"parquet": ".parquet", "packed": ".jsonl.gz"}.get(self.kind, ".jsonl")


class SourceRecord(NamedTuple):
    """A record of a file.  ``at``: its offset in the unpacked file, or its number from 0: that of
    the row, or of the conversation in a session log."""

    name: str
    at: int
    value: Any
    """Bytes of JSON text, the values of a row, or an InvalidRequest: the file is damaged here."""
    size: int
    """Bytes of the file that the record takes, for progress."""
    facts: Settings | None = None
    """Of a session log: the format and model of the request under ``session_logs.KEY``."""


def kind_of(name: str) -> str:
    """How a file is read, by its suffix; an unknown suffix means JSON lines."""
    ends = sorted(KINDS, key=len, reverse=True)
    return next((KINDS[end] for end in ends if name.endswith(end)), "lines")


def shards(source_files: Sequence[files.SourceFile], size: int) -> list[Shard]:
    """The corpus split into shards of about ``size`` bytes.

    Raises MissingExtra, InvalidRequest."""
    made: list[Shard] = []
    pieces: list[tuple[Piece, int]] = []

    def close() -> None:
        if pieces:
            total = sum(weight for _, weight in pieces)
            made.append(Shard(len(made), tuple(piece for piece, _ in pieces), total))
            pieces.clear()

    for piece, weight in _pieces(source_files, size):
        full = sum(held for _, held in pieces) + weight > size
        if pieces and (full or pieces[0][0].kind != piece.kind or piece.kind == "parquet"):
            close()
        pieces.append((piece, weight))
    close()
    return made


def _pieces(source_files: Sequence[files.SourceFile], size: int) -> Iterator[tuple[Piece, int]]:
    """(piece, bytes); pieces have at most ``size`` bytes if the file can be split."""
    for file in source_files:
        kind = kind_of(file.name)
        if kind in ("lines", "packed") and session_logs.begins_like_one(file.name):
            yield Piece(file.name, "session", 0, file.size), file.size
        elif kind == "lines":
            for start in range(0, file.size, size):
                end = min(start + size, file.size)
                yield Piece(file.name, kind, start, end), end - start
        elif kind == "parquet":
            for start, end, weight in parquet_rows.row_groups(file.name, size):
                yield Piece(file.name, kind, start, end), weight
        else:
            times = _PACKED_TIMES if file.name.endswith(".gz") else 1
            yield Piece(file.name, kind, 0, file.size), file.size * times


def records(shard: Shard) -> Iterator[SourceRecord]:
    """The records of a shard in order, one at a time.  Raises OSError."""
    for piece in shard.pieces:
        if piece.kind == "parquet":
            for row, value, size in parquet_rows.rows(piece.name, piece.start, piece.end):
                yield SourceRecord(piece.name, row, value, size)
            continue
        if piece.kind == "session":
            yield from _conversations(piece.name, None, piece.end)
            continue
        with files.opened(piece.name) as file:
            yield from _texts(file, piece)


def _texts(file: IO[bytes], piece: Piece) -> Iterator[SourceRecord]:
    if not piece.name.endswith(".gz"):
        yield from _document(file, piece) if piece.kind == "document" else _lines(file, piece)
        return
    at = 0
    try:
        with gzip.open(file) as unpacked:
            whole = piece._replace(end=2**63)
            read = _document if piece.kind == "document" else _lines
            for record in read(unpacked, whole):  # type: ignore[arg-type]
                at = record.at + record.size
                yield record._replace(size=record.size // _PACKED_TIMES)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        damage = InvalidRequest(f"cannot be unpacked from here on: {error}; write the file anew")
        yield SourceRecord(piece.name, at, damage, 0)


def _document(file: IO[bytes], piece: Piece) -> Iterator[SourceRecord]:
    data = file.read()
    if session_logs.is_one(data):
        yield from _conversations(piece.name, data, len(data))
    else:
        yield SourceRecord(piece.name, 0, data, len(data))


def line_at(name: str, at: int) -> int:
    """The number, from 1, of the line that begins at this offset of the unpacked file."""
    with ExitStack() as open_files:
        file: Any = open_files.enter_context(files.opened(name))
        if name.endswith(".gz"):
            file = open_files.enter_context(gzip.open(file))
        breaks = 0
        while at > 0 and (data := file.read(min(at, _READ_BYTES))):
            breaks += data.count(b"\n")
            at -= len(data)
    return breaks + 1


def _conversations(name: str, data: bytes | None, size: int) -> Iterator[SourceRecord]:
    """The conversations in a session log; ``data``: its content, if it was read already."""
    found = list(session_logs.conversations(name, data))
    for number, (value, facts) in enumerate(found):
        yield SourceRecord(name, number, value, size // len(found), facts)


def _lines(file: IO[bytes], piece: Piece) -> Iterator[SourceRecord]:
    """The lines that begin within the piece, without blank ones."""
    at = piece.start
    if at:
        file.seek(at - 1)
        at += len(file.readline()) - 1  # the rest of a line that the shard before has
    while at < piece.end and (line := file.readline()):
        if line.strip():
            yield SourceRecord(piece.name, at, line, len(line))
        at += len(line)
