"""A server on 127.0.0.1: ASGI, run by uvicorn in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Self

from trimtab.errors import MissingExtra

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]

START_SECONDS = 30.0
IDLE_SECONDS = 75
"""Longer than clients keep an idle connection: uvicorn's own five seconds are just httpx's, and the
server would close it under the next request."""
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Response:
    """The response to send: chunks of the body, seconds to wait, after how many bytes to break."""

    status: int
    headers: tuple[tuple[str, str], ...]
    chunks: tuple[bytes, ...]
    streamed: bool = False
    first: float = 0.0
    between: float = 0.0
    cut: int | None = None


class LocalServer(ABC):
    """Serves ``respond``; ``with`` starts and stops it."""

    def __init__(self) -> None:
        self._uvicorn: Any = None
        self._thread: threading.Thread | None = None
        self._port = 0
        self.crashes: list[str] = []
        """Tracebacks of exceptions while answering, for example in a script; clients get a 500."""

    @abstractmethod
    def respond(self, method: str, path: str, query: str, headers: Any, body: bytes) -> Response:
        """The response to one HTTP request."""

    # --- ASGI --------------------------------------------------------------------------------

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The provider as an ASGI app."""
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        query = scope.get("query_string", b"").decode("latin-1")
        try:
            response = self.respond(scope["method"], scope["path"], query, headers, body)
        except Exception:  # a script that raises, or a fault of ours: never taken for a refusal
            self.crashes.append(traceback.format_exc())
            raise
        await _send(response, send)

    # --- a thread ----------------------------------------------------------------------------

    def start(self, port: int = 0, host: str = LOOPBACK) -> Self:
        """Listen on ``host`` and ``port`` (0: any free port); containers need another host.

        Raises MissingExtra without uvicorn; OSError where the port is taken.
        """
        uvicorn = _uvicorn()
        # The protocol is named, else asyncio leaves Nagle's algorithm on: 40 ms an answer.
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError:
            listening.close()
            raise
        self._port = listening.getsockname()[1]
        config = uvicorn.Config(
            self.app, log_level="critical", access_log=False, lifespan="off", ws="none",
            loop="asyncio", interface="asgi3", timeout_graceful_shutdown=1,
            timeout_keep_alive=IDLE_SECONDS,
        )  # fmt: skip
        self._uvicorn = _prompt_server(config)
        self._thread = threading.Thread(
            target=self._uvicorn.run, kwargs={"sockets": [listening]}, daemon=True
        )
        self._thread.start()
        deadline = time.monotonic() + START_SECONDS
        while not self._uvicorn.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start on port {self._port}")
            time.sleep(0.002)
        return self

    def close(self) -> None:
        """Stop listening, if it listens."""
        if self._uvicorn is not None and self._thread is not None:
            self._uvicorn.end()
            self._thread.join(timeout=10)
        self._uvicorn = self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Where it listens: ``http://127.0.0.1:port``.

        Anthropic's, Google's and AWS's clients take it as it is, OpenAI's with ``/v1`` behind it.
        """
        if self._thread is None:
            raise RuntimeError("not started: use `with provider:` or provider.start()")
        return f"http://127.0.0.1:{self._port}"


def _prompt_server(config: Any) -> Any:
    """A uvicorn server that stops at once if it is answering nobody.

    uvicorn's own takes 0.2 s to stop, and a suite of tests starts hundreds of servers.
    """
    import uvicorn

    class PromptServer(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
            await super().startup(sockets)

        async def main_loop(self) -> None:
            while not await self.on_tick(0):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._ended.wait(), 1.0)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            for listening in [*self.servers, *(sockets or ())]:
                listening.close()
            for connection in list(self.server_state.connections):
                connection.shutdown()
            await asyncio.sleep(0)  # those without an answer under way are gone now
            if self.server_state.connections or self.server_state.tasks:
                await super().shutdown(sockets)

        def end(self) -> None:
            """Stop, from another thread."""
            self.should_exit = True
            with contextlib.suppress(AttributeError, RuntimeError):  # it never began, or has ended
                self._loop.call_soon_threadsafe(self._ended.set)

    return PromptServer(config)


def _uvicorn() -> Any:
    try:
        import uvicorn
    except ImportError:
        raise MissingExtra(
            "the strict provider needs a server: pip install 'trimtab[testing]'"
        ) from None
    return uvicorn


async def _send(response: Response, send: Send) -> None:
    """Send headers, then chunks; a cut body is not finished, so that the connection breaks."""
    if response.first:
        await asyncio.sleep(response.first)
    headers = list(response.headers)
    if not response.streamed:
        headers.append(("content-length", str(sum(map(len, response.chunks)))))
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": response.status, "headers": raw})
    left = response.cut
    for chunk in response.chunks:
        part = chunk if left is None else chunk[:left]
        with contextlib.suppress(OSError):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        if left is not None:
            left -= len(part)
            if left <= 0:
                return
        if response.between:
            await asyncio.sleep(response.between)
    await send({"type": "http.response.body", "body": b"", "more_body": False})
