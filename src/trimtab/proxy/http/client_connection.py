"""Clients' connections: time limits for heads, half-closed connections, how many there may be.

``ClientConnection`` is a protocol of asyncio's in front of the server's own, which it hands every
byte.  What becomes of a request it hears from the ASGI messages (``Connections.watched``).
"""

from __future__ import annotations

import asyncio
import re
import select
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trimtab.proxy.http.asgi import Message, Receive, Scope, Send

LOOK_SECONDS = 0.25
"""How often a half-closed connection is looked at."""
IDLE_SECONDS = 75
"""How long a connection may say nothing before its first request, and between two."""
_LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_STILL_THERE = b"HTTP/1.1 100 Continue\r\n\r\n"
"""Clients pass over it, wherever it comes before an answer; a closed socket answers with RST."""
_OFFER = re.compile(rb"^upgrade:(?!.*websocket).*\r\n", re.IGNORECASE | re.MULTILINE)

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

    def __init__(self, head_seconds: float, most: int | None = None) -> None:
        self.head_seconds, self.most = head_seconds, most
        self._by_client: dict[tuple[str, int], ClientConnection] = {}
        self._open: set[ClientConnection] = set()
        self._waiting: dict[ClientConnection, None] = {}

    def protocol(self, server_protocol: Callable[..., asyncio.Protocol]) -> Any:
        """What makes the protocol of a new connection, from what makes the server's own."""

        def made(**given: Any) -> ClientConnection:
            return ClientConnection(self, server_protocol(**given))

        return made

    def watched(self, app: App) -> App:
        """The app, with each request announced to its connection."""

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
        """One more."""
        self._open.add(connection)
        self._by_client[connection.client] = connection
        self.waits(connection)
        if self.most is not None and len(self._open) > self.most:
            longest = next(iter(self._waiting))
            self.closed(longest)  # at once: more may come before its end is reported
            longest.transport.close()

    def closed(self, connection: ClientConnection) -> None:
        """One less."""
        self._open.discard(connection)
        self._waiting.pop(connection, None)
        if self._by_client.get(connection.client) is connection:
            del self._by_client[connection.client]

    def waits(self, connection: ClientConnection) -> None:
        """It waits for a request from now on."""
        self._waiting[connection] = None

    def works(self, connection: ClientConnection) -> None:
        """A request of it is being answered."""
        self._waiting.pop(connection, None)


class ClientConnection(asyncio.Protocol):
    """One connection.

    The head of a request has ``head_seconds`` from its first byte: then the answer is 408.  A
    connection that never says anything is closed like one kept alive, without a word.

    A client that has sent all of its request and then, before an answer, closes only its own
    direction gets its answer, as one that keeps it open does.  From here that looks as if it had
    hung up: so it gets something that it has to pass over.  Where nobody is left to hear it, it
    has hung up.

    An offer to go on in another protocol (Java's client sends ``Upgrade: h2c`` with its first
    request) is taken out of the head: httptools would take the body for that other protocol.
    """

    transport: asyncio.Transport

    def __init__(self, connections: Connections, server_protocol: asyncio.Protocol) -> None:
        self._connections, self._inner = connections, server_protocol
        self.client = ("", 0)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._request: RequestProgress | None = None
        self._in_head, self._head_end = True, b""
        self._begun = self._half_closed = False

    # --- asyncio -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Someone connects."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
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
            self._timer = self._loop.call_later(self._connections.head_seconds, self._late)
        if self._in_head:
            data = _without_offer(data)
            end = self._head_end + data
            self._in_head, self._head_end = b"\r\n\r\n" not in end, end[-3:]
        self._inner.data_received(data)

    def eof_received(self) -> bool:
        """The client sends nothing more; whether the connection stays open for its answer."""
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
        """It is over."""
        self._stop_timer()
        self._connections.closed(self)
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """The client reads slowly."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """It has caught up."""
        self._inner.resume_writing()

    # --- what becomes of a request --------------------------------------------------------------

    def request_started(self, progress: RequestProgress) -> None:
        """The head of a request is whole: it is being answered."""
        self._request = progress
        self._connections.works(self)
        if not self._half_closed:
            self._stop_timer()

    def request_received(self) -> None:
        """The app has all of its body."""
        if self._half_closed:
            self._ask_whether_there()

    def response_ended(self) -> None:
        """It was answered: the next thing to come is a head."""
        self._request = None
        self._in_head, self._head_end, self._begun = True, b"", False
        self._connections.waits(self)
        if self._half_closed:
            self.transport.close()

    # --- time ----------------------------------------------------------------------------------

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        """The head of a request is not there in time."""
        if self._request is None and not self.transport.is_closing():
            if self._begun:
                self.transport.write(_LATE)
            self.transport.close()

    def _ask_whether_there(self) -> None:
        request = self._request
        if request is not None and request.whole and request.http_version != "1.0":
            self.transport.write(_STILL_THERE)

    def _look(self) -> None:
        """Whether a half-closed client still listens, and sent all of its request; again soon."""
        if self.transport.is_closing():
            return
        cut = self._request is None or (self._request.waiting and not self._request.begun)
        if cut or _is_gone(self.transport.get_extra_info("socket")):
            self.transport.abort()
        else:
            self._timer = self._loop.call_later(LOOK_SECONDS, self._look)


def _without_offer(data: bytes) -> bytes:
    """The bytes of a head, and what comes with it, without an offer of another protocol."""
    end = data.find(b"\r\n\r\n") + 2
    head = data[:end] if end > 1 else data
    kept, offers = _OFFER.subn(b"", head)
    return kept + data[len(head) :] if offers else data


def _is_gone(connection: Any) -> bool:
    """Whether the other end of a socket has answered that nobody is there."""
    if not hasattr(select, "poll"):
        return True  # Windows: as if every such client had hung up
    poll = select.poll()
    poll.register(connection.fileno(), 0)  # errors and hang-ups are always reported
    return bool(poll.poll(0))
