"""On the way to the provider: HTTP clients, SDKs, boto3 and LiteLLM whose requests are guarded.

``wrap(client)`` is the one line; ``httpx_client(…)`` is a client for ``http_client=`` of an SDK;
``boto3(client)``, ``anthropic_middleware(…)`` and ``litellm_callback(…)`` are the others.
Importing loads no SDK and no HTTP library.
"""

from __future__ import annotations

from trimtab.transports.aws import boto3
from trimtab.transports.clients import async_httpx_client, guarded, httpx_client
from trimtab.transports.guard import HEADER, Guard
from trimtab.transports.middleware import anthropic_middleware
from trimtab.transports.wrapping import litellm_callback, wrap

__all__ = [
    "HEADER",
    "Guard",
    "anthropic_middleware",
    "async_httpx_client",
    "boto3",
    "guarded",
    "httpx_client",
    "litellm_callback",
    "wrap",
]
