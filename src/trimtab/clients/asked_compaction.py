"""Asks the provider to compact a conversation, through the transport of the client in use, before
the request itself is sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from trimtab.clients.decoding import decoded
from trimtab.clients.effects import ClientKind, Effects
from trimtab.clients.guard import Guard
from trimtab.clients.http_copies import copy_of, headers_for_other_body
from trimtab.clients.request_target import RequestTarget
from trimtab.sessions.provider_compactions import HEADERS, CompactionOffer
from trimtab.telemetry import logger


def ask(
    module: Any, guard: Guard, target: RequestTarget, request: Any, send: Callable[[Any], Any],
    kind: ClientKind,
) -> Effects[Any]:  # fmt: skip
    """Ask the provider to compact the conversation if that pays; return the request to send."""
    fitted = guard.compaction_offer(request.content, target)
    if fitted is not None:
        try:
            answer = yield partial(send, _asked(module, request, fitted.compaction_offer[1]))
            more, chunks = kind.reader(answer.stream), list[bytes]()
            while (chunk := (yield more)) is not None:
                chunks.append(chunk)
            yield partial(kind.close, answer)
            guard.compacted(fitted, *_read(answer, b"".join(chunks)))
        except Exception as error:  # our fold stands
            logger().warning("the provider was not asked to compact: %s", type(error).__name__)
    return with_beta(module, guard, target, request)


def with_beta(module: Any, guard: Guard, target: RequestTarget, request: Any) -> Any:
    """The request with the header that the provider needs to read its compactions."""
    asks = guard.session.settings.compaction == "provider"
    headers = HEADERS.get(target.format, {}) if asks else {}
    return _with(module, request, headers, request.url, request.content) if headers else request


def _asked(module: Any, request: Any, offer: CompactionOffer) -> Any:
    url = request.url.copy_with(path=request.url.path + offer.path)
    return _with(module, request, offer.headers, url, json.dumps(offer.body).encode())


def _with(module: Any, request: Any, more: Mapping[str, str], url: Any, body: bytes) -> Any:
    headers = module.Headers(headers_for_other_body(request))
    for name, value in more.items():
        given = headers.get(name, "")
        headers[name] = given if value in given else ",".join(filter(None, (given, value)))
    return copy_of(module, request, url, headers, body)


def _read(answer: Any, chunks: bytes) -> tuple[int, Any]:
    return int(answer.status_code), decoded(chunks, answer.headers.get("content-encoding", ""))
