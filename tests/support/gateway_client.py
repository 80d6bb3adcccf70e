"""A gateway that calls a compressor, as LiteLLM's guardrail ``headroom`` does.

Knows what it hands over: no system row, no row of the last exchange, no assistant row.  It takes
back as many rows as it sent, in their order.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

from proxies import ask

HASH = re.compile(r"[a-f0-9]{12,24}")


class Gateway:
    """``headers``: what it sends with each call."""

    def __init__(self, url: str, model: str = "gpt-5.1", **headers: str) -> None:
        self.url, self.model = url, model
        self.headers = {"Content-Type": "application/json", **headers}
        self.answer: dict[str, Any] = {}
        """The last one."""
        self.handed_over: list[Any] = []

    def shortened(self, messages: list[Any]) -> list[Any]:
        """The messages that it sends to the provider."""
        held = withheld(messages)
        self.handed_over = [row for at, row in enumerate(messages) if at not in held]
        if not self.handed_over:
            return messages
        back = iter(self.compressed(self.handed_over))
        return [row if at in held else next(back) for at, row in enumerate(messages)]

    def compressed(self, rows: list[Any]) -> list[Any]:
        status, _, data = self.call("POST", "/v1/compress", {"messages": rows, "model": self.model})
        assert status == 200, data
        self.answer = json.loads(data)
        back = self.answer["messages"]
        assert [row["role"] for row in back] == [row["role"] for row in rows]
        assert all(HASH.fullmatch(one) for one in self.answer["ccr_hashes"])
        return back

    def original(self, hash: str, query: str = "") -> str | int:
        """The original; the status where there is none."""
        more = f"?query={quote(query)}" if query else ""
        status, _, data = self.call("GET", f"/v1/retrieve/{hash}{more}")
        return json.loads(data)["original_content"] if status == 200 else status

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, str], bytes]:
        data = None if body is None else json.dumps(body)
        return ask(self.url, method, path, data, self.headers)


def withheld(messages: list[Any]) -> set[int]:
    """The rows that are not handed over."""
    held = {at for at, row in enumerate(messages) if row["role"] in ("system", "assistant")}
    users = [at for at, row in enumerate(messages) if row["role"] == "user"]
    own = [at for at, row in enumerate(messages) if row["role"] == "assistant"]
    held.update(users[-1:])
    if own and messages[own[-1]].get("tool_calls"):
        ids = {call["id"] for call in messages[own[-1]]["tool_calls"]}
        held.update(at for at, row in enumerate(messages) if row.get("tool_call_id") in ids)
    return held
