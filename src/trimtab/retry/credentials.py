"""Where a request carries the caller's key, and the key itself, however it is sent."""

from __future__ import annotations

HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
"""Headers in which providers accept keys."""
_SCHEME = "bearer "


def bare_key(value: str) -> str:
    """The key in a header's value: ``Bearer sk-1`` and ``sk-1`` are the same one."""
    is_bearer = value[: len(_SCHEME)].lower() == _SCHEME
    return value[len(_SCHEME) :].strip() if is_bearer else value
