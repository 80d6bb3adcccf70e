"""Stores what each conversation was billed; `trimtab bill STORE` reads it.

Requests only add to sums in memory; these are written every few seconds, and at the end.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from trimtab.errors import StoreError
from trimtab.forking import Lock, ProcessName
from trimtab.pricing.call_usage import CallUsage
from trimtab.pricing.conversation_usage import PREFIX, ConversationUsage
from trimtab.stores.tenant import TenantStore

MAX_CONVERSATIONS = 2_000
"""Conversations in memory; one that was dropped and continues gets a new fact."""


class UsageLedger:
    """Sums calls by conversation."""

    def __init__(self) -> None:
        self._lock, self._process = Lock(), ProcessName()
        self._conversations: OrderedDict[str, ConversationUsage] = OrderedDict()
        self._changed: set[str] = set()
        self._number, self._suffix = 0, ""

    def add(
        self, conversation: str, *, agent: str, upstream: str, arm: str, when: float, arrived: int,
        usage: CallUsage, tenant: str = "", look_up: bool = False,
    ) -> None:  # fmt: skip
        """One answered call; ``arrived``: the prompt as the client sent it, in the provider's
        tokens; ``look_up``: whether it read the result of a tool that we answered."""
        day = f"{datetime.fromtimestamp(when, UTC):%Y-%m-%d}"
        with self._lock:
            usages = self._conversations.pop(conversation, None)
            if usages is None:
                usages = ConversationUsage(conversation, agent, upstream, tenant=tenant)
            self._conversations[conversation] = usages
            usages.arm = arm or usages.arm
            usages.add(day, arrived, usage, look_up=look_up)
            self._changed.add(conversation)

    def unwritten(self) -> dict[str, dict[str, Any]]:
        """Facts that are not stored yet, by name."""
        with self._lock:
            return self._facts(self._changed)

    def write(self, store: TenantStore) -> None:
        """Store what has changed; what could not be written is tried again the next time."""
        with self._lock:
            changed, self._changed = self._changed, set()
            facts = self._facts(changed)
        if not facts:
            return
        try:
            store.write(store.batch("", updated_facts=facts))
        except StoreError:
            with self._lock:
                self._changed |= changed
            return
        self._forget()

    def _facts(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """These conversations as facts, by name."""
        return {
            f"{PREFIX}{name}/{self._process}{self._suffix}": self._conversations[name].as_dict()
            for name in names
        }

    def _forget(self) -> None:
        """Drop the oldest; one that continues gets a fact under another name."""
        with self._lock:
            while len(self._conversations) > MAX_CONVERSATIONS:
                name = next(iter(self._conversations))
                if name in self._changed:
                    return
                del self._conversations[name]
                self._number += 1
                self._suffix = f".{self._number}"
