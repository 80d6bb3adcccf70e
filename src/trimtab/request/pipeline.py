"""Makes one request acceptable, from the request as received to the one that is sent:

    read ──► repair ──► measure ──► reduce ──► plan ──► journal ──► apply ──► check ──► write

``prepare`` reads, repairs, and determines the limits.  ``run`` measures, plans on top of the
journal's edits, applies all edits and checks the result; if that fails, it tries a ladder of
fallbacks.  ``journal_after`` adds the new edits to the journal.  ``FitResult.sent`` is written.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trimtab.errors import CannotFit, InvalidSetting, NotAccepted, TrimtabError
from trimtab.formats import rules
from trimtab.formats.body import RequestBody
from trimtab.formats.engine.compacted import ignored_paths
from trimtab.formats.repair import embedded_tool_text, ignored, refused_rules
from trimtab.formats.repair.refused_rules import RefusedRules
from trimtab.formats.rules import Repaired
from trimtab.journal.cleared_results import cleared_key
from trimtab.journal.journal import Journal, resting_edits, tip_edits
from trimtab.jsontext import paths
from trimtab.planning.edits import handle
from trimtab.planning.eligibility import Bounds
from trimtab.planning.hard_limits import meet_images, meet_result_chars
from trimtab.planning.make_room import make_room
from trimtab.planning.operations import Applied, in_order
from trimtab.planning.planner import Planner
from trimtab.planning.reasoning_signatures import unbind, with_option
from trimtab.pricing import economics, models, prices
from trimtab.pricing.economics import BatchCost
from trimtab.pricing.forecast import with_calls_left
from trimtab.request.effective_limits import (
    EffectiveLimits,
    byte_limit,
    calibrated,
    effective_limits,
)
from trimtab.request.message_cache import MessageCache
from trimtab.request.minimum import cannot_fit, lower_bound, smallest_or_cannot_fit
from trimtab.request.prepared_request import PreparedRequest, SessionFacts, checked, repair_key
from trimtab.settings import Settings
from trimtab.summarizers.articles import Answers, answer
from trimtab.transcript.model import Edit
from trimtab.transcript.token_sizes import TokenSizes
from trimtab.transcript.transcript import Transcript

MOSTLY = 0.5
"""The cache counts as lost if this share of the trigger stands behind a result that the client has
emptied."""


@dataclass(frozen=True)
class FitResult:
    """The request to send, the edits applied to it, and their figures."""

    prepared: PreparedRequest
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
    asked: Answers | None = None
    """The summarizer's questions and answers; None without a summarizer."""
    money: BatchCost | None = None
    """The effect of the new edits on the bill; None if no price table was named."""
    signed: int = 0
    """The part of ``tokens_after`` that is hidden thinking, billed with signatures."""

    @property
    def is_refusal_expected(self) -> bool:
        """True if every fallback failed and the request sent exceeds a limit or is unrepaired."""
        if self.step not in LAST_STEPS:
            return False
        bounds = self.prepared.limits.bounds
        most = bounds.body_bytes
        over = self.tokens_after > bounds.capacity
        return over or self.step == "original" or (most is not None and self.sent.body_bytes > most)


LAST_STEPS = ("repaired only", "original")
"""The last steps of the ladder, which make no new reduction."""


# --- read, repair, set limits --------------------------------------------------------------------


def prepare(
    request: Any,
    settings: Settings,
    cache: MessageCache,
    journal: Journal,
    facts: SessionFacts | None = None,
) -> PreparedRequest:
    """Read, repair, set limits.  Raises InvalidRequest, InvalidSetting, NotAccepted (strict)."""
    facts = SessionFacts() if facts is None else facts
    body = RequestBody.of(request)
    arrived, reason = cache.read(body, settings.format, settings.model)
    warnings: list[str] = []
    model = settings.model or arrived.facts.model
    facts = replace(facts, destination=refused_rules.destination_of(facts.destination, model))
    refused = refused_rules.known(journal.repaired, facts.destination, facts.refused)
    if dialect := refused_rules.dialect_in(refused):
        arrived, reason = cache.read(body, dialect, settings.model)
    repaired, transcript, repairs, broken = _repair(
        body, arrived, settings, cache, warnings, refused,
        leave_out_ignored=_ignored_is_in_the_way(body, arrived, settings, journal),
    )  # fmt: skip
    sizes = cache.sizes(settings.counter, transcript.facts.model, arrived.format.name)
    limits = _limits(settings, facts, transcript, sizes)
    warnings += _window_of_another(settings.model or transcript.facts.model, limits)
    return _with_trigger_moved(PreparedRequest(
        body, arrived, reason, repaired, transcript, repairs, sizes, limits, settings, journal,
        cache, warnings, broken, facts,
    ))  # fmt: skip


def _window_of_another(model: str | None, limits: EffectiveLimits) -> Iterator[str]:
    """A warning where the window is that of the nearest version of an unknown model."""
    if model and limits.window_of and models.find(model) is None:
        yield (
            f"the window of {model[:80]} is not in our table: that of {limits.window_of} is taken, "
            f"{limits.window:,} tokens; window= says another"
        )


def _ignored_is_in_the_way(
    body: RequestBody, arrived: Transcript, settings: Settings, journal: Journal
) -> bool:
    """Whether the request has content that the provider ignores and too many bytes, now or in an
    earlier turn."""
    if next(ignored_paths(arrived), None) is None:
        return False
    limit = byte_limit(settings, arrived)
    before = any(key.startswith(ignored.RULE) for key in journal.repaired)
    return before or (limit is not None and body.exceeds(limit))


def _repair(
    body: RequestBody,
    arrived: Transcript,
    settings: Settings,
    cache: MessageCache,
    warnings: list[str],
    refused: RefusedRules,
    *,
    leave_out_ignored: bool,
) -> tuple[RequestBody, Transcript, Repaired | None, Counter[str]]:
    """Repair a request: the result, its transcript, the repairs, and the rules still broken, with
    how often.

    Raises NotAccepted with ``strict``.
    """
    repaired, transcript, repairs = body, arrived, None
    left = checked(arrived, settings, warnings)
    violations = tuple(violation for violation in left if violation.certain)
    if violations and settings.strict:
        raise NotAccepted(
            f"{len(violations)} violation(s), the first: {paths.escape(violations[0].path)}: "
            f"{violations[0].message}; repair() fixes them",
            violations,
        )
    if violations or leave_out_ignored or refused:
        made = rules.repair(
            body.tree, arrived.format, arrived, open_tail=settings.open_tail, failures=warnings,
            leave_out_ignored=leave_out_ignored, refused=refused,
        )  # fmt: skip
        left = checked(made.transcript, settings, warnings)
        repaired, transcript = body.after(made.passes), made.transcript
        repairs = made if made.passes else None
    if settings.quote_embedded and (
        quotes := embedded_tool_text.quote_repairs(transcript, repaired.tree)
    ):
        before, read = repaired, transcript
        repairs = embedded_tool_text.with_quotes(
            repairs or Repaired(before.tree, read, [], [], [], [], [before.tree]), quotes
        )  # fmt: skip
        repaired = body.after(repairs.passes)
        transcript = cache.read_changed(repaired, before, read)
    return repaired, transcript, repairs, Counter(violation.rule for violation in left)


def _limits(
    settings: Settings, facts: SessionFacts, transcript: Transcript, sizes: TokenSizes
) -> EffectiveLimits:
    """The limits of this request, in our tokens."""
    limits = effective_limits(settings, transcript, sizes.counter)
    if facts.calibrations:
        limits = calibrated(limits, settings, facts.calibrations, transcript, sizes)
    return limits


def _with_trigger_moved(prepared: PreparedRequest) -> PreparedRequest:
    """A batch begins later where few calls are left, and earlier where the prompt cache is lost
    anyway.  Where all calls that are left fit, none begins early."""
    settings, limits = prepared.settings, prepared.limits
    if settings.calls_left is not None:
        bounds = with_calls_left(
            limits.bounds, prepared.transcript, prepared.sizes, settings.calls_left
        )
        limits = replace(limits, bounds=bounds)
    all_fit = settings.calls_left is not None and limits.bounds.trigger == limits.bounds.capacity
    if not all_fit and not limits.is_client_request:
        limits = _with_lost_cache(prepared, limits)
    return prepared if limits is prepared.limits else replace(prepared, limits=limits)


def _with_lost_cache(prepared: PreparedRequest, limits: EffectiveLimits) -> EffectiveLimits:
    """The limits with an earlier trigger if the cache has expired, or if the client has emptied a
    result with most of the request behind it."""
    idle, table = prepared.idle_seconds, prepared.settings.prices
    cold = idle is not None and idle > economics.lifetime(table, prepared.transcript)
    cleared = not cold and prepared.tokens_behind_cleared > MOSTLY * limits.bounds.trigger
    if not (cold or cleared):
        return limits
    if prepared.settings.waits_for_the_window:
        return replace(limits, cold=cold)
    bounds = economics.bounds_for_lost_cache(limits.bounds)
    return replace(limits, bounds=bounds, cold=cold, cleared=cleared)


# --- plan, apply, check --------------------------------------------------------------------------


def run(prepared: PreparedRequest) -> FitResult:
    """Make the request fit.  Raises CannotFit; with ``strict`` also any error of a ladder step.

    The note of dropped steps is a message of the user, and turns that follow one can be folded.
    Where the request is above the trigger still, that is done at once.  Otherwise the next request
    would do it and lose its cache.
    """
    result = _run_once(prepared)
    for _ in range(ATTEMPTS):
        above = result.tokens_after > prepared.limits.bounds.trigger
        dropped = any(edit.op == "drop" for edit in result.new)
        if not (above and dropped) or prepared.settings.summarizer is not None:
            break
        again = _run_once(replace(prepared, journal=journal_after(result)))
        if not again.new:
            break
        result = replace(
            again, prepared=prepared, new=(*result.new, *again.new), target=result.target,
            originals={**result.originals, **again.originals}, money=result.money,
        )  # fmt: skip
    return result


def _run_once(prepared: PreparedRequest) -> FitResult:
    arrived = prepared.sizes.measure(prepared.arrived)
    tokens = prepared.sizes.measure(prepared.transcript)
    nothing_to_reduce = not prepared.active and not prepared.needs_edits(tokens)
    if nothing_to_reduce and prepared.repairs is None:
        signed = prepared.sizes.signed(prepared.arrived)
        return FitResult(prepared, prepared.body, arrived, arrived, signed=signed)
    for step, attempt in _ladder(prepared, nothing_to_reduce):
        try:
            return attempt()
        except (CannotFit, InvalidSetting):
            raise
        except Exception as error:  # try the next step of the ladder
            if prepared.settings.strict:
                raise
            prepared.warnings.append(f"{step} failed: {type(error).__name__}: {error}")
    return FitResult(prepared, prepared.body, arrived, arrived, step=LAST_STEPS[1])


def _ladder(
    prepared: PreparedRequest, nothing_to_reduce: bool
) -> Iterator[tuple[str, Callable[[], FitResult]]]:
    """Ways to make it fit, the best first; if nothing has to be reduced, only the repair."""
    if nothing_to_reduce:
        yield "repair", lambda: only_repaired(prepared)
        return
    yield "planned", lambda: _planned(prepared)
    yield "without drops", lambda: _planned(prepared, step="without drops", drops=False)
    yield (
        "only what is needed",
        lambda: _planned(prepared, step="only what is needed", drops=False, to_target=False),
    )
    yield "the smallest", lambda: _smallest(prepared)
    yield "repaired only", lambda: only_repaired(prepared, LAST_STEPS[0])


ATTEMPTS = 4
"""Most plans made with ever tighter limits; after that the next step of the ladder is taken and
reported, because it is an error of ours."""


def _planned(
    prepared: PreparedRequest, *, step: str = "planned", drops: bool = True, to_target: bool = True
) -> FitResult:
    """Plan, apply, check; repeat with tighter limits if the result is too large."""
    if (kept := _with_journal_edits_alone(prepared, step)) is not None:
        return kept
    wanted = bounds = prepared.limits.bounds
    if lower_bound(prepared) > wanted.capacity:
        smallest_or_cannot_fit(prepared, wanted)  # raises CannotFit: no plan can get below this
    for _ in range(ATTEMPTS):
        planner, before = _plan_batch(prepared, bounds, drops=drops, to_target=to_target)
        smallest = planner.over() or meet_images(planner) > 0 or meet_result_chars(planner) > 0
        if smallest:
            planner = smallest_or_cannot_fit(prepared, wanted)
        summarizer = prepared.settings.summarizer
        asked = None if summarizer is None else _answers(planner, summarizer, before)
        prepared.warnings.extend(dict.fromkeys(planner.inputs.failures))  # one line for many blocks
        new = planner.edits()
        result = _applied(prepared, (*planner.kept(), *new), new, planner.goal, step)
        over = max(result.tokens_after - wanted.capacity, 0)
        excess = 0
        if wanted.body_bytes is not None and planner.body_bytes:
            excess = max(result.sent.body_bytes - wanted.body_bytes, 0)
        if not over and not excess:
            money = _money(prepared, planner, new, before, result.tokens_after)
            return replace(result, asked=asked, money=money)
        size = None if bounds.body_bytes is None else bounds.body_bytes - excess
        bounds = replace(bounds, capacity=bounds.capacity - over, body_bytes=size)
    if smallest:
        raise cannot_fit(prepared, planner, "window" if over else "request_bytes")
    raise TrimtabError(f"the plan came out {over or excess:,} larger than was counted")


def _smallest(prepared: PreparedRequest) -> FitResult:
    """Reduce everything as far as possible, without the code that chooses."""
    planner = smallest_or_cannot_fit(prepared, prepared.limits.bounds)
    new = planner.edits()
    return _applied(prepared, (*planner.kept(), *new), new, None, "the smallest")


def _with_journal_edits_alone(prepared: PreparedRequest, step: str) -> FitResult | None:
    """The request with only the journal's edits; None if it needs more."""
    if prepared.new_repairs or not prepared.active:
        return None
    if prepared.dead_weight_due:
        return None
    if prepared.too_many_images or prepared.too_long_result:
        return None
    result = _applied(prepared, prepared.active, (), None, step)
    bounds = prepared.bounds_at(result.tokens_after)
    if result.tokens_after > min(bounds.begin, bounds.capacity):
        return None
    limit = bounds.body_bytes
    if limit is not None and prepared.may_exceed(limit) and result.sent.body_bytes > limit:
        return None
    return result


def _plan_batch(
    prepared: PreparedRequest, bounds: Bounds, *, drops: bool, to_target: bool
) -> tuple[Planner, int]:
    """Plan a batch: the planner, and the tokens before it chose any new edit."""
    planner = prepared.planner(bounds, drops=drops, to_target=to_target)
    before = planner.state.tokens
    pays_above = prepared.bounds_at(before).pays_above if to_target else None
    if pays_above is not None:
        bounds = replace(bounds, pays_above=pays_above)
        planner = prepared.planner(bounds, drops=drops)
    free = to_target and not planner.over() and before > bounds.begin
    acted = _choose_edits(prepared, planner)
    saved = before - planner.state.tokens
    if (acted and free) and not economics.is_worthwhile(
        planner.transcript, planner.usage, bounds.capacity, saved
    ):
        planner = prepared.planner(bounds, drops=drops, to_target=False)
        _choose_edits(prepared, planner)
    return planner, before


def _choose_edits(prepared: PreparedRequest, planner: Planner) -> bool:
    """Choose new edits if the request, with the journal's edits, still needs any."""
    before = (planner.state.tokens, len(planner.state.shown))
    if planner.state.tokens <= planner.bounds.begin:
        for dead in prepared.early_dead_weight(planner):
            planner.show(dead.place, dead.offer)
    meet_images(planner)
    meet_result_chars(planner)
    if planner.state.tokens > planner.bounds.begin or planner.over():
        make_room(planner)
    acted = (planner.state.tokens, len(planner.state.shown)) != before
    if acted or prepared.new_repairs:
        unbind(planner, prepared.settings.thinking, prepared.new_repairs)
    return acted


def _answers(planner: Planner, say: Callable[..., Any], before: int) -> Answers:
    """The summarizer's answers; articles that it shortened are shown whole again if there is room
    under the target."""
    bounds, goal = planner.bounds, None
    if before > min(bounds.begin, bounds.capacity) and bounds.result_chars is None:
        goal = min(bounds.capacity, planner.goal or planner.eligibility.target)
    return answer(planner, say, goal, steps=bool(getattr(say, "steps", True)))


def _money(
    prepared: PreparedRequest, planner: Planner, new: tuple[Edit, ...], before: int, after: int
) -> BatchCost | None:
    """The effect of the new edits on the bill; None if no price table is named."""
    if prepared.settings.prices is None or not new:
        return None
    batch = economics.edit_batch(planner, new, before, after, prepared.limits.cold)
    name = prepared.settings.model or prepared.transcript.facts.model
    model = models.find(name) if name else None
    left = economics.requests_left(prepared.transcript)
    dollars = model.input_price if model else None
    return economics.batch_cost(prices.named(prepared.settings.prices), batch, left, dollars)


def only_repaired(prepared: PreparedRequest, step: str = "") -> FitResult:
    """The repaired request without a new reduction; reasoning that a repair made invalid is
    removed."""
    planner = prepared.planner()
    if prepared.new_repairs:
        unbind(planner, prepared.settings.thinking, prepared.new_repairs)
    new = planner.edits()
    return _applied(prepared, (*planner.kept(), *new), new, None, step)


def _applied(
    prepared: PreparedRequest,
    edits: Sequence[Edit],
    new: Sequence[Edit],
    target: int | None,
    step: str,
) -> FitResult:
    """Apply edits and check.  Raises TrimtabError if the result would break a rule."""
    transcript, body, sizes = prepared.transcript, prepared.repaired, prepared.sizes
    applied = with_option(
        transcript, body.tree, edits, prepared.settings.thinking,
        changed=bool(edits) or prepared.repairs is not None,
    )  # fmt: skip
    ops = in_order(applied)
    sent = body.after([ops]) if ops else body
    after = prepared.cache.read_changed(sent, body, transcript)
    if edits and (violations := prepared.check(after)):
        where = paths.escape(violations[0].path)
        raise TrimtabError(f"edits broke a rule at {where}: {violations[0].message}")
    fresh = {edit.handle for edit in new}
    originals = {a.edit.handle: prepared.original(a) for a in applied if a.edit.handle in fresh}
    return FitResult(
        prepared, sent, sizes.measure(prepared.arrived), sizes.measure(after), tuple(applied),
        tuple(new), {**originals, **taken_out(prepared)}, target, step, signed=sizes.signed(after),
    )  # fmt: skip


def taken_out(prepared: PreparedRequest) -> dict[str, str]:
    """The originals that repairs removed, by handle."""
    key = prepared.facts.handle_key
    return {taken_handle(value, key): text for _, value, text in prepared.taken_by_repair()}


def taken_handle(value: Any, key: bytes) -> str:
    """The handle of a value that a repair removed."""
    data = paths.dump(value).encode("utf-8", "surrogatepass")
    return handle((hashlib.blake2b(data, digest_size=8).hexdigest(), "taken"), key)


# --- journal -------------------------------------------------------------------------------------


def journal_after(result: FitResult) -> Journal:
    """The journal with this turn's new edits; the same object if there are none."""
    prepared, journal = result.prepared, result.prepared.journal
    seen = prepared.repairs is not None or prepared.newly_cleared
    if prepared.limits.is_client_request or not (result.new or seen):
        return journal
    made, transcript, facts = prepared.repairs, prepared.transcript, prepared.facts
    repairs = made.repairs if made else []
    keys = [
        repair_key(rule, key)
        for (rule, _), key in zip(repairs, made.keys if made else (), strict=True)
    ]
    if made:
        keys += refused_rules.keys_of(made, facts.destination, facts.refused, journal.repaired)
    keys += [cleared_key(transcript.ref(place)) for place in prepared.newly_cleared]
    return journal.add(
        [
            *resting_edits(
                transcript, result.new, lambda place: prepared.redundancy.rests_on(place)
            ),
            *tip_edits(transcript, repairs),
        ],
        {},
        keys,
    )
