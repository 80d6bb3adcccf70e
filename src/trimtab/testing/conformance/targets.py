"""What can be tested, behind one small interface: a conversation that takes requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


class Sent(NamedTuple):
    """What would reach the provider, and handles of what was taken out of it."""

    request: Any
    handles: tuple[str, ...] = ()


class TargetConversation(Protocol):
    """One conversation with a target; what it remembers, it remembers here."""

    def send(self, request: dict[str, Any]) -> Sent:
        """What the target makes of a request.  Raises what the target raises."""
        ...

    def recall(self, handle: str) -> str | None:
        """An original; None where the target offers none at all."""
        ...

    def close(self) -> None:
        """Ends it."""
        ...


class Target(Protocol):
    """Something that makes requests fit."""

    name: str
    formats: tuple[str, ...]

    def conversation(self, format: str) -> TargetConversation:
        """A new one, that knows nothing."""
        ...

    def close(self) -> None:
        """Ends what was started for it."""
        ...


@dataclass(frozen=True)
class TargetOptions:
    """``factory``: the callable makes one target for each conversation.  For gateways:
    ``upstream``: host:port where the strict provider listens; ``start``: a command that starts
    the gateway, in which ``{upstream}`` is the provider's URL; ``seconds`` to wait for it."""

    window: int
    factory: bool = False
    upstream: str = "127.0.0.1:0"
    start: str = ""
    seconds: float = 30.0
