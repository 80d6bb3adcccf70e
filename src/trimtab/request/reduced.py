"""The fourth stage: what a plan is made from, the offers of all reducers among it; and whether a
cut is due before the trigger.

    MeasuredRequest ──reduce──► PlanInputs

No block is reduced here: a reducer is asked when a plan looks at a block, once for all plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trimtab import reducers
from trimtab.planning.eligibility import Bounds, Eligibility, PlanInputs
from trimtab.planning.planner import Planner
from trimtab.planning.presets import PRESETS
from trimtab.planning.query_context import QueryContext
from trimtab.planning.redundancy import Redundancy
from trimtab.pricing import early, economics
from trimtab.pricing.early import DeadBlock
from trimtab.pricing.economics import EditBatch
from trimtab.reducers import Config, with_extra
from trimtab.request.measured import MeasuredRequest, calls_since_cut
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
    if bounds.body_bytes is None or body.most_bytes <= bounds.body_bytes:
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
    batch = EditBatch(max(0, target - before), tokens - target, measured.limits.cold)
    prices = economics.prices_of(measured.settings.prices, transcript)
    return target if economics.pays(prices, batch, tokens, calls_since_cut(measured)) else None


def early_dead_weight(measured: MeasuredRequest, planner: Planner) -> Sequence[DeadBlock]:
    """The dead weight to remove before the trigger, in a plan with nothing chosen yet."""
    least = measured.early_tokens
    if least is None:
        return ()
    prices = economics.prices_of(measured.settings.prices, measured.transcript)
    return early.worth_pruning(planner, prices, least, cold=measured.limits.cold)
