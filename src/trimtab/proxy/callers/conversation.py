"""Which conversation a request belongs to."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from trimtab.formats.words import content_of, messages_of


def conversation_of(tenant: str, format: str, hint: str, body: Any) -> str:
    """The id of the conversation that a parsed body belongs to: a digest of its tenant, its format,
    the client's name for it (``hint``) and the first words of its user.

    Requests for titles, classifiers and subagents share the client's name, but not the first words.
    """
    parts = (tenant, format, hint, first_words(body))
    data = "\0".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=6).hexdigest()


def first_words(body: Any) -> str:
    """The text of the first message of a user; "" where there is none."""
    for message in messages_of(body):
        if isinstance(message, dict) and message.get("role") == "user":
            return _texts(content_of(message))
    return ""


def _texts(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "\n".join(str(text) for text in texts if text)
