"""A client's connection: how long the head of a request may take, and a client that only listens.

Knows asyncio and the two HTTP protocols of uvicorn, which this goes in front of.  Does not know
what is asked for.
"""

from __future__ import annotations

import asyncio
import re
import select
from typing import Any, cast

LOOK_SECONDS = 0.25
"""How often a half-closed connection is looked at."""
_LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_STILL_THERE = b"HTTP/1.1 100 Continue\r\n\r\n"
"""Clients pass over it, wherever it comes before an answer; a closed socket answers with RST."""
_OFFER = re.compile(rb"^upgrade:(?!.*websocket).*\r\n", re.IGNORECASE | re.MULTILINE)


class Patience(asyncio.Protocol):
    """Goes in front of a protocol of uvicorn (``protocol``).

    The head of a request has ``head_seconds`` from its first byte: then the answer is 408.  A
    connection that never says anything is closed like one kept alive, without a word.

    A client that has sent all of its request and then, before an answer, closes only its own
    direction gets its answer, as one that keeps it open does.  From here that looks as if it had
    hung up: so it is told something that it has to pass over.  Where nobody is left to hear it, it
    has hung up.

    An offer to go on in another protocol (Java's client sends ``Upgrade: h2c`` with its first
    request) is taken out of the head: httptools would take the body for that other protocol.
    """

    head_seconds: float
    transport: Any
    cycle: Any
    loop: asyncio.AbstractEventLoop
    timeout_keep_alive: float
    _timer: asyncio.TimerHandle | None = None
    _begun = False
    _half_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Someone connects."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(self.timeout_keep_alive, self._late)

    def data_received(self, data: bytes) -> None:
        """Bytes of a request."""
        super().data_received(_without_offer(data) if self._waits else data)
        if not self._waits:
            self._stop_timer()
        elif not self._begun:
            self._stop_timer()
            self._begun = True
            self._timer = self.loop.call_later(self.head_seconds, self._late)

    def eof_received(self) -> bool:
        """The client sends nothing more; whether the connection stays open for its answer."""
        if self._half_closed:
            return True
        if self._waits or self.cycle.more_body or self.cycle.response_started:
            return False
        self._half_closed = True
        self.cycle.keep_alive = False  # the connection ends with this answer
        if self.cycle.scope["http_version"] != "1.0":
            self.transport.write(_STILL_THERE)
        self._look()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._stop_timer()
        super().connection_lost(exc)

    @property
    def _waits(self) -> bool:
        """Whether the next thing to come is the head of a request."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def _stop_timer(self) -> None:
        self._begun = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        """The head of a request is not there in time."""
        if self._waits and not self.transport.is_closing():
            if self._begun:
                self.transport.write(_LATE)
            self.transport.close()

    def _look(self) -> None:
        """Whether a half-closed client still listens; again in a while."""
        if self.transport.is_closing():
            return
        if _is_gone(self.transport.get_extra_info("socket")):
            self.transport.abort()
        else:
            self._timer = self.loop.call_later(LOOK_SECONDS, self._look)


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
    poll.register(connection.fileno(), 0)  # errors and hang-ups are told unasked
    return bool(poll.poll(0))


def protocol(head_seconds: float) -> type[asyncio.Protocol]:
    """The protocol that uvicorn would take, with patience."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    found = type("Connection", (Patience, AutoHTTPProtocol), {"head_seconds": head_seconds})
    return cast(type[asyncio.Protocol], found)
