"""Heads of requests: their length, how they are cut into pieces, trailers, odd characters.

Knows sockets, byte by byte.
"""

from __future__ import annotations

import socket
import time
from urllib.parse import urlsplit

import pytest
from proxies import proxied, settled
from raw_provider import raw_provider, whole

pytestmark = pytest.mark.usefixtures("loop")
HOST = b"host: 127.0.0.1\r\n"


def connected(server):
    parts = urlsplit(server.url)
    client = socket.create_connection((parts.hostname, parts.port), timeout=10)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def took(client, first, again, most):
    """Whether all of so many bytes are taken."""
    try:
        client.sendall(first)
        for _ in range(most // len(again)):
            client.sendall(again)
    except OSError:
        return False
    return True


@pytest.mark.parametrize("before_end", range(1, 5))
def test_a_body_is_left_alone_wherever_its_head_is_cut(before_end, parser):
    """A line of it that looks like an offer of another protocol was taken out."""
    body = b"one\r\nUpgrade: h2c\r\ntwo\r\n\r\nthree"
    head = b"POST /v1/files HTTP/1.1\r\n" + HOST + b"content-length: %d\r\n\r\n" % len(body)
    with raw_provider(lambda talk, _: talk.say(whole(b"{}"))) as provider:
        with proxied(provider.url) as server, connected(server) as client:
            client.sendall(head[:-before_end])
            time.sleep(0.1)
            client.sendall(head[-before_end:] + body)
            assert client.recv(1_000).startswith(b"HTTP/1.1 200")
        assert [seen.body for seen in provider.requests] == [body]


@pytest.mark.parametrize("cut", [*range(1, 17)])
def test_an_offer_of_http_2_in_two_pieces_does_not_cost_the_body(cut, parser):
    head = b"POST /v1/files HTTP/1.1\r\n" + HOST + b"connection: upgrade, http2-settings\r\n"
    offer = b"Upgrade: h2c\r\n" + b"http2-settings: x\r\ncontent-length: 5\r\n\r\nhello"
    with raw_provider(lambda talk, _: talk.say(whole(b"{}"))) as provider:
        with proxied(provider.url) as server, connected(server) as client:
            client.sendall(head + offer[:cut])
            time.sleep(0.05)
            client.sendall(offer[cut:])
            assert client.recv(1_000).startswith(b"HTTP/1.1 200")
        assert [seen.body for seen in provider.requests] == [b"hello"]


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (b"GET /v1/models HTTP/1.1\r\n" + HOST, b"x-a: b\r\n" * 10_000),
        (b"GET /v1/models HTTP/1.1\r\n" + HOST + b"x: ", b"a" * 100_000),
        (b"GET /", b"a" * 100_000),
        (b"POST /v1/files HTTP/1.1\r\n" + HOST + b"transfer-encoding: chunked\r\n\r\n5\r\nhello"
         b"\r\n0\r\n", b"x-a: b\r\n" * 10_000),
        (b"POST /v1/files HTTP/1.1\r\n" + HOST + b"transfer-encoding: chunked\r\n\r\n5;",
         b"a" * 100_000),
    ],
    ids=["headers", "a header", "a path", "trailers", "an extension of a chunk"],
)  # fmt: skip
def test_what_is_no_body_is_bounded(first, again, parser):
    with raw_provider(lambda talk, _: talk.say(whole(b"{}"))) as provider:
        with proxied(provider.url) as server, connected(server) as client:
            assert not took(client, first, again, 60_000_000)
        assert settled(server).proxy.addons.metrics.in_flight == 0


def test_a_trailer_is_no_header(parser):
    """It comes behind the body, where nobody has checked it."""
    body = b"5\r\nhello\r\n0\r\nx-trimtab-upstream: none\r\nhost: elsewhere.example\r\n\r\n"
    head = b"POST /v1/files HTTP/1.1\r\n" + HOST + b"transfer-encoding: chunked\r\n\r\n"
    with raw_provider(lambda talk, _: talk.say(whole(b"{}"))) as provider:
        with proxied(provider.url) as server, connected(server) as client:
            client.sendall(head + body)
            assert client.recv(1_000).startswith(b"HTTP/1.1 200")
        assert b"elsewhere" not in provider.requests[0].head


@pytest.mark.parametrize(
    "field", [b"x: a\x01b", b"x: a\x7fb", b"transfer-encoding: gzip, chunked"], ids=str
)
def test_a_field_that_cannot_be_passed_on_is_a_400_and_no_fault_of_ours(field, parser):
    request = b"POST /v1/files HTTP/1.1\r\n" + HOST + field + b"\r\n"
    request += b"\r\n" if b"chunked" in field else b"content-length: 0\r\n\r\n"
    with raw_provider(lambda talk, _: talk.say(whole(b"{}"))) as provider:
        with proxied(provider.url) as server, connected(server) as client:
            client.sendall(request)
            assert client.recv(1_000).startswith(b"HTTP/1.1 400")
            told = settled(server).proxy.addons.metrics.text()
            assert 'kind="fault"' not in told
        assert not provider.requests
