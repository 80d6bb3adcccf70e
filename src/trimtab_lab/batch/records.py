"""Fits one record of a corpus: finds its request, fits it and puts it back.

A record is a request, a bare list of messages, or an object with one of them under a key.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trimtab.errors import CannotFit, InvalidRequest
from trimtab.jsontext.parsing import dump, parse_bytes
from trimtab.jsontext.paths import Path
from trimtab.request.fitted import facts_of
from trimtab.settings import Settings
from trimtab_lab.batch import conversations
from trimtab_lab.batch.conversations import FittedRecord

HOLDERS = ("body", "request", "request_body", "requestBody", "payload", "kwargs")
"""Keys under which logs keep a request, in the order they are tried."""
_LISTS = ("messages", "input", "contents")
_CAUSES = {
    "not JSON": ("not JSON", "not UTF-8"),
    "no request": ("no request format", "the record has no request"),
}
"""What is counted apart of the records that are no request: how the errors' messages begin."""


@dataclass(frozen=True)
class RecordOptions:
    """How records are fitted.

    ``key``: the key of a record that has the request; None: the record itself, else the first of
    ``HOLDERS`` that has one.  ``originals``: whether to return what edits replaced.
    """

    settings: Settings
    key: str | None = None
    originals: bool = False


@dataclass(frozen=True)
class RecordFit:
    """The result for one record.

    ``output`` is the record with its request fitted: bytes of one line if the record was given as
    JSON text, else a value; None if it failed, with the reason in ``error``.  ``row``: the figures
    for the manifest.  ``originals`` by handle, and the ``places`` of each in the request as it was
    given: the first and the last, as "messages.3".
    """

    output: Any
    row: dict[str, Any]
    error: dict[str, Any] | None = None
    originals: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, Sequence[str]] = field(default_factory=dict)


def fit_line(line: bytes, wanted: RecordOptions) -> RecordFit:
    """Fit one line (or one document) of JSON text; unchanged parts keep their bytes."""
    record_digest, line = digest(line), line.strip()
    try:
        fit = _fit_as_request(line, wanted)
        if fit is not None:
            request = fit.request
            output = _one_line(request) if isinstance(request, bytes) else _dumped(request)
            return _fit(fit, output, record_digest, wanted)
        fit, record = _fit_inside(parse_bytes(line), wanted)
        output = _dumped(record) if fit.fitted.changed else _one_line(line)
        return _fit(fit, output, record_digest, wanted)
    except Exception as error:  # an error in one record never ends the run
        return failed(error, record_digest)


def fit_value(record: Mapping[str, Any], wanted: RecordOptions) -> RecordFit:
    """Fit one record given as a value, such as a row of a table.  ``record`` is not changed."""
    record_digest = digest(json.dumps(record, default=str))  # other columns may hold dates
    try:
        if wanted.key is None and any(isinstance(record.get(name), list) for name in _LISTS):
            fit = conversations.fit(dict(record), wanted.settings)
            return _fit(fit, fit.request, record_digest, wanted)
        return _fit(*_fit_inside(record, wanted), record_digest, wanted)
    except Exception as error:
        return failed(error, record_digest)


def _fit_as_request(line: bytes, wanted: RecordOptions) -> FittedRecord | None:
    """The record fitted as a request; None if it is not a request but may contain one."""
    if wanted.key is not None:
        return None
    try:
        return conversations.fit(line, wanted.settings)
    except InvalidRequest:
        if any(f'"{name}"'.encode() in line for name in HOLDERS):
            return None
        raise


def _fit_inside(record: Any, wanted: RecordOptions) -> tuple[FittedRecord, dict[str, Any]]:
    """(the fitted request within a record, the record with it).  Raises InvalidRequest."""
    names = HOLDERS if wanted.key is None else (wanted.key,)
    for name in names:
        value = record.get(name) if isinstance(record, dict) else None
        if isinstance(value, (dict, list)) or (isinstance(value, str) and value[:1] in ("{", "[")):
            fit = conversations.fit(value, wanted.settings)
            return fit, {**record, name: _as_given(value, fit.request)}
    raise InvalidRequest(
        f"the record has no request under {' or '.join(map(repr, names))}; name the key that has it"
    )


def _as_given(value: Any, request: Any) -> Any:
    """The request, as JSON text if the record has it as text."""
    return dump(request) if isinstance(value, str) and not isinstance(request, str) else request


def _fit(record: FittedRecord, output: Any, record_digest: str, wanted: RecordOptions) -> RecordFit:
    fitted, answer = record.fitted, record.answer_tokens
    row: dict[str, Any] = {
        "digest": record_digest, "format": facts_of(fitted).format,
        "before": fitted.tokens_before + answer, "after": fitted.tokens_after + answer,
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
    places = {edit.handle: _ends(edit.paths) for edit in report.edits}
    for repair in report.repairs:
        places |= {handle: _ends(repair.paths) for handle in repair.handles}
    originals = {handle: fitted.recall(handle) for handle in places if handle}
    return RecordFit(
        output, row, originals=originals, places={name: places[name] for name in originals}
    )


def _ends(paths: Iterable[Path]) -> list[str]:
    """The first and the last message, or other part, of some paths; one if they are the same."""
    parts = [path[: 1 if isinstance(path[0], int) else 2] for path in paths if path]
    names = [".".join(map(str, part)) for part in parts]
    return list(dict.fromkeys([*names[:1], *names[-1:]]))


def failed(error: Exception, record_digest: str) -> RecordFit:
    """The result for a record that failed with ``error``."""
    kind = type(error).__name__
    row: dict[str, Any] = {"error": kind, "message": str(error)}
    if isinstance(error, CannotFit):
        row |= error.as_dict()
        kind = f"{kind}: {error.limit}"
    elif isinstance(error, InvalidRequest):
        causes = [cause for cause, begins in _CAUSES.items() if str(error).startswith(begins)]
        kind = ": ".join([kind, *causes])
    return RecordFit(None, {"digest": record_digest, "error": kind}, row)


def digest(data: bytes | str) -> str:
    """A digest of 16 bytes in hexadecimal.  The chance that any two of 2⁴⁰ different records
    share one is about 2⁻⁴⁹."""
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "backslashreplace")
    return hashlib.blake2b(raw.strip(), digest_size=16).hexdigest()


def _one_line(data: bytes) -> bytes:
    data = data.strip()
    return data if b"\n" not in data and b"\r" not in data else _dumped(parse_bytes(data))


def _dumped(value: Any) -> bytes:
    return dump(value).encode()
