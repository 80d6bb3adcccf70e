"""The interface of a store: entries per conversation, originals by handle, facts; per tenant.

Everything is added only where it is absent, and a batch is written whole or not at all.  Entries,
originals and facts are bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from trimtab.errors import StoreError


@dataclass(frozen=True, slots=True)
class WriteBatch:
    """What is written at once: entries of one conversation, originals that belong to it, facts.

    ``entries`` as (id, data) in order, ``originals`` as (handle, data), ``facts`` as (name, data).
    Each is written only where its name is new; ``updated_facts`` replace what is there.
    """

    conversation: str = ""
    entries: tuple[tuple[str, bytes], ...] = ()
    originals: tuple[tuple[str, bytes], ...] = ()
    facts: tuple[tuple[str, bytes], ...] = ()
    updated_facts: tuple[tuple[str, bytes], ...] = ()


class ConversationInfo(NamedTuple):
    """One conversation in a store: when it was written last (seconds since 1970), its size."""

    tenant: str
    conversation: str
    used_at: float
    entries: int
    originals: int
    stored_bytes: int


class Store(Protocol):
    """Where journals and originals live.  Safe to use from several threads and processes.

    Each method raises StoreError where the store does not answer.  ``StoreLaws`` of
    ``trimtab.testing`` are the tests that an implementation inherits.
    """

    url: str
    """As it was opened, without a password."""
    is_local: bool
    """Whether reading takes microseconds, so that each turn may look for what is new."""

    def write(self, tenant: str, batch: WriteBatch) -> None:
        """Keep all of a batch or nothing; when it returns, another process can read it."""
        ...

    def read(self, tenant: str, conversation: str, after: str = "") -> tuple[list[bytes], str]:
        """The entries behind a place, oldest first, and the place behind them.

        "" is the place before all; every reader sees the same order.
        """
        ...

    def original(self, tenant: str, handle: str) -> bytes | None:
        """What is kept under a handle of this tenant, or None."""
        ...

    def handles(self, tenant: str, conversation: str) -> list[str]:
        """The handles of all originals that belong to a conversation."""
        ...

    def fact(self, tenant: str, name: str) -> bytes | None:
        """One fact, or None."""
        ...

    def facts(self, tenant: str, prefix: str) -> Mapping[str, bytes]:
        """All facts whose names begin so."""
        ...

    def conversations(self) -> Sequence[ConversationInfo]:
        """Every conversation of every tenant, the one that was written longest ago first."""
        ...

    def delete(self, tenant: str, conversation: str, *, before: float) -> bool:
        """Delete a conversation with its originals, unless it was written at or after a time.

        Whether it is gone.  Of facts only its statistics go with it (``stats_of``).
        """
        ...

    def faults(self) -> Sequence[str]:
        """What the store itself finds wrong with what it keeps; slow."""
        ...

    def close(self) -> None:
        """Let go of files and connections; a closed store opens them again when it is used."""
        ...


def stats_of(conversation: str) -> str:
    """How the names of facts begin that hold a conversation's statistics."""
    return f"stats/{conversation}/"


def check_version(version: int, known: int) -> None:
    """Raises StoreError where a newer release has laid out what is kept."""
    if version > known:
        raise StoreError(
            f"this store has version {version}, this release reads up to {known} and has touched "
            "nothing: update trimtab, or name another store"
        )


def without_password(url: str) -> str:
    """A URL that can be shown: ``redis://:secret@host`` is ``redis://host``."""
    scheme, mark, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"
