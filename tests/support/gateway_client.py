"""A gateway's side of ``POST /v1/compress``, as LiteLLM's guardrail speaks it.

Knows what it withholds, how it takes rows back, and which hashes it accepts.  Asserts what it would
count as a failure.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

from proxies import ask

HASH = re.compile(r"[a-f0-9]{12,24}")
TOOL = {"role": "tool"}


def withheld(messages: list[dict[str, Any]]) -> set[int]:
    """Numbers of the messages that it keeps: system, the last words of the user, the last step of
    the model with its results, and whatever the model said."""
    kept = {n for n, one in enumerate(messages) if one["role"] in ("system", "assistant")}
    users = [n for n, one in enumerate(messages) if one["role"] == "user"]
    steps = [n for n, one in enumerate(messages) if one["role"] == "assistant"]
    kept.update(users[-1:])
    newest = steps[-1] if steps else len(messages)
    return kept | {n for n, one in enumerate(messages) if n > newest and one["role"] == "tool"}


class GatewayClient:
    """``key``: of the guardrail; ``session``: what it calls the conversation."""

    def __init__(self, url: str, key: str = "", session: str = "") -> None:
        self.url, self.headers = url, {"content-type": "application/json"}
        if key:
            self.headers["authorization"] = f"Bearer {key}"
        if session:
            self.headers["x-headroom-affinity"] = session
        self.hashes: list[str] = []
        """Those of the last answer."""
        self.answer: dict[str, Any] = {}

    def sent(self, messages: list[dict[str, Any]], model: str = "gpt-5.1") -> list[dict[str, Any]]:
        """The messages that it sends to the provider."""
        kept = withheld(messages)
        rows = [one for n, one in enumerate(messages) if n not in kept]
        back = iter(self.rows(rows, model) if rows else [])
        return [one if n in kept else next(back) for n, one in enumerate(messages)]

    def rows(self, rows: list[dict[str, Any]], model: str = "gpt-5.1") -> list[dict[str, Any]]:
        """The rows that come back for these."""
        body = json.dumps({"messages": rows, "model": model})
        status, _, data = ask(self.url, "POST", "/v1/compress", body, self.headers)
        assert status == 200, data
        self.answer = json.loads(data)
        back: list[dict[str, Any]] = self.answer["messages"]
        assert len(back) == len(rows)
        assert [one.get("role") for one in back] == [one.get("role") for one in rows]
        self.hashes = self.answer["ccr_hashes"]
        assert all(HASH.fullmatch(one) for one in self.hashes)
        return back

    def original(self, digits: str, query: str = "") -> str | None:
        """What is kept under a hash; None where nothing is."""
        asked = f"?query={quote(query)}" if query else ""
        path = f"/v1/retrieve/{digits}{asked}"
        status, _, data = ask(self.url, "GET", path, None, self.headers)
        assert status in (200, 404), data
        return json.loads(data)["original_content"] if status == 200 else None
