"""What goes wrong on the way: each has one outcome, and none is a 500 of ours.

Knows broken providers, broken bodies, slow and vanishing clients.
"""

from __future__ import annotations

import asyncio
import gc
import http.client
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from proxies import ask, proxied, settled
from proxy_story import WINDOW, answers, turn_by_turn

from trimtab.proxy import Proxy, ProxySettings, Server
from trimtab_lab.testing import Cut, Refuse, Slow, StrictProvider

JSON = {"content-type": "application/json"}
CHAT = {"model": "gpt-5.1", "messages": [{"role": "user", "content": "Hi."}]}
STREAM = json.dumps({**CHAT, "stream": True})
CLAUDE = {"model": "claude-opus-5-5", "max_tokens": 50, "messages": CHAT["messages"]}
PATHS = {"/v1/chat/completions": CHAT, "/v1/messages": CLAUDE}


def read_all(url, path, body, headers=JSON):
    """Status and body of a response that may break off: (status, bytes, whether it is whole)."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    try:
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        try:
            return response.status, response.read(), True
        except http.client.IncompleteRead as cut:
            return response.status, cut.partial, False
    finally:
        connection.close()


@pytest.mark.parametrize("path", PATHS)
def test_a_stream_cut_at_every_tenth_byte_arrives_as_far_as_it_came(path):
    body = json.dumps({**PATHS[path], "stream": True})
    with StrictProvider(["a somewhat longer answer in pieces"]) as provider:
        _, whole, _ = read_all(provider.url, path, body)
    at = iter(range(0, len(whole), 10))
    with (
        StrictProvider(lambda _: Cut(next(at), "a somewhat longer answer in pieces")) as provider,
        proxied(provider.url, window=9_000) as server,
    ):
        for cut in range(0, len(whole), 10):
            status, got, complete = read_all(server.url, path, body)
            if status == 200:  # as much as the provider sent, and no more; never a clean end
                assert len(got) <= max(cut, 1)
                assert not complete
            else:  # nothing had been said yet: a status that SDKs try again after
                assert status == 502
                assert b"trimtab" in got
        assert settled(server).proxy.addons.metrics.in_flight == 0


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"null", b"[]", b"not json", b"\xff\xfe\x00", b'{"messages": 3}', b"[" * 100_000],
    ids=["empty", "half", "null", "list", "text", "bytes", "odd", "deep"],
)  # fmt: skip
def test_a_malformed_body_gets_the_provider_s_own_answer(body):
    with StrictProvider() as provider, proxied(provider.url, window=9_000) as server:
        straight = ask(provider.url, "POST", "/v1/chat/completions", body, JSON)
        through = ask(server.url, "POST", "/v1/chat/completions", body, JSON)
        assert through[0] == straight[0]
        assert through[0] != 500 or provider.crashes
        if body[:1] != b"[":  # a list is read as messages, and repaired
            assert through[2] == straight[2]


def test_multipart_and_unreadable_encodings_pass_as_they_came(monkeypatch):
    with StrictProvider() as provider, proxied(provider.url, window=9_000) as server:
        seen, respond = [], provider.respond
        monkeypatch.setattr(provider, "respond", lambda *a: seen.append(a[-1]) or respond(*a))
        odd = os.urandom(3_000)
        for headers in (
            {"content-type": "multipart/form-data; boundary=x"},
            {**JSON, "content-encoding": "br"},
            {**JSON, "content-encoding": "gzip"},
        ):
            ask(server.url, "POST", "/v1/chat/completions", odd, headers)
        assert seen == [odd] * 3


def test_a_bomb_is_not_unpacked(monkeypatch):
    import gzip

    bomb = gzip.compress(b"[" + b" " * 30_000_000 + b"]")
    with (
        StrictProvider() as provider,
        proxied(provider.url, window=9_000, max_bytes=1_000_000) as server,
    ):
        seen, respond = [], provider.respond
        monkeypatch.setattr(provider, "respond", lambda *a: seen.append(a[-1]) or respond(*a))
        headers = {**JSON, "content-encoding": "gzip"}
        ask(server.url, "POST", "/v1/chat/completions", bomb, headers)
        assert seen == [bomb]


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_a_body_of_100_mb_flows_through_without_being_kept(chunked):
    received = []

    async def counting(scope, receive, send):
        if scope["type"] != "http":
            return
        size, more = 0, True
        while more:
            message = await receive()
            size += len(message.get("body", b""))
            more = message.get("more_body", False)
        received.append(size)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

    provider = StrictProvider()
    provider.app = counting
    block, blocks = b"x" * 1_000_000, 100
    with provider, proxied(provider.url, window=9_000, max_bytes=5_000_000) as server:
        parts = urlsplit(server.url)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
        headers = dict(JSON) if chunked else {**JSON, "content-length": str(len(block) * blocks)}
        connection.request(
            "POST", "/v1/chat/completions", (block for _ in range(blocks)), headers,
            encode_chunked=chunked,
        )  # fmt: skip
        assert connection.getresponse().read() == b"ok"
        connection.close()
    assert received == [len(block) * blocks]


def test_a_provider_that_is_not_there_is_a_502_in_a_shape_that_sdks_show():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with proxied(url, window=9_000) as server:
        for path in ("/v1/chat/completions", "/v1/models"):
            status, _, body = ask(server.url, "POST", path, json.dumps(CHAT), JSON)
            assert status == 502
            said = f"trimtab: cannot reach {url} (Connection refused)"
            assert json.loads(body)["error"]["message"] == said
        activity = settled(server).proxy.addons.records.activity
        assert activity.line() == "1 request failed"
        assert not activity.totals["turns"] + activity.totals["arrived"]


def test_a_provider_that_does_not_answer_in_time_is_a_504():
    with (
        StrictProvider([Slow(3.0)]) as provider,
        proxied(provider.url, window=9_000, read_seconds=0.3) as server,
    ):
        status, _, _ = ask(server.url, "POST", "/v1/chat/completions", json.dumps(CHAT), JSON)
        assert status == 504


def test_a_kept_connection_that_the_provider_closes_meanwhile_costs_nothing():
    """The provider answers one request a connection and closes it without saying so."""
    listening = socket.create_server(("127.0.0.1", 0))
    answered = []

    def serve():
        while len(answered) < 6:
            connection, _ = listening.accept()
            data = b""
            while b"\r\n\r\n" not in data:
                data += connection.recv(65_536)
            size = int(data.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            while len(data.partition(b"\r\n\r\n")[2]) < size:
                data += connection.recv(65_536)
            connection.sendall(b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n'
                               b'content-length: 2\r\n\r\n{}')  # fmt: skip
            answered.append(1)
            connection.close()

    threading.Thread(target=serve, daemon=True).start()
    with proxied(f"http://127.0.0.1:{listening.getsockname()[1]}", window=9_000) as server:
        for _ in range(6):
            status, _, _ = ask(server.url, "POST", "/v1/chat/completions", json.dumps(CHAT), JSON)
            assert status == 200
    listening.close()


def test_a_client_that_hangs_up_ends_the_provider_s_work(monkeypatch):
    with (
        StrictProvider([Slow(0.0, 0.05, "word " * 400)]) as provider,
        proxied(provider.url, window=9_000) as server,
    ):
        parts = urlsplit(server.url)
        with socket.create_connection((parts.hostname, parts.port)) as connection:
            head = "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
            head += f"content-type: application/json\r\ncontent-length: {len(STREAM)}\r\n\r\n"
            connection.sendall(head.encode() + STREAM.encode())
            assert connection.recv(300).startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        assert settled(server).proxy.addons.metrics.in_flight == 0
        assert time.monotonic() - began < 4  # the whole answer would take twenty seconds


def test_a_client_that_reads_slowly_holds_only_its_own_answer_up():
    big = "word " * 200_000
    with StrictProvider([big, "quick"]) as provider, proxied(provider.url) as server:
        parts = urlsplit(server.url)
        with socket.create_connection((parts.hostname, parts.port)) as slow:
            head = "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
            head += f"content-type: application/json\r\ncontent-length: {len(STREAM)}\r\n\r\n"
            slow.sendall(head.encode() + STREAM.encode())
            time.sleep(0.5)
            status, _, body = ask(
                server.url, "POST", "/v1/chat/completions", json.dumps(CHAT), JSON
            )
            assert (status, b"quick" in body) == (200, True)


@pytest.mark.row("A9")
@pytest.mark.parametrize(
    "refuse",
    [Refuse("rate", retry_after=3.0), Refuse("server_error"), Refuse("overloaded"),
     Refuse(status=401, body={"error": {"message": "Incorrect API key", "code": "invalid_key"}})],
    ids=["rate", "server error", "overloaded", "key"],
)  # fmt: skip
def test_other_errors_pass_as_they_came_after_one_send(refuse):
    with StrictProvider([refuse, refuse]) as provider, proxied(provider.url) as server:
        straight = ask(provider.url, "POST", "/v1/chat/completions", json.dumps(CHAT), JSON)
        through = ask(server.url, "POST", "/v1/chat/completions", json.dumps(CHAT), JSON)
        assert len(provider.requests) == 2
        assert through[0] == straight[0]
        assert through[2].replace(b"00000002", b"00000001") == straight[2]
        assert through[1].get("retry-after") == straight[1].get("retry-after")


def test_a_store_that_cannot_be_reached_is_no_reason_to_fail():
    with (
        StrictProvider(answers, window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW, store="redis://127.0.0.1:1/0") as server,
    ):
        turn_by_turn(server.url, 24)
        assert {record.status for record in provider.requests} == {200}
        assert settled(server).proxy.addons.records.activity.totals["edits"] > 0


PROXY = """
import sys
from trimtab import Settings
from trimtab.proxy import Proxy, ProxySettings, Server, Upstream
settings = ProxySettings(listen=":0", upstreams=(Upstream("p", sys.argv[1]),),
                         fit=Settings(window=9_000),
                         drain_seconds=float(sys.argv[2]))
server = Server(Proxy(settings))
print(server.port, flush=True)
server.run()
print("ended", flush=True)
"""


def started(url, drain):
    """A proxy in a process of its own, and its port."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", PROXY, url, str(drain)], stdout=subprocess.PIPE, env=env, text=True
    )
    assert process.stdout
    return process, int(process.stdout.readline())


async def streams(port, count, body, when_all_began=lambda: None):
    """What came of so many streams at once; of a reset connection, what came before."""
    began = 0

    async def one():
        nonlocal began
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        writer.write(f"{head}connection: close\r\n\r\n{body}".encode())
        data = b""
        with suppress(ConnectionResetError):
            while more := await asyncio.wait_for(reader.read(65_536), 30):
                began += not data
                if not data and began == count:
                    when_all_began()
                data += more
        writer.close()
        return data

    return await asyncio.gather(*(one() for _ in range(count)))


def test_what_is_loaded_before_it_serves_is_not_looked_through_for_garbage_again(monkeypatch):
    async def nothing(server):
        await asyncio.sleep(0)

    monkeypatch.setattr(Server, "_serve", nothing)
    gc.unfreeze()
    try:
        Server(Proxy(ProxySettings(listen=":0"))).run()
        assert gc.get_freeze_count() > 10_000
    finally:
        gc.unfreeze()


def test_sigterm_during_50_streams_lets_them_end_and_takes_no_more():
    with StrictProvider(lambda _: Slow(0.0, 0.05, "word " * 60)) as provider:
        process, port = started(provider.url, 20)
        stop = partial(process.send_signal, signal.SIGTERM)
        answers = asyncio.run(streams(port, 50, STREAM, stop))
        assert all(data.startswith(b"HTTP/1.1 200") for data in answers)
        assert all(b"[DONE]" in data for data in answers)
        assert process.wait(20) == 0
        assert process.stdout.read() == "ended\n"
        with pytest.raises(OSError):  # noqa: PT011
            socket.create_connection(("127.0.0.1", port), timeout=1)


@pytest.mark.parametrize("drain", [1, 0.5, 0])
def test_streams_that_outlast_the_drain_are_cut_and_never_end_well(drain):
    with StrictProvider(lambda _: Slow(0.0, 0.2, "word " * 400)) as provider:
        process, port = started(provider.url, drain)
        timer = threading.Timer(1.0, process.send_signal, [signal.SIGTERM])
        timer.start()
        answers = asyncio.run(streams(port, 5, STREAM))
        assert not any(b"[DONE]" in data or data.endswith(b"0\r\n\r\n") for data in answers)
        process.wait(20)


def test_settings_are_read_again_on_sighup_and_wrong_ones_change_nothing(tmp_path):
    from trimtab.errors import InvalidSetting
    from trimtab.proxy import Proxy, Server, load

    with StrictProvider() as one, StrictProvider() as two:
        file = Path(tmp_path / "proxy.toml")

        def write(url):
            file.write_text(
                f'listen = "127.0.0.1:0"\nstandard_upstreams = false\n'
                f'[[upstream]]\nname = "p"\nurl = "{url}"\n'
            )

        write(one.url)
        with Server(Proxy(load(file)), reread=lambda: load(file)) as server:
            for url, provider in ((one.url, one), (two.url, two), ("no address", two)):
                write(url)
                server.reload()
                before = len(provider.requests)
                body = json.dumps(CHAT)
                assert ask(server.url, "POST", "/v1/chat/completions", body, JSON)[0] == 200
                assert len(provider.requests) == before + 1
        with pytest.raises(InvalidSetting):
            load(file)


NESTED = b"[" * 200_000 + b"]" * 200_000
ODD_ANSWERS = {
    "an error of 3 MB": (400, "application/json", b'{"error":"' + b"x" * 3_000_000 + b'"}'),
    "a deep error": (400, "application/json", NESTED),
    "a deep answer": (200, "application/json", NESTED),
    "a deep event": (200, "text/event-stream", b'data: {"usage":' + NESTED + b"}\n\n"),
    "a usage of words": (
        200,
        "application/json",
        b'{"choices":[{"message":5}],"usage":{"prompt_tokens":"x"}}',
    ),
    "a number": (200, "application/json", b"5"),
}


@pytest.mark.parametrize("recall", [False, True], ids=["plain", "recall"])
@pytest.mark.parametrize("odd", ODD_ANSWERS.values(), ids=ODD_ANSWERS.keys())
def test_an_answer_that_nobody_can_read_arrives_as_it_came(odd, recall):
    status, kind, body = odd
    asked = json.dumps({**CHAT, "tools": [{"type": "function", "function": {"name": "ls"}}]})

    class Odd(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Odd) as provider:
        threading.Thread(target=provider.serve_forever, daemon=True).start()
        with proxied(f"http://127.0.0.1:{provider.server_port}", recall=recall) as server:
            found = ask(server.url, "POST", "/v1/chat/completions", asked, JSON)
        provider.shutdown()
    assert (found[0], found[2]) == (status, body)
