"""The fourth and fifth stage: what a plan is made from, and which edits it makes.

    MeasuredRequest ──reduce──► PlanInputs ──plan──► Plan

No block is reduced by ``reduce``: a reducer is asked for offers when a plan looks at a block, once
for all plans.  ``planning/make_room`` chooses; here is decided when a cut is due, and whether what
was chosen is worth a lost prompt cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from trimtab import reducers
from trimtab.planning.eligibility import Bounds, Eligibility, PlanInputs
from trimtab.planning.hard_limits import meet_images, meet_result_chars
from trimtab.planning.image_sizes import meet_image_sizes, shrink_for_bytes
from trimtab.planning.make_room import make_room
from trimtab.planning.planner import Planner
from trimtab.planning.presets import PRESETS
from trimtab.planning.query_context import QueryContext
from trimtab.planning.reasoning_signatures import unbind
from trimtab.planning.redundancy import Redundancy
from trimtab.pricing import early, economics
from trimtab.pricing.early import DeadBlock
from trimtab.pricing.economics import CutEffect
from trimtab.reducers import Config, with_extra
from trimtab.request.measured import MeasuredRequest, calls_since_cut
from trimtab.summarizers.articles import Answers, answer
from trimtab.transcript.model import Edit
from trimtab.transcript.model_notes import model_notes
from trimtab.transcript.protected import pinned, protected


def reduce(measured: MeasuredRequest) -> PlanInputs:
    """The reducers and what they know of the request, and what must stay whole."""
    inputs, settings, transcript = measured.inputs, measured.settings, measured.transcript
    preset, given = PRESETS[settings.preset], settings.reducers
    ours = reducers.REDUCERS if given is None else tuple(given)
    config = Config(measured.sizes.counter, settings.recall, articles=settings.articles)
    held = settings.protected_tools, settings.protected_paths, settings.protected_turns
    edited = {target for edit in measured.active for target in edit.targets}
    notes = [(p.message, p.index) for note in model_notes(transcript) for p in note.places]
    kept = {transcript.ref_of[key] for key in notes} if measured.holds_notes else set[str]()
    failures: list[str] = []
    pins = (*settings.pins, *sorted(inputs.journal.pins))
    return PlanInputs(
        config=config,
        context=QueryContext(transcript, config, edited),
        reducers=with_extra(ours, settings.extra_reducers),
        pinned=pinned(transcript, pins, None if settings.strict else failures).union(kept),
        protected=protected(transcript, *held, preset.recent_turns).union(notes),
        held_by_user=protected(transcript, *held),
        redundancy=redundancy_of(measured),
        open_tail=settings.open_tail,
        lines=inputs.cache.lines,
        folds=preset.folds,
        reducers_only=given is not None,
        recent=preset.recent_results,
        handle_key=inputs.handle_key,
        failures=failures,
        tree=measured.repaired.body.tree,
        images=measured.images,
    )


def redundancy_of(measured: MeasuredRequest) -> Redundancy:
    """Which of its blocks later content repeats or supersedes."""
    calls, settings = measured.inputs.cache.calls, measured.settings
    return Redundancy(measured.transcript, calls, settings.duplicates, settings.failed_inputs)


def planner_for(
    measured: MeasuredRequest, inputs: PlanInputs, bounds: Bounds | None = None
) -> Planner:
    """A planner with the journal's edits already applied."""
    bounds, body = bounds or measured.limits.bounds, measured.repaired.body
    transcript, sizes, active = measured.transcript, measured.sizes, measured.active
    inputs = replace(inputs, failures=list(inputs.failures))
    grows = measured.too_large_image  # fewer pixels may be more bytes
    if bounds.body_bytes is None or (body.max_bytes <= bounds.body_bytes and not grows):
        return Planner(transcript, sizes, inputs, bounds, active)
    size, item_bytes = body.body_bytes, body.item_bytes
    return Planner(transcript, sizes, inputs, bounds, active, size, item_bytes)


# --- whether a cut is due before the trigger ---


def is_dead_weight_due(measured: MeasuredRequest, inputs: PlanInputs) -> bool:
    """Whether there is dead weight to remove before the trigger is reached."""
    if measured.early_tokens is None:
        return False
    return bool(early_dead_weight(measured, planner_for(measured, inputs)))


def pays_above(measured: MeasuredRequest, inputs: PlanInputs, tokens: int) -> int | None:
    """Tokens above which a cut begins before the trigger, because it pays, if ``tokens`` would be
    sent; None: none does.

    Decided from sums over the history as it arrived, so that a request that was cut is not cut
    again before as many calls have passed.
    """
    bounds, preview = measured.limits.bounds, measured.inputs.is_preview
    history = None if measured.settings.waits_for_the_window else bounds.history
    if not preview and (history is None or tokens <= history):
        return None
    transcript, sizes = measured.transcript, measured.sizes
    target = Eligibility(transcript, sizes, inputs, bounds).target
    if preview:
        return target
    first = next((one.first for one in transcript.groups if one.closed and one.has_calls), 0)
    before = sizes.head(transcript) + sum(map(sizes.message, transcript.messages[:first]))
    cut = CutEffect(max(0, target - before), tokens - target, measured.limits.cold)
    prices = economics.prices_of(measured.settings.prices, transcript)
    return target if economics.pays(prices, cut, tokens, calls_since_cut(measured)) else None


def early_dead_weight(measured: MeasuredRequest, planner: Planner) -> Sequence[DeadBlock]:
    """The dead weight to remove before the trigger, in a plan with nothing chosen yet."""
    least = measured.early_tokens
    if least is None:
        return ()
    prices = economics.prices_of(measured.settings.prices, measured.transcript)
    return early.worth_pruning(planner, prices, least, cold=measured.limits.cold)


# --- plan ---


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


def plan_nothing(measured: MeasuredRequest, step: str) -> Plan:
    """No reduction beside those of the journal; reasoning that a repair made invalid goes."""
    planner = planner_for(measured, reduce(measured))
    if measured.new_repairs:
        unbind(planner, measured.settings.thinking, measured.new_repairs)
    return plan_of(planner, step)


def plan_of(
    planner: Planner,
    step: str,
    tokens_before: int = 0,
    *,
    is_smallest: bool = False,
    answers: Answers | None = None,
) -> Plan:
    """What a planner chose, as a value."""
    new = planner.edits()
    warnings = tuple(dict.fromkeys(planner.inputs.failures))  # one line for many blocks
    return Plan(
        (*planner.kept(), *new), new, step, planner.goal, planner, tokens_before, is_smallest,
        answers, warnings,
    )  # fmt: skip


def choose(
    measured: MeasuredRequest, inputs: PlanInputs, bounds: Bounds, way: Way
) -> tuple[Planner, int]:
    """Choose edits that bring the request below ``bounds``: its own, or tighter ones after a plan
    that came out larger than it counted.  The planner, and the tokens before any new edit.

    A cut that is not forced is made only if it is worth a lost prompt cache.
    """
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
        planner.transcript, planner.sizes, bounds.capacity, saved
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
    meet_image_sizes(planner)
    shrink_for_bytes(planner)
    meet_result_chars(planner)
    if planner.state.tokens > planner.bounds.begin or planner.over():
        make_room(planner)
    acted = (planner.state.tokens, len(planner.state.shown)) != before
    if acted or measured.new_repairs:
        unbind(planner, measured.settings.thinking, measured.new_repairs)
    return acted


def is_over_a_limit(planner: Planner) -> bool:
    """Whether a limit is still not met after everything that a plan may choose."""
    return planner.over() or meet_images(planner) > 0 or meet_result_chars(planner) > 0


def answers_for(planner: Planner, summarizer: Callable[..., Any], before: int) -> Answers:
    """The summarizer's answers; articles that it shortened are shown whole again if there is room
    under the target."""
    bounds, goal = planner.bounds, None
    if before > min(bounds.begin, bounds.capacity) and bounds.result_chars is None:
        goal = min(bounds.capacity, planner.goal or planner.eligibility.target)
    return answer(planner, summarizer, goal, steps=bool(getattr(summarizer, "steps", True)))
