"""The parts of ASGI that we need: read a body, send a response, notice when the client hangs up."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trimtab.proxy.http.budgets import RequestBudget

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]


MAX_KEPT = 500_000
"""Bytes of an answer that the dashboard can show."""
BODY_SECONDS = 1_800.0
"""How long a client may take over the body of a request."""


_BODILESS = (204, 304)
"""Statuses without a body: servers wait for one of the length that their answer names."""
_LENGTH = b"content-length"


class ClientGone(Exception):
    """The client hung up before its request was whole."""


class Declined(Exception):
    """A request that the proxy answers itself, with an error of this status, message and type.

    ``closes``: whether the connection is closed, since more of the request may come.
    """

    def __init__(
        self, status: int, message: str, kind: str = "trimtab_proxy", *, closes: bool = False
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.closes = status, kind, closes


@dataclass
class Body:
    """A request's body as it arrives.

    ``whole`` reads all of it unless it is longer than allowed; ``rest`` yields what was read and
    then the remainder.  Both raise ClientGone, and Declined if nothing arrives for ``patience``
    seconds or all of it takes longer than BODY_SECONDS.  The bytes held are taken from
    ``budget``.
    """

    receive: Receive
    max_bytes: int
    patience: float = 600.0
    budget: RequestBudget | None = None
    stalled: Declined | None = None
    gone: bool = False
    parts: list[bytes] = field(default_factory=list)
    ended: bool = False
    _over: asyncio.Event = field(default_factory=asyncio.Event)
    _began: float = field(default_factory=time.monotonic)

    async def _next(self) -> bytes:
        left = self._began + BODY_SECONDS - time.monotonic()
        try:
            async with asyncio.timeout(min(self.patience, left)):
                message = await self.receive()
        except TimeoutError:
            what = f"stopped for {self.patience:g} seconds"
            if left <= self.patience:
                what = f"took longer than {BODY_SECONDS:g} seconds"
            about = f"the request's body {what}: send it again"
            self.stalled = Declined(408, about, "request_timeout", closes=True)
            raise self.stalled from None
        if message["type"] == "http.disconnect":
            self.gone = True
            self._over.set()
            raise ClientGone
        self.ended = not message.get("more_body", False)
        if self.ended:
            self._over.set()
        data: bytes = message.get("body", b"")
        return data

    async def whole(self) -> bytes | None:
        """The whole body; None if it is longer than may be held: then use ``rest``."""
        total = sum(map(len, self.parts))
        while not self.ended and total <= self.max_bytes:
            if part := await self._next():
                self.parts.append(part)
                total += len(part)
                if self.budget is not None and not self.budget.take(len(part)):
                    return None
        if total > self.max_bytes:
            return None
        return self.parts[0] if len(self.parts) == 1 else b"".join(self.parts)

    async def rest(self) -> Any:
        """Yield each part in order, without keeping it."""
        for part in self.parts:
            yield part
        self.parts = []
        while not self.ended:
            if part := await self._next():
                yield part

    async def hung_up(self) -> None:
        """Return when the client has hung up.  While the body arrives, reading it notices that."""
        await self._over.wait()
        while (await self.receive())["type"] != "http.disconnect":
            pass


@dataclass
class HttpResponse:
    """One response.  It begins at most once and can be broken off."""

    send: Send
    begun: bool = False
    ended: bool = False
    status: int = 0
    sent_bytes: int = 0
    begun_at: float = 0.0
    """When its first byte was sent, by ``time.perf_counter``."""
    kept: bytearray | None = None
    """A copy of the body's first ``MAX_KEPT`` bytes; None keeps no copy."""

    async def begin(self, status: int, headers: Sequence[Header]) -> None:
        self.begun, self.status, self.begun_at = True, status, time.perf_counter()
        kept = [pair for pair in headers if status not in _BODILESS or pair[0].lower() != _LENGTH]
        await self.send({"type": "http.response.start", "status": status, "headers": kept})

    async def part(self, data: bytes) -> None:
        """Send a part of the body; waits while the client does not read."""
        if data:
            self._count(data)
            await self.send({"type": "http.response.body", "body": data, "more_body": True})

    def _count(self, data: bytes) -> None:
        self.sent_bytes += len(data)
        if self.kept is not None and len(self.kept) < MAX_KEPT:
            self.kept += data[: MAX_KEPT - len(self.kept)]

    async def end(self) -> None:
        """End the body.  Without this the connection is broken and the client sees a truncated
        answer, as it would without us."""
        self.ended = True
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def whole(self, status: int, headers: Sequence[Header], body: bytes = b"") -> None:
        """A whole response at once."""
        length = (b"content-length", str(len(body)).encode())
        await self.begin(status, [*headers, length])
        self._count(body)
        self.ended = True
        await self.send({"type": "http.response.body", "body": body, "more_body": False})

    async def json(self, status: int, value: Any, headers: Sequence[Header] = ()) -> None:
        """A JSON response."""
        kind = (b"content-type", b"application/json")
        await self.whole(status, [kind, *headers], json.dumps(value).encode())

    async def declined(self, declined: Declined) -> None:
        """An error of ours, in a shape that all SDKs display; boto3 reads the fields at the top.
        An answer that has begun is broken off instead."""
        if self.begun:
            return
        kind, message = declined.kind, f"trimtab: {declined}"
        error = {"type": kind, "message": message}
        value = {"type": "error", "error": error, "code": kind, "message": message}
        closing = [(b"connection", b"close")] if declined.closes else []
        await self.json(declined.status, value, closing)


async def while_there(body: Body, work: Coroutine[Any, Any, None]) -> None:
    """Run the coroutine.  Raises ClientGone if the client hangs up first."""
    task = asyncio.ensure_future(work)
    hung_up = asyncio.ensure_future(body.hung_up())
    try:
        await asyncio.wait({task, hung_up}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGone
        task.result()
    finally:
        for one in (task, hung_up):
            one.cancel()
        await asyncio.gather(task, hung_up, return_exceptions=True)
