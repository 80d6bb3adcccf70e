"""The conversations of a session, some in memory, all in a store.

Finds the conversation of a request, applies what other processes wrote, and stores new entries
before the request is sent.  A store that does not answer is no error here: the report then has a
warning.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from trimtab.errors import CannotFit, StoreError, UnknownHandle
from trimtab.forking import Lock, ProcessName, renew_in_children
from trimtab.journal.excerpts import HANDLE_CHARS, is_handle
from trimtab.journal.file_format import dated_edits
from trimtab.journal.journal import Journal
from trimtab.request.fitted import Fitted
from trimtab.request.received import TurnInputs
from trimtab.sessions.conversation import Conversation
from trimtab.sessions.stats import PREFIX as STATS
from trimtab.sessions.stats import ConversationStats
from trimtab.sessions.turn import Turn, decide, reported
from trimtab.settings import Settings
from trimtab.stores.breaker import Circuit
from trimtab.stores.tenant import Original, TenantStore
from trimtab.stores.writer import QueueFull, Writer
from trimtab.transcript.model import Edit

IN_MEMORY = 64
"""Most conversations that a session keeps in memory, the most recently used."""


class ConversationStore:
    """One tenant's conversations.  Store failures surface only when originals are read."""

    def __init__(self, store: TenantStore) -> None:
        self.store, self.writer = store, Writer(store)
        self._by_id: OrderedDict[str, Conversation] = OrderedDict()
        self._aliases: dict[str, str] = {}
        self._lock = Lock()
        self._unwritten: dict[str, Original] = {}
        """Originals that the store has not confirmed yet."""
        self._own_key = b""
        self._circuit = Circuit(waits=True)
        self._shared_facts: dict[str, Any] | None = None
        """The facts that ``new_facts`` has given, and our own of them; None: not read yet."""
        self._process = ProcessName()
        renew_in_children(self)

    def renew(self) -> None:
        """A child counts its own turns: those before are in what its parent writes."""
        for conversation in self._by_id.values():
            conversation.stats = ConversationStats()

    # --- finding ---

    def conversation(self, id: str, hint: str | None) -> Conversation:
        """The conversation with this id; if it is new, the one that had ``hint``."""
        with self._lock:
            known = self._by_id.get(self._aliases.get(id, id))
            if known is not None:
                self._by_id.move_to_end(known.id)
                return known
        known = self._loaded(id)
        if hint and not known.journal.entries and not known.journal.pins:
            named = self._answer_to(lambda: self.store.fact(_hint_fact(hint)))
            if isinstance(named, str) and named != id:
                self._aliases[id] = named
                return self.conversation(named, None)
        known.hint = hint or ""
        with self._lock:
            known = self._by_id.setdefault(id, known)
            self._by_id.move_to_end(id)
            while len(self._by_id) > IN_MEMORY:
                self._by_id.popitem(last=False)
            if len(self._aliases) > 10 * IN_MEMORY:
                self._aliases.clear()
        return known

    def by_id(self, id: str) -> Conversation:
        return self.conversation(id, None)

    def forget(self, id: str) -> None:
        """Write what is waiting, and keep nothing of this conversation in memory."""
        self.writer.flush()
        with self._lock:
            self._by_id.pop(id, None)
            self._aliases = {other: one for other, one in self._aliases.items() if one != id}

    def _loaded(self, id: str) -> Conversation:
        conversation = Conversation(id)
        self._answer_to(lambda: self.store.adopt(id))
        self._read(conversation)
        return conversation

    def _key(self, conversation: Conversation) -> bytes:
        """The key of its handles; a random one of this process if the store does not answer."""
        if not conversation.handle_key:
            key = self._answer_to(lambda: self.store.handle_key(conversation.id))
            if key is None:
                self._own_key = self._own_key or os.urandom(32)
                data = conversation.id.encode()
                key = hashlib.blake2b(data, key=self._own_key, digest_size=32).digest()
            conversation.handle_key = key
        return conversation.handle_key

    # --- a turn ---

    def turn(
        self, conversation: Conversation, request: Any, inputs: TurnInputs
    ) -> tuple[Turn, Fitted]:
        """Take a turn and store its new edits before returning it."""
        inputs = replace(inputs, handle_key=self.refresh(conversation))
        turn = self._decided(conversation, request, inputs)
        if turn.is_client_request:
            return turn, reported(turn, turn.result.originals)
        new = {
            h: text for h, text in turn.result.originals.items() if h not in conversation.handles
        }
        if turn.journal is not conversation.journal or new:
            silent, before = conversation.turn_inputs(inputs), conversation.journal
            problem = self.save(conversation, turn.journal, new)
            if problem and inputs.settings.recall and turn.result.new:
                # The originals may be lost, so the same edits are made with markers without handle.
                silent = replace(silent, settings=inputs.settings | Settings(recall=False))
                turn = decide(request, silent)
                entries = turn.journal.entries[len(before.entries) :]
                originals = turn.result.originals
                unstored = {
                    h: text for h, text in originals.items() if h not in conversation.handles
                }
                self.save(conversation, conversation.journal.add(entries, {}), unstored, wait=False)
            if problem:
                turn = turn.warned(problem)
        if conversation.newer:
            turn = turn.warned(
                "a newer release has written to this conversation; what it wrote is passed over: "
                "update trimtab"
            )
        if self.last_failure is not None:
            turn = turn.warned(f"goes on without the store: {self.last_failure}")
        self.prefetch(conversation)
        return turn, reported(turn, TurnOriginals(self, turn.result.originals))

    def _decided(self, conversation: Conversation, request: Any, inputs: TurnInputs) -> Turn:
        """Decide a turn; once more if another process wrote to the conversation meanwhile."""
        try:
            turn = decide(request, conversation.turn_inputs(inputs))
        except CannotFit:
            if not self.has_news(conversation):
                raise
            return decide(request, conversation.turn_inputs(inputs))
        if turn.journal is conversation.journal or not self.has_news(conversation):
            return turn
        return decide(request, conversation.turn_inputs(inputs))

    def refresh(self, conversation: Conversation) -> bytes:
        """Apply what other processes wrote; returns the key of its handles."""
        if not conversation.loaded or self.store.store.is_local:
            self._read(conversation)
        conversation.apply_handed_over()
        return self._key(conversation)

    def has_news(self, conversation: Conversation) -> bool:
        """Whether others wrote something since; only for stores that are not read on each turn."""
        return not self.store.store.is_local and self._read(conversation)

    def save(
        self,
        conversation: Conversation,
        after: Journal,
        originals: Mapping[str, str],
        *,
        wait: bool = True,
    ) -> str:
        """Write what is new and (if ``wait``) wait for it; returns a warning if it is not written
        yet, else ""."""
        rows = conversation.add(after, int(time.time()))
        unwritten = {handle: Original(conversation.id, text) for handle, text in originals.items()}
        self._unwritten |= unwritten
        conversation.handles.update(unwritten)
        facts = {_hint_fact(conversation.hint): conversation.id} if conversation.hint else {}
        batch = self.store.batch(conversation.id, rows, originals, facts)

        def forget() -> None:
            for handle in unwritten:
                self._unwritten.pop(handle, None)

        problem = self.writer.write(batch, forget, wait=wait)
        if isinstance(problem, QueueFull):
            forget()
        if problem is None and wait:
            self._read(conversation)
            return ""
        return f"the store does not keep this yet: {problem}" if problem else ""

    def prefetch(self, conversation: Conversation) -> None:
        """Read what others wrote, in the background."""
        if not self.store.store.is_local and self.writer.failing is None:
            place = conversation.position
            self.writer.run_when_idle(
                lambda: conversation.hand_over(place, *self.store.read(conversation.id, place))
            )

    def _read(self, conversation: Conversation) -> bool:
        new_rows = self._answer_to(lambda: self.store.read(conversation.id, conversation.position))
        return new_rows is not None and conversation.apply_rows(*new_rows)

    def _answer_to(self, ask: Any) -> Any:
        """Call ``ask`` on the store; None if it fails, and for a while after a failure."""
        try:
            return self._circuit.call(ask)
        except StoreError:
            return None

    @property
    def last_failure(self) -> StoreError | None:
        """Why the store did not answer the last time; None if it did."""
        return self._circuit.failing

    # --- originals ---

    def original(self, handle: str) -> Original:
        """The text that an edit removed.  Raises UnknownHandle, StoreError."""
        known = is_handle(handle)  # a model may write anything, and stores do not accept it all
        original = self._unwritten.get(handle) or (self.store.original(handle) if known else None)
        if original is not None:
            return original
        purged = self.store.purged(handle) if known else None
        if purged is not None:
            raise UnknownHandle(
                f"the original of {handle!r} was purged from the store on {purged['purged']} and "
                "is gone for good: run the tool again"
            )
        raise UnknownHandle(
            f"no original is kept under {handle[:HANDLE_CHARS]!r} here: history() lists "
            "them, or run the tool again"
        )

    def handles(self, id: str) -> list[str]:
        """All handles of a conversation, oldest first.  Raises StoreError."""
        stored = self.store.store.handles(self.store.tenant, id)
        waiting = [
            key for key, original in list(self._unwritten.items()) if original.conversation == id
        ]
        return list(dict.fromkeys([*stored, *waiting]))

    def times(self, conversation: Conversation) -> dict[Edit, int]:
        """When its edits were written, in seconds since 1970; {} if the store does not answer."""
        found = self._answer_to(lambda: self.store.read(conversation.id))
        return {edit: at for at, edit in dated_edits(found[0])} if found else {}

    # --- facts ---

    def new_facts(self, prefix: str) -> dict[str, bytes]:
        """Facts that are new or changed since the last call, as JSON; a local store is read only
        once."""
        seen = self._shared_facts
        if seen is not None and self.store.store.is_local:
            return {}
        facts = self._answer_to(lambda: self.store.facts(prefix))
        if facts is None:
            return {}
        news = {name: value for name, value in facts.items() if (seen or {}).get(name) != value}
        self._shared_facts = facts
        return {name: json.dumps(value).encode() for name, value in news.items()}

    def fact(self, name: str) -> Any:
        """One fact; None if there is none or the store does not answer."""
        waiting = self.writer.pending_fact(name)
        return self._answer_to(lambda: self.store.fact(name)) if waiting is None else waiting

    def facts(self, prefix: str) -> dict[str, bytes]:
        """Facts whose names begin with ``prefix``, as JSON; {} if the store does not answer."""
        stored = self._answer_to(lambda: self.store.facts(prefix)) or {}
        return {name: json.dumps(value).encode() for name, value in stored.items()}

    def as_dict(self) -> dict[str, Any]:
        """The state of the store, for statistics."""
        store = self.store.store
        return {
            "store": store.url, "tenant": self.store.tenant, "waiting": len(self._unwritten),
            "lost": self.writer.lost,
        }  # fmt: skip

    def close(self) -> None:
        """Write everything that is waiting, and close the store."""
        self.writer.close()
        self.store.store.close()

    def sent_minute(self, conversation: Conversation) -> int:
        """When any process last took a turn of it, in minutes of the sessions' clock; 0: never."""
        rows = self._answer_to(lambda: self.store.facts(f"{STATS}{conversation.id}/")) or {}
        return max([int(row.get("sent_minute") or 0) for row in rows.values()], default=0)

    def write_stats(self, conversation: Conversation) -> None:
        """Write the statistics of this process soon, in the background."""
        name = f"{STATS}{conversation.id}/{self._process}"
        self.write_fact_later(name, conversation.stats.as_dict())

    def write_fact_later(self, name: str, value: Any) -> None:
        """Write a fact soon, in the background."""
        self.writer.write_later(name, value)

    def write_fact_now(self, name: str, value: Any) -> None:
        """Write a fact that other processes need for their next request, if the store answers."""
        self.writer.write_later(name, value)
        if self.writer.failing is None:
            self.writer.write(self.store.batch(""))  # deferred facts are written with it

    def write_fact_soon(self, name: str, value: Any) -> None:
        """Write a fact that each answer changes, and that ``new_facts`` gives to other sessions: at
        once for other machines, else with the next write."""
        if self._shared_facts is not None:
            self._shared_facts[name] = value
        if not self.store.store.is_local:
            return self.write_fact_now(name, value)
        self.writer.write_later(name, value)


class TurnOriginals(Mapping[str, str]):
    """Originals by handle: those of one turn, then all others of the tenant."""

    def __init__(self, conversations: ConversationStore, own: Mapping[str, str]) -> None:
        self._conversations, self._own = conversations, own

    def __getitem__(self, handle: str) -> str:
        """Raises UnknownHandle, StoreError."""
        text = self._own.get(handle)
        return self._conversations.original(handle).text if text is None else text

    def __iter__(self) -> Iterator[str]:
        return iter(self._own)

    def __len__(self) -> int:
        return len(self._own)


def _hint_fact(hint: str) -> str:
    return f"hint/{hashlib.blake2b(hint.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
