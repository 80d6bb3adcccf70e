"""Makes one request acceptable, from the request as received to the one that is sent:

    read ──► repair ──► measure ──► reduce ──► plan ──► journal ──► apply ──► check ──► request

Each stage is a function that takes what the last one made, and makes a value of its own:

    read        a request             ReceivedRequest   received.py
    repair      ReceivedRequest       RepairedRequest   received.py
    measure     RepairedRequest       MeasuredRequest   measured.py
    reduce      MeasuredRequest       PlanInputs        planned.py
    plan        PlanInputs            Plan              planned.py
    apply       Plan                  Draft             applied.py
    check       Draft                 FitResult         here

The journal's edits come in with ``measure``; ``journal_after`` adds the new ones once their result
has passed the check.  If a stage raises an error of ours, the next simpler way is tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from trimtab.errors import CannotFit, InvalidSetting, TrimtabError
from trimtab.formats.body import RequestBody
from trimtab.formats.repair import refused_rules
from trimtab.formats.rules import Violation
from trimtab.journal.cleared_results import cleared_key
from trimtab.journal.journal import Journal, tip_edits, with_dependencies
from trimtab.jsontext import paths
from trimtab.planning.eligibility import Bounds, PlanInputs
from trimtab.planning.operations import Applied
from trimtab.pricing import economics, models, prices
from trimtab.pricing.economics import CutCost
from trimtab.request.applied import Draft, apply, originals_of
from trimtab.request.edit_figures import with_figures
from trimtab.request.measured import MeasuredRequest, lower_bound, measure
from trimtab.request.minimum import cannot_fit, smallest_or_cannot_fit
from trimtab.request.planned import (
    Plan,
    Way,
    answers_for,
    choose,
    is_dead_weight_due,
    is_over_a_limit,
    pays_above,
    plan_nothing,
    plan_of,
    reduce,
    redundancy_of,
)
from trimtab.request.received import TurnInputs, checked, read, repair, repair_key
from trimtab.summarizers.articles import Answers
from trimtab.transcript.model import Edit
from trimtab.transcript.model_notes import model_notes
from trimtab.transcript.protected import pinned
from trimtab.transcript.transcript import Transcript


@dataclass(frozen=True)
class FitResult:
    """The request to send, the edits applied to it, and their figures."""

    measured: MeasuredRequest
    sent: RequestBody
    tokens_before: int
    tokens_after: int
    applied: tuple[Applied, ...] = ()
    new: tuple[Edit, ...] = ()
    originals: dict[str, str] = field(default_factory=dict)
    """The originals that the new edits and repairs removed, by handle."""
    target: int | None = None
    """The plan's target in tokens; None if it had none."""
    step: str = ""
    """The step of the ladder that produced it; "" if nothing had to be planned."""
    answers: Answers | None = None
    """The summarizer's questions and answers; None without a summarizer."""
    cost: CutCost | None = None
    """The effect of the new edits on the bill; None if no price table was named."""
    signed: int = 0
    """The part of ``tokens_after`` that is hidden thinking, billed with signatures."""
    warnings: tuple[str, ...] = ()

    @property
    def fell_back(self) -> bool:
        """Whether the best way failed."""
        return self.step not in ("", PLANNED.name)

    def warned(self, *warnings: str) -> FitResult:
        """The result with more warnings."""
        return replace(self, warnings=(*self.warnings, *warnings)) if warnings else self

    @property
    def may_warn(self) -> bool:
        """Whether its report has warnings; cheap."""
        failed = self.measured.sizes.counter.failures
        unanswered = self.answers is not None and self.answers.warnings()
        return bool(self.warnings or self.fell_back or failed or unanswered)

    @property
    def is_refusal_expected(self) -> bool:
        """True if every fallback failed and the request sent exceeds a limit or is unrepaired."""
        if self.step not in LAST_STEPS:
            return False
        bounds = self.measured.limits.bounds
        limit = bounds.body_bytes
        over = self.tokens_after > bounds.capacity
        too_large = limit is not None and self.sent.body_bytes > limit
        return over or too_large or self.step == AS_RECEIVED


PLANNED = Way("planned")
SIMPLER = (
    Way("without drops", drops=False),
    Way("only what is needed", drops=False, to_target=False),
)
ONLY_REPAIRED, AS_RECEIVED = LAST_STEPS = ("repaired only", "original")
"""The last steps of the ladder, which make no new reduction."""


def prepare(request: Any, inputs: TurnInputs) -> MeasuredRequest:
    """Read, repair and measure.  Raises InvalidRequest, InvalidSetting, NotAccepted (strict)."""
    received = read(request, inputs)
    repaired = repair(received, inputs)
    return measure(repaired, inputs)


def run(measured: MeasuredRequest) -> FitResult:
    """Make the request fit.  Raises CannotFit; with ``strict`` also any error of a ladder step.

    Where pins are in the way, the model's notes give way first, then pins of the journal (set by
    ``pin`` or ``undo``) are released, the largest first.  Pins of the settings stay.
    """
    try:
        return _run(measured)
    except CannotFit as error:
        if error.limit != "pin":
            raise
        refused = error
    if measured.holds_notes and model_notes(measured.transcript):
        result = run(replace(measured, holds_notes=False))
        return result.warned("the model's own notes gave way to the window")
    return _run_with_fewer_pins(measured, refused)


def _run_with_fewer_pins(measured: MeasuredRequest, refused: CannotFit) -> FitResult:
    transcript, sizes, journal = measured.transcript, measured.sizes, measured.inputs.journal
    blocks = {pin: pinned(transcript, [pin]) for pin in journal.pins}
    tokens = {
        pin: sum(sizes.block(transcript, transcript.refs[ref]) for ref in refs)
        for pin, refs in blocks.items()
        if refs
    }
    pins = sorted(tokens, key=lambda pin: (-tokens[pin], pin))
    over, freed, count = refused.minimum - refused.allowed, 0, 0
    while count < len(pins):
        while count < len(pins) and freed < over:
            freed, count = freed + tokens[pins[count]], count + 1
        released = tuple(pins[:count])
        fewer = measured.with_journal(journal.pinned(released, pin=False))
        try:
            result = _run(replace(fewer, released=released))
        except CannotFit as error:
            over = freed + max(error.minimum - error.allowed, 1)
            continue
        gone = f"{count} of {len(pins)} pinned parts, {freed:,} tokens"
        return result.warned(f"pins gave way to the window: {gone}")
    raise refused


ATTEMPTS = 4
"""Most plans made one after the other; a ladder step that needs more has an error of ours, and the
next step is taken and reported."""


def _run(measured: MeasuredRequest) -> FitResult:
    """Make the request fit with all pins that it has.

    The note of dropped steps is a message of the user, and turns that follow one can be folded.
    Where the request is above the trigger still, that is done at once.  Otherwise the next request
    would do it and lose its cache.
    """
    result = _run_once(measured)
    for _ in range(ATTEMPTS):
        above = result.tokens_after > measured.limits.bounds.trigger
        dropped = any(edit.op == "drop" for edit in result.new)
        if not (above and dropped) or measured.settings.summarizer is not None:
            break
        again = _run_once(measured.with_journal(journal_after(result)))
        if not again.new:
            break
        result = replace(
            again, measured=measured, new=(*result.new, *again.new), target=result.target,
            originals={**result.originals, **again.originals}, cost=result.cost,
            warnings=(*result.warnings, *again.warnings),
        )  # fmt: skip
    return result


def _run_once(measured: MeasuredRequest) -> FitResult:
    is_changed = bool(measured.active) or _needs_edits(measured)
    if not is_changed and measured.repaired.made is None:
        return as_received(measured)
    failed: list[str] = []
    for name, attempt in _ladder(measured) if is_changed else _only_repair(measured):
        try:
            return attempt().warned(*failed)
        except (CannotFit, InvalidSetting):
            raise
        except Exception as error:  # try the next step of the ladder
            if measured.settings.strict:
                raise
            failed.append(f"{name} failed: {type(error).__name__}: {error}")
    return replace(as_received(measured), step=AS_RECEIVED).warned(*failed)


Ladder = Iterator[tuple[str, Callable[[], FitResult]]]


def _ladder(measured: MeasuredRequest) -> Ladder:
    """Ways to make it fit, the best first."""
    if measured.inputs.keeps_messages:
        yield PLANNED.name, partial(_shortened, measured)
        return
    for way in (PLANNED, *SIMPLER):
        yield way.name, partial(_planned, measured, way)
    yield "the smallest", partial(_smallest, measured)
    yield ONLY_REPAIRED, partial(only_repaired, measured, ONLY_REPAIRED)


def _only_repair(measured: MeasuredRequest) -> Ladder:
    """The way where nothing has to be reduced."""
    yield "repair", partial(only_repaired, measured)


# --- plan, apply, check --------------------------------------------------------------------------


def _needs_edits(measured: MeasuredRequest) -> bool:
    """Whether anything exceeds the trigger or a limit, or a cut is due before that."""
    return measured.is_over or _is_due(measured, measured.sizes.measure(measured.transcript))


def _is_due(measured: MeasuredRequest, tokens: int) -> bool:
    """Whether a cut begins before the trigger if ``tokens`` would be sent."""
    if not measured.may_begin_early:
        return False
    inputs = reduce(measured)
    goal = pays_above(measured, inputs, tokens)
    return (goal is not None and tokens > goal) or is_dead_weight_due(measured, inputs)


def _planned(measured: MeasuredRequest, way: Way) -> FitResult:
    """Plan, apply, check; again with tighter limits if the result is too large."""
    if (kept := _with_journal_edits_alone(measured, way.name)) is not None:
        return kept
    inputs = reduce(measured)
    wanted = bounds = measured.limits.bounds
    if lower_bound(measured) > wanted.capacity:
        smallest_or_cannot_fit(measured, inputs)  # raises: no plan can get below this
    for _ in range(ATTEMPTS):
        plan = _plan(measured, inputs, bounds, way)
        result = _checked(measured, plan)
        over = max(result.tokens_after - wanted.capacity, 0)
        excess = 0
        if wanted.body_bytes is not None and plan.counts_bytes:
            excess = max(result.sent.body_bytes - wanted.body_bytes, 0)
        if not over and not excess:
            return replace(result, cost=_cost(plan, result))
        size = None if bounds.body_bytes is None else bounds.body_bytes - excess
        bounds = replace(bounds, capacity=bounds.capacity - over, body_bytes=size)
    if plan.is_smallest and plan.planner is not None:
        raise cannot_fit(measured, plan.planner, "window" if over else "request_bytes")
    raise TrimtabError(f"the plan came out {over or excess:,} larger than was counted")


def _with_journal_edits_alone(measured: MeasuredRequest, step: str) -> FitResult | None:
    """The request with only the journal's edits; None if it needs more."""
    if measured.new_repairs or not measured.active:
        return None
    if measured.too_many_images or measured.too_large_image or measured.too_long_result:
        return None
    result = _checked(measured, Plan(measured.active, (), step))
    bounds, tokens = measured.limits.bounds, result.tokens_after
    if tokens > min(bounds.trigger, bounds.capacity) or _is_due(measured, tokens):
        return None
    limit, body = bounds.body_bytes, measured.repaired.body
    if limit is not None and body.max_bytes > limit and result.sent.body_bytes > limit:
        return None
    return result


def _plan(measured: MeasuredRequest, inputs: PlanInputs, bounds: Bounds, way: Way) -> Plan:
    """The edits that a way chooses; those of the smallest form if they don't meet all limits.

    Raises CannotFit.
    """
    planner, before = choose(measured, inputs, bounds, way)
    is_smallest = is_over_a_limit(planner)
    if is_smallest:
        planner = smallest_or_cannot_fit(measured, inputs)
    summarizer = measured.settings.summarizer
    answers = None if summarizer is None else answers_for(planner, summarizer, before)
    return plan_of(planner, way.name, before, is_smallest=is_smallest, answers=answers)


def _shortened(measured: MeasuredRequest) -> FitResult:
    """Texts shortened in their places; above the limit still where that is not enough."""
    if (kept := _with_journal_edits_alone(measured, PLANNED.name)) is not None:
        return kept
    inputs, bounds = replace(reduce(measured), folds=False), measured.limits.bounds
    planner, before = choose(measured, inputs, bounds, Way(PLANNED.name, drops=False))
    return _checked(measured, plan_of(planner, PLANNED.name, before))


def _smallest(measured: MeasuredRequest) -> FitResult:
    """Everything reduced as far as possible, without the code that chooses."""
    planner = smallest_or_cannot_fit(measured, reduce(measured))
    return _checked(measured, plan_of(planner, "the smallest"))


def only_repaired(measured: MeasuredRequest, step: str = "") -> FitResult:
    """The repaired request without a new reduction."""
    return _checked(measured, plan_nothing(measured, step))


def _checked(measured: MeasuredRequest, plan: Plan) -> FitResult:
    """Apply a plan and check the result."""
    return check(measured, plan, apply(measured, plan.edits))


def check(measured: MeasuredRequest, plan: Plan, draft: Draft) -> FitResult:
    """The draft as a result.  Raises TrimtabError if an edit broke a rule of the provider."""
    failures: Sequence[str] = ()
    if plan.edits:
        violations, failures = broken_rules(measured, draft.transcript)
        if violations:
            where = paths.escape(violations[0].path)
            raise TrimtabError(f"edits broke a rule at {where}: {violations[0].message}")
    sizes, after = measured.sizes, draft.transcript
    return FitResult(
        measured, draft.body, measured.tokens_before, sizes.measure(after), draft.applied,
        plan.new, originals_of(measured, draft, plan.new), plan.target, plan.step, plan.answers,
        signed=sizes.signed(after), warnings=(*measured.warnings, *plan.warnings, *failures),
    )  # fmt: skip


def broken_rules(
    measured: MeasuredRequest, after: Transcript
) -> tuple[Sequence[Violation], Sequence[str]]:
    """(violations that the request did not have before its edits, rules that raised)."""
    violations, failures = checked(after, measured.settings)
    before, often = measured.repaired.broken, Counter(one.rule for one in violations)
    return [one for one in violations if often[one.rule] > before.get(one.rule, 0)], failures


def as_received(measured: MeasuredRequest) -> FitResult:
    """The very request that was given."""
    tokens, signed = measured.tokens_before, measured.sizes.signed(measured.received.transcript)
    return FitResult(
        measured, measured.received.body, tokens, tokens, signed=signed, warnings=measured.warnings
    )


def _cost(plan: Plan, result: FitResult) -> CutCost | None:
    """The effect of the new edits on the bill; None if no price table is named."""
    settings, transcript = result.measured.settings, result.measured.transcript
    if settings.prices is None or not plan.new or plan.planner is None:
        return None
    cold, before, after = result.measured.limits.cold, plan.tokens_before, result.tokens_after
    cut = economics.cut_of(plan.planner, plan.new, before, after, cold)
    name = settings.model or transcript.facts.model
    model = models.find(name) if name else None
    dollars = model.input_price if model else None
    left = economics.requests_left(transcript)
    return economics.cut_cost(prices.named(settings.prices), cut, left, dollars)


# --- journal -------------------------------------------------------------------------------------


def journal_after(result: FitResult) -> Journal:
    """The journal with this turn's new edits; the same object if there are none."""
    measured, inputs, made = result.measured, result.measured.inputs, result.measured.repaired.made
    journal, cleared = inputs.journal, measured.newly_cleared
    nothing_new = not result.new and made is None and not cleared
    if measured.limits.is_client_request or nothing_new:
        return journal
    transcript, keys, repairs = measured.transcript, list[str](), made.repairs if made else []
    if made:
        pairs = zip(made.repairs, made.keys, strict=True)
        keys += [repair_key(rule, key) for (rule, _), key in pairs]
        destination = measured.received.destination
        keys += refused_rules.keys_of(made, destination, inputs.refused, journal.repaired)
    keys += [cleared_key(transcript.ref(place)) for place in cleared]
    new = with_figures(measured, result.applied, result.new)
    resting = with_dependencies(transcript, new, redundancy_of(measured).depends_on)
    return journal.add([*resting, *tip_edits(transcript, repairs)], {}, keys)
