"""The interface of a store: for each tenant, entries per conversation, originals by handle, facts.

Existing rows are not overwritten (except ``updated_facts``), and a batch is written whole or not at
all.  Entries, originals and facts are bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from trimtab.errors import StoreError


@dataclass(frozen=True, slots=True)
class WriteBatch:
    """Rows written together: entries and originals of one conversation, and facts.

    ``entries`` as (id, data) in order, ``originals`` as (handle, data), ``facts`` as (name, data).
    Each is written only if its name is new; ``updated_facts`` replace existing values.
    """

    conversation: str = ""
    entries: tuple[tuple[str, bytes], ...] = ()
    originals: tuple[tuple[str, bytes], ...] = ()
    facts: tuple[tuple[str, bytes], ...] = ()
    updated_facts: tuple[tuple[str, bytes], ...] = ()


class ConversationInfo(NamedTuple):
    """One conversation in a store: time of its last write (seconds since 1970), and its size."""

    tenant: str
    conversation: str
    used_at: float
    entries: int
    originals: int
    stored_bytes: int


class Store(Protocol):
    """Keeps journals and originals.  Safe to use from several threads and processes.

    Each method raises StoreError if the store does not answer.  ``StoreLaws`` of
    ``trimtab_lab.testing`` are the tests that an implementation inherits.
    """

    url: str
    """The URL it was opened with, without the password."""
    is_local: bool
    """Whether reading takes microseconds, so that each turn can look for new entries."""

    def write(self, tenant: str, batch: WriteBatch) -> None:
        """Write all of a batch or nothing; after it returns, other processes can read it."""
        ...

    def read(self, tenant: str, conversation: str, after: str = "") -> tuple[list[bytes], str]:
        """The entries after the position ``after``, oldest first, and the new position.

        "" is the position before all entries; every reader sees the same order.
        """
        ...

    def original(self, tenant: str, handle: str) -> bytes | None:
        """The original under a handle of this tenant, or None."""
        ...

    def handles(self, tenant: str, conversation: str) -> list[str]:
        """The handles of all originals that belong to a conversation."""
        ...

    def fact(self, tenant: str, name: str) -> bytes | None:
        """One fact, or None."""
        ...

    def facts(self, tenant: str, prefix: str) -> Mapping[str, bytes]:
        """All facts whose names begin with ``prefix``."""
        ...

    def conversations(self) -> Sequence[ConversationInfo]:
        """Every conversation of every tenant, ordered by last write, oldest first."""
        ...

    def delete(self, tenant: str, conversation: str, *, before: float) -> bool:
        """Delete a conversation, its originals and its facts (named as ``facts_of`` says), unless
        it was written at or after ``before``.  Returns whether it is gone.
        """
        ...

    def faults(self) -> Sequence[str]:
        """Problems that the store itself finds in its data; slow."""
        ...

    def close(self) -> None:
        """Close files and connections; a closed store opens them again when it is used."""
        ...


def stats_of(conversation: str) -> str:
    """The prefix of the names of facts with a conversation's statistics."""
    return f"stats/{conversation}/"


RESPONSES = "responses"
"""Used in place of a conversation for responses stored by the provider, which are found by id."""


def exchanges_of(conversation: str) -> str:
    """The prefix of the names of facts with a conversation's exchanges hidden from the client."""
    return f"hidden/{conversation}/"


def facts_of(conversation: str) -> tuple[str, str]:
    """The prefixes of the names of all facts that go with a conversation."""
    return stats_of(conversation), exchanges_of(conversation)


def check_version(version: int, known: int) -> None:
    """Raises StoreError if a newer release wrote the store's layout."""
    if version > known:
        raise StoreError(
            f"this store has version {version}, this release reads up to {known} and has touched "
            "nothing: update trimtab, or name another store"
        )


def without_password(url: str) -> str:
    """The URL without its password, to be shown: ``redis://:secret@host`` → ``redis://host``."""
    scheme, mark, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"
