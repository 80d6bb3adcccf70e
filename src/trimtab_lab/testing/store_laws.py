"""The laws that every store keeps, as tests to inherit.

    class TestMine(StoreLaws):
        def open(self) -> Store: return MyStore(...)      # each call: another process's view

``open`` is called several times in one test.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from uuid import uuid4

from trimtab.stores.base import Store, WriteBatch


class StoreLaws:
    """Inherit, and define ``open``.  Each test uses a new tenant."""

    def open(self) -> Store:
        """Open the store once more, as another process would."""
        raise NotImplementedError

    def tenant(self) -> str:
        """A new tenant name, with unusual characters on purpose."""
        return f"tenant {uuid4().hex}:/%ü"

    def test_what_was_written_is_read_in_order_by_another(self) -> None:
        tenant = self.tenant()
        rows = tuple((f"id{n}", bytes([n % 256]) * n) for n in range(300))
        self.open().write(tenant, WriteBatch("c", rows))
        entries, _ = self.open().read(tenant, "c")
        assert entries == [data for _, data in rows]

    def test_reading_goes_on_behind_a_place(self) -> None:
        one, two, tenant = self.open(), self.open(), self.tenant()
        assert two.read(tenant, "c")[0] == []
        place = two.read(tenant, "c")[1]
        for n in range(3):
            one.write(tenant, WriteBatch("c", ((f"id{n}", b"%d" % n),)))
            entries, place = two.read(tenant, "c", place)
            assert entries == [b"%d" % n]
        assert two.read(tenant, "c", place) == ([], place)

    def test_an_entry_is_kept_once_and_where_it_stood_first(self) -> None:
        store, tenant = self.open(), self.tenant()
        store.write(tenant, WriteBatch("c", (("a", b"first"), ("b", b"second"))))
        store.write(tenant, WriteBatch("c", (("a", b"other"), ("c", b"third"))))
        assert store.read(tenant, "c")[0] == [b"first", b"second", b"third"]

    def test_an_original_is_never_replaced(self) -> None:
        store, tenant = self.open(), self.tenant()
        store.write(tenant, WriteBatch("c", originals=(("h", b"as it was"),)))
        store.write(tenant, WriteBatch("c", originals=(("h", b"forged"),)))
        assert self.open().original(tenant, "h") == b"as it was"
        assert store.original(tenant, "unknown") is None
        assert store.handles(tenant, "c") == ["h"]

    def test_facts_of_a_conversation_go_with_it_and_no_other_fact(self) -> None:
        store, tenant = self.open(), self.tenant()
        store.write(tenant, WriteBatch("c", (("1", b"x"),)))
        of_c = ("stats/c/a", "stats/c/b", "hidden/c/a")
        names = (*of_c, "stats/cc/a", "stats/d/a", "hidden/d/a", "hidden/responses/c", "key")
        store.write(tenant, WriteBatch(facts=tuple((name, b"1") for name in names)))
        assert store.delete(tenant, "c", before=time.time() + 60)
        assert set(self.open().facts(tenant, "")) == set(names[3:])
        assert store.fact(tenant, "stats/c/a") is None

    def test_facts_are_added_or_stated(self) -> None:
        store, tenant = self.open(), self.tenant()
        store.write(tenant, WriteBatch(facts=(("a/x", b"1"), ("a/y", b"2"), ("b", b"3"))))
        store.write(tenant, WriteBatch(facts=(("a/x", b"9"),), updated_facts=(("a/y", b"8"),)))
        assert store.fact(tenant, "a/x") == b"1"
        assert store.fact(tenant, "nothing") is None
        assert dict(self.open().facts(tenant, "a/")) == {"a/x": b"1", "a/y": b"8"}

    def test_any_bytes_come_back(self) -> None:
        store, tenant = self.open(), self.tenant()
        odd = [b"", b"\0", bytes(range(256)), b"\xff\xfe" * 3, "ü\n".encode(), b"x" * 3_000_000]
        originals = tuple((f"h{n}", data) for n, data in enumerate(odd))
        entries = tuple((f"e{n}", data) for n, data in enumerate(odd))
        store.write(tenant, WriteBatch("c", entries, originals, (("f", odd[2]),)))
        other = self.open()
        assert other.read(tenant, "c")[0] == odd
        assert [other.original(tenant, name) for name, _ in originals] == odd
        assert other.fact(tenant, "f") == odd[2]

    def test_tenants_and_conversations_do_not_see_each_other(self) -> None:
        store, one = self.open(), self.tenant()
        two = one + ":c"  # names that might meet where they are joined
        store.write(one, WriteBatch("c", (("e", b"1"),), (("h", b"1"),), (("f", b"1"),)))
        for tenant, name in ((two, "c"), (one, "d"), (one[:-2], "c")):
            assert store.read(tenant, name)[0] == []
            assert store.handles(tenant, name) == []
        assert store.original(two, "h") is None
        assert store.fact(two, "f") is None
        assert store.facts(two, "") == {}

    def test_writers_at_the_same_time_lose_nothing_and_readers_agree(self) -> None:
        tenant, writers, each = self.tenant(), 4, 25
        seen: list[list[bytes]] = []

        def write(number: int) -> None:
            store = self.open()
            for n in range(each):
                name = f"{number}-{n}"
                entries = ((name, name.encode()), (f"shared-{n}", b"shared"))
                store.write(tenant, WriteBatch("c", entries, ((name, name.encode()),)))

        def follow() -> None:
            store, place, seen_rows = self.open(), "", list[bytes]()
            until = time.monotonic() + 60
            while len(seen_rows) < (writers + 1) * each and time.monotonic() < until:
                new, place = store.read(tenant, "c", place)
                seen_rows += new
            seen.append(seen_rows)

        run(*(lambda n=n: write(n) for n in range(writers)), follow, follow)
        final, _ = self.open().read(tenant, "c")
        assert len(final) == (writers + 1) * each
        assert seen == [final, final]
        assert len(self.open().handles(tenant, "c")) == writers * each

    def test_a_conversation_is_forgotten_with_its_originals_and_nothing_else(self) -> None:
        store, tenant = self.open(), self.tenant()
        for name in ("c", "d"):
            store.write(
                tenant, WriteBatch(name, (("e", b"1"),), ((name, b"12345"),), (("f", b"1"),))
            )
        place = self.open().read(tenant, "c")[1]
        rows = {row.conversation: row for row in store.conversations() if row.tenant == tenant}
        assert (rows["c"].entries, rows["c"].originals, rows["c"].stored_bytes) == (1, 1, 6)
        assert rows["c"].used_at <= rows["d"].used_at <= time.time() + 1
        assert not store.delete(tenant, "c", before=rows["c"].used_at), "it was written then"
        assert store.original(tenant, "c") == b"12345"
        assert store.delete(tenant, "c", before=rows["c"].used_at + 1)
        assert store.original(tenant, "c") is None
        assert store.read(tenant, "c")[0] == []
        assert store.original(tenant, "d") == b"12345"
        assert store.fact(tenant, "f") == b"1"
        assert [row.conversation for row in store.conversations() if row.tenant == tenant] == ["d"]
        store.write(tenant, WriteBatch("c", (("e", b"2"),)))
        assert self.open().read(tenant, "c", place)[0] == [b"2"], "a place of what is gone"

    def test_a_closed_store_opens_again(self) -> None:
        store, tenant = self.open(), self.tenant()
        store.write(tenant, WriteBatch("c", (("e", b"1"),)))
        store.close()
        assert store.read(tenant, "c")[0] == [b"1"]

    def test_a_store_finds_no_fault_with_itself(self) -> None:
        store, tenant = self.open(), self.tenant()
        store.write(tenant, WriteBatch("c", (("e", b"1"),), (("h", b"1"),)))
        assert list(store.faults()) == []


def run(*acts: Callable[[], None]) -> None:
    """Run each function in its own thread; raise an error that one of them raised."""
    errors: list[BaseException] = []

    def guarded(act: Callable[[], None]) -> None:
        try:
            act()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
