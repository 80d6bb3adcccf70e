"""Clients whose requests are fitted on the way to the provider: HTTP clients, SDKs, boto3, LiteLLM.

``wrap(client)`` serves most clients; ``httpx_client(…)`` makes a client for ``http_client=`` of an
SDK; ``boto3(client)``, ``anthropic_middleware(…)`` and ``litellm_callback(…)`` serve those three;
``call_model_input_filter`` and ``adk_plugin`` are hooks for agent frameworks.
Importing loads no SDK and no HTTP library.
"""

from __future__ import annotations

from trimtab.clients.agent_hooks import adk_plugin, call_model_input_filter
from trimtab.clients.aws import boto3
from trimtab.clients.client_view import ClientView
from trimtab.clients.httpx_clients import async_httpx_client, httpx_client
from trimtab.clients.middleware import anthropic_middleware
from trimtab.clients.wrapped_clients import of
from trimtab.clients.wrapping import litellm_callback, wrap
from trimtab.retry.own_header import HEADER

__all__ = [
    "HEADER",
    "ClientView",
    "adk_plugin",
    "anthropic_middleware",
    "async_httpx_client",
    "boto3",
    "call_model_input_filter",
    "httpx_client",
    "litellm_callback",
    "of",
    "wrap",
]
