"""A Python callable as a target: a function of requests or messages, or a factory of functions."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable
from typing import Any

from trimtab.errors import InvalidSetting
from trimtab_lab.testing.conformance.targets import Sent, TargetConversation, TargetOptions
from trimtab_lab.testing.conformance.writing import FORMATS, MESSAGES_KEY

WINDOW_NAMES = ("window", "max_tokens", "max_input_tokens", "token_limit", "budget", "limit")
"""Names that a callable may use for the window; the first that it has is used."""


def accepted(function: Callable[..., Any], keywords: dict[str, Any]) -> dict[str, Any]:
    """The keywords that ``function`` takes, with the window under the function's name for it."""
    try:
        known = inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C
        return {}
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in known.values()):
        named = next((name for name in WINDOW_NAMES if name in known), "window")
    else:
        named = next((name for name in WINDOW_NAMES if name in known), "")
    taken = {key: value for key, value in keywords.items() if key in known}
    if named and "window" in keywords:
        taken.pop("window", None)
        taken[named] = keywords["window"]
    return taken


def built(factory: Callable[..., Any], keywords: dict[str, Any]) -> Any:
    """The result of ``factory``.  Raises InvalidSetting if the factory raises."""
    try:
        return factory(**accepted(factory, keywords))
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        raise InvalidSetting(f"the factory makes no target: {problem}") from error


class CallableTarget:
    """A Python callable.

    It takes a request (``bare``: its list of messages) and returns one, a list of messages, their
    JSON, or an object whose ``request`` is one.  With ``factory`` it is called once for each
    conversation and returns such a callable, or an object with ``fit`` or ``__call__``.
    """

    def __init__(
        self, name: str, function: Callable[..., Any], options: TargetOptions, bare: bool = False
    ) -> None:
        self.name, self._function, self._options, self._bare = name, function, options, bare
        self.formats = ("openai-chat",) if bare else FORMATS

    def conversation(self, format: str) -> TargetConversation:
        """A conversation with a new object from the factory, or with the function itself."""
        keywords = {"window": self._options.window, "format": format}
        if not self._options.factory:
            return _Calls(self._function, self._function, keywords, format, self._bare)
        made = built(self._function, keywords)
        fit = getattr(made, "fit", made)
        return _Calls(made, fit, keywords, format, self._bare)

    def close(self) -> None:
        """Nothing was started."""


class _Calls:
    def __init__(
        self, owner: Any, function: Callable[..., Any], keywords: dict[str, Any], format: str,
        bare: bool,
    ) -> None:  # fmt: skip
        self._owner, self._function, self._format, self._bare = owner, function, format, bare
        is_made = owner is not function
        self._keywords = {} if is_made else accepted(function, keywords)

    def send(self, request: dict[str, Any]) -> Sent:
        given = copy.deepcopy(request)
        key = MESSAGES_KEY[self._format]
        result = self._function(given[key] if self._bare else given, **self._keywords)
        return Sent(whole(result, request, key), handles_of(result))

    def recall(self, handle: str) -> str | None:
        method = getattr(self._owner, "recall", None)
        return None if method is None else str(method(handle))

    def close(self) -> None:
        end = getattr(self._owner, "close", None)
        if end is not None and self._owner is not self._function:
            end()


def whole(result: Any, request: dict[str, Any], key: str) -> Any:
    """A callable's result as the body that would be sent.  Raises TypeError."""
    result = getattr(result, "request", result)
    if isinstance(result, (str, bytes)):
        result = json.loads(result)
    if isinstance(result, tuple):  # LiteLLM returns (messages, a number)
        result = result[0]
    if isinstance(result, list):
        return {**request, key: result}
    if isinstance(result, dict):
        return result
    raise TypeError(f"the target returned {type(result).__name__}, neither a request nor a list")


def handles_of(result: Any) -> tuple[str, ...]:
    """Handles of what was removed: those in its report, which has repairs too, and
    ``result.handles``."""
    report = getattr(result, "report", None)
    changes = (*getattr(report, "edits", ()), *getattr(report, "repairs", ()))
    own_handles = (getattr(one, "handle", None) for one in changes)
    handles = dict.fromkeys(filter(None, (*own_handles, *(getattr(result, "handles", None) or ()))))
    return tuple(map(str, handles))
