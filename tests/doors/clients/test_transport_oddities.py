"""Odd responses through a real client and a small server: compressed, wrong, cancelled.

Knows what comes over the wire before any SDK sees it, and what a caller gets of it.
"""

from __future__ import annotations

import asyncio
import gzip
import http.server
import json
import threading
import zlib
from contextlib import contextmanager

import brotli
import httpx2
import openai
import pytest
import zstandard

import trimtab
from trimtab.retry.content_encoding import Undecodable, decoded, decoder
from trimtab.retry.refusals.response_errors import prompt_tokens

WORDS = (
    "This model's maximum context length is 8000 tokens. However, your messages resulted in 20000"
)
OVERFLOW = {"error": {"message": f"{WORDS} tokens.", "code": "context_length_exceeded"}}
PACK = {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress}
MESSAGES = [{"role": "user", "content": "What is in there?"}]
for number in range(8):
    function = {"name": "read", "arguments": "{}"}
    MESSAGES += [
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": f"c{number}", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": f"{number}: of the file\n" * 300},
    ]  # fmt: skip


def answer(used):
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": "ok"},
    }
    usage = {"prompt_tokens": used, "completion_tokens": 1, "total_tokens": used + 1}
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [choice], "usage": usage}  # fmt: skip


@contextmanager
def serving(*script):
    """A server that gives these (status, encoding, body) in turn; its URL and what it got."""
    seen, left = [], list(script)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            seen.append(self.rfile.read(int(self.headers["content-length"])))
            status, encoding, body = left.pop(0)
            self.send_response(status)
            kind = "text/event-stream" if body.startswith(b"data:") else "application/json"
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            if encoding:
                self.send_header("content-encoding", encoding)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", seen
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.row("A12")
@pytest.mark.parametrize("encoding", PACK)
def test_a_compressed_refusal_is_read_and_a_compressed_answer_arrives(encoding):
    refusal = PACK[encoding](json.dumps(OVERFLOW).encode())
    fine = PACK[encoding](json.dumps(answer(7_000)).encode())
    with serving((400, encoding, refusal), (200, encoding, fine)) as (url, seen):
        client = trimtab.wrap(openai.OpenAI(base_url=url, api_key="x", max_retries=0))
        said = client.chat.completions.create(model="m", messages=MESSAGES)
        assert said.choices[0].message.content == "ok"
        assert len(seen) == 2
        assert len(seen[1]) < len(seen[0])


@pytest.mark.row("A11")
@pytest.mark.parametrize("used", [0, 1, 400])
def test_a_gateway_that_does_not_count_is_no_sign_that_something_was_left_out(used):
    whole = json.dumps(answer(used)).encode()
    with serving((200, "", whole), (200, "", whole)) as (url, seen):
        client = trimtab.wrap(openai.OpenAI(base_url=url, api_key="x", max_retries=0))
        for _ in range(2):
            client.chat.completions.create(model="m", messages=MESSAGES)
        assert len(seen) == 2
        assert seen[0] == seen[1]


@pytest.mark.row("A12")
def test_a_call_cancelled_while_we_read_its_answer_gives_its_connection_back():
    stream = b'data: {"choices":[{"index":0,"delta":{"content":"ok"}}]}\n\ndata: [DONE]\n\n'

    async def calls(url, seen):
        loop, at_work, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        def slow(event):  # told from the thread in which the refusal is read
            if event.name == "refusal":
                loop.call_soon_threadsafe(at_work.set)
                go_on.wait(10)

        one = httpx2.AsyncClient(limits=httpx2.Limits(max_connections=1))
        plain = openai.AsyncOpenAI(
            base_url=url, api_key="x", max_retries=0, timeout=5, http_client=one
        )
        client = trimtab.wrap(plain, settings=trimtab.Settings(on_event=slow))
        asked = {
            "model": "m",
            "messages": [*MESSAGES, *MESSAGES[1:], *MESSAGES[1:]],
            "stream": True,
        }
        call = asyncio.create_task(client.chat.completions.create(**asked))
        await at_work.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        go_on.set()
        async with await plain.chat.completions.create(**asked) as events:
            return [chunk.choices[0].delta.content async for chunk in events]

    refused = b"data: " + json.dumps(OVERFLOW).encode() + b"\n\n"
    with serving((200, "", refused), (200, "", stream)) as (url, seen):
        assert asyncio.run(calls(url, seen)) == ["ok"]


@pytest.mark.row("A11")
@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000], ids=["lists", "objects"])
def test_an_answer_nested_beyond_reading_is_passed_on(body):
    with serving((200, "", body)) as (url, _):
        client = trimtab.clients.httpx_client()
        asked = {"model": "m", "messages": MESSAGES}
        assert client.post(f"{url}/chat/completions", json=asked).content == body


def test_cached_tokens_that_a_gateway_left_out_are_counted_in():
    usage = {"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 90_000}}
    assert prompt_tokens({"usage": usage}) == 90_900
    usage["prompt_tokens"] = 90_900
    assert prompt_tokens({"usage": usage}) == 90_900


@pytest.mark.parametrize("encoding", PACK)
def test_a_body_that_is_not_what_its_encoding_says_is_taken_as_it_is(encoding):
    assert decoded(b"plain text", encoding) == b"plain text"
    undo = decoder(encoding)
    with pytest.raises(Undecodable):
        undo(b"\xff" * 99)
    assert decoder("something-else") is None


def test_zstandard_is_undone_piece_by_piece():
    packed = zstandard.ZstdCompressor().compress(b"a refusal " * 1_000)
    undo = decoder("zstd")
    assert undo(packed[:9]) + undo(packed[9:]) == b"a refusal " * 1_000
    with pytest.raises(Undecodable):
        undo(b"\xff" * 99)
