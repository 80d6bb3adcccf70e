"""One record of a corpus: where its request stands, fitted, and put back.

A record is a request, a bare list of messages, or an object that holds one of them under a key.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trimtab.batch import conversations
from trimtab.batch.conversations import FittedRecord
from trimtab.errors import CannotFit, InvalidRequest
from trimtab.jsontext.parsing import dump, parse_bytes
from trimtab.settings import Settings

HOLDERS = ("body", "request", "request_body", "requestBody", "payload", "kwargs")
"""Keys under which logs keep a request, in the order they are looked at."""
_LISTS = ("messages", "input", "contents")


@dataclass(frozen=True)
class RecordOptions:
    """How records are fitted.

    ``key``: where the request stands in a record; None: the record itself, else the first of
    ``HOLDERS`` that holds one.  ``originals``: give what edits replaced, by handle.
    """

    settings: Settings
    key: str | None = None
    originals: bool = False


@dataclass(frozen=True)
class RecordFit:
    """What became of one record.

    ``output`` is the record with its request fitted: bytes on one line for a record that came as
    JSON text, the value for one that came as a value; None where it failed, and then ``error``
    says why.  ``row`` is what the manifest is made from.
    """

    output: Any
    row: dict[str, Any]
    error: dict[str, Any] | None = None
    originals: Mapping[str, str] = field(default_factory=dict)


def fit_line(line: bytes, wanted: RecordOptions) -> RecordFit:
    """Fit one line (or one document) of JSON text; what is not changed keeps its bytes."""
    own = digest(line)
    try:
        done = _whole(line, wanted)
        if done is not None:
            given = done.request
            output = _one_line(given) if isinstance(given, bytes) else _dumped(given)
            return _fit(done, output, own, wanted)
        done, record = _held(parse_bytes(line), wanted)
        output = _dumped(record) if done.fitted.changed else _one_line(line)
        return _fit(done, output, own, wanted)
    except Exception as error:  # one record's fault is never the end of a corpus
        return failed(error, own)


def fit_value(record: Mapping[str, Any], wanted: RecordOptions) -> RecordFit:
    """Fit one record that came as a value, as from a row of a table.  It is not changed."""
    own = digest(json.dumps(record, default=str))  # other columns may hold dates
    try:
        if wanted.key is None and any(isinstance(record.get(name), list) for name in _LISTS):
            done = conversations.fit(dict(record), wanted.settings)
            return _fit(done, done.request, own, wanted)
        return _fit(*_held(record, wanted), own, wanted)
    except Exception as error:
        return failed(error, own)


def _whole(line: bytes, wanted: RecordOptions) -> FittedRecord | None:
    """The record fitted as a request; None where it may hold one."""
    if wanted.key is not None:
        return None
    try:
        return conversations.fit(line, wanted.settings)
    except InvalidRequest:
        if any(f'"{name}"'.encode() in line for name in HOLDERS):
            return None
        raise


def _held(record: Any, wanted: RecordOptions) -> tuple[FittedRecord, dict[str, Any]]:
    """The request within a record, fitted, and the record with it.  Raises InvalidRequest."""
    names = HOLDERS if wanted.key is None else (wanted.key,)
    for name in names:
        held = record.get(name) if isinstance(record, dict) else None
        if isinstance(held, (dict, list)) or (isinstance(held, str) and held[:1] in ("{", "[")):
            done = conversations.fit(held, wanted.settings)
            return done, {**record, name: _as_given(held, done.request)}
    raise InvalidRequest(
        f"the record has no request under {' or '.join(map(repr, names))}; name the key that has it"
    )


def _as_given(held: Any, request: Any) -> Any:
    """The request as JSON text where it was held so."""
    return dump(request) if isinstance(held, str) and not isinstance(request, str) else request


def _fit(done: FittedRecord, output: Any, own: str, wanted: RecordOptions) -> RecordFit:
    fitted, answer = done.fitted, done.answer_tokens
    row: dict[str, Any] = {
        "digest": own, "format": fitted.format, "before": fitted.tokens_before + answer,
        "after": fitted.tokens_after + answer,
    }  # fmt: skip
    if not fitted.changed:
        return RecordFit(output, row)
    report = fitted.report
    edits: dict[str, list[int]] = {}
    for edit in report.edits:
        sums = edits.setdefault(edit.kind, [0, 0, 0])
        sums[:] = sums[0] + 1, sums[1] + edit.tokens_before, sums[2] + edit.tokens_after
    row |= {"edits": edits, "repairs": dict(Counter(one.rule for one in report.repairs))}
    if not wanted.originals:
        return RecordFit(output, row)
    handles = [edit.handle for edit in report.edits] + [one.handle for one in report.repairs]
    return RecordFit(output, row, originals={one: fitted.recall(one) for one in handles if one})


def failed(error: Exception, own: str) -> RecordFit:
    """What became of a record that has no output, for this reason."""
    kind = type(error).__name__
    row: dict[str, Any] = {"error": kind, "message": str(error)}
    if isinstance(error, CannotFit):
        row |= error.as_dict()
        kind = f"{kind}: {error.limit}"
    return RecordFit(None, {"digest": own, "error": kind}, row)


def digest(data: bytes | str) -> str:
    """16 bytes in hexadecimal: two records of 2⁴⁰ are alike by chance once in 30,000 corpora."""
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "backslashreplace")
    return hashlib.blake2b(raw.strip(), digest_size=16).hexdigest()


def _one_line(data: bytes) -> bytes:
    data = data.strip()
    return data if b"\n" not in data and b"\r" not in data else _dumped(parse_bytes(data))


def _dumped(value: Any) -> bytes:
    return dump(value).encode()
