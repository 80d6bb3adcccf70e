"""The thread that writes to a store: it sleeps while there is nothing it could do."""

from __future__ import annotations

import threading
import time

from trimtab.errors import StoreError
from trimtab.stores import WriteBatch
from trimtab.stores.memory import MemoryStore
from trimtab.stores.tenant import TenantStore
from trimtab.stores.writer import Writer


class Down(MemoryStore):
    """Nothing can be written while ``down``."""

    down = True

    def write(self, tenant: str, batch: WriteBatch) -> None:
        if self.down:
            raise StoreError("the store is down: plug it in")
        super().write(tenant, batch)


class Counted(threading.Condition):
    """How often somebody waited on it."""

    waits = 0

    def wait(self, timeout: float | None = None) -> bool:
        self.waits += 1
        return super().wait(timeout)


def test_a_job_behind_one_that_is_tried_later_lets_the_thread_sleep() -> None:
    store = Down()
    writer = Writer(TenantStore(store, "t"))
    changed = writer._queue.changed = Counted()
    for number in range(3):
        batch = WriteBatch(facts=((f"f{number}", b"1"),))
        writer.write(batch, wait=False)
    while writer.failing is None:
        time.sleep(0.001)
    time.sleep(0.1)  # the first is tried again after 0.2 s
    assert changed.waits < 10
    store.down = False
    while writer.waits:
        time.sleep(0.001)
    assert [store.fact("t", f"f{number}") for number in range(3)] == [b"1"] * 3
    writer.close()
