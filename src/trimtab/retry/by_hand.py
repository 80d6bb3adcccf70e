"""The retry protocol for a caller that sends by itself: ``Session.fit`` and ``Session.refused``.

The flow is the one of all doors.  It begins at the first refusal of a request, and every later
attempt of that request carries it.  We don't know the endpoint here: what is learned belongs to
the model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trimtab.request.fitted import Fitted, facts_of
from trimtab.retry.flow import Accepted, Fit, Refused, fitted_to_known_limits, flow
from trimtab.retry.guesses import RESULT_CHARS
from trimtab.retry.learned_limits import NO_LIMITS, LearnedLimits, key_for
from trimtab.retry.refusals.exceptions import error_parts


def with_known_limits(fitted: Fitted, fit: Fit, learned: LearnedLimits) -> Fitted:
    """``fitted``, or the request fitted again where limits of its model were learned."""
    facts = facts_of(fitted)
    limits = learned.get(key_for("", facts.model))
    if limits is NO_LIMITS:
        return fitted
    return fitted_to_known_limits(facts.source, fitted, fit, limits)


def next_attempt(
    error: Any,
    fitted: Fitted,
    fit: Fit,
    learned: LearnedLimits,
    undo: Callable[[Fitted], object],
) -> Fitted | None:
    """The next attempt after ``error``; None if there is none.

    ``fit``: fits the request again as at first; ``undo``: takes back an attempt that was a guess.
    """
    facts = facts_of(fitted)
    run = facts.attempts
    if run is None:
        run = flow(
            facts.source, fit, key=key_for("", facts.model), learned=learned, undo=undo,
            retry_result_chars=RESULT_CHARS, first=fitted,
        )  # fmt: skip
        next(run)
    parts = error if isinstance(error, tuple) else error_parts(error)
    try:
        again = run.send(Refused(*parts)).fitted
    except StopIteration:
        return None
    if isinstance(again, Fitted):
        facts_of(again).attempts = run
        return again
    return None


def accepted(fitted: Fitted) -> None:
    """Tell the flow that this attempt was accepted: what helped is remembered."""
    facts = facts_of(fitted)
    run, facts.attempts = facts.attempts, None
    if run is not None:
        try:
            run.send(Accepted())
        except StopIteration:
            return
