"""What requests may cost before any work is done on them: bytes held, messages, seconds.

A request beyond a budget is sent as it came: a provider refuses it if it is none.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from trimtab.interruption import Interrupted
from trimtab.wire.base import MESSAGE_LISTS

RATIO = 100
"""So many times larger a packed body may become; real ones become 5 to 40 times larger."""
RATIO_FREE_BYTES = 1_000_000
"""Up to here the ratio does not matter."""
MOST_CONTAINERS = 1_000_000
"""Braces and brackets of a body that is parsed, those within texts included."""
_OBJECT_BYTES, _LIST_BYTES = 300, 70
"""Of memory that an empty object or list of a parsed body takes, with its place in a list."""


class HeldBytes:
    """Bytes that all requests together hold at a time, at most ``most``."""

    def __init__(self, most: int) -> None:
        self.most, self.now = most, 0
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Hold so many more; False where that is too much: then none are held."""
        with self._lock:
            if self.now + size > self.most:
                return False
            self.now += size
            return True

    def release(self, size: int) -> None:
        """They are no longer held."""
        with self._lock:
            self.now -= size


class RequestBudget:
    """What one request holds, and until when it may be worked on.

    ``seconds``: for planning, from the moment it begins.
    """

    def __init__(self, held: HeldBytes, seconds: float, most_parts: int) -> None:
        self._held, self._seconds, self.most_parts = held, seconds, most_parts
        self._bytes, self._lock = 0, threading.Lock()
        self._until = float("inf")
        self.cancelled = False
        """Nobody waits for it any more."""

    def take(self, size: int) -> bool:
        """Hold so many bytes more, if there is room and somebody waits for it."""
        with self._lock:
            if self.cancelled or not self._held.take(size):
                return False
            self._bytes += size
            return True

    def take_parsed(self, text: bytes) -> bool:
        """Hold what this text takes once it is parsed: many times its size, of empty objects."""
        objects, lists = text.count(b"{"), text.count(b"[")
        if objects + lists > MOST_CONTAINERS:
            return False
        return self.take(len(text) + _OBJECT_BYTES * objects + _LIST_BYTES * lists)

    def allows(self, tree: Any) -> bool:
        """Whether a parsed body has no more messages and parts than may be worked on."""
        return parts_of(tree, self.most_parts) <= self.most_parts

    def begin(self) -> None:
        """Planning begins."""
        self._until = time.monotonic() + self._seconds

    def check(self) -> None:
        """Raises Interrupted once its time is over, or nobody waits for it."""
        if self.cancelled or time.monotonic() > self._until:
            raise Interrupted

    def close(self) -> None:
        """Its end: nothing is held any more, and nobody waits."""
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
                values = (message.get(key) for key in _PARTS)
                count += sum(len(parts) for parts in values if isinstance(parts, list))
            if count > most:
                return count
    return count


_LISTS = (*MESSAGE_LISTS, "system", "tools")
_PARTS = ("content", "parts", "tool_calls")
