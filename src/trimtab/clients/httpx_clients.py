"""HTTP clients of httpx and httpx2 whose requests are fitted: new ones, or copies of a client."""

from __future__ import annotations

import importlib
from typing import Any

from trimtab.clients.guard import Guard, guard_of
from trimtab.clients.httpx_transport import classes
from trimtab.clients.onward import http_classes
from trimtab.clients.wrapped_clients import register
from trimtab.errors import InvalidSetting, MissingExtra, shown

LIBRARIES = ("httpx2", "httpx")
"""The libraries, in the order of preference."""
_OURS = frozenset(
    {"auth", "params", "headers", "cookies", "verify", "cert", "http1", "http2", "proxy", "mounts",
     "timeout", "follow_redirects", "limits", "max_redirects", "event_hooks", "base_url",
     "transport", "trust_env", "default_encoding"}
)  # fmt: skip
"""Arguments for the library's client; all others are ours."""


def library(name: str | None = None) -> Any:
    """The module called ``name``, or the first installed.  Raises MissingExtra, InvalidSetting."""
    if name is not None and name not in LIBRARIES:
        raise InvalidSetting(f"library={shown(name)}: choose one of {', '.join(LIBRARIES)}")
    for candidate in LIBRARIES if name is None else (name,):
        try:
            return importlib.import_module(candidate)
        except ImportError:
            continue
    if name == "httpx":  # the extra brings httpx2
        raise MissingExtra("httpx is not installed: pip install httpx")
    raise MissingExtra("no HTTP library: pip install 'trimtab[httpx]', or the SDK you use")


def httpx_client(*, library: str | None = None, **keywords: Any) -> Any:
    """An ``httpx2.Client`` (or ``httpx.Client``) for ``http_client=`` of an SDK.

    Takes the arguments of that class and of ``wrap`` (``window=``, ``session=``, …).  Closing it
    closes its connections, never the session.
    """
    return _client(library, "Client", "httpx_client", keywords)


def async_httpx_client(*, library: str | None = None, **keywords: Any) -> Any:
    """The same for async SDKs: an ``AsyncClient``."""
    return _client(library, "AsyncClient", "async_httpx_client", keywords)


def _client(name: str | None, kind: str, door: str, keywords: dict[str, Any]) -> Any:
    theirs = {key: value for key, value in keywords.items() if key in _OURS}
    ours: Any = {key: value for key, value in keywords.items() if key not in _OURS}
    module = library(name)
    guard = guard_of(door, ours, f"{module.__name__}.{kind}")
    plain = getattr(module, kind)(**theirs)
    return guarded(plain, guard)


def guarded(client: Any, guard: Guard, owner: Any = None) -> Any:
    """A copy of ``client`` whose requests are guarded and sent through ``client``.

    ``client`` is not changed; both share its connections.  The copy keeps ``client`` and ``owner``
    alive: an SDK client closes its connections when it is garbage-collected.
    """
    module, base = _of(client)
    sync = base is module.Client
    inner = http_classes(module)[0 if sync else 1](client, owner)
    copy = base(
        transport=classes(module)[0 if sync else 1](guard, inner),
        **{name: getattr(client, name) for name in _SHARED},
    )
    return register(copy, guard.fits)


_SHARED = (
    *("auth", "params", "headers", "cookies", "timeout", "follow_redirects", "base_url"),
    *("max_redirects", "trust_env"),
)
"""Attributes that the copy takes over.  Event hooks are not: the original client calls them at
each send."""


def library_of(kind: type) -> Any:
    """The module, httpx or httpx2, that a client class belongs to; None if neither."""
    roots = [base.__module__.partition(".")[0] for base in kind.__mro__]
    library = next((name for name in LIBRARIES if name in roots), None)
    return library and importlib.import_module(library)


def _of(client: Any) -> tuple[Any, Any]:
    """(library, plain class) of a client."""
    module = library_of(type(client))
    if module is None:
        raise InvalidSetting(f"{type(client).__name__} is no client of {' or '.join(LIBRARIES)}")
    sync = isinstance(client, module.Client)
    return module, module.Client if sync else module.AsyncClient
