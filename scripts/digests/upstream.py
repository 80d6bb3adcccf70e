"""A provider that keeps what it gets and answers as it was told to, in five formats."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from digests import answers

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "bedrock": "/model/a-claude/converse",
    "gemini": "/v1beta/models/gemini-2.5-pro:generateContent",
}
HANDLE = re.compile(rb'recall\(\\+"([0-9a-zA-Z_-]+)\\+"\)')
"""An original that is named in a body."""

Reply = tuple[int, str, bytes]
"""Status, type, body."""
Answer = Callable[[str, bytes], Reply]
"""Format and body → what is answered."""


def reply(
    format: str, items: Sequence[Any], tokens: int | None = None, *, stream: bool = False
) -> Reply:
    """An answer with these items of a history; ``tokens``: what the prompt cost."""
    if stream:
        kind = answers.STREAM_TYPES.get(format, "text/event-stream")
        return 200, kind, answers.streamed(format, items, tokens)
    return 200, "application/json", json.dumps(answers.whole(format, items, tokens)).encode()


def plain(format: str, body: bytes) -> Reply:
    """An answer of one word that does not say what it cost."""
    return reply(format, answers.turn(format, "done"))


def streamed(format: str, body: bytes) -> Reply:
    """The same as events."""
    return reply(format, answers.turn(format, "done"), stream=True)


def counted(format: str, body: bytes) -> Reply:
    """An answer with a usage: a token for each three bytes."""
    return reply(format, answers.turn(format, "done"), len(body) // 3)


def calling(format: str, body: bytes) -> Reply:
    """An answer that asks for the first original that is named; plain where none is."""
    found = HANDLE.search(body)
    if found is None:
        return plain(format, body)
    call = answers.Call("call_r1", "recall", {"handle": found[1].decode()})
    return reply(format, answers.turn(format, "", [call]))


def refusing(format: str, body: bytes) -> Reply:
    """A refusal for size, with a limit somewhat below what came."""
    tokens = len(body) // 3
    said = (
        f"This model's maximum context length is {tokens * 3 // 4} tokens. However, your messages "
        f"resulted in {tokens} tokens. Please reduce the length of the messages."
    )
    error: dict[str, Any] = {"message": said, "code": "context_length_exceeded"}
    if format in ("anthropic", "bedrock"):
        said = f"prompt is too long: {tokens} tokens > {tokens * 3 // 4} maximum"
    if format == "anthropic":
        error = {"type": "invalid_request_error", "message": said}
    if format == "bedrock":
        return 400, "application/json", json.dumps({"message": said}).encode()
    if format == "gemini":
        said = (
            f"The input token count ({tokens}) exceeds the maximum number of tokens allowed "
            f"({tokens * 3 // 4})."
        )
        error = {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}
    return 400, "application/json", json.dumps({"type": "error", "error": error}).encode()


class Upstream:
    """On a port of its own; ``plan`` says what is answered next, at its end ``answer``."""

    def __init__(self, format: str) -> None:
        self.got, self.plan = list[tuple[str, bytes]](), list[Answer]()
        self.answer: Answer = plain
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.got.append((self.path, body))
                answer = outer.plan.pop(0) if outer.plan else outer.answer
                status, kind, data = answer(format, body)
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
