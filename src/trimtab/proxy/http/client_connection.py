"""Client connections: time limits for request heads, half-closed connections, a maximum number.

``ClientConnection`` is an asyncio protocol in front of the server's own, to which it passes every
byte.  It follows a request by its ASGI messages (``Connections.watched``).
"""

from __future__ import annotations

import asyncio
import re
import select
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from trimtab.proxy.http.asgi import Message, Receive, Scope, Send
from trimtab.proxy.http.bounded_parser import bounded

LOOK_SECONDS = 0.25
"""Seconds between two checks of a half-closed connection."""
HEAD_SECONDS = 60.0
"""How long a client may take over the head of a request."""
IDLE_SECONDS = 75
"""Seconds that a connection may be silent before its first request, and between two."""
_LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_STILL_THERE = b"HTTP/1.1 100 Continue\r\n\r\n"
"""Clients ignore it anywhere before an answer; a closed socket answers with RST."""
_OFFER = re.compile(rb"^upgrade:(?!.*websocket).*\r\n", re.IGNORECASE | re.MULTILINE)
_OFFER_NAME, _MAX_OFFER = b"upgrade:", 1_000
_HEAD_END = re.compile(rb"\r?\n\r?\n")

App = Callable[[Scope, Receive, Send], Any]


@dataclass(slots=True)
class RequestProgress:
    """A request that is being answered.

    ``whole``: the app has all of its body; ``waiting``: it waits for more; ``begun``: its answer
    has begun.
    """

    http_version: str
    whole: bool = False
    waiting: bool = False
    begun: bool = False


class Connections:
    """All connections of one server.  ``most``: when there are more, the one that has waited
    longest for a request is closed; without such a one the newest."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._by_client: dict[tuple[str, int], ClientConnection] = {}
        self._open: set[ClientConnection] = set()
        self._waiting: dict[ClientConnection, None] = {}

    def protocol(self, server_protocol: Callable[..., asyncio.Protocol]) -> Any:
        """A factory of protocols for new connections, from the server's own factory."""

        bounded_protocol: Any = bounded(server_protocol)

        def made(**options: Any) -> ClientConnection:
            return ClientConnection(self, bounded_protocol(**options))

        return made

    def watched(self, app: App) -> App:
        """The app, wrapped so that each connection learns the state of its request."""

        async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
            connection = self._by_client.get(scope.get("client") or ("", 0))
            if scope["type"] != "http" or connection is None:
                await app(scope, receive, send)
                return
            progress = RequestProgress(scope["http_version"])
            connection.request_started(progress)

            async def received() -> Message:
                progress.waiting = not progress.whole
                message = await receive()
                progress.waiting = False
                if not progress.whole and not message.get("more_body"):
                    progress.whole = True
                    connection.request_received()
                return message

            async def sent(message: Message) -> None:
                progress.begun = True
                await send(message)
                if message["type"] == "http.response.body" and not message.get("more_body"):
                    connection.response_ended()

            await app(scope, received, sent)

        return asgi

    def opened(self, connection: ClientConnection) -> None:
        """Add a connection."""
        self._open.add(connection)
        self._by_client[connection.client] = connection
        self.waits(connection)
        if len(self._open) > self.most:
            longest = next(iter(self._waiting))
            self.closed(longest)  # at once: more may come before its end is reported
            longest.transport.close()

    def closed(self, connection: ClientConnection) -> None:
        """Remove a connection."""
        self._open.discard(connection)
        self._waiting.pop(connection, None)
        if self._by_client.get(connection.client) is connection:
            del self._by_client[connection.client]

    def waits(self, connection: ClientConnection) -> None:
        """Mark a connection as waiting for a request."""
        self._waiting[connection] = None

    def works(self, connection: ClientConnection) -> None:
        """Mark a connection as busy with a request."""
        self._waiting.pop(connection, None)


class ClientConnection(asyncio.Protocol):
    """One connection.

    The head of a request must arrive within HEAD_SECONDS of its first byte, else the answer is
    408.  A connection that sends nothing is closed without an answer, like an idle kept-alive one.

    A client that has sent its whole request may close its sending side before the answer
    (half-close); it still gets the answer.  Here that looks like a hang-up, so the connection is
    probed with bytes that a client ignores: if the other end is gone, the client has hung up.

    An offer of another protocol (Java's client sends ``Upgrade: h2c`` with its first request) is
    removed from the head: httptools would read the body as that protocol.  A line that may become
    one is held back until it is whole.
    """

    transport: asyncio.Transport

    def __init__(self, connections: Connections, server_protocol: asyncio.Protocol) -> None:
        self._connections, self._inner = connections, server_protocol
        self.client = ("", 0)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._request: RequestProgress | None = None
        self._in_head, self._head_end, self._held = True, b"", b""
        self._begun = self._half_closed = False

    # --- asyncio -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Someone connects."""
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it
        peer = transport.get_extra_info("peername")
        self.client = (str(peer[0]), int(peer[1])) if peer else ("", id(self))
        self._inner.connection_made(transport)
        self._timer = self._loop.call_later(IDLE_SECONDS, self._late)
        self._connections.opened(self)

    def data_received(self, data: bytes) -> None:
        """Bytes of a request."""
        if self._request is None and not self._begun:
            self._stop_timer()
            self._begun = True
            self._timer = self._loop.call_later(HEAD_SECONDS, self._late)
        if self._in_head:
            data = self._of_head(data)
        self._inner.data_received(data)

    def _of_head(self, data: bytes) -> bytes:
        """Bytes of a head, and of what follows it, without an offer of another protocol."""
        new_line = self._head_end[-1:] in (b"", b"\n")
        data, self._held = self._held + data, b""
        end = _HEAD_END.search(self._head_end + data)
        self._in_head = end is None
        size = len(data) if end is None else end.end() - len(self._head_end)
        start = 0 if new_line else data.find(b"\n", 0, size) + 1 or size
        if self._in_head:
            last = max(data.rfind(b"\n") + 1, start)
            if _may_offer(data[last:]):
                self._held, data, size = data[last:], data[:last], last
        self._head_end = (self._head_end + data[:size])[-3:]
        return data[:start] + _OFFER.sub(b"", data[start:size]) + data[size:]

    def eof_received(self) -> bool:
        """The client has closed its sending side.  Returns whether to keep the connection open."""
        if self._half_closed:
            return True
        if self._in_head or (self._request is not None and self._request.begun):
            return False
        self._half_closed = True
        self._ask_whether_there()
        self._stop_timer()
        self._timer = self._loop.call_later(LOOK_SECONDS, self._look)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self._stop_timer()
        self._connections.closed(self)
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """The client reads slowly."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """The client reads again."""
        self._inner.resume_writing()

    # --- what becomes of a request --------------------------------------------------------------

    def request_started(self, progress: RequestProgress) -> None:
        """The head of a request has arrived."""
        self._request, self._in_head = progress, False
        self._connections.works(self)
        if not self._half_closed:
            self._stop_timer()

    def request_received(self) -> None:
        """The app has all of its body."""
        if self._half_closed:
            self._ask_whether_there()

    def response_ended(self) -> None:
        """The request was answered; the next bytes are a new head."""
        self._request = None
        self._in_head, self._head_end, self._held, self._begun = True, b"", b"", False
        self._connections.waits(self)
        if self._half_closed:
            self.transport.close()

    # --- time ----------------------------------------------------------------------------------

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        """Answer 408: the head did not arrive in time."""
        if self._request is None and not self.transport.is_closing():
            if self._begun:
                self.transport.write(_LATE)
            self.transport.close()

    def _ask_whether_there(self) -> None:
        request = self._request
        if self.transport.is_closing():  # where uvloop raises on a write
            return
        if request is not None and request.whole and request.http_version != "1.0":
            self.transport.write(_STILL_THERE)

    def _look(self) -> None:
        """Check whether a half-closed client still listens and has sent its whole request."""
        if self.transport.is_closing():
            return
        cut = self._request is None or (self._request.waiting and not self._request.begun)
        if cut or _is_gone(self.transport.get_extra_info("socket")):
            self.transport.abort()
        else:
            self._timer = self._loop.call_later(LOOK_SECONDS, self._look)


def _may_offer(line: bytes) -> bool:
    """Whether the beginning of a line may become an offer of another protocol."""
    name = line[: len(_OFFER_NAME)].lower()
    return 0 < len(line) < _MAX_OFFER and _OFFER_NAME.startswith(name)


def _is_gone(connection: Any) -> bool:
    """Whether the other end of a socket has answered that nobody is there."""
    if not hasattr(select, "poll"):
        return True  # Windows: as if every such client had hung up
    poll = select.poll()
    poll.register(connection.fileno(), 0)  # errors and hang-ups are always reported
    return bool(poll.poll(0))
