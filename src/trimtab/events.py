"""The events of a fit and of sending again: counts, tokens, milliseconds and outcomes.

An event never holds what a message said, a key or a handle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

NAME_CHARS = 64
"""Of the name of a tool or a model: they come from requests, and may be anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What every event has: format and model of the request, "" where they are unknown."""

    name: ClassVar[str] = "event"
    format: str = ""
    model: str = ""

    def as_dict(self) -> dict[str, Any]:
        """JSON-able, the event's name first."""
        return {"event": self.name, **asdict(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class FitEvent(Event):
    """One request was fitted.

    ``outcome``: "unchanged", "repaired" (no edits), "kept" (edits of earlier turns only),
    "reduced", "fallback" (a step of ours failed and a simpler one served), "original" (sent as it
    came, expected to be refused), "cannot_fit".  ``window`` is None where none was given.
    """

    name: ClassVar[str] = "fit"
    outcome: str
    window: int | None
    tokens_before: int
    tokens_after: int
    edits: int
    new_edits: int
    repairs: int
    warnings: int
    milliseconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EditEvent(Event):
    """One edit was made, in this request for the first time."""

    name: ClassVar[str] = "edit"
    kind: str
    op: str
    role: str
    tool: str
    tokens_before: int
    tokens_after: int
    loss: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalEvent(Event):
    """A provider refused; ``attempt`` counts the sends of this request, the first is 1."""

    name: ClassVar[str] = "refusal"
    kind: str
    status: int | None
    limit: int | None = None
    requested: int | None = None
    exactness: str = ""
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryEvent(Event):
    """What became of sending again: ``outcome`` is "accepted" or "refused".

    ``kind``: of the refusal that was answered; ``milliseconds``: from that refusal to the end of
    this attempt; tokens of the request that was refused and of the one sent instead.
    """

    name: ClassVar[str] = "retry"
    kind: str
    outcome: str
    attempt: int
    tokens_before: int
    tokens_after: int
    milliseconds: float


OnEvent = Callable[[Event], object]


def printable(text: object) -> str:
    """A name from a request, fit for logs and metrics."""
    return "".join(c for c in str(text or "") if c.isprintable())[:NAME_CHARS]
