"""Answers of providers that are odd, or broken: the client gets the answer or an error, and no
fault of ours.

Knows sockets, byte by byte.
"""

from __future__ import annotations

import json
import socket
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from proxies import ask, proxied, settled
from raw_provider import EVENT, SAID, STREAM_HEAD, piece, raw_provider, whole

from trimtab.proxy.http import http_client

JSON = {"content-type": "application/json"}
BODY = json.dumps({"model": "gpt-5.1", "messages": [{"role": "user", "content": "Hi."}]}).encode()
HOME = "/v1/chat/completions"


@contextmanager
def before(answer):
    """A proxy before a provider that answers so."""
    with raw_provider(answer) as provider, proxied(provider.url) as server:
        yield server


def connected(server):
    parts = urlsplit(server.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=30)


def faults(server):
    told = settled(server).proxy.addons.metrics.text()
    return [row for row in told.splitlines() if 'kind="fault"' in row and not row.endswith(" 0.0")]


def test_a_cached_answer_keeps_its_connection(parser):
    """304 may name the length of the body that it leaves out."""
    head = b'HTTP/1.1 304 Not Modified\r\netag: "a"\r\ncontent-length: 500\r\n\r\n'
    with before(lambda talk, _: talk.say(head)) as server:
        with connected(server) as client:
            for _ in range(2):
                client.sendall(b"GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
                got = client.recv(1_000)
                assert got.startswith(b"HTTP/1.1 304")
                assert b"etag" in got
        assert not faults(server)


@pytest.mark.parametrize("status", [b"101 Switching Protocols", b"999 Odd", b"600 Odd"])
def test_a_status_that_is_none_is_a_502(status, parser):
    with before(lambda talk, _: talk.say(whole(b"{}", status=status))) as server:
        got, _, said = ask(server.url, "POST", HOME, BODY, JSON)
        assert (got, status[:3] in said) == (502, True)
        assert not faults(server)


@pytest.mark.parametrize("path", [HOME, "/v1/files"])
def test_a_stream_with_a_chunk_that_is_none_breaks_off(path, parser, monkeypatch):
    """aiohttp closes its connection and never says so to who reads."""

    def answer(talk, _):
        talk.say(STREAM_HEAD + piece(EVENT))
        time.sleep(0.1)
        talk.say(b"zz\r\nabc\r\n")
        return False

    monkeypatch.setattr(http_client, "LOOK_SECONDS", 0.1)
    body = BODY.replace(b"{", b'{"stream":true,', 1)
    with before(answer) as server:
        with connected(server) as client:
            head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n\r\n"
            client.sendall(head.encode() + body)
            got = b""
            while data := client.recv(10_000):
                got += data
        assert EVENT in got
        assert not got.endswith(b"0\r\n\r\n")
        assert not faults(server)


@pytest.mark.parametrize("depth", [2_000, 50_000])
@pytest.mark.parametrize("status", [b"400 Bad Request", b"200 OK"])
def test_an_error_in_a_thousand_braces_passes_as_it_came(status, depth):
    said = b'{"error":' * depth + b"1" + b"}" * depth
    with before(lambda talk, _: talk.say(whole(said, status=status))) as server:
        got = ask(server.url, "POST", HOME, BODY, JSON)
        assert (got[0], got[2]) == (int(status[:3]), said)
        assert not faults(server)


@pytest.mark.parametrize("count", [b"9" * 30, b"9" * 400, b"9" * 5_000, b"1e999", b"-5", b"true"])
def test_a_count_that_no_prompt_can_have_counts_as_none(count, parser):
    said = SAID[:-1] + b',"usage":{"prompt_tokens":%s,"completion_tokens":%s}}' % (count, count)
    head = f"POST {HOME} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(BODY)}\r\n\r\n"
    with before(lambda talk, _: talk.say(whole(said))) as server:
        with connected(server) as client:
            for _ in range(2):
                client.sendall(head.encode() + BODY)
                got = b""
                while not got.endswith(said):
                    data = client.recv(100_000)
                    assert data
                    got += data
        assert not faults(server)
        session = next(iter(settled(server).proxy.addons.records.activity.sessions.values()))
        assert session.turns[-1].prompt == 0


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_an_answer_that_nobody_asked_for_reaches_nobody(method):
    """It came behind another's, and stood in the connection that the next request was sent on."""
    said = []

    def answer(talk, seen):
        number = seen.head.split(b"x-number: ")[1].split(b"\r\n")[0]
        talk.say(whole(b'{"to":"%s"}' % number))
        said.append(number)
        while not read:
            time.sleep(0.01)
        read.clear()
        talk.say(whole(b'{"to":"nobody"}'))
        came.append(1)

    read, came = [], []
    with before(answer) as server:
        for number in range(8):
            headers = {**JSON, "x-number": str(number)}
            body = BODY if method == "POST" else None
            got = ask(server.url, method, HOME, body, headers)
            assert got[2] == b'{"to":"%d"}' % number
            read.append(1)
            while len(came) <= number:
                time.sleep(0.01)
            time.sleep(0.05)
        assert not faults(server)
    assert len(said) == 8


@pytest.mark.parametrize(
    "status", [b"204 No Content", b"202 Accepted", b"303 See Other", b"307 Temporary Redirect"]
)
def test_an_answer_without_a_body_that_is_none_by_its_status_is_no_refusal(status, parser):
    """It counted as a refusal that was survived."""
    call = {"id": "c1", "type": "function", "function": {"name": "cat", "arguments": "{}"}}
    body = {"model": "gpt-5.1", "messages": [
        {"role": "user", "content": "Hi."}, {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "a line\n" * 40_000},
    ]}  # fmt: skip
    asked = []

    def answer(talk, seen):
        asked.append(seen)
        talk.say(b"HTTP/1.1 " + status + b"\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n")

    with before(answer) as server:
        got, _, said = ask(server.url, "POST", HOME, json.dumps(body), JSON)
        assert (b"%d" % got, said, len(asked)) == (status[:3], b"", 1)
        assert settled(server).proxy.addons.records.activity.totals["refusals"] == 0


@pytest.mark.parametrize("path", [HOME, "/v1/responses", "/v1/messages", "/v1beta/interactions"])
@pytest.mark.parametrize("body", [b"null", b"[1, 2]", b'"hi"', b"7"], ids=repr)
def test_a_body_that_is_no_object_passes_as_it_came(body, path, caplog):
    """A list was taken for a conversation's messages, and repaired."""
    came = []

    def answer(talk, seen):
        came.append(seen)
        talk.say(whole(b'{"error": {"message": "a body is an object"}}', status=b"400 Bad"))

    with before(answer) as server:
        assert ask(server.url, "POST", path, body, JSON)[0] == 400
        assert settled(server).proxy.addons.records.activity.totals["repairs"] == 0
    assert [seen.body for seen in came] == [body]
    assert not [record for record in caplog.records if "Error" in record.getMessage()]
