"""The originals that ``recall``, ``search`` and ``pin`` read: of a journal's file or a store."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, Protocol, TypeVar

from trimtab.cli import journal_file
from trimtab.cli.exit_codes import NO_ORIGINAL, USAGE, ExitWith
from trimtab.cli.store_options import OWN_STORE, newest_tenants, other_tenants, store_of
from trimtab.errors import UnknownHandle
from trimtab.journal.archive import Archived, Originals, of_edits
from trimtab.journal.hashes import handle_at
from trimtab.journal.originals_reader import OriginalsReader
from trimtab.request.fitted import recall
from trimtab.stores.base import Store
from trimtab.stores.tenant import OURS, SESSIONS

MAX_NAMED = 20
T = TypeVar("T")


def add_source(parser: ArgumentParser) -> None:
    """--journal, --store and --tenant."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--journal", metavar="FILE",
        help="file of an earlier trimtab fit --journal, or of originals/ of trimtab batch",
    )  # fmt: skip
    where.add_argument("--store", metavar="URL", help=f"store to look in {OWN_STORE}")
    parser.add_argument("--tenant", metavar="NAME", help="of a store only this tenant's part")


class ListedOriginals(Originals, Protocol):
    """Originals whose handles can be listed."""

    def handles(self) -> Iterable[str]:
        """Every handle."""
        ...


def originals_of(args: Namespace) -> ListedOriginals:
    """What is kept in the journal's file or in the store; of all its tenants, where none is
    named."""
    if args.journal is not None:
        made = journal_file.load(args.journal, must_exist=True)
        archive = of_edits(made.entries) or tuple(map(Archived, made.originals))
        return _OfJournal(made.originals, archive)
    return OfStore(args, store_of(args))


def handle_of(originals: ListedOriginals, name: str) -> str:
    """The handle that begins with ``name``, or has this hash; "" where a conversation of the store
    begins so, to which the originals are then limited; ``name`` itself where nothing does.

    Raises ExitWith with the candidates where several do.
    """
    name = handle_at(name) or name
    found = sorted({one for one in originals.handles() if one.startswith(name)})
    if name in found:
        return name
    if found:
        return only(name, found, "handles")
    return "" if isinstance(originals, OfStore) and originals.limit_to(name) else name


def only(name: str, found: Sequence[str], what: str) -> str:
    """The one of ``found``, which begin with ``name``.  Raises ExitWith where there are more."""
    if len(found) == 1:
        return found[0]
    more = f" and {len(found) - MAX_NAMED:,} more" if len(found) > MAX_NAMED else ""
    names = ", ".join(found[:MAX_NAMED])
    raise ExitWith(USAGE, f"{len(found)} {what} begin with {name}: {names}{more}; give more of one")


class FoundConversation(NamedTuple):
    """A conversation, and the ids of its records in the dashboard."""

    tenant: str
    id: str
    sessions: tuple[str, ...] = ()


def conversation_of(
    store: Store, tenants: Sequence[str] | None, name: str
) -> FoundConversation | None:
    """The conversation with an id that begins with ``name``: its own, the one in the dashboard's
    addresses, or the session's as its client calls it; None where there is none.  Of all
    tenants, if ``tenants`` is None: also one of which nothing was cut, that only the dashboard has.

    Raises ExitWith with the candidates where there are several.
    """
    from trimtab import stores
    from trimtab.proxy.records.session_history import read_sessions

    sessions = [
        ((f"{one.upstream}/{one.tenant}", one.conversation), (one.id, one.hint))
        for one in read_sessions(stores.open(store, SESSIONS))
        if one.conversation
    ]
    rows = [(row.tenant, row.conversation) for row in store.conversations()]
    names = [(one[1], one) for one in rows]
    names += [(id, one) for one, ids in sessions for id in ids]
    names = [(id, one) for id, one in names if tenants is None or one[0] in tenants]
    cut = [(id, one) for id, one in names if one in rows]
    found = _named(cut, name) or _named(names, name)
    if not found:
        return None
    conversation = only(name, sorted({id for _, id in found}), "conversations")
    if len(found) > 1:
        of = ", ".join(sorted(tenant for tenant, _ in found))
        raise ExitWith(USAGE, f"{len(found)} tenants have {conversation}: {of}; name a --tenant")
    (one,) = found
    return FoundConversation(*one, tuple(ids[0] for other, ids in sessions if other == one))


def _named(names: Iterable[tuple[str, T]], name: str) -> set[T]:
    """What has this name; else, what has one that begins so."""
    names = list(names)
    same = {one for id, one in names if id == name}
    return same or {one for id, one in names if id.startswith(name)}


def named_conversation(store: Store, tenants: Sequence[str] | None, name: str) -> FoundConversation:
    """See ``conversation_of``; raises ExitWith where there is none, too."""
    if (found := conversation_of(store, tenants, name)) is not None:
        return found
    newest = sorted(store.conversations(), key=lambda row: -row.used_at)
    names = [
        row.conversation for row in newest
        if (row.tenant in tenants if tenants is not None else not row.tenant.startswith(OURS))
    ][:MAX_NAMED]  # fmt: skip
    here = f"here are {', '.join(names)}" if names else "nothing is kept here"
    raise ExitWith(NO_ORIGINAL, f"no conversation begins with {name!r}; {here}")


@dataclass(frozen=True)
class _OfJournal:
    """Originals of a journal's file."""

    originals: Mapping[str, str]
    archive: Sequence[Archived]

    def recall(self, handle: str) -> str:
        try:
            return recall(self.originals, handle)
        except UnknownHandle as error:
            told = "trimtab recall --journal FILE lists those kept"
            raise UnknownHandle(f"{_what_is_unknown(error)} {told}") from None

    def handles(self) -> Iterator[str]:
        return iter(self.originals)


class OfStore:
    """Originals in a store: of ``args.tenant``, or of all tenants, those written last first.

    ``args.tenant`` becomes the one that had the last handle.
    """

    def __init__(self, args: Namespace, store: Store) -> None:
        self._args, self._store = args, store
        self._listed: set[str] | None = None
        self.tenants = [args.tenant] if args.tenant else newest_tenants(store) or ["default"]

    def _readers(self) -> Iterator[OriginalsReader]:
        from trimtab import stores

        for tenant in self.tenants:
            self._args.tenant = tenant
            yield OriginalsReader(stores.open(self._store, tenant), time.time)

    def limit_to(self, name: str) -> bool:
        """List only what was taken out of the conversation with this id; False if there is none.
        Raises ExitWith where several begin so."""
        found = conversation_of(self._store, self.tenants, name)
        if found is not None:
            self.tenants = [found.tenant]
            self._listed = {*self._store.handles(found.tenant, found.id)}
        return found is not None

    def handles(self) -> Iterator[str]:
        for row in self._store.conversations():
            if row.tenant in self.tenants:
                yield from self._store.handles(row.tenant, row.conversation)

    @property
    def archive(self) -> Iterator[Archived]:
        listed = self._listed
        for one in chain.from_iterable(reader.archive for reader in self._readers()):
            if listed is None or one.handle in listed:
                yield one

    def recall(self, handle: str) -> str:
        return self.reader_of(handle).recall(handle)

    def reader_of(self, handle: str) -> OriginalsReader:
        """The reader of the tenant that has this handle.  Raises UnknownHandle."""
        for reader in self._readers():
            try:
                reader.recall(handle)
            except UnknownHandle as error:
                unknown = error
            else:
                return reader
        more = other_tenants(self._args) if len(self.tenants) == 1 else ""
        told = (
            f"{_what_is_unknown(unknown)} trimtab recall lists those kept, --store looks elsewhere"
        )
        raise UnknownHandle(f"{told}; {more}" if more else told)


def _what_is_unknown(error: UnknownHandle) -> str:
    """What the library says is missing, without its advice, which is for a program."""
    return f"{str(error).partition(':')[0]}:"
