"""Reads one tenant's store without a session: originals, search, status and pins.

Handles of another tenant raise UnknownHandle, just like handles that never existed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from trimtab.errors import UnknownHandle
from trimtab.journal.archive import Archived, of_edits, steps_of_archive
from trimtab.journal.excerpts import HANDLE_CHARS, MAX_READ_CHARS, is_handle
from trimtab.journal.file_format import dated_edits, replayed, rows
from trimtab.journal.journal import Journal
from trimtab.journal.passages import MAX_HITS, Hit, find
from trimtab.stores.base import ConversationInfo
from trimtab.stores.tenant import Original, TenantStore
from trimtab.transcript.model import Edit


class StoredHit(NamedTuple):
    """A line of an original that contains the searched text."""

    handle: str
    hit: Hit


class OriginalsReader:
    """One tenant's originals by handle.  Methods raise StoreError if the store does not answer."""

    def __init__(self, store: TenantStore, now: Callable[[], float]) -> None:
        self._store, self._now = store, now

    def recall(self, handle: str) -> str:
        """The exact original.  Raises UnknownHandle, whose text mentions a purge."""
        return self._original(handle).text

    def edits(self, handle: str) -> list[tuple[int, Edit]]:
        """The journal's edits of a handle, oldest first, each with its time of writing (seconds
        since 1970); [] for an original removed by a repair or the provider.  Raises UnknownHandle.
        """
        data, _ = self._store.read(self._original(handle).conversation)
        return [(at, edit) for at, edit in dated_edits(data) if edit.handle == handle]

    def _original(self, handle: str) -> Original:
        known = is_handle(handle)
        kept = self._store.original(handle) if known else None
        if kept is not None:
            return kept
        gone = self._store.purged(handle) if known else None
        if isinstance(gone, dict) and (day := gone.get("purged")):
            raise UnknownHandle(
                f"the original {handle!r} was purged on {day}: run the tool again if it is needed"
            )
        raise UnknownHandle(
            f"no original is kept under {handle[:HANDLE_CHARS]!r} here: run the tool again, or "
            "name the store and tenant of the session that made the edit"
        )

    @property
    def archive(self) -> Iterator[Archived]:
        """What was taken out of all conversations, the newest first: what a conversation's journal
        stands for, then what repairs and the provider took out."""
        for row in self._kept():
            data, _ = self._store.read(row.conversation)
            edits = [edit for _, edit in dated_edits(data)]
            yield from of_edits(edits)
            listed = {edit.handle for edit in edits}
            for handle in reversed(self._store.store.handles(self._store.tenant, row.conversation)):
                if handle not in listed:
                    yield Archived(handle)

    def search(self, wanted: str, most: int = MAX_HITS) -> list[StoredHit]:
        """Lines of all originals that contain ``wanted``, the newest conversations first; if there
        are none, the passages that match best."""
        steps = steps_of_archive(self, self.archive, MAX_READ_CHARS)
        return [
            StoredHit(step.archived.handle, hit.moved(step.offset))
            for step, hit in find(steps, wanted, most)
        ]

    def status(self) -> str:
        """A one-line summary of how much is kept."""
        kept = self._kept()
        if not kept:
            return "nothing is kept here yet"
        newest = datetime.fromtimestamp(kept[0].used_at, UTC).isoformat(timespec="seconds")
        return (
            f"{sum(row.originals for row in kept):,} originals of {len(kept):,} conversations, "
            f"{sum(row.stored_bytes for row in kept):,} bytes; last written {newest}"
        )

    def pin(self, handle: str) -> str:
        """Undo the edit of a handle and keep its block whole from the next request on.

        Returns what was done.  Raises UnknownHandle.
        """
        conversation = self._original(handle).conversation
        data, _ = self._store.read(conversation)
        before = replayed(Journal(), data)
        restore = before.undone(handle)
        if len(restore.targets) > 1:
            return (
                f"{handle} has {len(restore.targets)} parts of old steps: they are not "
                "pinned as a whole; recall what is needed of them"
            )
        if before.pins.issuperset(restore.targets):
            return f"{handle} is pinned already"
        after = before.add([restore], {}).pinned(restore.targets)
        new = rows(before, after, int(self._now()))
        self._store.write(self._store.batch(conversation, new))
        return f"{handle} is pinned: it is whole again from the next request on"

    def pin_words(self, pin: str, conversation: str = "", *, pinned: bool = True) -> str:
        """Pin what ``text:…`` or ``file:…`` names (``transcript.protected``), or unpin it.

        ``conversation``: its id; "": the one written last.  Returns what was done.  Raises
        UnknownHandle without any conversation.
        """
        conversation = conversation or next((row.conversation for row in self._kept()), "")
        if not conversation:
            raise UnknownHandle("no conversation is kept here yet: name the one that is meant")
        data, _ = self._store.read(conversation)
        before = replayed(Journal(), data)
        new = rows(before, before.pinned([pin], pin=pinned), int(self._now()))
        if new:
            self._store.write(self._store.batch(conversation, new))
        kind, _, named = pin.partition(":")
        named = f"“{named}”" if kind == "text" else named
        where = f"in conversation {conversation}"
        if not pinned and not new:
            return f"{named} was not pinned {where}"
        if not pinned:
            return f"{named} is no longer pinned {where}"
        return f"what has {named} stays whole {where}, from its next request on"

    def pins(self, conversation: str = "") -> list[str]:
        """What is pinned in a conversation; "": in the one written last."""
        kept = conversation or next((row.conversation for row in self._kept()), "")
        data, _ = self._store.read(kept)
        return replayed(Journal(), data).pin_names()

    def _kept(self) -> list[ConversationInfo]:
        """This tenant's conversations, newest first."""
        mine = [
            row for row in self._store.store.conversations() if row.tenant == self._store.tenant
        ]
        return sorted(mine, key=lambda row: -row.used_at)
