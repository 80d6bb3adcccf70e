"""Budgets that are checked before work is done on a request: bytes held, messages, seconds.

A request beyond a budget is forwarded unchanged; the provider refuses it if it is invalid.
"""

from __future__ import annotations

import time
from typing import Any

from trimtab.forking import Lock
from trimtab.formats.registry import MESSAGE_LISTS
from trimtab.formats.words import LIST_KEYS
from trimtab.interruption import Interrupted

MAX_CONTAINERS = 1_000_000
"""Braces and brackets in a body that is parsed, those within strings included."""
MAX_PARTS = 50_000
"""Messages, and parts of their contents, of a request that is made to fit."""
PLAN_SECONDS = 30.0
"""How long a request may be worked on; then it is sent unchanged."""
_OBJECT_BYTES, _LIST_BYTES = 300, 70
"""Bytes of memory that an empty object or list takes once parsed, with its slot in a list."""


class TooMuch(Exception):
    """A body would take more memory than there is for it."""


class HeldBytes:
    """Bytes that all requests together hold at one time, at most ``most``."""

    def __init__(self, most: int) -> None:
        self.most, self.now = most, 0
        self._lock = Lock()

    def take(self, size: int) -> bool:
        """Hold ``size`` more bytes; False, and nothing is held, if that is too much."""
        with self._lock:
            if self.now + size > self.most:
                return False
            self.now += size
            return True

    def release(self, size: int) -> None:
        """Release ``size`` bytes."""
        with self._lock:
            self.now -= size


class RequestBudget:
    """The bytes that one request holds, and its deadline."""

    def __init__(self, held: HeldBytes) -> None:
        self._held = held
        self._bytes, self._lock = 0, Lock()
        self._until = float("inf")
        self.cancelled = False
        """Set once nobody waits for the request any more."""

    def take(self, size: int) -> bool:
        """Hold ``size`` more bytes, if there is room and the client still waits."""
        with self._lock:
            if self.cancelled or not self._held.take(size):
                return False
            self._bytes += size
            return True

    def take_parsed(self, text: bytes, start: int = 0) -> None:
        """Hold the memory that text[start:] takes once parsed: many times its size for empty
        objects.  Raises TooMuch."""
        objects, lists = text.count(b"{", start), text.count(b"[", start)
        size = len(text) - start + _OBJECT_BYTES * objects + _LIST_BYTES * lists
        if objects + lists > MAX_CONTAINERS or not self.take(size):
            raise TooMuch

    def allows(self, tree: Any) -> bool:
        """Whether a parsed body is within the limit of messages and parts."""
        return parts_of(tree, MAX_PARTS) <= MAX_PARTS

    def begin(self) -> None:
        """Start the time for planning."""
        self._until = time.monotonic() + PLAN_SECONDS

    def check(self) -> None:
        """Raises Interrupted once the time is over or the client is gone."""
        if self.cancelled or time.monotonic() > self._until:
            raise Interrupted

    def close(self) -> None:
        """Release everything; the request is over."""
        with self._lock:
            self.cancelled = True
            self._held.release(self._bytes)
            self._bytes = 0


def parts_of(tree: Any, most: int) -> int:
    """Messages of a body and parts of their contents, counted until there are too many."""
    lists = [tree.get(key) for key in _LISTS] if isinstance(tree, dict) else [tree]
    count = 0
    for messages in lists:
        for message in messages if isinstance(messages, list) else ():
            count += 1
            if isinstance(message, dict):
                values = (message.get(key) for key in LIST_KEYS)
                count += sum(len(parts) for parts in values if isinstance(parts, list))
            if count > most:
                return count
    return count


_LISTS = (*MESSAGE_LISTS, "system", "tools")
