"""Providers and clients that are within their rights, or nearly: what works without us works.

Knows sockets, byte by byte.  Waits for what happens, never for a time.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
from proxies import ask, proxied, settled
from raw_provider import EVENT, SAID, STREAM_HEAD, piece, raw_provider, whole

JSON = {"content-type": "application/json"}
CHAT = {"model": "gpt-5.1", "messages": [{"role": "user", "content": "Hi."}]}
BODY = json.dumps(CHAT).encode()
pytestmark = pytest.mark.usefixtures("loop")
HOME = "/v1/chat/completions"


def connected(server):
    parts = urlsplit(server.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=30)


def request(method="POST", path=HOME, body=BODY, more=b""):
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n".encode()
    return head + b"content-length: %d\r\n" % len(body) + more + b"\r\n" + body


# --- clients that hang up ------------------------------------------------------------------------


@pytest.mark.parametrize("begun", [False, True], ids=["silent", "streaming"])
@pytest.mark.parametrize(
    ("method", "path", "body", "settings"),
    [
        ("POST", "/v1/completions", BODY, {}),
        ("GET", "/v1/responses/resp_1", b"", {}),
        ("POST", HOME, BODY, {"max_bytes": 10}),
    ],
    ids=["passed", "no body", "too long to be read"],
)
def test_a_client_that_hangs_up_ends_what_is_only_passed_on(method, path, body, settings, begun):
    closed = []

    def answer(talk, seen):
        if begun:
            talk.say(STREAM_HEAD + piece(EVENT))
        asked.set()
        closed.append(talk.is_closed())
        ended.set()
        return False

    asked, ended = threading.Event(), threading.Event()
    with raw_provider(answer) as provider, proxied(provider.url, **settings) as server:
        with connected(server) as client:
            client.sendall(request(method, path, body))
            if begun:
                assert client.recv(300).startswith(b"HTTP/1.1 200")
            asked.wait(30)
        assert settled(server).proxy.addons.metrics.in_flight == 0
        told = server.proxy.addons.metrics.text()
        assert 'trimtab_errors_total{kind="client"} 1.0' in told
        ended.wait(30)
    assert closed == [True]


@pytest.mark.parametrize("path", [HOME, "/v1/files"])
def test_a_client_that_hangs_up_in_the_middle_of_its_body_is_not_told_as_the_provider_s_fault(path):
    with raw_provider(lambda *_: None) as provider, proxied(provider.url) as server:
        with connected(server) as client:
            client.sendall(request(path=path, body=b"x" * 3_000_000)[:1_500_000])
            while not server.proxy.addons.metrics.in_flight:
                time.sleep(0.01)
        told = settled(server).proxy.addons.metrics.text()
        assert 'trimtab_errors_total{kind="client"} 1.0' in told
        assert 'kind="upstream"} 1' not in told


# --- clients that would rather speak HTTP/2 ------------------------------------------------------

UPGRADE = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\n"
"""As Java's own client sends it with its first request to an http address."""


@pytest.mark.parametrize("path", [HOME, "/v1/files"])
def test_an_offer_of_http_2_does_not_cost_the_body(path, parser):
    with (
        raw_provider(lambda talk, _: talk.say(whole())) as provider,
        proxied(provider.url) as server,
        connected(server) as client,
    ):
        for _ in range(2):  # and the connection goes on
            client.sendall(request(path=path, more=UPGRADE))
            said = b""
            while not said.endswith(SAID):
                said += client.recv(1_000)
        assert [seen.body for seen in provider.requests] == [BODY, BODY]


def test_a_refused_websocket_does_not_leave_a_connection_that_hears_nothing(parser):
    wanted = b"GET /v1/responses HTTP/1.1\r\nhost: 127.0.0.1\r\nConnection: Upgrade\r\n"
    with proxied("http://127.0.0.1:1") as server, connected(server) as client:
        client.sendall(wanted + b"Upgrade: websocket\r\n\r\n")
        said = b""
        while part := client.recv(1_000):  # until the connection is closed
            said += part
        assert said.startswith(b"HTTP/1.1 426 ")


def test_a_header_that_no_server_may_send_does_not_cost_the_answer(parser):
    odd = b"x-odd: a\x01b\r\nx-good: c\r\n"
    with (
        raw_provider(lambda talk, _: talk.say(whole(headers=odd))) as provider,
        proxied(provider.url) as server,
    ):
        status, headers, said = ask(server.url, "POST", HOME, BODY, JSON)
        assert (status, said, headers["x-good"]) == (200, SAID, "c")


# --- kept connections ----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [10, 3_000_000])
@pytest.mark.parametrize("path", [HOME, "/v1/files"])
def test_a_kept_connection_that_is_reset_meanwhile_costs_nothing(path, size):
    """The provider gives up a kept connection just as the next request begins."""
    body = json.dumps({**CHAT, "user": "x" * size})

    def answer(talk, _):
        talk.say(whole())
        talk.is_closed()  # the first byte of the next request, or the end
        talk.reset()
        return False

    with raw_provider(answer) as provider, proxied(provider.url, window=9_000_000) as server:
        for _ in range(4):
            assert ask(server.url, "POST", path, body, JSON)[0::2] == (200, SAID)
        assert [seen.body for seen in provider.requests] == [body.encode()] * 4


def test_a_provider_that_gives_up_all_its_kept_connections_at_once_costs_nothing():
    """As a server whose connections were all idle for as long as it keeps one: seen under load."""
    all_there = threading.Barrier(6)

    def answer(talk, _):
        if talk.earlier:
            return False  # the one that was kept
        if len(provider.requests) <= 6:
            all_there.wait(30)
        talk.say(whole())
        return True

    with (
        raw_provider(answer) as provider,
        proxied(provider.url) as server,
        ThreadPoolExecutor(6) as clients,
    ):
        first = [clients.submit(ask, server.url, "POST", HOME, BODY, JSON) for _ in range(6)]
        assert [one.result()[0] for one in first] == [200] * 6
        assert ask(server.url, "POST", HOME, BODY, JSON)[0::2] == (200, SAID)
        assert len(provider.requests) == 8, "sent again once, on a new connection"


def test_a_new_connection_that_breaks_is_told_and_the_request_is_not_sent_twice():
    with raw_provider(lambda *_: False) as provider, proxied(provider.url) as server:
        assert ask(server.url, "POST", HOME, BODY, JSON)[0] == 502
        assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("sent", "got"),
    [("José".encode(), "José".encode()), ("José".encode("latin-1"), "José".encode())],
    ids=["UTF-8", "Latin-1"],
)
def test_a_letter_in_a_header_is_not_lost(sent, got):
    with (
        raw_provider(lambda talk, _: talk.say(whole())) as provider,
        proxied(provider.url) as server,
        connected(server) as client,
    ):
        client.sendall(request(more=b"x-user: " + sent + b"\r\n"))
        client.recv(100)
        assert b"x-user: " + got + b"\r\n" in provider.requests[0].head + b"\r\n"


# --- streams that take their time ----------------------------------------------------------------


def test_a_stream_that_only_says_that_it_goes_on_is_not_held_for_ever(monkeypatch):
    """Gateways send comments while a provider thinks, for clients that give up a silent one."""
    monkeypatch.setattr("trimtab.proxy.exchange.held_answer.HOLD_SECONDS", 0.0)
    heard = threading.Event()

    def answer(talk, _):
        talk.say(STREAM_HEAD + piece(b": PROCESSING\n\n"))
        assert heard.wait(30)
        talk.say(piece(EVENT) + piece(b""))

    body = json.dumps({**CHAT, "stream": True}).encode()
    with (
        raw_provider(answer) as provider,
        proxied(provider.url) as server,
        connected(server) as client,
    ):
        client.sendall(request(body=body))
        said = b""
        while b": PROCESSING\n\n" not in said:
            said += client.recv(1_000)
        heard.set()
        while not said.endswith(b"0\r\n\r\n"):
            said += client.recv(1_000)
        assert EVENT in said


# --- settings of the machine ---------------------------------------------------------------------


@pytest.fixture
def netrc(tmp_path, monkeypatch):
    file = tmp_path / "netrc"
    file.write_text("default login somebody password secret\n")
    monkeypatch.setenv("NETRC", str(file))


@pytest.mark.parametrize("key", [{"authorization": "Bearer k"}, {"x-api-key": "k"}])
def test_passwords_of_the_machine_are_not_sent_to_providers(netrc, monkeypatch, key):
    monkeypatch.setenv("no_proxy", "*")
    with (
        raw_provider(lambda talk, _: talk.say(whole())) as provider,
        proxied(provider.url, system_proxy=True) as server,
    ):
        assert ask(server.url, "POST", HOME, BODY, {**JSON, **key})[0] == 200
        head = provider.requests[0].head.lower()
        assert b"basic" not in head
        assert all(f"{name}: {value}".lower().encode() in head for name, value in key.items())


def test_the_proxy_of_the_machine_is_used_where_it_is_asked_for(netrc, monkeypatch):
    with raw_provider(lambda talk, _: talk.say(whole())) as outer:
        monkeypatch.setenv("http_proxy", outer.url.replace("//", "//me:word@"))
        monkeypatch.delenv("no_proxy", raising=False)
        with proxied("http://provider.invalid", system_proxy=True) as server:
            assert ask(server.url, "POST", HOME, BODY, JSON)[0] == 200
        head = outer.requests[0].head
        assert head.startswith(b"POST http://provider.invalid" + HOME.encode())
        assert b"Proxy-Authorization: Basic bWU6d29yZA==" in head
