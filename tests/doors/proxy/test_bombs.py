"""Small requests that would cost much: each is answered, and nothing is held or worked on for it.

Knows bodies as bytes.  The provider reads none of them.
"""

from __future__ import annotations

import gzip
import json
import socket
import time
from urllib.parse import urlsplit

import pytest
from proxies import ask, proxied, settled
from raw_provider import raw_provider, whole

from trimtab import Session, interruption
from trimtab.proxy.http.budgets import HeldBytes, RequestBudget, TooMuch, parts_of
from trimtab.retry.content_encoding import unpacked

JSON = {"content-type": "application/json"}
PACKED = {**JSON, "content-encoding": "gzip"}
PATH = "/v1/chat/completions"


def messages(one: bytes, count: int) -> bytes:
    """A body with so many times this message."""
    return b'{"model":"gpt-5.1","messages":[' + one + (b"," + one) * (count - 1) + b"]}"


EMPTY = messages(b"{}", 100_000)
BLOCKS = messages(b'{"role":"user","content":[{}' + b",{}" * 59_999 + b"]}", 1)
LISTS = 9_000_000
"""How many empty lists there are in the largest."""


def chat(count: int) -> bytes:
    message = {"role": "user", "content": "x"}
    return json.dumps({"model": "gpt-5.1", "messages": [message] * count}).encode()


def answered(talk, seen):
    talk.say(whole())


BOMBS = {
    "386 bytes of empty messages": (lambda: gzip.compress(EMPTY), PACKED),
    "empty messages": (lambda: EMPTY, JSON),
    "blocks": (lambda: BLOCKS, JSON),
    "lists": (lambda: messages(b"[]", LISTS), JSON),
    "packed lists": (lambda: gzip.compress(messages(b"[]", LISTS)), PACKED),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_sent_as_it_came_and_never_planned(name):
    """Before: 8 s and 0.4 GB for the first, more than 150 s for the last."""
    make, headers = BOMBS[name]
    body = make()
    with raw_provider(answered) as provider, proxied(provider.url, window=9_000) as server:
        assert ask(server.url, "POST", PATH, body, headers)[0] == 200
        assert settled(server).proxy.addons.records.activity.totals["turns"] == 0
        assert [seen.body for seen in provider.requests] == [body]
        assert server.proxy.held.now == 0
        assert counted_unread(server)


def counted_unread(server) -> bool:
    """Whether the metrics have one request that passed unread, for an operator's alarm."""
    return 'trimtab_errors_total{kind="unread"} 1.0' in server.proxy.addons.metrics.text()


def test_a_request_beyond_its_time_is_sent_as_it_came(monkeypatch):
    monkeypatch.setattr("trimtab.proxy.http.budgets.PLAN_SECONDS", 0.0)
    body = chat(3_000)
    with (
        raw_provider(answered) as provider,
        proxied(provider.url, window=9_000) as server,
    ):
        assert ask(server.url, "POST", PATH, body, JSON)[0] == 200
        assert settled(server).proxy.addons.records.activity.totals["turns"] == 0
        assert provider.requests[0].body == body
        assert counted_unread(server)


def test_a_body_above_max_bytes_counts_as_unread_and_a_read_one_does_not():
    with raw_provider(answered) as provider, proxied(provider.url, max_bytes=2_000) as server:
        assert ask(server.url, "POST", PATH, chat(1), JSON)[0] == 200
        assert not counted_unread(settled(server))
        assert ask(server.url, "POST", PATH, chat(1_000), JSON)[0] == 200
        assert counted_unread(settled(server))


def test_a_client_that_hangs_up_stops_the_planning(monkeypatch):
    asked, check = [], RequestBudget.check

    def slowly(self):
        asked.append(self)
        time.sleep(0.005)
        check(self)

    monkeypatch.setattr(RequestBudget, "check", slowly)
    body = chat(20_000)
    with raw_provider(answered) as provider, proxied(provider.url, window=9_000) as server:
        parts = urlsplit(server.url)
        with socket.create_connection((parts.hostname, parts.port)) as client:
            head = f"POST {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n\r\n"
            client.sendall(head.encode() + body)
            while len(asked) < 10:
                time.sleep(0.01)
        settled(server)
        time.sleep(0.1)
        before = len(asked)
        time.sleep(0.5)
        assert len(asked) == before < 20_000
        assert not provider.requests


def test_what_all_requests_hold_together_is_bounded():
    body = json.dumps({"messages": [{"role": "user", "content": "x" * 200_000}]}).encode()
    with (
        raw_provider(answered) as provider,
        proxied(provider.url, window=90_000, max_held_bytes=900_000) as server,
    ):
        parts = urlsplit(server.url)
        head = f"POST {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 700000\r\n\r\n"
        with socket.create_connection((parts.hostname, parts.port)) as slow:
            slow.sendall(head.encode() + b"x" * 690_000)
            while server.proxy.held.now < 600_000:
                time.sleep(0.01)
            assert ask(server.url, "POST", PATH, body, JSON)[0] == 200
            assert server.proxy.addons.records.activity.totals["turns"] == 0
        settled(server)
        assert server.proxy.held.now == 0
        assert ask(server.url, "POST", PATH, body, JSON)[0] == 200
        assert settled(server).proxy.addons.records.activity.totals["turns"] == 1
        assert provider.requests[0].body == provider.requests[1].body == body


def test_a_body_that_unpacks_to_far_more_than_real_ones_do_is_not_unpacked():
    assert unpacked(gzip.compress(b" " * 900_000), "gzip", 10**8) is not None
    assert unpacked(gzip.compress(b" " * 30_000_000), "gzip", 10**8) is None


def test_a_budget_ends_with_its_request():
    held = HeldBytes(1_000)
    first, second = (RequestBudget(held) for _ in range(2))
    assert first.take(900)
    assert not second.take(200)
    with pytest.raises(TooMuch):
        second.take_parsed(b"[" + b"{}," * 10 + b"{}]")
    first.close()
    assert second.take(200)
    assert not first.take(1)  # whoever still works on it gets nothing more
    with pytest.raises(interruption.Interrupted):
        first.check()
    second.close()
    assert held.now == 0


def test_messages_and_their_parts_are_counted_as_far_as_is_needed():
    assert parts_of({"messages": [{"content": [1, 2]}, {"content": "x"}, 7]}, 100) == 5
    assert parts_of({"messages": [{}] * 50}, 10) == 11
    assert parts_of(7, 10) == 0


def test_an_interrupted_fit_leaves_the_session_as_it_was():
    session = Session(window=300)
    history = json.loads(chat(4))["messages"]
    session.fit(history)
    before = session.journal

    def stop():
        raise interruption.Interrupted

    with pytest.raises(interruption.Interrupted), interruption.stopped_by(stop):
        session.fit(chat(500))
    assert session.journal == before
    assert session.fit(history).request is history
