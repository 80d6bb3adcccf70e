"""Compaction by the provider: when it makes a block, how it signs one, and what it refuses.

Anthropic on demand (``compaction``: a signed block, alone) and by threshold
(``compact_20260112``), after anthropic 2.12.0's types; OpenAI's ``context_management``.
"""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_TAG = b"trimtab:c1"
_BYTES = 15
TRIGGER = 150_000
"""Tokens at which Anthropic compacts if the request names no trigger."""


class MadeCompaction(NamedTuple):
    """A compaction in an answer: the block or item; whether the answer has nothing else; the tokens
    that it summarizes."""

    block: dict[str, Any]
    alone: bool
    tokens: int


def due(format: str, body: Any, tokens: int, secret: str, number: int) -> MadeCompaction | None:
    """The compaction that this request asks for; None if it is not due."""
    if not isinstance(body, Mapping):
        return None
    summary = f"Summary {number}: {tokens} tokens came before."
    if format == "anthropic" and body.get("compaction"):
        signed = {"signature": sign(secret, summary, []), "tool_changes": []}
        block = {**_block(secret, summary), **signed}
        return MadeCompaction(block, True, tokens)
    if format == "anthropic":
        for edit in _edits(body):
            value = (edit.get("trigger") or {}).get("value", TRIGGER)
            if edit.get("type") == "compact_20260112" and tokens > value:
                alone = edit.get("pause_after_compaction") is True
                return MadeCompaction(_block(secret, summary), alone, tokens)
    if format == "openai-responses":
        rows = body.get("context_management")
        for row in rows if isinstance(rows, list) else ():
            if row.get("type") == "compaction" and tokens > row.get("compact_threshold", TRIGGER):
                item = {"type": "compaction", "id": f"cmp_{number:048x}",
                        "encrypted_content": _seal(secret, summary)}  # fmt: skip
                return MadeCompaction(item, False, tokens)
    return None


def _block(secret: str, summary: str) -> dict[str, Any]:
    sealed = _seal(secret, summary)
    return {"type": "compaction", "content": summary, "encrypted_content": sealed}


def _edits(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    management = body.get("context_management")
    edits = management.get("edits") if isinstance(management, Mapping) else None
    yield from (edit for edit in edits or () if isinstance(edit, Mapping))


def sign(secret: str, content: str, tool_changes: Any) -> str:
    """The signature over a summary and the tool changes beside it."""
    return base64.b64encode(_TAG + _mac(secret, content) + _mac(secret, tool_changes)).decode()


def _seal(secret: str, summary: str) -> str:
    return base64.b64encode(_mac(secret, ["opaque", summary]) * 8).decode()


def _mac(secret: str, value: Any) -> bytes:
    data = json.dumps(value, sort_keys=True).encode()
    return hmac.digest(secret.encode(), data, "sha256")[:_BYTES]


def refused(body: Any, secret: str) -> tuple[str, str]:
    """(kind of refusal, path) of what is wrong with signed blocks, or with a request to compact;
    ("", "") where nothing is.  Where blocks may stand is a rule like others."""
    messages = body.get("messages") if isinstance(body, Mapping) else None
    if not isinstance(messages, list):
        return "", ""
    if body.get("compaction"):
        last = messages[-1] if messages and isinstance(messages[-1], Mapping) else {}
        if last.get("role") == "assistant" and any(p["type"] == "tool_use" for p in _parts(last)):
            return "compaction_incomplete_turn", f"messages.{len(messages) - 1}"
        if not any(m.get("role") in ("user", "assistant") and m.get("content") for m in messages):
            return "compaction_nothing_to_summarize", "messages"
    for number, message in enumerate(messages):
        for index, part in enumerate(_parts(message)):
            signed = part["type"] == "compaction" and isinstance(part.get("signature"), str)
            if signed and (kind := _unverified(part, secret)):
                return kind, f"messages.{number}.content.{index}"
    return "", ""


def _parts(message: Any) -> list[Any]:
    content = message.get("content") if isinstance(message, Mapping) else None
    parts = content if isinstance(content, list) else []
    return [
        part if isinstance(part, Mapping) and "type" in part else {"type": ""} for part in parts
    ]


def _unverified(part: Mapping[str, Any], secret: str) -> str:
    try:
        raw = base64.b64decode(part["signature"], validate=True)
    except ValueError:
        return "compaction_signature_invalid"
    body = raw[len(_TAG) :]
    if not raw.startswith(_TAG) or len(body) != 2 * _BYTES:
        return "compaction_signature_invalid"
    if body[:_BYTES] != _mac(secret, part.get("content")):
        return "compaction_content_mismatch"
    if body[_BYTES:] != _mac(secret, part.get("tool_changes")):
        return "compaction_tool_changes_mismatch"
    return ""
