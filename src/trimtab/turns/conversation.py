"""One conversation as this process knows it, and how it is found by what it begins with.

Knows the first message of the user, entries of a store and their order.  Does not know where a
store is, nor what is decided.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Lock, RLock
from typing import Any

from trimtab import formats
from trimtab.model import Block
from trimtab.reading.known import Known
from trimtab.reading.source import Source
from trimtab.settings import Settings
from trimtab.turns import journal_format
from trimtab.turns.journal import Journal
from trimtab.turns.journal_format import Row
from trimtab.turns.totals import Totals

_LOOKED_AT = 16
"""Messages among which the first of the user is looked for."""


@dataclass(eq=False)
class Conversation:
    """``journal`` is what the store is known to hold (``confirmed``) and behind it what is not
    there yet, or not known to be (``unconfirmed``)."""

    root: str
    known: Known = field(default_factory=Known)
    journal: Journal = field(default_factory=Journal)
    lock: RLock = field(default_factory=RLock)
    hint: str = ""
    confirmed: Journal = field(default_factory=Journal)
    unconfirmed: dict[str, bytes] = field(default_factory=dict)
    place: str = ""
    """How far the store was read."""
    loaded: bool = False
    newer: bool = False
    """Whether a newer release has written entries that this one cannot read."""
    handle_key: bytes = b""
    handles: set[str] = field(default_factory=set)
    """Of the originals that were given to the store."""
    sent_at: float | None = None
    """When this process fitted its last request, by the session's clock."""
    room: int = 0
    """Tokens that may come before a turn has to decide anything anew."""
    totals: Totals = field(default_factory=Totals)
    """What was counted over its turns, in this process."""
    _came: list[tuple[str, list[bytes], str]] = field(default_factory=list)
    _came_lock: Lock = field(default_factory=Lock)

    def pinned(self, wanted: Settings) -> Settings:
        """Settings with the pins of the journal behind their own."""
        if not self.journal.pins:
            return wanted
        pins = wanted.pins
        own = (pins,) if isinstance(pins, str) or callable(pins) else tuple(pins)
        return replace(wanted, pins=(*own, *sorted(self.journal.pins)))

    def add(self, after: Journal, at: int) -> list[Row]:
        """Go on with a journal; the rows that it has more than before."""
        rows = journal_format.rows(self.journal, after, at)
        self.unconfirmed |= {row.id: row.data for row in rows}
        self.journal = after
        return rows

    def take(self, rows: Sequence[bytes], place: str) -> bool:
        """Take up entries of the store behind ``place``; whether any was news.

        All readers see one order: entries of others stand before our own that came later.
        """
        self.place, self.loaded = place, True
        if not rows:
            return False
        heads = [json.loads(row) for row in rows]
        self.newer = self.newer or any(row["v"] > journal_format.VERSION for row in heads)
        ids = [row["id"] for row in heads]
        if ids == list(self.unconfirmed):  # what we wrote ourselves, and nothing else
            self.confirmed, self.unconfirmed = self.journal, {}
            return False
        others = [id for id in ids if self.unconfirmed.pop(id, None) is None]
        self.confirmed = journal_format.replayed(self.confirmed, rows)
        self.journal = journal_format.replayed(self.confirmed, self.unconfirmed.values())
        return bool(others)

    def put(self, behind: str, rows: list[bytes], place: str) -> None:
        """Lay entries down that another thread has read, to be taken up by the next turn."""
        with self._came_lock:
            self._came.append((behind, rows, place))

    def take_what_came(self) -> None:
        """Take up what was laid down, where it follows what is known."""
        with self._came_lock:
            came, self._came = self._came, []
        for behind, rows, place in came:
            if behind == self.place and self.loaded:
                self.take(rows, place)


def root_of(source: Source, format: str | None) -> str:
    """What a conversation is known by: a digest of the first message of its user.

    Forks and rewinds begin alike; so do conversations that have nothing to do with each other,
    which costs a few entries that apply to neither.  Raises InvalidRequest.
    """
    begin = _beginning(source.tree)
    found, _ = formats.find(begin, format)
    base = found.base(begin)
    messages = begin.get(base[0]) if base else begin
    first = messages if isinstance(messages, str) else None
    blocks: tuple[Block, ...] = ()
    for message in messages if isinstance(messages, list) else ():
        try:
            view = found.read_message(message)
        except (TypeError, AttributeError, KeyError, IndexError):
            break  # it is told by who reads the request as a whole
        if view.role == "user" and not view.results:
            blocks = view.blocks
            break
    said = [block.digest for block in blocks] or [first or ""]
    data = "\x1f".join(said).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def _beginning(tree: Any) -> Any:
    """A request with its first messages only: what it is known by must not cost what is new."""
    if isinstance(tree, list):
        return tree[:_LOOKED_AT]
    if not isinstance(tree, dict):
        return tree
    return {
        key: value[:_LOOKED_AT]
        if key in ("messages", "input", "contents") and isinstance(value, list)
        else value
        for key, value in tree.items()
    }
