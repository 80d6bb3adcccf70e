"""The interface of what can be tested: a conversation that takes requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


class Sent(NamedTuple):
    """The request that would reach the provider, and handles of what was removed from it."""

    request: Any
    handles: tuple[str, ...] = ()


class TargetConversation(Protocol):
    """One conversation with a target; it holds the target's state."""

    def send(self, request: dict[str, Any]) -> Sent:
        """The target's result for a request.  Raises what the target raises."""
        ...

    def recall(self, handle: str) -> str | None:
        """An original; None if the target does not offer recall."""
        ...

    def close(self) -> None:
        """Ends it."""
        ...


class Target(Protocol):
    """Something that makes requests fit."""

    name: str
    formats: tuple[str, ...]

    def conversation(self, format: str) -> TargetConversation:
        """A new conversation without any state."""
        ...

    def close(self) -> None:
        """Stop what was started for the target."""
        ...


@dataclass(frozen=True)
class TargetOptions:
    """``factory``: whether the callable makes one target for each conversation.  For gateways:
    ``upstream``: host:port where the strict provider listens; ``start``: a command that starts
    the gateway, in which ``{upstream}`` is replaced by the provider's URL; ``seconds``: how long to
    wait for the gateway."""

    window: int
    factory: bool = False
    upstream: str = "127.0.0.1:0"
    start: str = ""
    seconds: float = 30.0
