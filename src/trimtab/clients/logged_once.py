"""Keeps httpx's own log line of a request from being written twice.

A wrapped client sends through the caller's client, and both are clients of httpx: each would log
``HTTP Request: POST … "HTTP/1.1 200 OK"``.  The line of the caller's client is the true one, as it
is written once for each send; that of the copy, right after it, is left out.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

_logged: ContextVar[str | None] = ContextVar("trimtab_logged_url", default=None)
"""The URL of the request whose line the caller's client has just written; of this task."""


@contextmanager
def logged_once(module: Any, request: Any) -> Iterator[None]:
    """Around a send through the caller's client: what is logged within it is not logged again."""
    _install(module.__name__)
    _logged.set(None)
    try:
        yield
    except Exception as error:
        if getattr(error, "response", None) is None:  # an SDK's error of a status has one
            raise
        _logged.set(str(request.url))
        raise
    _logged.set(str(request.url))


@cache
def _install(name: str) -> None:
    logging.getLogger(name).addFilter(_is_first)


def _is_first(record: logging.LogRecord) -> bool:
    args = record.args
    if not isinstance(args, tuple) or len(args) != 5 or str(args[1]) != _logged.get():
        return True
    _logged.set(None)
    return False
