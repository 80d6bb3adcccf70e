"""A provider on loopback that answers everything, or as it is told, and remembers what it got."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from soak.newest.formats import answer_of

Reply = Callable[[str, bytes], tuple[int, Any]]
"""(path, body) to (status, JSON)."""


def format_of(path: str) -> str:
    """The format of a path."""
    for end, name in (
        ("/messages", "anthropic"), ("/responses", "openai-responses"),
        ("/converse", "bedrock"), (":generateContent", "gemini"),
        ("/interactions", "gemini-interactions"),
    ):  # fmt: skip
        if path.endswith(end):
            return name
    return "openai-chat"


def always(path: str, body: bytes) -> tuple[int, Any]:
    """An answer without usage."""
    return 200, answer_of(format_of(path))


class Upstream:
    """``with Upstream() as provider:`` has ``url`` and ``bodies``."""

    def __init__(self, reply: Reply = always) -> None:
        self.reply, self.bodies = reply, list[bytes]()
        provider = self

        class Requests(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers.get("content-length") or 0))
                provider.bodies.append(data)
                status, answer = provider.reply(self.path.partition("?")[0], data)
                text = json.dumps(answer).encode()
                head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n"
                head += f"content-length: {len(text)}\r\n\r\n"
                self.wfile.write(head.encode() + text)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def forget(self) -> None:
        """Forget what came."""
        self.bodies.clear()

    def __enter__(self) -> Upstream:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
