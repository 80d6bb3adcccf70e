"""Conversations with a provider that compacts, held through wrapped clients and the proxy."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import proxies
from compacted_talks import Drawn, Send, Told, hold
from compacting_provider import Compacting

import trimtab

DOORS = ("wrap", "proxy")


def through_door(door: str, talk: Drawn, seed: int) -> tuple[list[str], Told]:
    """What the provider refused or crashed at, and what came of the conversation."""
    with Compacting(talk.window, seed) as provider:
        if door == "wrap":
            client = trimtab.wrap(_client(provider.url, talk.responses), window=talk.window)
            done = hold(talk, _sending(client, talk))
        else:
            with proxies.proxied(provider.url, window=talk.window) as server:
                done = hold(talk, _sending(_client(server.url, talk.responses), talk))
        refused = [asked.refusal for asked in provider.asked if asked.refusal]
        return [*refused, *map(str, provider.crashes)], done


def _client(url: str, responses: bool) -> Any:
    if responses:
        return openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)
    return anthropic.Anthropic(base_url=url, api_key="x", max_retries=0)


def _sending(client: Any, talk: Drawn) -> Send:
    """A request through an SDK, as JSON."""

    def send(request: dict[str, Any]) -> dict[str, Any]:
        if talk.responses:
            return json.loads(client.responses.with_raw_response.create(**request).text)
        more = {key: request[key] for key in ("context_management", "compaction") if key in request}
        plain = {key: value for key, value in request.items() if key not in more}
        got = client.beta.messages.with_raw_response.create(
            **plain, betas=["compact-2026-01-12"], extra_body=more
        )
        return json.loads(got.text())

    return send
