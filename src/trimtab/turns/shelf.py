"""The conversations of a session, some in memory, all in a store.

Knows which conversation a request belongs to, what was written by others, and what has to be kept
before a request leaves.  A store that does not answer is no reason to fail: what happens then is
told in a line.  Does not know what an edit is for.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from threading import Lock
from typing import Any

from trimtab.errors import CannotFit, StoreError, UnknownHandle
from trimtab.fitted import Fitted
from trimtab.settings import Settings
from trimtab.stores.tenant import Original, TenantStore
from trimtab.stores.writer import Lost, Writer
from trimtab.turns.conversation import Conversation
from trimtab.turns.journal import Journal
from trimtab.turns.passages import HANDLE_CHARS, is_handle
from trimtab.turns.turn import Turn, decide, tell

IN_MEMORY = 64
"""Conversations of which a session remembers what it read, the latest."""
AGAIN_SECONDS = 5.0
"""After so long a store that did not answer is asked again."""


class Shelf:
    """One tenant's conversations.  Its methods raise nothing that a store is to blame for, except
    where somebody asked for an original."""

    def __init__(self, store: TenantStore) -> None:
        self.store, self.writer = store, Writer(store)
        self._known: OrderedDict[str, Conversation] = OrderedDict()
        self._aliases: dict[str, str] = {}
        self._lock = Lock()
        self._waiting: dict[str, Original] = {}
        """Originals that are not known to be kept."""
        self._own_key = b""
        self._silent_until = 0.0
        self.trouble: StoreError | None = None
        self.learned = False
        """Whether what other sessions learned was taken up."""
        self._told: dict[str, Any] = {}

    # --- finding ---

    def conversation(self, root: str, hint: str | None) -> Conversation:
        """The conversation that begins so, else the one that had this hint before."""
        with self._lock:
            found = self._known.get(self._aliases.get(root, root))
            if found is not None:
                self._known.move_to_end(found.root)
                return found
        found = self._loaded(root)
        if hint and not found.journal.entries and not found.journal.pins:
            before = self._asked(lambda: self.store.fact(_hinted(hint)))
            if isinstance(before, str) and before != root:
                self._aliases[root] = before
                return self.conversation(before, None)
        found.hint = hint or ""
        with self._lock:
            found = self._known.setdefault(root, found)
            self._known.move_to_end(root)
            while len(self._known) > IN_MEMORY:
                self._known.popitem(last=False)
            if len(self._aliases) > 10 * IN_MEMORY:
                self._aliases.clear()
        return found

    def at_hand(self, root: str) -> Conversation | None:
        """The conversation that begins so, where it is in memory."""
        with self._lock:
            return self._known.get(self._aliases.get(root, root))

    def known(self, root: str) -> Conversation:
        """A conversation by its root."""
        return self.conversation(root, None)

    def _loaded(self, root: str) -> Conversation:
        new = Conversation(root)
        self._read(new)
        return new

    def _key(self, one: Conversation) -> bytes:
        """What its handles are made with; one of our own as long as the store does not answer."""
        if not one.handle_key:
            found = self._asked(lambda: self.store.handle_key(one.root))
            if found is None:
                self._own_key = self._own_key or os.urandom(32)
                data = one.root.encode()
                found = hashlib.blake2b(data, key=self._own_key, digest_size=32).digest()
            one.handle_key = found
        return one.handle_key

    # --- a turn ---

    def turn(self, one: Conversation, request: Any, wanted: Settings) -> tuple[Turn, Fitted]:
        """A turn whose new edits are kept before it is returned."""
        wanted = replace(wanted, handle_key=self.begin(one))
        turn = self._decided(one, request, wanted)
        if turn.internal:
            return turn, tell(turn, turn.outcome.originals)
        new = {h: text for h, text in turn.outcome.originals.items() if h not in one.handles}
        if turn.journal is not one.journal or new:
            before, problem = one.journal, self.save(one, turn.journal, new)
            if problem and wanted.recall and turn.outcome.new:
                # What may be lost is not promised: the same edits, their markers without a handle.
                silent = replace(one.pinned(wanted), recall=False)
                turn = decide(request, silent, one.known, before)
                instead = turn.journal.entries[len(before.entries) :]
                self.save(one, one.journal.add(instead, {}), {}, wait=False)
            if problem:
                turn.outcome.work.warnings.append(problem)
        if one.newer:
            turn.outcome.work.warnings.append(
                "a newer release has written to this conversation; what it wrote is passed over: "
                "update trimtab"
            )
        if self.trouble is not None:
            turn.outcome.work.warnings.append(f"goes on without the store: {self.trouble}")
        self.end(one)
        return turn, tell(turn, Originals(self, turn.outcome.originals))

    def _decided(self, one: Conversation, request: Any, wanted: Settings) -> Turn:
        """A turn; decided once more where another process has just decided for it."""
        try:
            turn = decide(request, one.pinned(wanted), one.known, one.journal)
        except CannotFit:
            if not self.news(one):
                raise
            return decide(request, one.pinned(wanted), one.known, one.journal)
        if turn.journal is one.journal or not self.news(one):
            return turn
        return decide(request, one.pinned(wanted), one.known, one.journal)

    def begin(self, one: Conversation) -> bytes:
        """Take up what others wrote; the key of its handles."""
        if not one.loaded or self.store.store.near:
            self._read(one)
        one.take_what_came()
        return self._key(one)

    def news(self, one: Conversation) -> bool:
        """Whether others wrote something since; for stores that are not asked each turn."""
        return not self.store.store.near and self._read(one)

    def save(
        self,
        one: Conversation,
        after: Journal,
        originals: Mapping[str, str],
        *,
        wait: bool = True,
    ) -> str:
        """Keep what is new, and wait until it is kept; a line where it is not."""
        rows = one.add(after, int(time.time()))
        kept = {handle: Original(one.root, text) for handle, text in originals.items()}
        self._waiting |= kept
        one.handles.update(kept)
        facts = {_hinted(one.hint): one.root} if one.hint else {}
        batch = self.store.batch(one.root, rows, originals, facts)

        def then() -> None:
            for handle in kept:
                self._waiting.pop(handle, None)

        problem = self.writer.write(batch, then, wait=wait)
        if isinstance(problem, Lost):
            then()
        if problem is None and wait:
            self._read(one)
            return ""
        return f"the store does not keep this yet: {problem}" if problem else ""

    def end(self, one: Conversation) -> None:
        """Look for what others write, in the background."""
        if not self.store.store.near and self.writer.failing is None:
            place = one.place
            self.writer.soon(lambda: one.put(place, *self.store.read(one.root, place)))

    def _read(self, one: Conversation) -> bool:
        found = self._asked(lambda: self.store.read(one.root, one.place))
        return found is not None and one.take(*found)

    def _asked(self, ask: Any) -> Any:
        """An answer of the store; None, and not asked again for a while, where there is none."""
        if time.monotonic() < self._silent_until:
            return None
        try:
            answer = ask()
        except StoreError as error:
            self.trouble = error
            self._silent_until = time.monotonic() + AGAIN_SECONDS
            return None
        self.trouble = None
        return answer

    # --- originals ---

    def original(self, handle: str) -> Original:
        """What an edit took away.  Raises UnknownHandle, StoreError."""
        known = is_handle(handle)  # a model may write anything; stores do not take it all
        found = self._waiting.get(handle) or (self.store.original(handle) if known else None)
        if found is not None:
            return found
        gone = self.store.gone(handle) if known else None
        if gone is not None:
            raise UnknownHandle(
                f"the original of {handle!r} was purged from the store on {gone['purged']} and is "
                "gone for good: run the tool again"
            )
        raise UnknownHandle(
            f"no original is kept under {handle[:HANDLE_CHARS]!r} for tenant "
            f"{self.store.tenant!r}: check the handle, or run the tool again"
        )

    def handles(self, root: str) -> list[str]:
        """All handles of a conversation, oldest first.  Raises StoreError."""
        kept = self.store.store.handles(self.store.tenant, root)
        waiting = [key for key, one in list(self._waiting.items()) if one.conversation == root]
        return list(dict.fromkeys([*kept, *waiting]))

    # --- facts ---

    def lessons(self, prefix: str) -> dict[str, bytes]:
        """Facts that other sessions stated since this was asked last; stores of one machine are
        asked once only."""
        if self.learned and self.store.store.near:
            return {}
        found = self._asked(lambda: self.store.facts(prefix))
        if found is None:
            return {}
        self.learned = True
        news = {name: value for name, value in found.items() if self._told.get(name) != value}
        self._told = found
        return {name: json.dumps(value).encode() for name, value in news.items()}

    def fact(self, name: str) -> Any:
        """One fact; None where there is none, or the store does not answer."""
        waiting = self.writer.waiting(name)
        return self._asked(lambda: self.store.fact(name)) if waiting is None else waiting

    def facts(self, prefix: str) -> dict[str, bytes]:
        """Facts as JSON; none where the store does not answer."""
        found = self._asked(lambda: self.store.facts(prefix)) or {}
        return {name: json.dumps(value).encode() for name, value in found.items()}

    def as_dict(self) -> dict[str, Any]:
        """About the store, for statistics."""
        store = self.store.store
        return {
            "store": store.url, "tenant": self.store.tenant, "waiting": len(self._waiting),
            "lost": self.writer.lost,
        }  # fmt: skip

    def close(self) -> None:
        """Write what waits, and close the store."""
        self.writer.flush()
        self.store.store.close()

    def state(self, name: str, value: Any) -> None:
        """Keep a fact some time soon."""
        self.writer.later(name, value)

    def teach(self, name: str, value: Any) -> None:
        """Keep a fact that other machines need for their next request: now, where there are any
        and the store answers."""
        self._told[name] = value
        self.writer.later(name, value)
        if not self.store.store.near and self.writer.failing is None:
            self.writer.write(self.store.batch(""))  # takes along what may be kept later


class Originals(Mapping[str, str]):
    """Originals by handle: those of one turn, and all others of the tenant."""

    def __init__(self, shelf: Shelf, own: Mapping[str, str]) -> None:
        self._shelf, self._own = shelf, own

    def __getitem__(self, handle: str) -> str:
        """Raises UnknownHandle, StoreError."""
        found = self._own.get(handle)
        return self._shelf.original(handle).text if found is None else found

    def __iter__(self) -> Iterator[str]:
        return iter(self._own)

    def __len__(self) -> int:
        return len(self._own)


def _hinted(hint: str) -> str:
    return f"hint/{hashlib.blake2b(hint.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
