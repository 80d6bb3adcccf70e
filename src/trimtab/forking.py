"""What a forked child must have anew: locks that a thread of its parent held, and names.

Only the thread that forks goes on in the child.  What the others held is never released there, and
what they were changing stays half changed.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Renewable(Protocol):
    """Whatever must not go on in a child as it was in its parent."""

    def renew(self) -> None:
        """Called in the child before anything else runs there; must not wait."""
        ...


_renewable: weakref.WeakSet[Renewable] = weakref.WeakSet()


def renew_in_children(thing: Renewable) -> None:
    """Have ``thing.renew()`` called in each child, as long as ``thing`` exists."""
    _renewable.add(thing)


def _renew_all() -> None:
    for thing in list(_renewable):
        thing.renew()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_renew_all)


class Lock:
    """A reentrant lock.  In a child it is free, unless the thread that forked holds it.

    ``was_lost``: whether a thread of the parent held it at a fork, so that what it guards may be
    half changed in this process.  Who has put that right sets it to False.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.was_lost = False
        renew_in_children(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def acquire(self, timeout: float = -1) -> bool:
        """Hold the lock; False if that takes longer than ``timeout`` seconds (−1: no limit)."""
        return self._lock.acquire(timeout=timeout)

    def release(self) -> None:
        """Release it once."""
        self._lock.release()

    def renew(self) -> None:
        """See ``Renewable``."""
        if self._lock.acquire(blocking=False):  # free, or held by the thread that forked
            self._lock.release()
        else:
            self._lock, self.was_lost = threading.RLock(), True


loading = Lock()
"""Held while something is imported on first use.  A fork waits for it: Python does not free the
lock of a module that another thread was importing, and the child could never import it."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=loading.acquire, after_in_parent=loading.release, after_in_child=loading.release
    )


class ProcessName:
    """A random name, another one in each child: two processes must not write under one name."""

    def __init__(self) -> None:
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """See ``Renewable``."""
        self._name = os.urandom(6).hex()

    def __str__(self) -> str:
        return self._name
