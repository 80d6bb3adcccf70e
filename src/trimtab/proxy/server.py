"""Runs the proxy on a port: starts, reloads settings, and stops without cutting answers off."""

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
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any, Self, cast

from trimtab.errors import InvalidSetting, MissingExtra, TrimtabError
from trimtab.proxy.app import Proxy
from trimtab.proxy.callers.access import PREFIX, Access
from trimtab.proxy.config import log_lines
from trimtab.proxy.config.settings import ProxySettings
from trimtab.proxy.http.client_connection import IDLE_SECONDS, Connections

WINDOWS = os.name == "nt"

START_SECONDS = 30.0


class Server:
    """Serves a proxy: ``run`` in this thread, ``with`` in a background thread."""

    def __init__(
        self, proxy: Proxy, *, reread: Callable[[], ProxySettings] | None = None,
        listener: socket.socket | None = None,
    ) -> None:  # fmt: skip
        """``listener``: a socket shared by several workers; None opens one."""
        self.proxy = proxy
        self._reread = reread
        self._socket = listener or listening_socket(proxy.settings)
        self.port: int = self._socket.getsockname()[1]
        self._server = _server(proxy, self.stop)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The URL it listens on."""
        return address_of(self.proxy.settings, self._socket)

    @property
    def dashboard(self) -> str:
        """The dashboard's address; with the token if it was generated rather than configured."""
        return dashboard_of(self.url, self.proxy.settings, self.proxy.access)

    @property
    def base(self) -> str:
        """The base URL for clients that must send the token: it is in the path."""
        return f"{self.url}{PREFIX}{self.proxy.access.token}"

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM: running answers are finished, new requests refused.
        SIGHUP reloads the settings."""
        gc.collect()
        gc.freeze()  # modules stay: looking through them takes 26 ms in the middle of an answer
        run_in_loop(self._serve())

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        if self._reread is not None:
            # Signals work in the main thread only, and Windows has no SIGHUP.
            with contextlib.suppress(AttributeError, NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(signal.SIGHUP, self.reload)
        draining = asyncio.ensure_future(self._notice_end())
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            draining.cancel()

    async def _notice_end(self) -> None:
        """Make ``/_trimtab/ready`` fail once the server is stopping, while answers still run."""
        while not self._server.should_exit:
            await asyncio.sleep(0.05)
        self.proxy.draining = True

    def stop(self) -> None:
        """Finish the running answers and stop; a second call stops at once."""
        self._server.force_exit = self._server.should_exit
        self._server.should_exit = True

    def reload(self) -> None:
        """Reload the settings; invalid ones are logged and change nothing."""
        assert self._reread is not None
        try:
            self.proxy.reload(self._reread())
            log_lines.say("settings read again")
        except Exception as error:  # wrong types, too: the proxy goes on as it is
            about = str(error) if isinstance(error, TrimtabError) else type(error).__name__
            log_lines.say(f"settings kept: {about}", level=logging.WARNING)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(
            target=lambda: run_in_loop(self._serve()), daemon=True, name="trimtab-proxy"
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


def address_of(settings: ProxySettings, listener: socket.socket) -> str:
    """The address that a socket listens on."""
    host, port = settings.listen.host, listener.getsockname()[1]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def dashboard_of(url: str, settings: ProxySettings, access: Access) -> str:
    """The dashboard's address; with the token if it was generated rather than configured."""
    return f"{url}/_trimtab/" + ("" if settings.token else f"?token={access.token}")


def run_in_loop(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end, on uvloop if it is installed."""
    try:
        make: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    except ImportError:
        make = asyncio.new_event_loop
    with asyncio.Runner(loop_factory=make) as runner:
        runner.run(work)


def listening_socket(settings: ProxySettings) -> socket.socket:
    listen = settings.listen
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # On Windows, SO_REUSEADDR would let another program listen on the same port beside ours.
    alone = getattr(socket, "SO_EXCLUSIVEADDRUSE", 0) if WINDOWS else socket.SO_REUSEADDR
    listener.setsockopt(socket.SOL_SOCKET, alone, 1)
    try:
        listener.bind(listen)
        listener.listen(2_048)  # who connects before the server runs is served as soon as it does
    except OSError as error:
        listener.close()
        raise InvalidSetting(
            f"cannot listen on {listen} ({error.strerror}): choose another port with --listen"
        ) from None
    return listener


def _third_of_descriptors() -> int:
    """A third of the file descriptors: client connections; providers and stores need the rest."""
    try:
        import resource
    except ImportError:  # Windows
        return 1_000
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 100_000 if soft == resource.RLIM_INFINITY else max(soft // 3, 8)


def _server(proxy: Proxy, stop: Callable[[], None]) -> Any:
    """uvicorn's server with ``ClientConnection`` in front; SIGINT and SIGTERM call ``stop``."""
    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("the proxy needs a server: pip install 'trimtab[proxy]'") from None

    class UvicornServer(uvicorn.Server):
        """Stops without raising the signal again, which would kill the process."""

        def handle_exit(self, sig: int, frame: object) -> None:
            stop()

    connections = Connections(_third_of_descriptors())
    config = uvicorn.Config(
        connections.watched(proxy), log_level="critical", access_log=False, lifespan="on",
        ws="none", interface="asgi3", server_header=False, date_header=False, proxy_headers=False,
        timeout_graceful_shutdown=cast(int, proxy.settings.drain_seconds),  # and parts of a second
        timeout_keep_alive=IDLE_SECONDS, h11_max_incomplete_event_size=262_144,
    )  # fmt: skip
    config.load()
    config.http_protocol_class = connections.protocol(config.http_protocol_class)
    return UvicornServer(config)
