"""The values that a retry flow and its driver exchange: ``Send``, ``Refused`` or ``Accepted``,
``Done``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.amounts import many
from trimtab.errors import CannotFit
from trimtab.request.fitted import Fitted, facts_of
from trimtab.retry.learned_limits import NO_LIMITS, ModelLimits
from trimtab.retry.refusals import Refusal

Headers = Mapping[str, str] | Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Send:
    """The driver sends ``request``: of the type that ``flow`` was given, the very same object if
    nothing was changed.  ``attempt`` counts from 1.  ``cannot_fit``: why the request is sent
    without a new cut although it is above a limit.  ``limits``: the learned limits that it was made
    for."""

    request: Any
    attempt: int
    fitted: Fitted | None = None
    cannot_fit: CannotFit | None = None
    limits: ModelLimits = NO_LIMITS


@dataclass(frozen=True, slots=True)
class Refused:
    """The provider answered with an error: its status (None if there is none), body, headers."""

    status: int | None
    body: Any
    headers: Headers | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """The provider accepted the request.  ``prompt_tokens``: the provider's count of the whole
    prompt, None if unknown; ``final``: bytes of the answer were passed on, so the request can't be
    sent again."""

    prompt_tokens: int | None = None
    final: bool = True


@dataclass(slots=True)
class SendStats:
    """Counters over all requests of a driver; share one among its flows."""

    requests: int = 0
    changed: int = 0
    refusals: int = 0
    retries: int = 0
    recovered: int = 0
    tokens_saved: int = 0
    seconds: float = 0.0
    """Time from the first refusal to the last answer, summed over the requests sent again."""
    rounds: int = 0
    """Of the requests: those that carried the answer to a recall of the model's."""
    cuts: int = 0
    """Of the requests: those for which something was newly taken out."""
    tokens_archived: int = 0
    """What the cuts took out, each token counted once, also where it is cut again in a larger fold;
    ``tokens_saved`` counts it for each request that would have carried it."""
    refusals_avoided: int = 0
    """Of the requests: those that were answered, and that the provider would have refused as the
    client gave them: too long, or with something that was repaired."""

    def count(self, fitted: Fitted | None, *, answered: bool, sends: int = 1) -> None:
        """Count a request that was sent."""
        self.requests += 1
        if fitted is None or not (fitted.changed or facts_of(fitted).shortened):
            return
        facts = facts_of(fitted)
        given = fitted.tokens_before + facts.tokens_shortened
        self.changed += 1
        self.tokens_saved += given - fitted.tokens_after
        rooms = [facts.capacity, facts.learned[0] if facts.learned else 0]
        too_long = any(0 < room < given for room in rooms)
        self.refusals_avoided += answered and bool(too_long or facts.repairs or sends > 1)


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a flow.  ``fitted``: what was sent last; None if the request could not be read,
    or has no form within a limit that is not the window."""

    accepted: bool
    attempts: int
    fitted: Fitted | None
    refusals: tuple[Refusal, ...] = ()
    cannot_fit: CannotFit | None = None
    advice: str = ""
    """What the user can do about a final refusal for size; "" if there is no advice."""
    unseen: str = ""
    """Set if a history kept by the provider, never seen here, was too long: its id and what to
    do."""

    @property
    def summary(self) -> str:
        """One line for a header: ``"52162->20086 tokens; 2 edits; attempt 2 after too_long"``."""
        parts = []
        if self.fitted is not None and self.fitted.changed:
            fitted, facts = self.fitted, facts_of(self.fitted)
            parts.append(f"{fitted.tokens_before}->{fitted.tokens_after} tokens")
            parts.append(many(len(facts.handles), "edit"))
            if facts.repairs:
                parts.append(many(facts.repairs, "repair"))
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
