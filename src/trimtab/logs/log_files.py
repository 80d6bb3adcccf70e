"""Reads files and folders of logs into recordings.

Takes JSON, JSON lines and Parquet, plain or gzipped.  Unreadable files and lines are listed as
problems.  Raises MissingExtra if a file needs fsspec or pyarrow and it is not installed.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from trimtab.errors import MissingExtra
from trimtab.logs import kinds
from trimtab.logs.recording import Recording
from trimtab.logs.unread import DATABASE, SQLITE, unread_agent, what_to_do

SUFFIXES = (".jsonl", ".jsonl.gz", ".ndjson", ".json", ".json.gz", ".parquet")


@dataclass(frozen=True)
class Problem:
    """A file or line that could not be read; ``line`` is 0 for the whole file.  ``agent``: who
    wrote it, if its logs are recognised and not read."""

    file: str
    line: int
    message: str
    agent: str = ""

    def __str__(self) -> str:
        at = f":{self.line}" if self.line else ""
        return f"{self.file}{at}: {self.message}"


@dataclass
class LoadedLogs:
    """The recordings in the order of the files, and the problems.

    ``unanswered``: recordings without a turn of the model, each one request.  Nothing can be
    replayed or billed of them, so a log that has nothing else is a problem, too.
    """

    recordings: list[Recording] = field(default_factory=list)
    unanswered: list[Recording] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    files: int = 0
    duplicates: int = 0


def read(names: Iterable[str], *, source: str = "") -> LoadedLogs:
    """Read files, folders (walked) and addresses such as ``s3://…`` (through fsspec).

    ``source``: the source name of all recordings; "" uses each file's own name.
    """
    logs = LoadedLogs()
    for name in names:
        for file in _files(name):
            logs.files += 1
            _read_file(file, source or stem(file), logs)
    return _without_duplicates(logs)


def of_bytes(data: bytes, name: str) -> LoadedLogs:
    """Read ``data``, the content of a file called ``name``: plain JSON or JSON lines."""
    logs = LoadedLogs(files=1)
    _take(list(_parsed(io.BytesIO(data), name, logs)), stem(name), name, logs)
    return _without_duplicates(logs)


def _without_duplicates(logs: LoadedLogs) -> LoadedLogs:
    """Keep one of equal conversations: the one with times, else the first."""
    by_digest: dict[str, Recording] = {}
    for recording in logs.recordings:
        text = json.dumps([recording.format, recording.messages], sort_keys=True, default=str)
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass")).hexdigest()
        known = by_digest.get(key)
        if known is None:
            by_digest[key] = recording
        else:
            logs.duplicates += 1
            if recording.times and not known.times:
                by_digest[key] = recording.renamed(id=known.id)
    logs.recordings = list(by_digest.values())
    return logs


def stem(name: str) -> str:
    """``data/agentv.jsonl.gz`` → ``agentv``."""
    last = name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        last = last.removesuffix(suffix)
    return last


def _files(name: str) -> list[str]:
    if "://" in name:
        return [name]
    path = Path(name)
    if path.is_dir():
        files = (p for p in path.rglob("*") if p.is_file())
        return sorted(str(p) for p in files if p.name.endswith(SUFFIXES))
    return [name]


def _open(name: str) -> IO[bytes]:
    if "://" in name:
        try:
            fsspec = importlib.import_module("fsspec")
        except ImportError:
            raise MissingExtra(f"{name} needs fsspec: pip install 'trimtab[ray]'") from None
        raw: IO[bytes] = fsspec.open(name, "rb").open()
    else:
        raw = open(name, "rb")  # noqa: SIM115 (closed by the caller)
    return gzip.open(raw) if name.endswith(".gz") else raw  # type: ignore[return-value]


def _read_file(name: str, source: str, logs: LoadedLogs) -> None:
    lines: list[tuple[int, Any]] = []
    try:
        if name.endswith(".parquet"):
            lines = list(_parquet(name))
        else:
            with _open(name) as file:
                lines = list(_parsed(file, name, logs))
    except (OSError, EOFError, gzip.BadGzipFile) as error:
        logs.problems.append(Problem(name, 0, f"cannot be read: {error}"))
    _take(lines, source, name, logs)


def _take(lines: list[tuple[int, Any]], source: str, name: str, logs: LoadedLogs) -> None:
    """Add the recordings and problems in parsed lines."""
    if not lines:
        return
    if agent := unread_agent([value for _, value in lines]):
        logs.problems.append(Problem(name, lines[0][0], what_to_do(agent), agent))
        return
    found = list(kinds.recordings(lines, source=source, origin=name))
    answered = {line for line, result in found if isinstance(result, Recording) and result.turns}
    for line, result in found:
        if isinstance(result, str):
            logs.problems.append(Problem(name, line, result))
        elif result.turns:
            logs.recordings.append(result)
        else:
            if line not in answered:
                logs.problems.append(Problem(name, line, kinds.NO_TURN))
            if result.views and result.views[-1].role not in ("assistant", "system"):
                logs.unanswered.append(result)


def _parsed(file: IO[bytes], name: str, logs: LoadedLogs) -> Iterator[tuple[int, Any]]:
    """(line number, value) of each line; a file with one JSON document is line 1."""
    if not name.removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        data = file.read()
        if data.startswith(SQLITE):
            logs.problems.append(Problem(name, 0, DATABASE))
            return
        try:
            yield 1, json.loads(data)
            return
        except (ValueError, RecursionError):
            file = io.BytesIO(data)  # JSON lines under another name
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = str(error).split(":")[0]
            logs.problems.append(Problem(name, number, f"no JSON: {reason}"))


def _parquet(name: str) -> Iterator[tuple[int, Any]]:
    """Rows of a Parquet file; columns that hold JSON text are parsed."""
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtra(f"{name} needs pyarrow: pip install 'trimtab[ray]'") from None
    with _open(name) as file:
        rows = parquet.read_table(file).to_pylist()
    for number, row in enumerate(rows, 1):
        yield number, {key: _maybe_json(value) for key, value in row.items()}


def _maybe_json(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value
