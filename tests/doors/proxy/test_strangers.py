"""Requests with keys that nobody vouches for: they cost no descriptor, no thread and no row."""

from __future__ import annotations

import json
import os
import threading

import pytest
from proxies import ask, proxied, settled

from trimtab import stores
from trimtab.stores import TenantStore
from trimtab_lab.testing import Refuse, StrictProvider

CHAT = json.dumps({"model": "gpt-5.1", "messages": [{"role": "user", "content": "Hi."}]})


def headers(key: str) -> dict[str, str]:
    return {"content-type": "application/json", "authorization": f"Bearer {key}"}


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts in /proc")
def test_made_up_keys_leave_nothing_behind(tmp_path):
    """Before, each opened a connection and began a thread: 10,000 took 19,202 descriptors."""
    store = f"sqlite:///{tmp_path}/s.db"

    def script(record):
        known = record.headers["authorization"].endswith("known")
        return (
            "hello"
            if known
            else Refuse("opaque", status=401, body={"error": {"message": "no such key"}})
        )

    with (
        StrictProvider(script) as provider,
        proxied(provider.url, store=store, tenants="key") as server,
    ):
        for number in range(10):
            assert ask(server.url, "POST", "/v1/chat/completions", CHAT, headers(f"a{number}"))
        before = len(os.listdir("/proc/self/fd")), threading.active_count()
        for number in range(60):
            key = headers(f"made-up-{number}")
            assert ask(server.url, "POST", "/v1/chat/completions", CHAT, key)[0] == 401
        settled(server)
        assert len(os.listdir("/proc/self/fd")) <= before[0] + 4
        assert threading.active_count() <= before[1] + 4
        assert not tenants_of(store, server)
        assert ask(server.url, "POST", "/v1/chat/completions", CHAT, headers("known"))[0] == 200
        server.proxy.tenants.close()
        assert len(tenants_of(store, server)) == 1


def tenants_of(url, server):
    """The tenants that have anything in the store."""
    kept = stores.open_store(url)
    names = [f"{upstream}/{tenant}" for upstream, tenant in server.proxy.tenants._served]
    return [name for name in names if TenantStore(kept, name).store.facts(name, "")]
