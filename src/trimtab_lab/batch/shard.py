"""Processes one shard: reads, fits and writes its records; a done file is written last.

Runs in any process on any machine; the same shard gives the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import IO, Any, Protocol

from trimtab.errors import InvalidRequest, InvalidSetting
from trimtab.jsontext.parsing import dump
from trimtab_lab.batch import files, parquet_rows, session_logs, sources
from trimtab_lab.batch.records import RecordFit, RecordOptions, digest, failed, fit_line, fit_value
from trimtab_lab.batch.sources import Shard, SourceRecord

WORK = "unfinished"
"""The folder in the output for files that are needed until all shards are done."""
GZIP_LEVEL = 6
MAX_PROBED = 20
"""How many records are tried before a run, to find a setting that no record can be fitted with."""


@dataclass(frozen=True)
class BatchJob:
    """The parameters that all shards of a run share."""

    source: str
    out: str
    wanted: RecordOptions
    identity: str
    """Digest of the input, the settings and the version; results of another job are not used."""


@dataclass
class ShardDone:
    """A finished shard: its files by name, with their size in bytes and SHA-256."""

    number: int
    identity: str
    files: dict[str, list[Any]] = field(default_factory=dict)

    def as_json(self) -> bytes:
        """The content of the done file."""
        return dump({"shard": self.number, "job": self.identity, "files": self.files}).encode()

    @classmethod
    def of(cls, data: bytes | None, identity: str) -> ShardDone | None:
        """Read a done file; None if it is missing, incomplete or of another job."""
        try:
            row = json.loads(data or b"")
            done = cls(row["shard"], row["job"], row["files"])
        except (ValueError, TypeError, KeyError):
            return None
        return done if done.identity == identity else None


def done_name(number: int) -> str:
    """The name of the file that marks a shard as done."""
    return f"{WORK}/{number:05}.done.json"


def rows_name(number: int) -> str:
    """The name of the file with a line for each record of a shard, for the manifest."""
    return f"{WORK}/{number:05}.rows.jsonl"


def part_name(shard: Shard) -> str:
    """The name of a shard's output file."""
    return f"part-{shard.number:05}{shard.suffix}"


def fit_shard(
    job: BatchJob, shard: Shard, progress: Callable[[int], None] = lambda size: None
) -> ShardDone:
    """Fit all records of a shard; ``progress`` gets the bytes of input done since its last call.

    Raises OSError if a file can't be read or written, InvalidRequest if a file is damaged.
    """
    folder, done = files.folder(job.out), ShardDone(shard.number, job.identity)
    with ExitStack() as open_files:
        output = _Outputs(folder, shard, job, open_files, done)
        for record in sources.records(shard):
            output.add(record)
            progress(record.size)
    with folder.write(done_name(shard.number)) as file:
        file.write(done.as_json())
    return done


class _Outputs:
    """The files of one shard.  Those for errors and originals are created when needed."""

    def __init__(
        self,
        folder: files.OutputFolder,
        shard: Shard,
        job: BatchJob,
        open_files: ExitStack,
        done: ShardDone,
    ) -> None:
        self._folder, self._shard, self._source = folder, shard, job.source
        self._open_files, self._done = open_files, done
        self._rows = self._opened(rows_name(shard.number))
        part = self._opened(part_name(shard))
        self._part: _Part
        if shard.kind == "parquet":
            self._part = _RowPart(part, shard, job.wanted)
        else:
            self._part = _LinePart(part, job.wanted, packed=shard.kind == "packed")
        open_files.callback(self._part.close)
        self._written = 0
        self._errors: IO[bytes] | None = None
        self._originals: IO[bytes] | None = None

    def add(self, record: SourceRecord) -> None:
        """Fit a record and write the result."""
        damage = record.value if isinstance(record.value, InvalidRequest) else None
        fit = self._part.add(record) if damage is None else failed(damage, digest(str(damage)))
        place = {"file": files.relative(record.name, self._source), "at": record.at}
        why = {} if fit.error is None else {
            **place, "kind": self._shard.kind, "message": fit.error["message"],
        }  # fmt: skip
        self._rows.write(_line({**fit.row, **why}))
        self._written += fit.error is None
        if fit.error is not None:
            if self._errors is None:
                self._errors = self._opened(f"errors/{self._shard.number:05}.jsonl")
            self._errors.write(_line({**place, **fit.error, "record": _shown(record.value)}))
        if fit.originals:
            if self._originals is None:
                self._originals = self._opened(f"originals/{self._shard.number:05}.jsonl")
            output = {"output": part_name(self._shard), "number": self._written}
            row = {**place, **output, "places": fit.places, "originals": fit.originals}
            self._originals.write(_line(row))

    def _opened(self, name: str) -> IO[bytes]:
        return self._open_files.enter_context(_summed(self._folder, name, self._done))


@contextmanager
def _summed(folder: files.OutputFolder, name: str, done: ShardDone) -> Iterator[IO[bytes]]:
    """A file to write; its size and digest are recorded in ``done`` at the end."""
    with folder.write(name) as file:
        summing = _Summing(file)
        yield summing  # type: ignore[misc]
        summing.flush()
    done.files[name] = [summing.tell(), summing.digest.hexdigest()]


class _Summing(io.RawIOBase):
    """Passes bytes on and computes their digest."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file, self.digest, self._size = file, hashlib.sha256(), 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self.digest.update(view)
        self._file.write(view)
        self._size += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        return self._size


def check_settings(shards: Iterable[Shard], wanted: RecordOptions) -> None:
    """Raise the InvalidSetting with which each of the first records would fail, or one that says
    that there is no record."""
    problem, is_empty = "", True
    for record in islice(chain.from_iterable(map(sources.records, shards)), MAX_PROBED):
        is_empty = False
        if isinstance(record.value, InvalidRequest):
            continue
        if isinstance(record.value, bytes):
            error = _fit_text(record, wanted).error
        else:
            error = fit_value(parquet_rows.to_record(record.value), wanted).error
        if error is None or error["error"] not in ("InvalidSetting", "InvalidRequest"):
            return  # one record at least is fitted, or too long: the settings are good for it
        if error["error"] == "InvalidSetting":
            problem = problem or error["message"]
    if is_empty:
        raise InvalidSetting("there is no record in it: give a file with requests, one a line")
    if problem:
        raise InvalidSetting(problem)


class _Part(Protocol):
    """The writer of fitted records."""

    def add(self, record: SourceRecord) -> RecordFit:
        """Fit one record and write it."""

    def close(self) -> None:
        """Write the rest."""


class _LinePart:
    """Lines of JSON, gzipped if the input was: without time and name in the gzip header, so that
    the bytes depend on the content alone."""

    def __init__(self, file: IO[bytes], wanted: RecordOptions, *, packed: bool = False) -> None:
        self._packed: gzip.GzipFile | None = None
        if packed:
            self._packed = gzip.GzipFile("", "wb", GZIP_LEVEL, file, mtime=0)
        self._file: Any = self._packed or file
        self._wanted = wanted

    def add(self, record: SourceRecord) -> RecordFit:
        """See ``_Part``."""
        fit = _fit_text(record, self._wanted)
        if fit.error is None:
            self._file.write(fit.output + b"\n")
        return fit

    def close(self) -> None:
        """See ``_Part``."""
        if self._packed is not None:
            self._packed.close()


class _RowPart:
    """Rows of a table, with the column types of the input."""

    def __init__(self, file: IO[bytes], shard: Shard, wanted: RecordOptions) -> None:
        self._writer = parquet_rows.RowWriter(file, parquet_rows.schema(shard.pieces[0].name))
        self._wanted = wanted

    def add(self, record: SourceRecord) -> RecordFit:
        """See ``_Part``."""
        before = parquet_rows.to_record(record.value)
        fit = fit_value(before, self._wanted)
        if fit.error is not None:
            return fit
        row = parquet_rows.to_row(record.value, before, fit.output)
        if row != record.value and (problem := self._writer.problem(row)):
            error = InvalidRequest(f"{problem}; give the column as JSON text")
            return failed(error, fit.row["digest"])
        self._writer.add(row)
        return fit

    def close(self) -> None:
        """See ``_Part``."""
        self._writer.close()


def _fit_text(record: SourceRecord, wanted: RecordOptions) -> RecordFit:
    """Fit a record that is JSON text, by what is known of the log that it is from."""
    if record.facts is not None:
        settings = record.facts | wanted.settings
        wanted = replace(wanted, settings=settings, key=session_logs.KEY)
    return fit_line(record.value, wanted)


def _line(value: Any) -> bytes:
    return dump(value).encode() + b"\n"


def _shown(value: Any) -> Any:
    """The input record for the file of errors, JSON text as a string; None if unreadable."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace").strip()
    if isinstance(value, InvalidRequest):
        return None
    return json.loads(json.dumps(value, default=str))  # a row may hold dates
