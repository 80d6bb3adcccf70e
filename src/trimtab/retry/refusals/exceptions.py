"""Reads status, body and headers from an SDK's exception by its attributes.  Imports no SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_STATUS = ("status_code", "status", "code", "http_status")
_BODY = ("body", "details", "error", "message")


def error_parts(error: Any) -> tuple[int | None, Any, Mapping[str, str]]:
    """(status, body, headers) of an exception, or of any object with such attributes.

    botocore's errors have a dict as ``response``; others have a response object, and a body that
    may be parsed.  Without a body, the exception's text is used.
    """
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        meta = response.get("ResponseMetadata")
        meta = meta if isinstance(meta, Mapping) else {}
        status = meta.get("HTTPStatusCode")
        return _int(status), response.get("Error", response), meta.get("HTTPHeaders") or {}
    values = (_int(getattr(error, name, None)) for name in _STATUS)
    status = next((number for number in values if number is not None), None)
    if status is None:
        status = _int(getattr(response, "status_code", None))
    bodies = (getattr(error, name, None) for name in _BODY)
    usable = (body for body in bodies if isinstance(body, (str, bytes, Mapping, list)) and body)
    headers = getattr(response, "headers", None)
    return status, next(usable, str(error)), headers if isinstance(headers, Mapping) else {}


def _int(value: Any) -> int | None:
    return value if type(value) is int else None
