"""Lets a caller stop long work half-way: because it takes too long, or its result is not needed.

Long loops call ``check``, which calls the caller's function; there is no clock in here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_asked: ContextVar[Callable[[], None] | None] = ContextVar("trimtab_interruption", default=None)


class Interrupted(BaseException):
    """The work was stopped.  Not an ``Exception``, so that no handler on the way continues."""


def check() -> None:
    """Raises Interrupted if the work is to be stopped."""
    asked = _asked.get()
    if asked is not None:
        asked()


@contextmanager
def stopped_by(ask: Callable[[], None]) -> Iterator[None]:
    """Within this context ``check`` calls ``ask``, which may raise Interrupted."""
    token = _asked.set(ask)
    try:
        yield
    finally:
        _asked.reset(token)
