"""Threads and file descriptors of a store: as many as are in use, however long it runs."""

from __future__ import annotations

import gc
import os
import threading

import pytest

from trimtab import Session
from trimtab.retry.learned_limits import ModelLimits
from trimtab.session import learned_limits
from trimtab.stores import TenantStore, WriteBatch, open_store, writer
from trimtab.stores.deferred import DeferredStore
from trimtab.stores.tenant import KEY

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts in /proc")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def writers() -> int:
    return sum(thread.name == "trimtab-store" for thread in threading.enumerate())


def in_thread(work) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_a_connection_is_closed_with_its_thread(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/s.db")
    store.write("a", WriteBatch(facts=(("x", b"1"),)))
    before = descriptors()
    for _ in range(30):
        in_thread(lambda: store.fact("a", "x"))
    gc.collect()
    # SQLite keeps a few for its locks, and threads of other tests come and go; a leak is 30.
    assert descriptors() <= before + 15
    store.close()


def test_all_tenants_of_a_store_share_one_writer(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/s.db")
    before = writers()
    sessions = [Session(store=store, tenant=f"t{n}", window=9_000) for n in range(20)]
    for session in sessions:
        session.fit([{"role": "user", "content": "hello"}])
        learned_limits(session).put("k", ModelLimits(limit=9_000))
    assert writers() <= before + 1
    for session in sessions:
        session.close()
    again = open_store(f"sqlite:///{tmp_path}/s.db")
    learned = [
        learned_limits(Session(store=again, tenant=f"t{n}")).get("k").limit for n in range(20)
    ]
    assert learned == [9_000] * 20


def test_a_tenant_whose_writes_fail_does_not_hold_the_others_up(monkeypatch):
    monkeypatch.setattr(writer, "RETRY_SECONDS", (30.0,))
    store = open_store("memory:")
    bad, good = (writer.Writer(TenantStore(store, name)) for name in ("bad", "good"))
    told = []
    kept = store.write

    def write(tenant, batch):
        if tenant == "bad":
            raise writer.StoreError("no")
        kept(tenant, batch)

    store.write = write
    assert bad.write(WriteBatch(facts=(("x", b"1"),)), lambda: told.append("bad")) is not None
    assert good.write(WriteBatch(facts=(("x", b"1"),)), lambda: told.append("good")) is None
    assert told == ["good"]
    assert (bad.failing is None, good.failing) == (False, None)


def test_what_a_stranger_writes_is_kept_once_it_is_accepted(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/s.db")
    deferred = DeferredStore(store, "t", KEY)
    session = Session(store=deferred, tenant="t", window=1_500, recall=True)
    history = [{"role": "user", "content": "go"}]
    calls = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    history.append({"role": "assistant", "content": None, "tool_calls": [calls]})
    text = "\n".join(f"line {n} {n * 7919}" for n in range(900))
    history.append({"role": "tool", "tool_call_id": "c1", "content": text})
    done = session.fit(history)
    (handle, *_) = [edit.handle for edit in done.report.edits if edit.handle]
    assert session.recall(handle) == text
    assert store.fact("t", KEY) is None
    assert not store.conversations()
    assert not store.facts("t", "")
    deferred.accept()
    assert store.original("t", handle) is not None
    again = Session(store=store, tenant="t", window=1_500, recall=True)
    assert again.fit(history).request == done.request
    assert not DeferredStore(store, "t", KEY).write("t", WriteBatch(facts=(("more", b"1"),)))
    assert store.fact("t", "more") == b"1"  # the store knows this tenant
