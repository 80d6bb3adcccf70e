"""Which of our parts serves which client: ``trimtab.of`` finds it, also for a part of a client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from trimtab.clients.client_view import ClientView
from trimtab.clients.sent_fits import SentFits
from trimtab.errors import NotAClient

T = TypeVar("T")
_fits: WeakKeyDictionary[Any, SentFits] = WeakKeyDictionary()
"""By every object of ours that a user holds or an SDK's client has: clients, HTTP clients,
functions, middlewares."""
GUARDED_EVENT = "trimtab-guarded"
"""A botocore event that only wrapped clients and sessions have a handler for: it returns their
fits."""
_OWNERS = (
    "_client",  # of parts of OpenAI's and Anthropic's clients, and their own HTTP client
    "sdk_configuration", "client",  # Mistral
    "_modules", "_api_client", "_httpx_client",  # google-genai
    "__wrapped__",
)  # fmt: skip
"""Attributes by which a part of a client, or a copy of it, leads to the client that it sends with.
"""
_MAX_STEPS = 6


def register(client: T, fits: SentFits) -> T:
    """``client``, for which ``of`` gives these fits from now on."""
    _fits[client] = fits
    return client


def is_registered(client: Any) -> bool:
    """Whether this very object is one of ours."""
    with suppress(TypeError):  # not hashable, or without weak references
        return client in _fits
    return False


def of(client: Any) -> ClientView:
    """What trimtab did to the requests of a wrapped client: report, history, look-ups, undo.

        client = trimtab.wrap(OpenAI(), window=32_000)
        ...
        print(trimtab.of(client).report)

    ``client``: what ``wrap`` returned, a part or a copy of it (``client.chat``,
    ``client.with_options(…)``), a client of a wrapped class or boto3 session, an HTTP client,
    callback or hook of ``trimtab.clients``, or a ``TrimtabMiddleware``.
    Raises NotAClient for anything else.
    """
    for one in _led_to(client):
        fits = _fits_of(one)
        if fits is not None:
            return ClientView(fits)
    name = getattr(client, "__name__", None) or type(client).__name__
    raise NotAClient(
        f"{name} is not wrapped: use client = trimtab.wrap(client) first, and give what it returns"
    )


def _led_to(client: Any) -> Iterator[Any]:
    """The object, and those that it sends with."""
    waiting, seen = [client], list[Any]()
    for _ in range(_MAX_STEPS):
        if not waiting:
            return
        yield from waiting
        seen += waiting
        found = [getattr(one, name, None) for one in waiting for name in _OWNERS]
        waiting = [one for one in found if one is not None and not any(one is old for old in seen)]


def _fits_of(one: Any) -> SentFits | None:
    if is_registered(one):
        return _fits[one]
    if is_registered(type(one)):  # a client of google-genai's wrapped class
        return _fits[type(one)]
    for middleware in getattr(one, "middleware", None) or ():  # of Anthropic's clients
        if is_registered(middleware):
            return _fits[middleware]
    events = getattr(getattr(one, "meta", None), "events", None) or getattr(one, "events", None)
    if events is not None and hasattr(events, "emit"):
        return next((fits for _, fits in events.emit(GUARDED_EVENT) if fits), None)
    return None
