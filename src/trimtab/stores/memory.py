"""A store in the memory of this process, for tests and for data that may be lost.

Stores opened with the same ``memory:name`` are one store; ``memory:`` opens a new one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.forking import Lock
from trimtab.stores.base import ConversationInfo, WriteBatch, facts_of


@dataclass
class _Conversation:
    entries: dict[str, bytes] = field(default_factory=dict)
    handles: list[str] = field(default_factory=list)
    used_at: float = 0.0
    began: int = 0
    """Serial number, a part of each position that ``read`` returns: a position in a deleted
    conversation is not valid in a new one of the same name."""


class MemoryStore:
    """Keeps everything in dictionaries behind one lock."""

    is_local = True

    def __init__(self, url: str = "memory:") -> None:
        self.url = url
        self._lock = Lock()
        self._conversations: dict[tuple[str, str], _Conversation] = {}
        self._originals: dict[tuple[str, str], bytes] = {}
        self._facts: dict[tuple[str, str], bytes] = {}
        self._began = 0

    def write(self, tenant: str, batch: WriteBatch) -> None:
        """See ``Store``."""
        with self._lock:
            if batch.conversation:
                self._write(tenant, batch)
            for name, data in batch.facts:
                self._facts.setdefault((tenant, name), data)
            for name, data in batch.updated_facts:
                self._facts[tenant, name] = data

    def _write(self, tenant: str, batch: WriteBatch) -> None:
        stored = self._conversations.get((tenant, batch.conversation))
        if stored is None:
            self._began += 1
            stored = _Conversation(began=self._began)
            self._conversations[tenant, batch.conversation] = stored
        stored.used_at = time.time()
        # Originals first: a child that is forked meanwhile has no edit without its original.
        for handle, data in batch.originals:
            if (tenant, handle) not in self._originals:
                self._originals[tenant, handle] = data
                stored.handles.append(handle)
        for id, data in batch.entries:
            stored.entries.setdefault(id, data)

    def read(self, tenant: str, conversation: str, after: str = "") -> tuple[list[bytes], str]:
        """See ``Store``."""
        with self._lock:
            stored = self._conversations.get((tenant, conversation))
            if stored is None:
                return [], ""
            began, _, number = after.partition("/")
            first = int(number) if began == str(stored.began) else 0
            new = list(stored.entries.values())[first:] if first < len(stored.entries) else []
            return new, f"{stored.began}/{len(stored.entries)}"

    def original(self, tenant: str, handle: str) -> bytes | None:
        """See ``Store``."""
        with self._lock:
            return self._originals.get((tenant, handle))

    def handles(self, tenant: str, conversation: str) -> list[str]:
        """See ``Store``."""
        with self._lock:
            stored = self._conversations.get((tenant, conversation))
            return list(stored.handles) if stored else []

    def fact(self, tenant: str, name: str) -> bytes | None:
        """See ``Store``."""
        with self._lock:
            return self._facts.get((tenant, name))

    def facts(self, tenant: str, prefix: str) -> Mapping[str, bytes]:
        """See ``Store``."""
        with self._lock:
            return {
                name: data
                for (whose, name), data in sorted(self._facts.items())
                if whose == tenant and name.startswith(prefix)
            }

    def conversations(self) -> Sequence[ConversationInfo]:
        """See ``Store``."""
        with self._lock:
            rows = [
                ConversationInfo(
                    tenant, name, stored.used_at, len(stored.entries), len(stored.handles),
                    sum(map(len, stored.entries.values()))
                    + sum(len(self._originals[tenant, handle]) for handle in stored.handles),
                )
                for (tenant, name), stored in self._conversations.items()
            ]  # fmt: skip
        return sorted(rows, key=lambda row: row.used_at)

    def delete(self, tenant: str, conversation: str, *, before: float) -> bool:
        """See ``Store``."""
        with self._lock:
            stored = self._conversations.get((tenant, conversation))
            if stored is None:
                return True
            if stored.used_at >= before:
                return False
            del self._conversations[tenant, conversation]
            for handle in stored.handles:
                del self._originals[tenant, handle]
            begin = facts_of(conversation)
            for key in [k for k in self._facts if k[0] == tenant and k[1].startswith(begin)]:
                del self._facts[key]
            return True

    def faults(self) -> Sequence[str]:
        """See ``Store``: always empty."""
        return ()

    def close(self) -> None:
        """See ``Store``: does nothing; the data stays."""
