"""The proxy on a port: started, told to read its settings again, stopped without cutting answers.

Knows uvicorn, signals and sockets.  Does not know what is served.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Self, cast

from trimtab.errors import InvalidSetting, MissingExtra
from trimtab.proxy import logs
from trimtab.proxy.app import Proxy
from trimtab.proxy.connections import protocol
from trimtab.proxy.settings import ProxySettings

START_SECONDS = 30.0


class Server:
    """Serves a proxy; ``run`` in this thread, or ``with`` in one of its own."""

    def __init__(self, proxy: Proxy, *, reread: Callable[[], ProxySettings] | None = None) -> None:
        self.proxy = proxy
        self._reread = reread
        self._socket = _listening(proxy.settings)
        self.port: int = self._socket.getsockname()[1]
        self._server = _server(proxy)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        host = self.proxy.settings.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM: running answers are finished first, new requests are
        refused.  SIGHUP reads the settings again."""
        gc.collect()
        gc.freeze()  # modules stay: looking through them takes 26 ms in the middle of an answer
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        # uvicorn would raise the signal again once it has stopped: the process would end by it.
        self._server.capture_signals = contextlib.nullcontext
        loop = asyncio.get_running_loop()
        with contextlib.suppress(
            NotImplementedError, RuntimeError, ValueError
        ):  # not main, Windows
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, self.stop)
            if self._reread is not None:
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
        """Read the settings again; what is wrong with them is told and changes nothing."""
        assert self._reread is not None
        try:
            self.proxy.reload(self._reread())
            logs.say("settings read again")
        except InvalidSetting as error:
            logs.say(f"settings kept: {error}")

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
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((settings.host, settings.port))
        found.listen(2_048)  # who connects before the server runs is served as soon as it does
    except OSError as error:
        found.close()
        raise InvalidSetting(
            f"cannot listen on {settings.host}:{settings.port} ({error.strerror}): "
            "choose another port with --listen"
        ) from None
    return found


def _server(proxy: Proxy) -> Any:
    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("the proxy needs a server: pip install 'trimtab[proxy]'") from None
    config = uvicorn.Config(
        proxy, log_level="critical", access_log=False, lifespan="on", ws="none",
        http=protocol(proxy.settings.head_seconds), interface="asgi3",
        server_header=False, date_header=False,
        timeout_graceful_shutdown=cast(int, proxy.settings.drain_seconds),  # and parts of a second
        timeout_keep_alive=75, h11_max_incomplete_event_size=262_144,
    )  # fmt: skip
    return uvicorn.Server(config)
