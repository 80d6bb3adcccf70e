"""The events of fits and retries: counts, tokens, milliseconds and outcomes.

An event never contains the text of a message, a key or a handle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

NAME_CHARS = 64
"""Most chars of the name of a tool or model, because requests may contain any name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base of all events: format and model of the request, "" if unknown."""

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
    "reduced", "fallback" (a step of ours failed and a simpler one was used), "original" (sent as
    received, expected to be refused), "cannot_fit".  ``window`` is None if none was given.
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
    """The result of a retry: ``outcome`` is "accepted" or "refused".

    ``kind``: that of the refusal; ``milliseconds``: from the refusal to the end of this attempt;
    ``tokens_before`` and ``tokens_after``: of the refused request and the one sent instead.
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
