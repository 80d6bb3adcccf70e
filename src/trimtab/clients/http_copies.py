"""Copies of a request or response of httpx or httpx2 with another body; the module is an argument.

The originals are never changed.
"""

from __future__ import annotations

from typing import Any

_DROPPED = ("content-length", "transfer-encoding")
"""Headers that the library sets anew for another body."""


def with_body(module: Any, request: Any, body: bytes) -> Any:
    """``request`` with this body; the very same object if it has it already."""
    if body is request.content:
        return request
    raw = request.headers.raw
    headers = [(k, v) for k, v in raw if k.decode("latin-1").lower() not in _DROPPED]
    return module.Request(
        request.method, request.url, headers=headers, content=body, extensions=request.extensions
    )


def rewritten(module: Any, response: Any, stream: Any) -> Any:
    """``response`` with a stream of other bytes, which are not encoded."""
    headers = _of_plain_body(response)
    return module.Response(
        response.status_code, headers=headers, stream=stream, extensions=response.extensions
    )


def rewritten_whole(module: Any, response: Any, content: bytes) -> Any:
    """``response``, which was read, with other bytes."""
    copy = module.Response(
        response.status_code, headers=_of_plain_body(response), content=content,
        request=response.request, extensions=response.extensions,
    )  # fmt: skip
    copy.elapsed = response.elapsed
    return copy


def _of_plain_body(response: Any) -> list[tuple[bytes, bytes]]:
    """The response's headers without those that describe its body."""
    dropped = (*_DROPPED, "content-encoding")
    return [(k, v) for k, v in response.headers.raw if k.decode("latin-1").lower() not in dropped]


def with_stream(module: Any, response: Any, stream: Any) -> Any:
    return module.Response(
        response.status_code,
        headers=response.headers,
        stream=stream,
        extensions=response.extensions,
    )
