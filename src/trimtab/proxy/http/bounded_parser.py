"""Bounds what httptools reads of a request beside its body: head, chunk sizes and trailers.

h11 has a bound of its own.  httptools has none, and takes fields behind a chunked body (trailers)
for headers of the request: a server in front of the proxy does not check those.
"""

from __future__ import annotations

from typing import Any

MAX_BYTES = 262_144
"""Of a head, and between two pieces of a body."""
_TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n"
    b"content-length: 0\r\n\r\n"
)


class _Dropped(list[tuple[bytes, bytes]]):
    """Where trailers go."""

    def append(self, pair: tuple[bytes, bytes], /) -> None:
        """Keep nothing."""


def bounded(protocol: Any) -> Any:
    """The server's protocol with these bounds; h11's unchanged."""
    if not hasattr(protocol, "on_headers_complete"):
        return protocol

    class BoundedParser(protocol):  # type: ignore[misc]
        """uvicorn's protocol for httptools."""

        beside_body = 0
        """Bytes since the last piece of a body, or the last end of a head or request."""

        def data_received(self, data: bytes) -> None:
            """Bytes of a client."""
            self.beside_body += len(data)
            super().data_received(data)
            if self.beside_body > MAX_BYTES and not self.transport.is_closing():
                if self.cycle is None or self.cycle.response_complete:
                    self.transport.write(_TOO_LONG)
                self.transport.close()

        def on_headers_complete(self) -> None:
            """A head has ended."""
            self.beside_body = 0
            super().on_headers_complete()
            self.headers = _Dropped()

        def on_body(self, body: bytes) -> None:
            """A piece of a body."""
            self.beside_body = 0
            super().on_body(body)

        def on_message_complete(self) -> None:
            """A request has ended."""
            self.beside_body = 0
            super().on_message_complete()

    return BoundedParser
