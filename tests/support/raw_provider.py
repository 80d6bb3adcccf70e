"""A provider by hand: what it does with a connection is told byte by byte.

Knows sockets and where a request ends.  Asserts nothing.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

SAID = b'{"choices":[{"message":{"role":"assistant","content":"ok"}}]}'
EVENT = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'


class Seen(NamedTuple):
    """A request as it arrived."""

    head: bytes
    body: bytes


class Talk:
    """One connection of a provider; ``earlier``: requests it has answered before."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._ahead, self.earlier = connection, b"", 0

    def request(self) -> Seen | None:
        """The next request; None where the other end closes."""
        while b"\r\n\r\n" not in self._ahead:
            if not self._more():
                return None
        head, _, self._ahead = self._ahead.partition(b"\r\n\r\n")
        low = head.lower()
        size = 0
        if b"content-length:" in low:
            size = int(low.partition(b"content-length:")[2].split(b"\r\n")[0])
        while len(self._ahead) < size:
            if not self._more():
                return None
        body, self._ahead = self._ahead[:size], self._ahead[size:]
        return Seen(head, body)

    def say(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._connection.sendall(data)

    def reset(self) -> None:
        """Break the connection with RST."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._connection.close()

    def is_closed(self) -> bool:
        """Whether the other end hangs up; waits for it."""
        try:
            return self._connection.recv(1) == b""
        except TimeoutError:
            return False
        except ConnectionError:
            return True

    def _more(self) -> bool:
        data = self._connection.recv(1_000_000)
        self._ahead += data
        return bool(data)


class RawProvider:
    """``answer`` says what becomes of each request; ``requests`` are those that came whole.

    Where ``answer`` returns False its connection is closed, else it is kept.
    """

    def __init__(self, answer: Callable[[Talk, Seen], object]) -> None:
        self._answer, self.requests = answer, list[Seen]()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                connection.settimeout(30)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        talk = Talk(connection)
        with contextlib.suppress(OSError), connection:
            while (seen := talk.request()) is not None:
                self.requests.append(seen)
                if self._answer(talk, seen) is False:
                    return
                talk.earlier += 1


def whole(body: bytes = SAID, headers: bytes = b"content-type: application/json\r\n",
          status: bytes = b"200 OK") -> bytes:  # fmt: skip
    """A whole response as bytes."""
    length = b"content-length: %d\r\n" % len(body)
    return b"HTTP/1.1 " + status + b"\r\n" + headers + length + b"\r\n" + body


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)


def piece(data: bytes) -> bytes:
    """One chunk of a chunked body; of no bytes: its end."""
    return b"%x\r\n%s\r\n" % (len(data), data)


@contextmanager
def raw_provider(answer: Callable[[Talk, Seen], object]) -> Iterator[RawProvider]:
    """One that listens."""
    provider = RawProvider(answer)
    try:
        yield provider
    finally:
        provider.close()
