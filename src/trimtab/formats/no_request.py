"""The texts of InvalidRequest: what was given instead of a request, and what to give.

Called only when no format was found, so it may inspect everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from trimtab.formats.registry import MESSAGE_LISTS

_MESSAGE = '{"role": "user", "content": "…"}'
_ROLES = ("system", "developer", "user", "assistant", "tool", "function", "model")
_RESPONSES: tuple[tuple[str, str, str], ...] = (
    ("choices", "Chat Completions", "choices[0].message"),
    ("candidates", "Gemini", "candidates[0].content"),
    ("stopReason", "Bedrock", 'output["message"]'),
    ("stop_reason", "Anthropic", "its role and content"),
    ("output", "Responses", "each item of output"),
)
"""(a key that only responses have, the API's name, the part that goes into the next request)."""
_OBJECTS = {
    "ChatCompletion": _RESPONSES[0],
    "GenerateContentResponse": _RESPONSES[1],
    "Message": _RESPONSES[3],
    "Response": _RESPONSES[4],
}
"""The SDKs' classes for whole responses."""


def no_type(value: Any) -> str:
    """Why an object of this class is no request."""
    name = type(value).__name__
    problem = f"a request is a dict, a list of messages, or JSON text, not {name}"
    if name in _OBJECTS and hasattr(value, "model_dump"):
        return f"{problem}: {_response(*_OBJECTS[name][1:])}"
    if hasattr(value, "model_dump"):
        return f"{problem}: give the list of messages it belongs to"
    if hasattr(value, "__await__"):
        value.close() if hasattr(value, "close") else None  # else Python warns of it, too
        return f"{problem}: await it first"
    if hasattr(value, "read"):
        return f"{problem}: give what the file says, file.read()"
    if isinstance(value, (tuple, Iterator)):
        return f"{problem}: give list(…) of it"
    if hasattr(value, "__fspath__"):
        return f"{problem}: give what the file says, path.read_bytes()"
    if hasattr(value, "tokens_after") and hasattr(value, "request"):
        return f"{problem}: give its .request"
    if any(hasattr(value, part) for part in ("chat", "responses", "messages", "models")):
        return f"{problem}: trimtab.wrap(client) fits what a client sends; here give one request"
    return f"{problem}: give what you would send to the provider"


NO_JSON = (
    f"not JSON: a text is read as a JSON body; for a prompt give [{_MESSAGE}], for a file what it "
    "says, path.read_bytes()"
)
"""Why a text that does not begin like JSON is no request; it is not quoted: errors are logged."""


def no_shape(tree: Any, formats: Sequence[str]) -> str:
    """Why this JSON is a request of none of the formats."""
    why = _why(tree)
    if why is None:
        keys = ", ".join(map(str, list(tree)[:8])) if isinstance(tree, dict) else ""
        kind = f"an object with the keys {keys}" if keys else _kind(tree)
        why = f"this is {kind}: give a request or its list of messages"
        return f"no request format we know ({', '.join(formats)}): {why}, or name it with format=…"
    return f"no request format we know: {why}"


def _why(tree: Any) -> str | None:
    if isinstance(tree, list):
        return _in_list(tree, "the list of messages")
    if not isinstance(tree, dict):
        return None
    for name in MESSAGE_LISTS:
        if isinstance(tree.get(name), list):
            return _in_list(tree[name], name)
        if name in tree:
            return f"{name} is {_kind(tree[name])}, not a list: give [{_MESSAGE}]"
    for key, whose, part in _RESPONSES:
        if key in tree:
            return _response(whose, part)
    if "content" in tree or "parts" in tree:
        return "this is one message: give the list of all messages, as [message]"
    return None


def _response(whose: str, part: str) -> str:
    return (
        f"this is a response of {whose}, not a request: append {part} to the messages you sent, "
        "and give those"
    )


def _in_list(messages: list[Any], name: str) -> str | None:
    if not messages:
        return f"{name} is empty: give at least one message, as [{_MESSAGE}]"
    for index, message in enumerate(messages):
        where = f"message {index}" + ("" if name not in MESSAGE_LISTS else f" ({name}.{index})")
        if not isinstance(message, dict):
            return f"{where} is {_kind(message)}, not an object: give {_MESSAGE}"
        role = message.get("role")
        if role is None and "type" not in message:
            return f'{where} has no role: say "role": "user", "assistant", "system" or "tool"'
        if role is not None and role not in _ROLES:
            near = get_close_matches(str(role), _ROLES, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            role_shown = repr(role) if len(repr(role)) < 80 else _kind(role)
            return f"{where} has the role {role_shown}: give one of {', '.join(_ROLES)}{hint}"
    return None


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case str():
            return "a text"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case dict():
            return "an object"
        case list():
            return "a list"
    return f"of the type {type(value).__name__}"
