"""The rows that a gateway hands over, as a request that can be fitted, and the rows it gets back.

A gateway keeps the system text, the newest exchange and what the model said to itself.  So the
results that come have no calls: each gets one here, else it would count as an orphan.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any

from trimtab.journal.hashes import hash_of

_MARKER = re.compile(r'recall\("(\w{1,64})"\)')
_SHORTENED = ("tool", "user")
"""Roles whose rows may come back shorter: a model imitates what it finds as its own words."""


class GatewayRows:
    """Rows in the shape of OpenAI's chat messages; ``session``: what the gateway calls the
    conversation, "" where it does not say."""

    def __init__(self, rows: list[Any], model: str, session: str) -> None:
        self._rows, self._places = rows, dict[int, int]()
        messages: list[Any] = [{"role": "user", "content": session or _name_of(rows)}]
        called = set[str]()
        for number, row in enumerate(rows):
            role = row.get("role") if isinstance(row, dict) else None
            if role == "assistant":
                called |= {call["id"] for call in _calls_of(row)}
            elif role == "tool" and (id := row.get("tool_call_id")) and isinstance(id, str):
                if id not in called:
                    messages.append(_call_for(row, id))
                called.discard(id)
            elif role not in ("user", "system", "developer"):
                continue
            self._places[number] = len(messages)
            messages.append(row)
        self.request: dict[str, Any] = {"model": model, "messages": messages}
        """What is fitted: the rows behind a message of ours that names the conversation."""

    def shortened(self, messages: list[Any]) -> tuple[list[Any], list[str]]:
        """(the rows with the texts of the fitted ``messages``, the hashes that they name).

        A row is changed in nothing but its content, whose shape stays.
        """
        rows, hashes = list(self._rows), dict[str, None]()
        for number, place in self._places.items():
            before, after = rows[number], messages[place]
            if after is before or before["role"] not in _SHORTENED:
                continue
            old, new = before.get("content"), after.get("content")
            if old != new and type(old) is type(new):
                rows[number] = {**before, "content": _with_hashes(new, hashes)}
        return rows, list(hashes)


def _name_of(rows: list[Any]) -> str:
    """A name by the first result, which stays the first, or else by the first row."""
    dicts = [row for row in rows if isinstance(row, dict)]
    first = next((row for row in dicts if row.get("role") == "tool"), dicts[0] if dicts else {})
    return _digest(str(first.get("tool_call_id")), str(first.get("content")), size=12)


def _digest(*parts: str, size: int) -> str:
    data = "\0".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=size).hexdigest()


def _calls_of(row: dict[str, Any]) -> list[dict[str, Any]]:
    calls = row.get("tool_calls")
    listed = calls if isinstance(calls, list) else ()
    return [one for one in listed if isinstance(one, dict) and isinstance(one.get("id"), str)]


def _call_for(row: dict[str, Any], id: str) -> dict[str, Any]:
    """A call for a result.  Its arguments are its own, so that it repeats no other call, and short:
    they count as what the gateway withholds of the real one."""
    name, own = row.get("name"), _digest(id, size=3)
    function = {"name": name if isinstance(name, str) else "tool", "arguments": f'{{"id":"{own}"}}'}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": id, "type": "function", "function": function}],
    }


def _with_hashes(content: Any, hashes: dict[str, None]) -> Any:
    """Content whose markers name hashes, as gateways look for them, instead of a call of ours."""
    if isinstance(content, list):
        return [_with_hashes(part, hashes) for part in content]
    if isinstance(content, dict):
        text = content.get("text")
        return {**content, "text": _with_hashes(text, hashes)} if isinstance(text, str) else content
    if not isinstance(content, str):
        return content

    def named(marker: re.Match[str]) -> str:
        digits = hash_of(marker[1])
        if not digits:
            return marker[0]
        hashes[digits] = None
        return f"hash={digits}"

    return _MARKER.sub(named, content)
