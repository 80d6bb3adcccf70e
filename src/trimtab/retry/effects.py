"""What a retry flow and its driver exchange: what to send, what came back, how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.errors import CannotFit
from trimtab.fitted import Fitted
from trimtab.retry.refusals import Refusal

Headers = Mapping[str, str] | Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Send:
    """Send this request; ``request`` has the type that ``flow`` was given, and is the very same
    object where nothing had to be changed.  ``attempt`` counts from 1.  ``cannot_fit``: why it is
    sent as it came, above a limit."""

    request: Any
    attempt: int
    fitted: Fitted | None = None
    cannot_fit: CannotFit | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """What came back was an error: its status (None: there is none), body and headers."""

    status: int | None
    body: Any
    headers: Headers | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """What came back was an answer.  ``prompt_tokens``: all of them, as the provider counts,
    where it said so; ``final``: bytes of it were passed on, nothing may be sent again."""

    prompt_tokens: int | None = None
    final: bool = True


@dataclass(slots=True)
class SendStats:
    """What became of all requests so far; add one to each driver."""

    requests: int = 0
    changed: int = 0
    refusals: int = 0
    retries: int = 0
    recovered: int = 0
    tokens_saved: int = 0
    seconds: float = 0.0
    """From the first refusal to the last answer, of requests that were sent again."""


@dataclass(frozen=True, slots=True)
class Done:
    """How it ended.  ``fitted``: what was sent last; None where nothing could be read."""

    accepted: bool
    attempts: int
    fitted: Fitted | None
    refusals: tuple[Refusal, ...] = ()
    cannot_fit: CannotFit | None = None
    advice: str = ""
    """What the user can do where a refusal for size stands; "" where nothing stands out."""
    unseen: str = ""
    """Where a history at the server was too long that was not seen here: its id, and what to do."""

    @property
    def summary(self) -> str:
        """One line for a header: ``"52162->20086 tokens; 2 edits; attempt 2 after too_long"``."""
        parts = []
        if self.fitted is not None and self.fitted.changed:
            report = self.fitted.report
            parts.append(f"{report.tokens_before}->{report.tokens_after} tokens")
            parts.append(f"{len(report.edits)} edits")
            if report.repairs:
                parts.append(f"{len(report.repairs)} repairs")
        elif self.fitted is not None:
            parts.append("unchanged")
        if self.refusals:
            kinds = ", ".join(refusal.kind for refusal in self.refusals)
            parts.append(f"attempt {self.attempts} after {kinds}")
        if self.unseen:
            parts.append(self.unseen)
        if self.cannot_fit is not None:
            parts.append(f"cannot fit: {self.cannot_fit.limit} {self.cannot_fit.allowed}")
        return "; ".join(parts) or "passed on"
