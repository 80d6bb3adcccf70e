"""A store that hangs costs one caller its timeout, not all of them; and it is told how it is."""

from __future__ import annotations

import time

import pytest

from trimtab.errors import StoreError
from trimtab.stores import WriteBatch, breaker
from trimtab.stores.breaker import WatchedStore
from trimtab.stores.memory import MemoryStore

BATCH = WriteBatch(facts=(("x", b"1"),))


class Hanging(MemoryStore):
    """Answers only while ``well``; ``asked`` counts."""

    def __init__(self, is_local: bool = False) -> None:
        super().__init__()
        self.is_local, self.well, self.asked = is_local, True, 0

    def fact(self, tenant: str, name: str) -> bytes | None:
        self._hang()
        return super().fact(tenant, name)

    def write(self, tenant: str, batch: WriteBatch) -> None:
        self._hang()
        super().write(tenant, batch)

    def _hang(self) -> None:
        self.asked += 1
        if not self.well:
            time.sleep(0.02)
            raise StoreError("it hangs")


def watched(store: Hanging) -> tuple[WatchedStore, list[bool]]:
    told: list[bool] = []
    return WatchedStore(store, lambda one: told.append(one.failing is None)), told


def test_while_it_hangs_others_are_refused_at_once() -> None:
    store = Hanging()
    one, told = watched(store)
    one.write("t", BATCH)
    store.well = False
    before = store.asked
    for _ in range(500):
        with pytest.raises(StoreError, match="it hangs"):
            one.fact("t", "x")
    assert store.asked == before + 1
    assert told == [False]
    assert one.failing is not None


def test_every_few_seconds_one_caller_finds_out(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Hanging()
    one, told = watched(store)
    store.well = False
    for _ in range(2):
        with pytest.raises(StoreError):
            one.write("t", BATCH)
    assert store.asked == 1
    monkeypatch.setattr(breaker, "AGAIN_SECONDS", 0.0)
    with pytest.raises(StoreError):
        one.write("t", BATCH)
    store.well = True
    one.write("t", BATCH)
    assert one.fact("t", "x") == b"1"
    assert told == [False, True]
    assert one.failing is None


def test_a_store_of_this_machine_is_asked_each_time_and_told_about() -> None:
    store = Hanging(is_local=True)
    one, told = watched(store)
    store.well = False
    for _ in range(3):
        with pytest.raises(StoreError):
            one.write("t", BATCH)
    assert store.asked == 3
    assert told == [False]
    store.well = True
    one.write("t", BATCH)
    assert told == [False, True]
