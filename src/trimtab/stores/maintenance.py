"""Deletes old conversations on request, and checks the integrity of stored data.

The handles of deleted originals are recorded, so that a recall can report the purge.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

from trimtab.errors import StoreError
from trimtab.stores.base import RESPONSES, ConversationInfo, Store, exchanges_of
from trimtab.stores.tenant import OURS, TenantStore

Of = Callable[[str], TenantStore]
"""Tenant's name → its part of the store."""


class Purged(NamedTuple):
    """How much was deleted."""

    conversations: int
    originals: int
    stored_bytes: int


def purge(
    store: Store,
    of: Of,
    *,
    now: float,
    older_than: float | None = None,
    keep_bytes: int | None = None,
    tenant: str | None = None,
    conversations: Collection[tuple[str, str]] = (),
) -> Purged:
    """Delete whole conversations that were not written for ``older_than`` seconds, and then the
    oldest until the rest takes at most ``keep_bytes``; of this tenant, or of all.  And those of
    ``conversations``, as (tenant, id): two tenants may have the same id.

    A conversation that is written to at the same time is kept.  Where the store has no room to keep
    the day of the purge, a later recall cannot tell it.  Raises StoreError.
    """
    rows = {row[:2]: row for row in store.conversations()}
    for one in conversations:  # of which nothing was cut: there are facts at most
        rows.setdefault(one, ConversationInfo(*one, now, 0, 0, 0))
    sizes = [row.stored_bytes for row in rows.values() if tenant in (None, row.tenant)]
    total, done = sum(sizes), [0, 0, 0]
    for key, row in rows.items():
        too_old = older_than is not None and row.used_at < now - older_than
        too_much = keep_bytes is not None and total > keep_bytes
        if key not in conversations and not (
            tenant in (None, row.tenant) and (too_old or too_much)
        ):
            continue
        handles = store.handles(*key)
        if not store.delete(*key, before=row.used_at + 1e-3):
            continue
        of_tenant = of(row.tenant)
        _forget_responses(of_tenant, row.conversation)
        day = datetime.fromtimestamp(now, UTC).date().isoformat()
        if handles:
            with suppress(StoreError):  # a full store: making room comes before telling why
                of_tenant.mark_purged(handles, {"purged": day})
        total -= row.stored_bytes
        own = row.tenant.startswith(OURS)
        conversation = row.entries + row.originals > 0 and not own
        for index, number in enumerate((conversation, len(handles), row.stored_bytes)):
            done[index] += number
    return Purged(*done)


def _forget_responses(mine: TenantStore, conversation: str) -> None:
    """Empty what is hidden of a conversation's responses that the provider stores."""
    found = mine.facts(exchanges_of(RESPONSES))
    names = [name for name, row in found.items() if row and row.get("conversation") == conversation]
    if names:
        mine.write(mine.batch("", updated_facts=dict.fromkeys(names)))


def faults(store: Store, of: Of) -> Iterator[str]:
    """Every problem in the stored data, one line each.  Raises StoreError."""
    yield from store.faults()
    for row in store.conversations():
        where = f"tenant {row.tenant}, conversation {row.conversation}"
        try:
            yield from (f"{where}: {fault}" for fault in _of_conversation(store, row, of))
        except StoreError as error:
            yield f"{where}: {error}"


def _of_conversation(store: Store, row: ConversationInfo, of: Of) -> Iterator[str]:
    mine = of(row.tenant)
    # Entries first: any written meanwhile then has its originals in ``handles``.
    entries = mine.read(row.conversation)[0]
    handles = set(store.handles(row.tenant, row.conversation))
    for handle in sorted(handles):
        try:
            if mine.original(handle) is None:
                yield f"the original {handle} is missing"
        except StoreError as error:
            yield str(error)
    for data in entries:
        handle = json.loads(data).get("edit", {}).get("handle")
        if handle and handle not in handles:
            yield f"an edit names {handle}, of which there is no original"
