"""The proxy on a port: starts, reads its settings again, stops without cutting answers."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Self, cast

from trimtab.errors import InvalidSetting, MissingExtra, TrimtabError
from trimtab.proxy import logs
from trimtab.proxy.access import PREFIX
from trimtab.proxy.app import Proxy
from trimtab.proxy.client_connection import IDLE_SECONDS, Connections
from trimtab.proxy.settings import ProxySettings

WINDOWS = os.name == "nt"

START_SECONDS = 30.0


class Server:
    """Serves a proxy; ``run`` in this thread, or ``with`` in one of its own."""

    def __init__(self, proxy: Proxy, *, reread: Callable[[], ProxySettings] | None = None) -> None:
        self.proxy = proxy
        self._reread = reread
        self._socket = _listening(proxy.settings)
        self.port: int = self._socket.getsockname()[1]
        self._server = _server(proxy, self.stop)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        host = self.proxy.settings.listen.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def dashboard(self) -> str:
        """The dashboard's address; with the token, where it was made here and not chosen."""
        chosen = self.proxy.settings.token
        return f"{self.url}/_trimtab/" + ("" if chosen else f"?token={self.proxy.access.token}")

    @property
    def base(self) -> str:
        """The address for clients that are to send the token, in its path."""
        return f"{self.url}{PREFIX}{self.proxy.access.token}"

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM: running answers are finished first, new requests are
        refused.  SIGHUP reads the settings again."""
        gc.collect()
        gc.freeze()  # modules stay: looking through them takes 26 ms in the middle of an answer
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        if self._reread is not None:
            # Not in a thread of its own, and on Windows there is no such signal.
            with contextlib.suppress(AttributeError, NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(signal.SIGHUP, self.reload)
        draining = asyncio.ensure_future(self._notice_end())
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            draining.cancel()

    async def _notice_end(self) -> None:
        """Readiness ends when the server is told to stop, before its answers have ended."""
        while not self._server.should_exit:
            await asyncio.sleep(0.05)
        self.proxy.draining = True

    def stop(self) -> None:
        """Finish what is being answered and end; the second time, end at once."""
        self._server.force_exit = self._server.should_exit
        self._server.should_exit = True

    def reload(self) -> None:
        """Read the settings again; wrong ones are logged and change nothing."""
        assert self._reread is not None
        try:
            self.proxy.reload(self._reread())
            logs.say("settings read again")
        except Exception as error:  # wrong types, too: the proxy goes on as it is
            about = str(error) if isinstance(error, TrimtabError) else type(error).__name__
            logs.say(f"settings kept: {about}", level=logging.WARNING)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), daemon=True, name="trimtab-proxy"
        )
        self._thread.start()
        deadline = time.monotonic() + START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise RuntimeError(f"the proxy did not start on port {self.port}")
            time.sleep(0.002)
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join(self.proxy.settings.drain_seconds + 5)


def _listening(settings: ProxySettings) -> socket.socket:
    listen = settings.listen
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # On Windows, SO_REUSEADDR would let another program listen on the same port beside ours.
    alone = getattr(socket, "SO_EXCLUSIVEADDRUSE", 0) if WINDOWS else socket.SO_REUSEADDR
    found.setsockopt(socket.SOL_SOCKET, alone, 1)
    try:
        found.bind(listen)
        found.listen(2_048)  # who connects before the server runs is served as soon as it does
    except OSError as error:
        found.close()
        raise InvalidSetting(
            f"cannot listen on {listen} ({error.strerror}): choose another port with --listen"
        ) from None
    return found


def _third_of_descriptors() -> int:
    """Connections of clients that leave as many descriptors for providers, and some for stores."""
    try:
        import resource
    except ImportError:  # Windows
        return 1_000
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 100_000 if soft == resource.RLIM_INFINITY else max(soft // 3, 8)


def _server(proxy: Proxy, stop: Callable[[], None]) -> Any:
    """uvicorn's server behind ``ClientConnection``; SIGINT and SIGTERM call ``stop``."""
    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("the proxy needs a server: pip install 'trimtab[proxy]'") from None

    class UvicornServer(uvicorn.Server):
        """Ends without the signal being raised once more: the process would end by it."""

        def handle_exit(self, sig: int, frame: object) -> None:
            stop()

    given = proxy.settings
    connections = Connections(given.head_seconds, given.most_connections or _third_of_descriptors())
    config = uvicorn.Config(
        connections.watched(proxy), log_level="critical", access_log=False, lifespan="on",
        ws="none", interface="asgi3", server_header=False, date_header=False, proxy_headers=False,
        timeout_graceful_shutdown=cast(int, proxy.settings.drain_seconds),  # and parts of a second
        timeout_keep_alive=IDLE_SECONDS, h11_max_incomplete_event_size=262_144,
    )  # fmt: skip
    config.load()
    config.http_protocol_class = connections.protocol(config.http_protocol_class)
    return UvicornServer(config)
