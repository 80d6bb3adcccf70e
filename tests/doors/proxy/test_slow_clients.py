"""Clients that send too much, too slowly, or stop sending: each has one outcome, and none is a 500.

Knows sockets, and what arrives at the provider.  Waits for what happens, never for a time.
"""

from __future__ import annotations

import json
import socket
import time
from urllib.parse import urlsplit

import pytest
from proxies import ask, proxied, settled

from trimtab.proxy import Upstream
from trimtab_lab.testing import Slow, StrictProvider

JSON = {"content-type": "application/json"}
CHAT = {"model": "gpt-5.1", "messages": [{"role": "user", "content": "Hi."}]}
BODY = json.dumps(CHAT).encode()
HEAD = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    b"content-type: application/json\r\ncontent-length: %d\r\n" % len(BODY)
)


def connected(server):
    parts = urlsplit(server.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=30)


def rest_of(connection):
    """All that still comes until the proxy closes the connection."""
    found = b""
    while part := connection.recv(65_536):
        found += part
    return found


# --- too much ------------------------------------------------------------------------------------


def bedrock_with_credentials(provider, monkeypatch):
    from trimtab.proxy.http import aws_signing

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    aws_signing.forget()
    return (Upstream("bedrock", provider.url, sign="aws", region="us-east-1"),)


@pytest.mark.parametrize("path", ["/model/claude/converse", "/model/claude/invoke"])
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_a_body_too_long_to_be_signed_is_a_413_that_says_what_to_set(path, chunked, monkeypatch):
    body = json.dumps({"messages": [{"role": "user", "content": [{"text": "x" * 300_000}]}]})
    with StrictProvider() as provider:
        upstreams = bedrock_with_credentials(provider, monkeypatch)
        with proxied("", upstreams=upstreams, max_bytes=100_000) as server:
            pieces = (body[at : at + 50_000].encode() for at in range(0, len(body), 50_000))
            status, headers, answer = ask(
                server.base, "POST", path, pieces if chunked else body, JSON
            )
            assert settled(server).proxy.addons.metrics.in_flight == 0
        assert provider.requests == []
    said = json.loads(answer)
    assert (status, said["error"]["type"]) == (413, "request_too_large")
    assert "max_bytes" in said["error"]["message"]
    assert "100,000 bytes" in said["error"]["message"]
    assert headers["content-type"] == "application/json"


def test_boto3_shows_the_words_of_an_error_of_ours(monkeypatch):
    import boto3
    from botocore.exceptions import ClientError

    with StrictProvider() as provider:
        upstreams = bedrock_with_credentials(provider, monkeypatch)
        with proxied("", upstreams=upstreams, max_bytes=100_000) as server:
            client = boto3.client(
                "bedrock-runtime", region_name="us-east-1", endpoint_url=server.base
            )
            messages = [{"role": "user", "content": [{"text": "x" * 300_000}]}]
            with pytest.raises(ClientError) as raised:
                client.converse(modelId="anthropic.claude-opus-5", messages=messages)
    assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == 413
    assert raised.value.response["Error"]["Code"] == "request_too_large"
    assert "max_bytes" in raised.value.response["Error"]["Message"]


# --- too slowly ----------------------------------------------------------------------------------


def test_a_head_that_does_not_end_is_a_408_and_the_connection_closes(parser, monkeypatch):
    monkeypatch.setattr("trimtab.proxy.http.client_connection.HEAD_SECONDS", 0.4)
    with (
        StrictProvider() as provider,
        proxied(provider.url) as server,
        connected(server) as client,
    ):
        client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: ")
        client.settimeout(0.05)
        with pytest.raises(OSError):  # noqa: PT012, PT011
            for _ in range(1_000):  # never silent for long: only the whole time counts
                client.sendall(b"x")
                try:
                    said = client.recv(1_000)
                except TimeoutError:
                    continue
                assert said.startswith(b"HTTP/1.1 408 ")
                assert b"connection: close" in said
                client.sendall(b"x")
                time.sleep(0.05)
        assert provider.requests == []
        assert ask(server.url, "POST", "/v1/chat/completions", BODY, JSON)[0] == 200


def test_the_second_head_on_a_connection_has_no_longer_than_the_first(parser, monkeypatch):
    monkeypatch.setattr("trimtab.proxy.http.client_connection.HEAD_SECONDS", 0.3)
    with (
        StrictProvider() as provider,
        proxied(provider.url) as server,
        connected(server) as client,
    ):
        client.sendall(HEAD + b"\r\n" + BODY)
        assert client.recv(65_536).startswith(b"HTTP/1.1 200 ")
        client.sendall(HEAD[:40])
        assert b"HTTP/1.1 408 " in rest_of(client)


def test_a_slow_head_in_time_and_a_long_answer_are_not_cut(parser, monkeypatch):
    monkeypatch.setattr("trimtab.proxy.http.client_connection.HEAD_SECONDS", 0.5)
    with (
        StrictProvider([Slow(1.0, 0.0, "at last")]) as provider,
        proxied(provider.url) as server,
        connected(server) as client,
    ):
        for at in range(0, len(HEAD), 50):
            client.sendall(HEAD[at : at + 50])
            time.sleep(0.02)
        client.sendall(b"connection: close\r\n\r\n")
        time.sleep(0.6)  # the body is no part of the head
        client.sendall(BODY)
        answer = rest_of(client)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"at last" in answer


def test_a_connection_that_says_nothing_is_closed_without_a_word(parser, monkeypatch):
    monkeypatch.setattr("trimtab.proxy.http.client_connection.IDLE_SECONDS", 0.2)
    with (
        StrictProvider() as provider,
        proxied(provider.url) as server,
        connected(server) as client,
    ):
        assert client.recv(100) == b""


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/files"])
def test_a_body_that_stops_in_the_middle_is_a_408(path, parser):
    with (
        StrictProvider() as provider,
        proxied(provider.url, read_seconds=0.3) as server,
        connected(server) as client,
    ):
        client.sendall(HEAD.replace(b"/v1/chat/completions", path.encode()) + b"\r\n" + BODY[:20])
        said = rest_of(client)
        assert said.startswith(b"HTTP/1.1 408 ")
        assert b"request_timeout" in said
        assert settled(server).proxy.addons.metrics.in_flight == 0


# --- no longer -----------------------------------------------------------------------------------


@pytest.mark.parametrize("wait", [0.0, 0.6], ids=["at once", "after a while"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_client_that_closes_only_its_own_direction_gets_its_answer(stream, wait, parser):
    body = json.dumps({**CHAT, "stream": stream}).encode()
    head = HEAD.replace(b"length: %d" % len(BODY), b"length: %d" % len(body))
    with (
        StrictProvider([Slow(wait, 0.0, "still heard")]) as provider,
        proxied(provider.url) as server,
        connected(server) as client,
    ):
        client.sendall(head + b"\r\n" + body)
        client.shutdown(socket.SHUT_WR)
        answer = rest_of(client)  # and the connection ends with it
        assert [record.status for record in provider.requests] == [200]
        assert settled(server).proxy.addons.metrics.in_flight == 0
    hundred, _, answer = answer.partition(b"\r\n\r\n")
    assert hundred == b"HTTP/1.1 100 Continue"
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"heard" in answer


def test_http_1_0_is_told_nothing_before_its_answer(parser):
    with (
        StrictProvider(["old but heard"]) as provider,
        proxied(provider.url) as server,
        connected(server) as client,
    ):
        client.sendall(HEAD.replace(b"HTTP/1.1", b"HTTP/1.0") + b"\r\n" + BODY)
        client.shutdown(socket.SHUT_WR)
        answer = rest_of(client)
    assert answer.startswith((b"HTTP/1.0 200 ", b"HTTP/1.1 200 "))
    assert b"old but heard" in answer


def test_a_client_that_hangs_up_before_an_answer_ends_the_provider_s_work(parser):
    with (
        StrictProvider([Slow(20.0)]) as provider,
        proxied(provider.url) as server,
    ):
        with connected(server) as client:
            client.sendall(HEAD + b"\r\n" + BODY)
            while not provider.requests:
                time.sleep(0.01)
        began = time.monotonic()
        assert settled(server).proxy.addons.metrics.in_flight == 0
        assert time.monotonic() - began < 4  # the answer would take twenty seconds


def test_a_request_that_ends_in_the_middle_reaches_nobody(parser):
    with (
        StrictProvider() as provider,
        proxied(provider.url) as server,
        connected(server) as client,
    ):
        client.sendall(HEAD + b"\r\n" + BODY[:-5])
        client.shutdown(socket.SHUT_WR)
        assert rest_of(client) == b""
        assert settled(server).proxy.addons.metrics.in_flight == 0
        assert provider.requests == []
