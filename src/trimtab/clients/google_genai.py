"""google-genai: a subclass of its client class that uses guarded HTTP clients.

An existing client has no public access to its HTTP client, so the class is wrapped.
"""

from __future__ import annotations

from typing import Any

from trimtab.clients.guard import Guard
from trimtab.clients.httpx_clients import guarded, library


def guarded_class(client_class: Any, guard: Guard) -> Any:
    """A subclass of ``genai.Client`` whose requests are guarded; everything else is unchanged.

    Requests go through the HTTP clients in the user's ``http_options``, if given.
    """

    class GuardedClient(client_class):  # type: ignore[misc]
        """A client of google-genai with fitted requests."""

        def __init__(self, *args: Any, http_options: Any = None, **keywords: Any) -> None:
            options = _options(http_options)
            inner = library()
            client = options.httpx_client or inner.Client(
                follow_redirects=True, **options.client_args or {}
            )
            async_client = options.httpx_async_client or inner.AsyncClient(
                follow_redirects=True, **options.async_client_args or {}
            )
            ours = {
                "httpx_client": guarded(client, guard),
                "httpx_async_client": guarded(async_client, guard),
            }
            super().__init__(*args, http_options=options.model_copy(update=ours), **keywords)

    GuardedClient.__name__ = GuardedClient.__qualname__ = client_class.__name__
    return GuardedClient


def _options(http_options: Any) -> Any:
    """The user's ``http_options`` as the SDK's own type."""
    from google.genai import types

    return types.HttpOptions.model_validate(http_options or {})
