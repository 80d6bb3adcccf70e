"""The formats as HTTP APIs, and which of them a path belongs to."""

from __future__ import annotations

from trimtab_lab.testing.http_apis import (
    anthropic,
    bedrock,
    gemini,
    gemini_interactions,
    openai_chat,
    openai_responses,
)
from trimtab_lab.testing.http_apis.base import ApiRoute, HttpApi, ModelReply, UsageCounts

HTTP_APIS: dict[str, HttpApi] = {
    api.format: api
    for api in (*(openai_chat, openai_responses, anthropic, bedrock, gemini, gemini_interactions),)
}
"""By the name of the format."""

STATEFUL = {api.format: api for api in (openai_responses, gemini_interactions)}
"""APIs that keep conversations: a request may name the earlier answer that it continues."""


def find(path: str, query: str) -> tuple[HttpApi, ApiRoute] | None:
    """The API and the route of this path; None where there is none."""
    for api in HTTP_APIS.values():
        if route := api.route(path, query):
            return api, route
    return None


__all__ = ["HTTP_APIS", "ApiRoute", "HttpApi", "ModelReply", "UsageCounts", "find"]
