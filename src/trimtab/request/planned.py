"""The fifth stage: which edits to make.

    MeasuredRequest, PlanInputs ──plan──► Plan

``planning/make_room`` chooses; here is decided what it may do, and whether what it chose is worth a
lost prompt cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from trimtab.planning.eligibility import Bounds, PlanInputs
from trimtab.planning.hard_limits import meet_images, meet_result_chars
from trimtab.planning.make_room import make_room
from trimtab.planning.planner import Planner
from trimtab.planning.reasoning_signatures import unbind
from trimtab.pricing import economics
from trimtab.request.measured import MeasuredRequest
from trimtab.request.minimum import smallest_or_cannot_fit
from trimtab.request.reduced import early_dead_weight, pays_above, planner_for, reduce
from trimtab.summarizers.articles import Answers, answer
from trimtab.transcript.model import Edit


class Way(NamedTuple):
    """How freely a plan may choose."""

    name: str
    drops: bool = True
    """Whether groups may go as a whole: dropped, or folded into a note."""
    to_target: bool = True
    """Whether it goes down to the target, or only below the limits."""


@dataclass(frozen=True)
class Plan:
    """The edits of one request: those of the journal that still apply, then the ``new`` ones."""

    edits: tuple[Edit, ...]
    new: tuple[Edit, ...]
    step: str
    """The way in which it was made, as the report names it."""
    target: int | None = None
    """The tokens that it went down to; None if it had no target."""
    planner: Planner | None = None
    """What chose them; None where nothing was chosen."""
    tokens_before: int = 0
    """The size of the request before any new edit."""
    is_smallest: bool = False
    """Whether nothing smaller is possible."""
    answers: Answers | None = None
    """The summarizer's questions and answers; None without a summarizer."""
    warnings: tuple[str, ...] = ()

    @property
    def counts_bytes(self) -> bool:
        """Whether the planner counted the bytes of the body: they may be near their limit."""
        return self.planner is not None and self.planner.body_bytes > 0


def plan(measured: MeasuredRequest, inputs: PlanInputs, bounds: Bounds, way: Way) -> Plan:
    """Choose edits that bring the request below ``bounds``: its own, or tighter ones after a plan
    that came out larger than it counted.  Raises CannotFit."""
    planner, before = _plan_batch(measured, inputs, bounds, way)
    smallest = planner.over() or meet_images(planner) > 0 or meet_result_chars(planner) > 0
    if smallest:
        planner = smallest_or_cannot_fit(measured, inputs)
    summarizer = measured.settings.summarizer
    answers = None if summarizer is None else _answers(planner, summarizer, before)
    made = _made_by(planner, way.name)
    return replace(
        made, target=planner.goal, tokens_before=before, is_smallest=smallest, answers=answers
    )


def plan_smallest(measured: MeasuredRequest, inputs: PlanInputs) -> Plan:
    """Reduce everything as far as possible, without the code that chooses.  Raises CannotFit."""
    return _made_by(smallest_or_cannot_fit(measured, inputs), "the smallest")


def plan_nothing(measured: MeasuredRequest, step: str) -> Plan:
    """No reduction beside those of the journal; reasoning that a repair made invalid goes."""
    planner = planner_for(measured, reduce(measured))
    if measured.new_repairs:
        unbind(planner, measured.settings.thinking, measured.new_repairs)
    return _made_by(planner, step)


def _made_by(planner: Planner, step: str) -> Plan:
    new = planner.edits()
    warnings = tuple(dict.fromkeys(planner.inputs.failures))  # one line for many blocks
    return Plan((*planner.kept(), *new), new, step, planner=planner, warnings=warnings)


def _plan_batch(
    measured: MeasuredRequest, inputs: PlanInputs, bounds: Bounds, way: Way
) -> tuple[Planner, int]:
    """Plan a batch: the planner, and the tokens before it chose any new edit."""
    inputs = replace(inputs, drops=way.drops, to_target=way.to_target)
    planner = planner_for(measured, inputs, bounds)
    before = planner.state.tokens
    if way.to_target and (goal := pays_above(measured, inputs, before)) is not None:
        bounds = replace(bounds, pays_above=goal)
        planner = planner_for(measured, inputs, bounds)
    free = way.to_target and not planner.over() and before > bounds.begin
    acted = _choose_edits(measured, planner)
    saved = before - planner.state.tokens
    if (acted and free) and not economics.is_worthwhile(
        planner.transcript, planner.usage, bounds.capacity, saved
    ):
        planner = planner_for(measured, replace(inputs, to_target=False), bounds)
        _choose_edits(measured, planner)
    return planner, before


def _choose_edits(measured: MeasuredRequest, planner: Planner) -> bool:
    """Choose new edits if the request, with the journal's edits, still needs any."""
    before = (planner.state.tokens, len(planner.state.shown))
    if planner.state.tokens <= planner.bounds.begin:
        for dead in early_dead_weight(measured, planner):
            planner.show(dead.place, dead.offer)
    meet_images(planner)
    meet_result_chars(planner)
    if planner.state.tokens > planner.bounds.begin or planner.over():
        make_room(planner)
    acted = (planner.state.tokens, len(planner.state.shown)) != before
    if acted or measured.new_repairs:
        unbind(planner, measured.settings.thinking, measured.new_repairs)
    return acted


def _answers(planner: Planner, summarizer: Callable[..., Any], before: int) -> Answers:
    """The summarizer's answers; articles that it shortened are shown whole again if there is room
    under the target."""
    bounds, goal = planner.bounds, None
    if before > min(bounds.begin, bounds.capacity) and bounds.result_chars is None:
        goal = min(bounds.capacity, planner.goal or planner.eligibility.target)
    return answer(planner, summarizer, goal, steps=bool(getattr(summarizer, "steps", True)))
