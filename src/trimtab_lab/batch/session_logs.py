"""Session logs of coding agents in a corpus: each conversation becomes one record."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from typing import IO, Any

from trimtab.errors import InvalidRequest
from trimtab.jsontext.parsing import dump
from trimtab.logs import kinds, log_files
from trimtab.logs.unread import unread_agent
from trimtab.settings import Settings
from trimtab_lab.batch import files

KEY = "request"
"""The key of such a record that has the request."""
_HEAD_LINES = 200
_HEAD_BYTES = 4_000_000
"""How much of a file tells whose log it is."""
_MARKS = (b'"projectHash"', b'"working_dir"', b'"parts"', b'"requesterUsername"', b'"T-')
"""One of these is in every session that is a single JSON value; most documents are parsed once."""


def begins_like_one(name: str) -> bool:
    """Whether the first lines of a file are those of an agent's session log.

    Raises OSError, MissingExtra."""
    with files.opened(name) as file:
        try:
            if name.endswith(".gz"):
                with gzip.open(file) as unpacked:
                    values = list(_values(unpacked))
            else:
                values = list(_values(file))
        except (EOFError, gzip.BadGzipFile, zlib.error):
            return False  # the damage is reported where the file is read
    return _is_session(values)


def is_one(data: bytes) -> bool:
    """Whether a JSON document is an agent's session."""
    if not any(mark in data for mark in _MARKS):
        return False
    try:
        return _is_session([json.loads(data)])
    except (ValueError, RecursionError):
        return False


def _is_session(values: list[Any]) -> bool:
    return kinds.session_reader(values) is not None or unread_agent(values) is not None


def _values(lines: IO[bytes] | gzip.GzipFile) -> Iterator[Any]:
    """The values of the first lines."""
    size = 0
    for _ in range(_HEAD_LINES):
        line = lines.readline(_HEAD_BYTES)
        size += len(line)
        if not line or size >= _HEAD_BYTES:
            return
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            continue


def conversations(
    name: str, data: bytes | None
) -> Iterator[tuple[bytes | InvalidRequest, Settings | None]]:
    """(record, its facts) of each conversation in a file, then what could not be read."""
    logs = log_files.read([name]) if data is None else log_files.of_bytes(data, name)
    for recording in [*logs.recordings, *logs.unanswered]:
        record: dict[str, Any] = {"id": recording.id, "agent": recording.agent}
        if recording.task:
            record["task"] = recording.task
        record[KEY] = recording.body(recording.messages)
        yield dump(record).encode("utf-8", "surrogatepass"), recording.facts
    for problem in logs.problems:
        if problem.message != kinds.NO_TURN or not logs.unanswered:
            yield InvalidRequest(problem.message), None
