"""The proxy between real clients and the strict provider: five formats, plain and streaming.

Knows what a client sees and what arrives.  Faults stand in test_faults.py.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import socket
import zlib
from urllib.parse import urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families
from proxies import ask, proxied, settled
from proxy_story import answers, turn_by_turn
from sdk_clients import CLIENTS, PROMPT

import trimtab
from trimtab.proxy import Proxy, ProxySettings
from trimtab_lab.testing import Answer, Call, StrictProvider

pytestmark = pytest.mark.usefixtures("loop")
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
EVERY = pytest.mark.parametrize("sdk", CLIENTS, ids=lambda sdk: sdk.format)
KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret"}
FILE = "".join(f"line {n} of the file holds value_{n * 7919 % 10007}\n" for n in range(400))


@EVERY
@STREAMS
def test_a_tool_loop_longer_than_the_window_ends_through_the_proxy(sdk, stream):
    def script(record):
        turn = sum("line 399 of" in json.dumps(m) for m in _history(record.body))
        asked = Answer(f"Part {n_of[0]}.", [Call("read", {"path": f"part{n_of[0]}.txt"})])
        n_of[0] += 1
        return asked if turn < 40 and n_of[0] <= 12 else Answer("That was all.")

    n_of = [0]
    with (
        StrictProvider(script, window=16_000) as provider,
        proxied(provider.url, window=16_000) as server,
    ):
        client = sdk(server.url)
        client.ask(PROMPT)
        said = client.send(stream)
        while said.calls:
            client.give({call_id: FILE for call_id, _, _ in said.calls})
            said = client.send(stream)
        assert said.text == "That was all."
        assert provider.crashes == []
        assert [record.status for record in provider.requests] == [200] * 13
        assert {record.stream for record in provider.requests} == {stream}
        session = next(iter(settled(server).proxy.addons.records.activity.sessions.values()))
        assert session.turns[-1].arrived > 3 * 16_000
        assert session.turns[-1].prompt == provider.requests[-1].tokens


def _history(body):
    return body.get("messages") or body.get("input") or body.get("contents")


@EVERY
@STREAMS
def test_an_untouched_request_arrives_and_is_answered_byte_for_byte(sdk, stream, monkeypatch):
    with StrictProvider(["one", "one"]) as provider, proxied(provider.url, window=50_000) as server:
        seen = _bodies(provider, monkeypatch)
        for url in (provider.url, server.url):
            client = sdk(url)
            client.ask(PROMPT)
            assert client.send(stream).text == "one"
    (straight, _), (through, headers) = seen
    assert straight == through
    assert not [name for name in headers if name.startswith("x-trimtab")]


def _bodies(provider, monkeypatch):
    """(body, headers) of each request as it arrives."""
    seen, respond = [], provider.respond

    def noting(method, path, query, headers, body):
        seen.append((body, headers))
        return respond(method, path, query, headers, body)

    monkeypatch.setattr(provider, "respond", noting)
    return seen


CHAT = {"model": "gpt-5.1", "messages": [{"role": "user", "content": "Hi."}]}
ODD = (
    b'{"model" : "gpt-5.1",\n "messages":[{"role":"user","content":"a\\u00e9\\u4e16"}],'
    b'"n":1.0,"metadata":{"x":1,"x":2}, "seed":1e2}'
)
JSON = {"content-type": "application/json"}


def test_odd_spellings_of_json_arrive_as_they_were_written(monkeypatch):
    with StrictProvider() as provider, proxied(provider.url, window=50_000) as server:
        seen = _bodies(provider, monkeypatch)
        status, _, _ = ask(server.url, "POST", "/v1/chat/completions", ODD, JSON)
        assert (status, seen[0][0]) == (200, ODD)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_packed_body_is_read_and_forwarded_as_it_came(encoding, monkeypatch):
    data = json.dumps(CHAT).encode()
    packed = gzip.compress(data) if encoding == "gzip" else zlib.compress(data)
    with StrictProvider() as provider, proxied(provider.url, window=50_000) as server:
        seen = _bodies(provider, monkeypatch)
        headers = {**JSON, "content-encoding": encoding}
        ask(server.url, "POST", "/v1/chat/completions", packed, headers)
        body, arrived = seen[0]
        assert body == packed
        assert arrived["content-encoding"] == encoding
        # Read, and one turn of a session: refused, as this provider reads no packed bodies.
        assert settled(server).proxy.addons.records.activity.totals["failed"] == 1


def test_a_packed_body_that_must_shrink_is_sent_unpacked(monkeypatch):
    messages = [{"role": "user", "content": "Go."}]
    for n in range(12):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": FILE},
        ]
    packed = gzip.compress(json.dumps({"model": "gpt-5.1", "messages": messages}).encode())
    with (
        StrictProvider(window=16_000) as provider,
        proxied(provider.url, window=16_000) as server,
    ):
        seen = _bodies(provider, monkeypatch)
        headers = {**JSON, "content-encoding": "gzip"}
        status, said, _ = ask(server.url, "POST", "/v1/chat/completions", packed, headers)
        assert status == 200
        assert "content-encoding" not in seen[0][1]
        assert json.loads(seen[0][0])["messages"][0] == messages[0]
        assert said["x-trimtab"] == "57486->10016 tokens; 10 edits"


def test_what_is_no_request_for_an_answer_passes_untouched(monkeypatch):
    with StrictProvider() as provider, proxied(provider.url, window=100) as server:
        seen = _bodies(provider, monkeypatch)
        count = {"model": "claude-opus-5-5", "messages": [{"role": "user", "content": "x " * 500}]}
        data = json.dumps(count).encode()
        status, _, body = ask(server.url, "POST", "/v1/messages/count_tokens?beta=true", data, JSON)
        assert (status, seen[0][0]) == (200, data)
        assert json.loads(body)["input_tokens"] > 400
        assert ask(server.url, "GET", "/v1/models?after=x")[0] == 404  # the provider's own 404
        assert ask(server.url, "HEAD", "/api/hello")[0] == 404
        assert seen[1][0] == b""
        assert server.proxy.addons.records.activity.totals["turns"] == 0


def test_a_request_that_says_off_arrives_as_it_was_sent(monkeypatch):
    long = {**CHAT, "messages": [{"role": "user", "content": "word " * 3_000}] * 2}
    data = json.dumps(long).encode()
    with StrictProvider() as provider, proxied(provider.url, window=2_000) as server:
        seen = _bodies(provider, monkeypatch)
        headers = {**JSON, "X-Trimtab": "off"}
        status, _, _ = ask(server.url, "POST", "/v1/chat/completions", data, headers)
        body, arrived = seen[0]
        assert (status, body) == (200, data)
        assert "x-trimtab" not in arrived
        ask(server.url, "POST", "/v1/chat/completions", data, JSON)
        assert len(seen[1][0]) < len(data)


def test_an_operator_lets_everything_pass_without_a_restart(monkeypatch):
    long = {**CHAT, "messages": [{"role": "user", "content": "word " * 3_000}] * 2}
    data = json.dumps(long).encode()
    with StrictProvider() as provider, proxied(provider.url, window=2_000) as server:
        seen = _bodies(provider, monkeypatch)
        before = server.proxy.settings
        for settings in (dataclasses.replace(before, pass_through=True), before):
            server.proxy.reload(settings)
            ask(server.url, "POST", "/v1/chat/completions", data, JSON)
        assert seen[0][0] == data
        assert len(seen[1][0]) < len(data)


def test_a_websocket_upgrade_is_answered_at_once_with_426():
    with StrictProvider() as provider, proxied(provider.url) as server:
        parts = urlsplit(server.url)
        with socket.create_connection((parts.hostname, parts.port), timeout=5) as connection:
            connection.sendall(
                b"GET /v1/responses HTTP/1.1\r\nhost: 127.0.0.1\r\nupgrade: websocket\r\n"
                b"connection: Upgrade\r\nsec-websocket-version: 13\r\n"
                b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
            assert connection.recv(100).startswith(b"HTTP/1.1 426 ")
        assert provider.requests == []


def test_the_upstream_is_chosen_by_configuration_and_never_by_the_request(monkeypatch):
    from trimtab.proxy import Upstream

    with StrictProvider(["first"]) as one, StrictProvider(["second"]) as two:
        upstreams = (
            Upstream("one", one.url, ("/v1/",)),
            Upstream("two", two.url, header="x-team: blue"),
        )
        with proxied("", upstreams=upstreams) as server:
            for path, headers, answer in (
                ("/v1/chat/completions", {}, "first"),
                ("/v1/chat/completions", {"x-team": "blue"}, "second"),
                ("/to/two/v1/chat/completions", {}, "OK"),
                ("/v1/chat/completions", {"x-trimtab-upstream": "one"}, "OK"),
            ):
                data = json.dumps(CHAT)
                status, _, body = ask(server.url, "POST", path, data, {**JSON, **headers})
                assert status == 200
                assert json.loads(body)["choices"][0]["message"]["content"] == answer
            for path, headers in (
                ("/to/http://127.0.0.1:1/v1/chat/completions", {}),
                ("/v1/chat/completions", {"x-trimtab-upstream": "http://127.0.0.1:1"}),
                ("/to/nobody/v1/chat/completions", {}),
            ):
                status, _, body = ask(server.url, "POST", path, "{}", {**JSON, **headers})
                assert status == 404
                assert b"no upstream" in body
        assert (len(one.requests), len(two.requests)) == (2, 2)


@STREAMS
def test_bedrock_is_signed_anew_with_the_proxy_s_own_credentials(stream, monkeypatch):
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials
    from sdk_clients import Bedrock

    from trimtab.proxy import Upstream
    from trimtab.proxy.http import aws_signing

    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    aws_signing.forget()
    with StrictProvider(["signed"]) as provider:
        seen = _bodies(provider, monkeypatch)
        upstream = Upstream("bedrock", provider.url, sign="aws", region="eu-west-1")
        with proxied("", upstreams=(upstream,)) as server:
            client = Bedrock(server.base)
            client.ask(PROMPT)
            assert client.send(stream).text == "signed"
        url = provider.url
    body, headers = seen[0]
    given = headers["authorization"]
    assert "AKIDEXAMPLE/" in given
    assert "/eu-west-1/bedrock/aws4_request" in given
    # The signature holds for what arrived: sign it again, at the same second.
    path = "converse-stream" if stream else "converse"
    address = f"{url}/model/us.anthropic.claude-opus-5-5-v1%3A0/{path}"
    signed = given.partition("SignedHeaders=")[2].partition(",")[0].split(";")
    kept = {name: headers[name] for name in signed if name not in ("host", "x-amz-date")}
    again = AWSRequest("POST", address, kept, body)
    stamp = headers["x-amz-date"]
    again.context["timestamp"] = stamp
    signer = SigV4Auth(Credentials("AKIDEXAMPLE", "secret"), "bedrock", "eu-west-1")
    again.headers["X-Amz-Date"] = stamp
    text = signer.string_to_sign(again, signer.canonical_request(again))
    assert given.endswith(signer.signature(text, again))


def test_metrics_are_what_prometheus_reads_and_add_up():
    with StrictProvider() as provider, proxied(provider.url, window=9_000) as server:
        for _ in range(3):
            ask(server.url, "POST", "/v1/chat/completions", json.dumps(CHAT), JSON)
        settled(server)
        status, headers, body = ask(server.url, "GET", "/metrics")
        assert (status, headers["content-type"][:24]) == (200, "text/plain; version=0.0.")
        families = list(text_string_to_metric_families(body.decode()))
    told = {
        (one.name, *sorted(one.labels.items())): one.value
        for family in families
        for one in family.samples
    }
    labels = [("kind", "generate"), ("status", "200"), ("upstream", "provider")]
    assert told["trimtab_requests_total", *labels] == 3
    for name in ("fit", "first_byte", "request"):
        assert told[f"trimtab_{name}_seconds_count",] == 3
        assert told[f"trimtab_{name}_seconds_bucket", ("le", "+Inf")] == 3
        assert told[f"trimtab_{name}_seconds_sum",] > 0
    assert told["trimtab_in_flight",] == 0
    assert told["trimtab_sessions",] == 1
    assert told["trimtab_tokens_total", ("kind", "arrived")] > 0
    assert {family.type for family in families} == {"counter", "gauge", "histogram"}
    assert not [name for name, *_ in told if name.endswith("_created")]


def test_two_proxies_of_one_process_count_each_for_itself():
    first, second = (Proxy(ProxySettings()).addons.metrics for _ in range(2))
    first.count("trimtab_errors_total", kind="client")
    assert 'trimtab_errors_total{kind="client"} 1.0' in first.text()
    assert "trimtab_errors_total{" not in second.text()


def test_readiness_ends_when_the_proxy_is_told_to_stop_and_health_does_not():
    with StrictProvider() as provider, proxied(provider.url) as server:
        assert ask(server.url, "GET", "/_trimtab/ready")[0] == 200
        server.proxy.draining = True
        assert ask(server.url, "GET", "/_trimtab/ready")[0] == 503
        assert ask(server.url, "GET", "/_trimtab/health")[0] == 200


@pytest.mark.parametrize("prices", [None, "claude-5m"])
def test_money_is_told_where_a_price_table_is_named_and_never_else(prices):
    with (
        StrictProvider(answers, window=60_000) as provider,
        proxied(provider.url, window=40_000, fit=trimtab.Settings(prices=prices)) as server,
    ):
        turn_by_turn(server.url, 24)
        activity = settled(server).proxy.addons.records.activity
        page = ask(server.url, "GET", "/_trimtab/")[2]
        assert bool(activity.money) is (prices is not None)
        assert (" than without (" in activity.line()) is (prices is not None)
        assert ("(claude-5m)" in activity.line()) is (prices is not None)
        assert (b" with everything sent" in page) is (prices is not None)
        assert (b" at list prices." in page) is (prices is None)
