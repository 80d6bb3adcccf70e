"""What could grow without end has an end: bodies remembered, connections, slow bodies, cycles."""

from __future__ import annotations

import contextlib
import gc
import json
import socket
import time
import weakref
from urllib.parse import urlsplit

import pytest
from proxies import ask, proxied, settled

from trimtab.errors import InvalidSetting
from trimtab.formats.incremental_json import IncrementalParser
from trimtab.proxy import Proxy, ProxySettings, Server, load
from trimtab.proxy.callers.tenants import Tenants
from trimtab.proxy.exchange import exchange
from trimtab.proxy.http.budgets import HeldBytes, RequestBudget, TooMuch
from trimtab_lab.testing import StrictProvider

JSON = {"content-type": "application/json"}
PATH = "/v1/chat/completions"
CHAT = json.dumps({"model": "gpt-5.1", "messages": [{"role": "user", "content": "Hi."}]})


def body(number: int, size: int) -> bytes:
    text = f"{number} " + "x" * size
    return json.dumps({"messages": [{"role": "user", "content": text}] * 2}).encode()


def test_bodies_are_remembered_by_their_bytes(monkeypatch):
    """Before: 24 bodies of 20 MB stayed, 1.07 GB."""
    monkeypatch.setattr("trimtab.proxy.callers.tenants.MAX_PARSED_BYTES", 1_000_000)
    tenants, budget = Tenants(ProxySettings()), RequestBudget(HeldBytes(10**9))
    for number in range(24):
        assert tenants.source("t", body(number, 200_000), budget) is not None
    assert tenants._parsed_bytes <= 1_000_000
    grown = json.loads(body(23, 200_000))
    grown["messages"].append({"role": "user", "content": "x" * 1_000})
    for sent in (json.dumps(grown).encode(), b"{no JSON", body(22, 200_000)):
        tenants.source("t", sent, budget)
        kept = [one.stored_bytes for one in tenants._growing.values()]
        assert tenants._parsed_bytes == sum(kept) > 0
    monkeypatch.setattr("trimtab.formats.incremental_json._MAX_BYTES", 1_000_000)
    parser = IncrementalParser()
    for number in range(24):
        parser.parse(body(number, 200_000))
    assert parser.stored_bytes <= 1_000_000


def test_only_the_part_of_a_body_that_is_parsed_takes_memory():
    held, tenants = HeldBytes(10**9), Tenants(ProxySettings())
    budget = RequestBudget(held)
    messages = [{"content": [{"text": "x" * 1_000} for _ in range(20)]} for _ in range(3)]

    def taken(*more):
        before = held.now
        text = json.dumps({"messages": [*messages, *more]}).encode()
        assert tenants.source("t", text, budget) is not None
        return held.now - before

    whole, last = taken(), {"content": [{"text": "new"}]}
    assert whole > 60_000 + 60 * 300
    assert 600 < taken(last) < 800
    assert taken({"content": []}) < 500, "the part that both share was parsed before"
    with pytest.raises(TooMuch):
        tenants.source("t", b"[" + b"{}," * 1_000_000 + b"{}]", budget)


def test_a_request_leaves_no_cycle_behind(monkeypatch):
    made = []
    begin = exchange.Exchange.__init__

    def noted(self, *given, **more):
        begin(self, *given, **more)
        made.append(weakref.ref(self))

    monkeypatch.setattr(exchange.Exchange, "__init__", noted)
    with StrictProvider() as provider, proxied(provider.url, window=9_000) as server:
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                assert ask(server.url, "POST", PATH, CHAT, JSON)[0] == 200
            settled(server)
            until = time.monotonic() + 5
            while any(one() for one in made) and time.monotonic() < until:
                time.sleep(0.01)
            assert [one() for one in made] == [None] * 3
        finally:
            gc.enable()


def test_a_body_that_trickles_has_an_overall_deadline(parser, monkeypatch):
    monkeypatch.setattr("trimtab.proxy.http.asgi.BODY_SECONDS", 0.5)
    with (
        StrictProvider() as provider,
        proxied(provider.url, read_seconds=5.0) as server,
    ):
        parts = urlsplit(server.url)
        with socket.create_connection((parts.hostname, parts.port), timeout=20) as client:
            head = f"POST {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 5000\r\n\r\n"
            client.sendall(head.encode())
            client.settimeout(0.05)
            said = b""
            for _ in range(200):
                client.sendall(b" ")
                try:
                    said = client.recv(65_536)
                except TimeoutError:
                    continue
                break
            client.settimeout(20)
            while more := client.recv(65_536):  # the head may come before the body
                said += more
        assert said.startswith(b"HTTP/1.1 408 ")
        assert b"took longer than 0.5 seconds" in said


def test_silent_connections_are_bounded_and_those_at_work_stay(parser, monkeypatch):
    monkeypatch.setattr("trimtab.proxy.server._third_of_descriptors", lambda: 5)
    with StrictProvider() as provider, proxied(provider.url) as server:
        parts = urlsplit(server.url)
        silent = [socket.create_connection((parts.hostname, parts.port)) for _ in range(30)]
        assert ask(server.url, "POST", PATH, CHAT, JSON)[0] == 200
        closed = 0
        for connection in silent:
            connection.settimeout(0.2)
            with contextlib.suppress(TimeoutError):
                closed += connection.recv(10) == b""
            connection.close()
        assert closed >= 25


@pytest.mark.parametrize(
    "wrong",
    ["listen = [1]", "hosts = 5", 'hosts = "a"', "max_bytes = [1]", "upstream = 3",
     'upstream = [{name="a"}]', "read_seconds = 'x'",
     "upstream = [1]", "token = 7"],
)  # fmt: skip
def test_settings_of_wrong_types_are_told_and_change_nothing(wrong, tmp_path, caplog):
    file = tmp_path / "proxy.toml"
    file.write_text(wrong)
    with pytest.raises(InvalidSetting, match=wrong.partition(" ")[0]):
        load(file)
    server = Server(Proxy(ProxySettings(listen=":0")), reread=lambda: load(file))
    before = server.proxy.settings
    server.reload()
    assert server.proxy.settings is before
    assert "settings kept: " in caplog.text
    assert "Traceback" not in caplog.text


def test_a_fault_while_settings_are_read_again_is_told_too(caplog):
    def broken():
        raise KeyError("x")

    server = Server(Proxy(ProxySettings(listen=":0")), reread=broken)
    server.reload()
    assert "settings kept: KeyError" in caplog.text
