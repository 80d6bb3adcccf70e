"""A provider that keeps what it gets and answers as it was told to, in four formats."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/gemini-2.5-pro:generateContent",
}
HANDLE = re.compile(rb'recall\(\\+"([0-9a-zA-Z_-]+)\\+"\)')
"""An original that is named in a body."""

Reply = tuple[int, str, bytes]
"""Status, type, body."""
Answer = Callable[[str, bytes], Reply]
"""Format and body → what is answered."""


def plain(format: str, body: bytes) -> Reply:
    """An answer of one word that does not say what it cost."""
    return 200, "application/json", json.dumps(_answer(format, None, None)).encode()


def counted(format: str, body: bytes) -> Reply:
    """An answer with a usage: a token for each three bytes."""
    return 200, "application/json", json.dumps(_answer(format, None, len(body) // 3)).encode()


def calling(format: str, body: bytes) -> Reply:
    """An answer that asks for the first original that is named; plain where none is."""
    found = HANDLE.search(body)
    handle = found[1].decode() if found else None
    return 200, "application/json", json.dumps(_answer(format, handle, None)).encode()


def refusing(format: str, body: bytes) -> Reply:
    """A refusal for size, with a limit somewhat below what came."""
    tokens = len(body) // 3
    said = (
        f"This model's maximum context length is {tokens * 3 // 4} tokens. However, your messages "
        f"resulted in {tokens} tokens. Please reduce the length of the messages."
    )
    error: dict[str, Any] = {"message": said, "code": "context_length_exceeded"}
    if format == "anthropic":
        said = f"prompt is too long: {tokens} tokens > {tokens * 3 // 4} maximum"
        error = {"type": "invalid_request_error", "message": said}
    if format == "gemini":
        said = (
            f"The input token count ({tokens}) exceeds the maximum number of tokens allowed "
            f"({tokens * 3 // 4})."
        )
        error = {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}
    return 400, "application/json", json.dumps({"type": "error", "error": error}).encode()


def streamed(format: str, body: bytes) -> Reply:
    """The answer as events."""
    whole = _answer(format, None, None)
    events: list[tuple[str, Any]] = [("", whole)]
    if format == "openai-chat":
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        delta = {"role": "assistant", "content": "done"}
        events = [
            ("", {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}),
            ("", {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        ]
    elif format == "openai-responses":
        begun = {**whole, "status": "in_progress", "output": []}
        place = {"output_index": 0, "item_id": "msg_1", "content_index": 0}
        events = [
            ("response.created", {"response": begun}),
            ("response.output_item.added", {"output_index": 0, "item": whole["output"][0]}),
            ("response.output_text.delta", {**place, "delta": "done"}),
            ("response.output_item.done", {"output_index": 0, "item": whole["output"][0]}),
            ("response.completed", {"response": whole}),
        ]
    elif format == "anthropic":
        text = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": "done"}
        end = {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}
        events = [
            ("message_start", {"message": {**whole, "content": [], "stop_reason": None}}),
            ("content_block_start", {"index": 0, "content_block": text}),
            ("content_block_delta", {"index": 0, "delta": delta}),
            ("content_block_stop", {"index": 0}),
            ("message_delta", end),
            ("message_stop", {}),
        ]
    lines = list[str]()
    for name, value in events:
        data = json.dumps({"type": name, **value} if name else value)
        lines.append(f"event: {name}\ndata: {data}\n\n" if name else f"data: {data}\n\n")
    if format == "openai-chat":
        lines.append("data: [DONE]\n\n")
    return 200, "text/event-stream", "".join(lines).encode()


def _answer(format: str, handle: str | None, tokens: int | None) -> dict[str, Any]:
    given = {"handle": handle}
    if format == "anthropic":
        part: dict[str, Any] = {"type": "text", "text": "done"}
        if handle:
            part = {"type": "tool_use", "id": "toolu_r1", "name": "recall", "input": given}
        return {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [part],
            "stop_reason": "tool_use" if handle else "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": tokens or 0, "output_tokens": 1},
        }  # fmt: skip
    if format == "openai-responses":
        text = {"type": "output_text", "text": "done", "annotations": []}
        item: dict[str, Any] = {
            "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [text],
        }  # fmt: skip
        if handle:
            item = {
                "type": "function_call", "id": "fc_1", "call_id": "call_r1", "name": "recall",
                "arguments": json.dumps(given), "status": "completed",
            }  # fmt: skip
        usage = {"input_tokens": tokens or 0, "output_tokens": 1, "total_tokens": (tokens or 0) + 1}
        return {
            "id": "resp_1", "object": "response", "status": "completed", "model": "m",
            "output": [item], "usage": usage if tokens else None,
        }  # fmt: skip
    if format == "gemini":
        part = {"functionCall": {"name": "recall", "args": given}} if handle else {"text": "done"}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
        used = {"promptTokenCount": tokens, "candidatesTokenCount": 1} if tokens else {}
        return {"candidates": [candidate], "usageMetadata": used}
    message: dict[str, Any] = {"role": "assistant", "content": "done"}
    if handle:
        call = {"name": "recall", "arguments": json.dumps(given)}
        message = {
            "role": "assistant", "content": None,
            "tool_calls": [{"id": "call_r1", "type": "function", "function": call}],
        }  # fmt: skip
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if handle else "stop"}
    found = {
        "id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice],
    }  # fmt: skip
    used = {"prompt_tokens": tokens or 0, "completion_tokens": 1, "total_tokens": (tokens or 0) + 1}
    return {**found, "usage": used} if tokens else found


class Upstream:
    """On a port of its own; ``plan`` says what is answered next, at its end ``plain``."""

    def __init__(self, format: str) -> None:
        self.got, self.plan = list[tuple[str, bytes]](), list[Answer]()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.got.append((self.path, body))
                answer = outer.plan.pop(0) if outer.plan else plain
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
