"""Lets whoever asked for work stop it half-way: because it takes too long, or nobody waits for it.

Long loops call ``check``.  What it does is said from outside: there is no clock in here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_asked: ContextVar[Callable[[], None] | None] = ContextVar("trimtab_interruption", default=None)


class Interrupted(BaseException):
    """The work was stopped.  No ``Exception``: nothing on the way may go on instead."""


def check() -> None:
    """Raises Interrupted where the work is to be stopped."""
    asked = _asked.get()
    if asked is not None:
        asked()


@contextmanager
def stopped_by(ask: Callable[[], None]) -> Iterator[None]:
    """Within it ``check`` calls this function, which may raise Interrupted."""
    token = _asked.set(ask)
    try:
        yield
    finally:
        _asked.reset(token)
