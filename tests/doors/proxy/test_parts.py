"""Parts of the proxy that need no server: paths, upstreams, headers, frames.

Knows values only.
"""

from __future__ import annotations

import gzip
import tracemalloc

import pytest
import zstandard

from trimtab.errors import InvalidSetting
from trimtab.formats.engine.aws_event_stream import event_frame
from trimtab.formats.engine.stream_events import AwsEventReader, ServerSentEventReader
from trimtab.pricing.prices import named
from trimtab.proxy import ProxySettings, Upstream, standard
from trimtab.proxy.callers.access import Access
from trimtab.proxy.config.settings import read_address
from trimtab.proxy.config.upstreams import choose
from trimtab.proxy.http.headers import downwards, fingerprint, upwards
from trimtab.proxy.http.routes import route
from trimtab.proxy.records.request_record import RequestRecord
from trimtab.proxy.records.savings import prompt_dollars
from trimtab.retry.content_encoding import unpacked

ROUTES = [
    ("/v1/chat/completions", "", "openai-chat", None, None),
    ("/openai/deployments/gpt-5/chat/completions", "", "openai-chat", "gpt-5", None),
    ("/v1/responses", "", "openai-responses", None, None),
    ("/v1/messages", "beta=true", "anthropic", None, None),
    ("/v1beta/models/gemini-2.5-pro:generateContent", "", "gemini", "gemini-2.5-pro", False),
    ("/v1/models/gemini-3-pro:streamGenerateContent", "alt=sse", "gemini", "gemini-3-pro", True),
    ("/model/us.anthropic.claude%3A0/converse", "", "bedrock", "us.anthropic.claude:0", False),
    ("/model/arn%3Aaws%2Fx/converse-stream", "", "bedrock", "arn:aws/x", True),
]  # fmt: skip


@pytest.mark.parametrize(("path", "query", "format", "model", "streams"), ROUTES)
def test_a_path_tells_format_model_and_stream(path, query, format, model, streams):
    found = route("POST", path, query)
    assert (found.operation, found.format, found.model) == ("generate", format, model)
    assert found.streams is streams
    assert not found.listed
    assert route("GET", path, query).operation == "other"


@pytest.mark.row("X12")
@pytest.mark.parametrize(
    "path",
    ["/v1/messages/count_tokens", "/v1/responses/compact", "/v1/responses/input_tokens",
     "/v1/messages/batches", "/v1/models", "/v1beta/models/g:countTokens", "/v1/embeddings",
     "/model/m/invoke", "/v1/responses/resp_1/cancel", "/"],
)  # fmt: skip
def test_all_else_passes_untouched(path):
    assert route("POST", path).operation == "other"


CHOICES = [
    ("/v1/messages", {}, "anthropic", "/v1/messages"),
    ("/v1/chat/completions", {}, "openai", "/v1/chat/completions"),
    ("/v1/models", {}, "openai", "/v1/models"),
    ("/v1/models", {"anthropic-version": "2023-06-01"}, "anthropic", "/v1/models"),
    ("/v1/models/gemini-3:generateContent", {}, "gemini", "/v1/models/gemini-3:generateContent"),
    ("/v1beta/models/x:generateContent", {}, "gemini", "/v1beta/models/x:generateContent"),
    ("/model/m/converse", {}, "bedrock", "/model/m/converse"),
    ("/api/hello", {}, "anthropic", "/api/hello"),
    ("/to/gemini/v1/x", {}, "gemini", "/v1/x"),
]


@pytest.mark.parametrize(("path", "headers", "name", "there"), CHOICES)
def test_the_providers_own_addresses_are_known_by_path_and_header(path, headers, name, there):
    found = choose(standard(), path, headers)
    assert found is not None
    assert (found[0].name, found[1]) == (name, there)


@pytest.mark.parametrize("path", ["/other", "/to/nobody/v1/x", "/to/openai", "/to/"])
def test_what_nobody_is_configured_for_goes_nowhere(path):
    assert choose(standard(), path, {}) is None


@pytest.mark.parametrize(
    ("url", "path", "there"),
    [("https://a.example", "/v1/x", "https://a.example/v1/x?q=1"),
     ("https://a.example/v1", "/v1/x", "https://a.example/v1/x?q=1"),
     ("https://a.example/v1/", "/chat/x", "https://a.example/v1/chat/x?q=1"),
     ("https://a.example/api/v1", "/v1/x", "https://a.example/api/v1/x?q=1"),
     ("https://a.example", "//evil.example/x", "https://a.example//evil.example/x?q=1"),
     ("https://a.example", "/@evil.example", "https://a.example/@evil.example?q=1")],
)  # fmt: skip
def test_an_address_never_leaves_its_host(url, path, there):
    assert Upstream("a", url).address(path, "q=1") == there


@pytest.mark.parametrize(
    "url", ["ftp://x", "x", "https://", "https://k@x.example", "https://x?k=1"]
)
def test_an_upstream_is_an_address_without_a_key(url):
    with pytest.raises(InvalidSetting):
        Upstream("a", url)


def test_headers_of_the_connection_and_ours_stay_here():
    sent = [(b"Host", b"x"), (b"Connection", b"keep-alive, X-Own"), (b"X-Own", b"1"),
            (b"Transfer-Encoding", b"chunked"), (b"x-trimtab-token", b"t"), (b"X-Kept", b"\xe9"),
            (b"Accept-Encoding", b"gzip"), (b"Authorization", b"Bearer k")]  # fmt: skip
    assert upwards(sent) == sent[5:]
    assert upwards(sent, readable=True) == [sent[5], sent[7], (b"accept-encoding", b"identity")]
    assert (b"Authorization", b"Bearer k") not in upwards(sent, signed=True)
    came = [(b"Content-Length", b"3"), (b"Set-Cookie", b"a"), (b"Set-Cookie", b"b"),
            (b"Keep-Alive", b"x")]  # fmt: skip
    assert downwards(came) == came[:3]
    assert downwards(came, length=False) == came[1:3]


def test_a_fingerprint_tells_credentials_apart_and_nothing_about_them():
    keys = [{"authorization": "Bearer a"}, {"x-api-key": "b"}, {"x-goog-api-key": "c"}]
    found = {fingerprint(headers, "") for headers in keys} | {fingerprint({}, "alt=sse&key=d")}
    assert len(found) == 4
    assert all(len(one) == 20 for one in found)
    assert fingerprint({}, "") == ""


def test_one_key_is_one_credential_in_whichever_header_it_comes():
    ways = [{"authorization": "Bearer k"}, {"authorization": "bearer  k"}, {"x-api-key": "k"},
            {"api-key": "k"}, {"x-goog-api-key": "k"}, {"x-api-key": "Bearer k"},
            {"authorization": "Bearer k", "x-api-key": "k"}]  # fmt: skip
    found = {fingerprint(headers, "") for headers in ways} | {fingerprint({}, "key=k")}
    assert len(found) == 1
    others = [{"x-api-key": "K"}, {"authorization": "Basic k"}, {"x-api-key": "k", "api-key": "l"}]
    assert len(found | {fingerprint(headers, "") for headers in others}) == 4


@pytest.mark.parametrize("query", ["", "key=d"])
def test_a_key_is_told_apart_beside_a_dummy(query):
    dummy = {"authorization": "Bearer none"}
    found = {fingerprint({**dummy, "x-api-key": key}, query) for key in "ab"}
    assert len(found | {fingerprint(dummy, query)}) == 3
    assert fingerprint(dummy, "key=d") != fingerprint(dummy, "key=e")


EVENTS = b'event: a\r\ndata: {"x":1}\r\n\r\n: comment\n\ndata: 1\ndata: 2\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
def test_events_come_out_whole_however_the_bytes_are_cut(size):
    frames, found = ServerSentEventReader(), []
    for at in range(0, len(EVENTS), size):
        found += frames.feed(EVENTS[at : at + size])
    assert b"".join(event.raw for event in found) + frames.rest() == EVENTS
    assert [(e.name, e.data) for e in found] == [
        ("a", b'{"x":1}'), ("", b""), ("", b"1\n2"), ("", b"[DONE]"),
    ]  # fmt: skip


@pytest.mark.parametrize("size", [1, 5, 1_000])
def test_aws_frames_come_out_whole_and_are_written_as_they_are_read(size):
    data = event_frame("messageStart", b'{"role":"assistant"}') + event_frame("messageStop", b"{}")
    frames, found = AwsEventReader(), []
    for at in range(0, len(data), size):
        found += frames.feed(data[at : at + size])
    assert [e.name for e in found] == ["messageStart", "messageStop"]
    assert b"".join(event_frame(e.name, e.data) for e in found) == data


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("4000", "127.0.0.1", 4000), (":4000", "127.0.0.1", 4000), ("0.0.0.0:80", "0.0.0.0", 80),
     ("[::1]:5", "::1", 5), ("localhost:4141", "localhost", 4141)],
)  # fmt: skip
def test_where_to_listen_is_written_as_people_write_it(text, host, port):
    assert read_address(text) == (host, port)


def test_an_odd_place_to_listen_is_refused():
    with pytest.raises(InvalidSetting, match="listen='host:port': give HOST:PORT"):
        ProxySettings(listen="host:port")


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 64])
def test_events_in_pieces_of_any_size_are_those_of_the_whole(end, size):
    stream = "".join(f"data: {'x' * n}{end}" for n in (0, 1, 50, 2)).encode()
    frames = ServerSentEventReader()
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    found = [event for piece in pieces for event in frames.feed(piece)]
    assert [len(event.data) for event in found] == [0, 1, 50, 2]
    assert b"".join(event.raw for event in found) == stream
    assert frames.rest() == b""


def test_an_access_key_id_that_nobody_verified_is_no_credential():
    scope = "AKIAONE/20261122/us-east-1/bedrock/aws4_request"
    signed = {"authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host"}
    assert fingerprint(signed, "") == ""
    assert fingerprint({**signed, "x-api-key": "k"}, "") == fingerprint({"x-api-key": "k"}, "")


def test_keys_in_headers_that_are_configured_tell_tenants_apart():
    name = "ocp-apim-subscription-key"
    found = {fingerprint({name: key}, "", (name,)) for key in "ab"}
    assert len(found - {""}) == 2
    assert fingerprint({name: "a"}, "") == ""


def packed_by(encoding):
    if encoding == "gzip":
        return gzip.compress
    return zstandard.ZstdCompressor().compress


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_what_becomes_too_long_is_not_unpacked_and_never_held_whole(encoding):
    bomb = packed_by(encoding)(bytes(200_000_000))
    tracemalloc.start()
    try:
        assert unpacked(bomb, encoding, 1_000_000) is None
        assert tracemalloc.get_traced_memory()[1] < 120_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_packed_body_is_read_whole_or_not_at_all(encoding):
    pack = packed_by(encoding)
    text = bytes(range(256)) * 900
    body = pack(text)
    assert unpacked(body, encoding, 1_000_000) == text
    assert unpacked(body[:-1], encoding, 1_000_000) is None
    assert unpacked(body + pack(b"more"), encoding, 1_000_000) is None
    assert unpacked(body, encoding, len(text) - 1) is None


@pytest.mark.parametrize(
    "host", ["evil", "127.0.0.1.evil", "x@127.0.0.1", "127.0.0.1:80@evil", "[::1", "localhost.", ""]
)
def test_a_host_that_only_looks_like_this_machine_is_refused(host):
    access = Access(ProxySettings())
    assert not access.host_allowed({"host": host})
    assert access.host_allowed({"host": "127.0.0.1:4141"})


def test_what_is_saved_in_money_is_the_price_of_what_came_less_that_of_what_was_sent():
    prices = named("claude-5m")  # read 0.1, write 1.25; this model: 4 US dollars a million
    first = RequestRecord(0, 0, 100_000, 100_000)
    cut = RequestRecord(0, 10, 110_000, 60_000, rewritten=40_000)
    after = RequestRecord(0, 20, 120_000, 70_000)
    late = RequestRecord(0, 1_000, 120_000, 70_000)

    def saved(before, now, model="claude-opus-5-5"):
        sent, whole = prompt_dollars(prices, model, before, now)
        return round(whole - sent, 6)

    assert saved(None, first) == 0
    assert saved(first, cut) == round((22_500 - 52_000) * 4 / 1e6, 6), "a batch costs"
    assert saved(cut, after) == round((23_500 - 18_500) * 4 / 1e6, 6)
    assert saved(cut, late) == round(50_000 * 1.25 * 4 / 1e6, 6), "nothing was in the cache"
    assert saved(cut, after, "a model of nobody") == 0
