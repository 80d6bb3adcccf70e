"""``wrap(client)``: any SDK's client with guarded requests, in one line.

Knows how each SDK is copied with another HTTP client.  Imports an SDK only to copy its client.
The client given stays as it is; both share their connections.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from trimtab.errors import InvalidSetting
from trimtab.transports.clients import guarded
from trimtab.transports.guard import Guard, guard_of

_SIGN = ("Bedrock", "AWS")
"""In the names of Anthropic's clients that sign requests: a transport would come too late."""


def wrap(client: Any, *, guard: Guard | None = None, **keywords: Any) -> Any:
    """The client of an SDK, or ``litellm.completion``, with guarded requests.

    OpenAI and compatible, Anthropic, google-genai and Mistral clients, sync and async; boto3's
    ``bedrock-runtime`` clients (the very client comes back); HTTP clients of httpx and httpx2;
    ``litellm.completion`` and ``litellm.acompletion``.  ``keywords`` are those of ``Guard``.
    Raises InvalidSetting for anything else.
    """
    guard = guard_of(guard, keywords)
    root = _root(client)
    if root not in _WRAPPERS:
        raise InvalidSetting(
            f"{type(client).__name__} of {root or 'nowhere'} cannot be wrapped: give a client of "
            f"{', '.join(sorted(_WRAPPERS))}"
        )
    return _WRAPPERS[root](client, guard)


def litellm_callback(*, guard: Guard | None = None, **keywords: Any) -> Any:
    """For ``litellm.callbacks``: fits what a Router, LiteLLM's proxy or ``acompletion`` sends.

    ``keywords`` are those of ``Guard``.  Raises MissingExtra.
    """
    from trimtab.transports.litellm import callback

    return callback(guard=guard, **keywords)


def _root(client: Any) -> str:
    names = [base.__module__ for base in type(client).__mro__]
    names.append(getattr(client, "__module__", "") or "")
    if any(name.startswith("google.genai") for name in names):
        return "google.genai"
    roots = [name.partition(".")[0] for name in names]
    return next((root for root in roots if root in _WRAPPERS), roots[0])


def _with_options(client: Any, guard: Guard) -> Any:
    return client.with_options(http_client=guarded(client._client, guard, client))


def _anthropic(client: Any, guard: Guard) -> Any:
    """Clients that sign what they send get the middleware, which comes before that."""
    if not any(word in type(client).__name__ for word in _SIGN):
        return _with_options(client, guard)
    from trimtab.transports.middleware import anthropic_middleware

    ours = anthropic_middleware(guard=guard)
    return client.with_options(middleware=[*client.middleware, ours])


def _genai(client: Any, guard: Guard) -> Any:
    api = client._api_client
    inner = importlib.import_module(
        type(api._httpx_client).__mro__[-2].__module__.partition(".")[0]
    )
    plain = getattr(api, "_async_httpx_client", None) or inner.AsyncClient()
    options = api._http_options.model_copy(
        update={
            "httpx_client": guarded(api._httpx_client, guard, client),
            "httpx_async_client": guarded(plain, guard, client),
        }
    )
    same: dict[str, Any] = {"vertexai": api.vertexai, "http_options": options}
    if api.api_key:
        same["api_key"] = api.api_key
    else:
        same |= {"credentials": api._credentials, "project": api.project, "location": api.location}
    return type(client)(**same)


def _mistral(client: Any, guard: Guard) -> Any:
    known = client.sdk_configuration
    security = known.security
    key = (lambda: security().api_key) if callable(security) else getattr(security, "api_key", None)
    return type(client)(
        api_key=key, server=known.server, server_url=known.server_url,
        client=guarded(known.client, guard, client),
        async_client=guarded(known.async_client, guard, client),
        retry_config=known.retry_config, timeout_ms=known.timeout_ms,
        debug_logger=known.debug_logger,
    )  # fmt: skip


def _boto3(client: Any, guard: Guard) -> Any:
    from trimtab.transports.aws import boto3

    return boto3(client, guard=guard)


def _litellm(function: Any, guard: Guard) -> Any:
    from trimtab.transports.litellm import guarded_call

    return guarded_call(function, guard)


def _http(client: Any, guard: Guard) -> Any:
    return guarded(client, guard)


_WRAPPERS: dict[str, Callable[[Any, Guard], Any]] = {
    "openai": _with_options,
    "anthropic": _anthropic,
    "google.genai": _genai,
    "mistralai": _mistral,
    "botocore": _boto3,
    "litellm": _litellm,
    "httpx": _http,
    "httpx2": _http,
}
