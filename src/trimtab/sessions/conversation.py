"""One conversation in this process, and its identification by the user's first message.

Merges the entries of a store with those of this process; does not access the store itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trimtab import formats
from trimtab.forking import Lock
from trimtab.formats.body import RequestBody
from trimtab.formats.registry import MESSAGE_LISTS
from trimtab.journal import file_format
from trimtab.journal.file_format import JournalRow
from trimtab.journal.journal import Journal
from trimtab.journal.packed_originals import PackedOriginals
from trimtab.request.message_cache import MessageCache
from trimtab.request.received import TurnInputs
from trimtab.sessions.stats import ConversationStats
from trimtab.transcript.model import Block

_LOOKED_AT = 16
"""Number of leading messages that are searched for the user's first one."""


@dataclass(eq=False)
class Conversation:
    """``journal`` is what the store is known to hold (``confirmed``), followed by entries that it
    does not hold yet, as far as known (``unconfirmed``)."""

    id: str
    cache: MessageCache = field(default_factory=MessageCache)
    journal: Journal = field(default_factory=lambda: Journal(originals=PackedOriginals()))
    lock: Lock = field(default_factory=Lock)
    hint: str = ""
    confirmed: Journal = field(default_factory=Journal)
    unconfirmed: dict[str, bytes] = field(default_factory=dict)
    position: str = ""
    """The position up to which the store was read."""
    loaded: bool = False
    newer: bool = False
    """Whether a newer release has written entries that this one cannot read."""
    handle_key: bytes = b""
    handles: set[str] = field(default_factory=set)
    """Handles of the originals that were given to the store."""
    control_key: str = ""
    """The key that decides whether it is in the control arm; "" until it is needed."""
    stats: ConversationStats = field(default_factory=ConversationStats)
    """Statistics of its turns in this process."""
    _handed_over: list[tuple[str, list[bytes], str]] = field(default_factory=list)
    _handed_over_lock: Lock = field(default_factory=Lock)

    def __enter__(self) -> None:
        """Have the conversation for this thread alone."""
        self.lock.acquire()
        if self.lock.was_lost:
            self._forget()

    def __exit__(self, *_: object) -> None:
        self.lock.release()

    def turn_inputs(self, inputs: TurnInputs) -> TurnInputs:
        """The inputs of its next turn: these, with what it remembers."""
        return replace(inputs, cache=self.cache, journal=self.journal)

    def _forget(self) -> None:
        """Forget what a thread of the parent may have half changed when it forked: values of
        messages, and what a store holds, which is read again."""
        self.cache = MessageCache()
        if self.loaded or self.unconfirmed:
            self.journal, self.confirmed = Journal(originals=PackedOriginals()), Journal()
            self.unconfirmed, self.handles = {}, set()
            self.position, self.loaded = "", False
        self.lock.was_lost = False

    def add(self, after: Journal, at: int) -> list[JournalRow]:
        """Continue with the journal ``after`` and return the rows that are new in it."""
        rows = file_format.rows(self.journal, after, at)
        self.unconfirmed |= {row.id: row.data for row in rows}
        self.journal = after
        return rows

    def apply_rows(self, rows: Sequence[bytes], place: str) -> bool:
        """Apply entries read from the store up to ``place``; returns whether others wrote any.

        All readers see one order: entries of others that the store has come before our unconfirmed
        ones.
        """
        self.position, self.loaded = place, True
        if not rows:
            return False
        heads = [json.loads(row) for row in rows]
        self.newer = self.newer or any(row["v"] > file_format.VERSION for row in heads)
        ids = [row["id"] for row in heads]
        if ids == list(self.unconfirmed):  # what we wrote ourselves, and nothing else
            self.confirmed, self.unconfirmed = self.journal, {}
            return False
        foreign = [id for id in ids if self.unconfirmed.pop(id, None) is None]
        self.confirmed = file_format.replayed(self.confirmed, rows)
        self.journal = file_format.replayed(self.confirmed, self.unconfirmed.values())
        return bool(foreign)

    def hand_over(self, behind: str, rows: list[bytes], place: str) -> None:
        """Queue entries that another thread read after position ``behind``, for the next turn."""
        with self._handed_over_lock:
            self._handed_over.append((behind, rows, place))

    def apply_handed_over(self) -> None:
        """Apply the queued entries that directly follow those read so far."""
        with self._handed_over_lock:
            came, self._handed_over = self._handed_over, []
        for behind, rows, place in came:
            if behind == self.position and self.loaded:
                self.apply_rows(rows, place)


def conversation_id(source: RequestBody, format: str | None) -> str:
    """The id of a conversation: a digest of its user's first message.

    Forks and rewinds share an id.  So do unrelated conversations with the same first message, which
    only costs a few entries that do not apply.  Raises InvalidRequest.
    """
    begin = _beginning(source.tree)
    detected, _ = formats.find(begin, format)
    base = detected.base(begin)
    messages = begin.get(base[0]) if base else begin
    first = messages if isinstance(messages, str) else None
    blocks: tuple[Block, ...] = ()
    for message in messages if isinstance(messages, list) else ():
        try:
            view = detected.read_message(message)
        except (TypeError, AttributeError, KeyError, IndexError):
            break  # reading the whole request reports it
        if view.role == "user" and not view.results:
            blocks = view.blocks
            break
    digests = [block.digest for block in blocks] or [first or ""]
    data = "\x1f".join(digests).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def _beginning(tree: Any) -> Any:
    """The request with its first messages only, so that the id does not depend on its length."""
    if isinstance(tree, list):
        return tree[:_LOOKED_AT]
    if not isinstance(tree, dict):
        return tree
    return {
        key: value[:_LOOKED_AT] if key in MESSAGE_LISTS and isinstance(value, list) else value
        for key, value in tree.items()
    }
