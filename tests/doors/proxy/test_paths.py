"""Paths and heads that mean two things: refused before anything is sent or signed."""

from __future__ import annotations

import json
import socket
from urllib.parse import urlsplit

import pytest
from proxies import ask, proxied, settled
from raw_provider import raw_provider, whole

from trimtab.proxy import Upstream
from trimtab.proxy.http.routes import climbs
from trimtab_lab.testing import StrictProvider

JSON = {"content-type": "application/json"}
UP = ["/..", "/../v1/keys", "/v1/../keys", "/v1/%2e%2e/keys", "/v1/%2E./keys", "/v1/.%2e/keys",
      "/v1/%252e%252e/keys", "/v1/..%2fkeys", "/v1/..%5ckeys", "/v1/..;/keys", "/./v1", "/v1/.",
      "/v1/%25252e%25252e/keys"]  # fmt: skip
PLAIN = [
    *("/v1/messages", "/v1/files/a..b", "/v1/files/.hidden", "/v1/files/x.", "/v1/files/..."),
    *("/v1beta/models/a.b:c", "/model/us.anthropic.claude-v1%3A0/converse", "/v1/100%25"),
]


@pytest.mark.parametrize("path", UP)
def test_a_path_that_climbs_is_known_however_it_is_written(path):
    assert climbs(path)


@pytest.mark.parametrize("path", PLAIN)
def test_a_path_with_dots_in_its_names_is_none(path):
    assert not climbs(path)


@pytest.mark.parametrize(
    "path", ["/to/bedrock/model/m/../../keys", "/to/open/v1/%2e%2e/%2e%2e/keys"]
)
def test_dot_segments_reach_no_upstream_signed_or_not(path, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with StrictProvider() as provider:
        upstreams = (
            Upstream("bedrock", provider.url, sign="aws", region="us-east-1"),
            Upstream("open", f"{provider.url}/behind"),
        )
        with proxied("", upstreams=upstreams) as server:
            status, _, body = ask(server.base, "POST", path, "{}", JSON)
            assert (status, b"dot segments" in body) == (400, True)
        assert provider.requests == []


def test_two_lengths_of_one_body_are_refused(parser):
    head = (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 4\r\n"
        b"transfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n"
    )
    with StrictProvider() as provider, proxied(provider.url) as server:
        parts = urlsplit(server.url)
        with socket.create_connection((parts.hostname, parts.port), timeout=20) as client:
            client.sendall(head)
            said = b""
            while part := client.recv(65_536):
                said += part
        assert said.startswith(b"HTTP/1.1 400 ")
        assert said.count(b"HTTP/1.1 ") == 1
        assert provider.requests == []


def test_a_digest_of_the_body_goes_with_the_body_it_is_of():
    digests = {"content-md5": "x", "Digest": "sha-256=x", "content-digest": "sha-256=:x:"}
    big = {"role": "tool", "tool_call_id": "c", "content": "\n".join(map(str, range(9_000)))}
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    user = {"role": "user", "content": "go"}
    long = [user, {"role": "assistant", "content": None, "tool_calls": [call]}, big]
    with (
        raw_provider(lambda talk, seen: talk.say(whole())) as provider,
        proxied(provider.url, window=6_000) as server,
    ):
        for messages, kept in (([user], True), (long, False)):
            body = json.dumps({"model": "gpt-5.1", "messages": messages})
            assert ask(server.url, "POST", "/v1/chat/completions", body, JSON | digests)[0] == 200
            head = provider.requests[-1].head.lower()
            assert (provider.requests[-1].body == body.encode()) is kept
            for name in digests:
                assert (b"\r\n" + name.lower().encode() + b":" in head) is kept
        settled(server)
