"""HTTP clients of httpx and httpx2 whose requests are fitted: new ones, or copies of a client."""

from __future__ import annotations

import importlib
from typing import Any

from trimtab.clients.guard import Guard, guard_of
from trimtab.clients.httpx_transport import classes
from trimtab.clients.onward import http_classes
from trimtab.errors import InvalidSetting, MissingExtra

LIBRARIES = ("httpx2", "httpx")
"""In the order in which one is taken where none is named."""
_OURS = frozenset(
    {"auth", "params", "headers", "cookies", "verify", "cert", "http1", "http2", "proxy", "mounts",
     "timeout", "follow_redirects", "limits", "max_redirects", "event_hooks", "base_url",
     "transport", "trust_env", "default_encoding"}
)  # fmt: skip
"""Arguments of the libraries' own clients; everything else is the guard's."""


def library(name: str | None = None) -> Any:
    """The module by name; the first that is installed.  Raises MissingExtra, InvalidSetting."""
    if name is not None and name not in LIBRARIES:
        raise InvalidSetting(f"library={name!r}: choose one of {', '.join(LIBRARIES)}")
    for candidate in LIBRARIES if name is None else (name,):
        try:
            return importlib.import_module(candidate)
        except ImportError:
            continue
    if name == "httpx":  # the extra brings httpx2
        raise MissingExtra("httpx is not installed: pip install httpx")
    raise MissingExtra("no HTTP library: pip install 'trimtab[httpx]', or the SDK you use")


def httpx_client(*, library: str | None = None, guard: Guard | None = None, **keywords: Any) -> Any:
    """An ``httpx2.Client`` (or ``httpx.Client``) for ``http_client=`` of an SDK.

    Takes the arguments of that class and of ``Guard`` (``window=``, ``session=``, …).  Closing it
    closes its connections, never the session.
    """
    return _client(library, "Client", guard, keywords)


def async_httpx_client(
    *, library: str | None = None, guard: Guard | None = None, **keywords: Any
) -> Any:
    """The same for async SDKs: an ``AsyncClient``."""
    return _client(library, "AsyncClient", guard, keywords)


def _client(name: str | None, kind: str, guard: Guard | None, keywords: dict[str, Any]) -> Any:
    theirs = {key: value for key, value in keywords.items() if key in _OURS}
    ours: Any = {key: value for key, value in keywords.items() if key not in _OURS}
    guard = guard_of(guard, ours)
    module = library(name)
    plain = getattr(module, kind)(**theirs)
    return guarded(plain, guard)


def guarded(client: Any, guard: Guard, owner: Any = None) -> Any:
    """A client like this one, through which it sends, whose requests are guarded.

    The client given stays as it is, and lives as long as the new one; both share its connections.
    ``owner`` lives as long: an SDK closes its connections when it is forgotten.
    """
    module, base = _of(client)
    sync = base is module.Client
    inner = http_classes(module)[0 if sync else 1](client, owner)
    return base(
        transport=classes(module)[0 if sync else 1](guard, inner),
        **{name: getattr(client, name) for name in _SHARED},
    )


_SHARED = (
    *("auth", "params", "headers", "cookies", "timeout", "follow_redirects", "base_url"),
    *("max_redirects", "trust_env"),
)
"""What a copy takes over.  Hooks are called by the client itself, as often as it sends."""


def library_of(kind: type) -> Any:
    """The module, httpx or httpx2, of a class of clients; None where it is of neither."""
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
