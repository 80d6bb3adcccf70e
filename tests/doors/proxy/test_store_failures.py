"""A store that fails shows in log, metrics, readiness and dashboard, and requests go on."""

from __future__ import annotations

import json
import time

import pytest
from proxies import ask, proxied, settled
from proxy_story import WINDOW, answers, turn_by_turn

from trimtab.errors import StoreError
from trimtab.stores.sqlite import SqliteStore
from trimtab_lab.testing import StrictProvider


def shown(server):
    ready = ask(server.url, "GET", "/_trimtab/ready")
    page = ask(server.url, "GET", "/_trimtab/")[2].decode()
    metrics = ask(server.url, "GET", "/metrics")[2].decode()
    up = metrics.partition("\ntrimtab_store_up ")[2].partition("\n")[0]
    return ready[0], json.loads(ready[2])["store"], "Nothing new can be recalled" in page, up


@pytest.mark.parametrize("kind", ["unwritable", "full"])
def test_a_store_that_keeps_nothing_is_seen_everywhere(kind, tmp_path, caplog, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    caplog.set_level("INFO")
    store = tmp_path / ("file/s.db" if kind == "unwritable" else "s.db")
    if kind == "full":

        def full(self, tenant, batch):
            raise StoreError("database or disk is full")

        monkeypatch.setattr(SqliteStore, "write", full)
    with (
        StrictProvider(answers, window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW, store=f"sqlite:///{store}") as server,
    ):
        reads = kind == "full"  # what earlier runs left is read at the start
        state = (200, "ok", False, "1.0") if reads else (200, "fails", True, "0.0")
        assert shown(server) == state
        turn_by_turn(server.url, 24)
        settled(server)
        assert shown(server) == (200, "fails", True, "0.0")
        assert caplog.text.count("the store fails: ") == 1
        assert {record.status for record in provider.requests} == {200}
        if kind == "full":
            monkeypatch.undo()
            turn_by_turn(server.url, 3, name="more")
            settled(server)
            until = time.monotonic() + 20  # what waits is tried again after a while
            while server.proxy.tenants.store_problem and time.monotonic() < until:
                time.sleep(0.1)
            assert shown(server) == (200, "ok", False, "1.0")
            assert "the store answers again" in caplog.text
