"""HTTP clients of httpx and httpx2 whose requests are guarded.

Knows how a client is built and how one is copied.  Which SDK takes which library stands in
``wrapping``.
"""

from __future__ import annotations

import importlib
from typing import Any

from trimtab.errors import InvalidSetting, MissingExtra
from trimtab.transports.guard import Guard, guard_of
from trimtab.transports.over_http import classes

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
    ours = {key: value for key, value in keywords.items() if key not in _OURS}
    guard = guard_of(guard, ours)
    module = library(name)
    plain = getattr(module, kind)(**theirs)
    return guarded(plain, guard)


def guarded(client: Any, guard: Guard, owner: Any = None) -> Any:
    """A client like this one, on the same connections, whose requests are guarded.

    The client given stays as it is.  ``owner`` is kept alive as long as the new one: SDKs close
    their connections when they are forgotten.
    """
    module, base = _of(client)
    kind = classes(module)[0 if base is module.Client else 1]
    made = base.__new__(base)
    made.__dict__.update(client.__dict__)
    made._transport = kind(guard, client._transport)
    made._mounts = {
        pattern: None if inner is None else kind(guard, inner)
        for pattern, inner in client._mounts.items()
    }
    made._trimtab_keeps = (client, owner)
    return made


def _of(client: Any) -> tuple[Any, Any]:
    """(library, plain class) of a client."""
    for name in LIBRARIES:
        if any(base.__module__.partition(".")[0] == name for base in type(client).__mro__):
            module = importlib.import_module(name)
            return module, module.Client if isinstance(
                client, module.Client
            ) else module.AsyncClient
    raise InvalidSetting(f"{type(client).__name__} is no client of {' or '.join(LIBRARIES)}")
