"""One request made acceptable: plan, apply, check, and the ladder of fallbacks behind it.

Knows the order of the steps.  Does not know any format's keys, how a reduction is made, or where
a journal is stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from trimtab import models, paths
from trimtab.asking.asks import Answers, answer
from trimtab.errors import CannotFit, InvalidSetting, TrimtabError
from trimtab.model import Edit
from trimtab.money import economics, prices
from trimtab.money.economics import Money
from trimtab.planning import edits as edit_ops
from trimtab.planning.arrival import arrive
from trimtab.planning.binding import unbind, with_option
from trimtab.planning.floor import cannot_fit, least, smallest_or_refuse
from trimtab.planning.fold import make_room
from trimtab.planning.hard_limits import meet_images, meet_result_chars
from trimtab.planning.plan import Bounds, Planner
from trimtab.turns.continuing import continued
from trimtab.turns.work import Outcome, Work


def run(work: Work) -> Outcome:
    """Make it fit.  Raises CannotFit; with ``strict`` also whatever went wrong on the way."""
    if (same := continued(work)) is not None:
        return same
    arrived = work.usage.measure(work.given)
    calm = not work.active and not work.needs(work.usage.measure(work.transcript))
    if calm and work.mends is None:
        signed = work.usage.signed(work.given)
        return Outcome(work, work.source, arrived, arrived, signed=signed)
    for step, attempt in _ladder(work, calm):
        try:
            return attempt()
        except (CannotFit, InvalidSetting):
            raise
        except Exception as error:  # one step down (law 10)
            if work.settings.strict:
                raise
            work.warnings.append(f"{step} failed: {type(error).__name__}: {error}")
    work.warnings.append("sent as it came: expected to be refused")
    return Outcome(work, work.source, arrived, arrived, step="original")


def _ladder(work: Work, calm: bool) -> Iterator[tuple[str, Callable[[], Outcome]]]:
    """Ways to an answer, the best first; a calm request needs no more than its repair."""
    if calm:
        yield "repair", lambda: only_repaired(work)
        return
    yield "planned", lambda: _planned(work)
    yield "without drops", lambda: _planned(work, step="without drops", drops=False)
    yield (
        "only what is needed",
        lambda: _planned(work, step="only what is needed", drops=False, want=False),
    )
    yield "repaired only", lambda: only_repaired(work, "repaired only, above the limits")


def _planned(
    work: Work, *, step: str = "planned", drops: bool = True, want: bool = True
) -> Outcome:
    """Plan, apply, check; again with tighter limits where the result came out too large."""
    wanted = bounds = work.force.bounds
    if least(work) > wanted.capacity:  # there is nothing to choose: say what is in the way
        smallest_or_refuse(work, wanted)
    for attempt in range(4):
        plan, acted, standing = _chosen(work, bounds, drops=drops, want=want)
        if attempt == 3 or plan.over() or meet_images(plan) or meet_result_chars(plan):
            plan = smallest_or_refuse(work, wanted)
        asked = None if (say := work.settings.summarizer) is None else _answers(plan, say)
        work.warnings += dict.fromkeys(plan.choice.failures)  # one line, however many blocks
        new = plan.edits()
        target = plan.scope.target(bounds.target, bounds.trigger) if acted else None
        outcome = _outcome(work, (*plan.kept(), *new), new, target, step)
        over = max(outcome.tokens_after - wanted.capacity, 0)
        excess = 0
        if wanted.body_bytes is not None and plan.body_bytes:
            excess = max(outcome.sent.body_bytes - wanted.body_bytes, 0)
        if not over and not excess:
            told = _money(work, plan, new, standing, outcome.tokens_after)
            return replace(outcome, asked=asked, money=told)
        size = None if bounds.body_bytes is None else bounds.body_bytes - excess
        bounds = replace(bounds, capacity=bounds.capacity - over, body_bytes=size)
    raise cannot_fit(work, plan, "window" if over else "request_bytes")


def _chosen(work: Work, bounds: Bounds, *, drops: bool, want: bool) -> tuple[Planner, bool, int]:
    """A plan with its choice made, whether there is any, and the tokens that stood before it."""
    plan = work.planner(bounds, drops=drops, want=want)
    standing = plan.board.tokens
    free = want and not plan.over() and standing > bounds.trigger
    acted = _act(work, plan)
    saved = standing - plan.board.tokens
    if acted and free and not economics.worth(plan.transcript, plan.usage, bounds.capacity, saved):
        plan = work.planner(bounds, drops=drops, want=False)
        acted = _act(work, plan)
    return plan, acted, standing


def _money(
    work: Work, plan: Planner, new: tuple[Edit, ...], before: int, after: int
) -> Money | None:
    """What the new edits do to the bill, where a price table is named."""
    if work.settings.prices is None or not new:
        return None
    batch = economics.batch_of(plan, new, before, after, work.force.cold)
    name = work.settings.model or work.transcript.facts.model
    model = models.find(name) if name else None
    left = economics.requests_left(work.transcript)
    dollars = model.input_price if model else None
    return economics.money(prices.named(work.settings.prices), batch, left, dollars)


def _answers(plan: Planner, say: Callable[..., Any]) -> Answers:
    return answer(plan, say, steps=bool(getattr(say, "steps", True)))


def _act(work: Work, plan: Planner) -> bool:
    """Choose new edits if the request, with the journal's edits, still needs any."""
    before = (plan.board.tokens, len(plan.board.shown))
    if work.arriving:
        arrive(plan, work.settings.arrival, work.quotable)
    meet_images(plan)
    meet_result_chars(plan)
    if plan.board.tokens > plan.bounds.trigger or plan.over():
        make_room(plan)
    acted = (plan.board.tokens, len(plan.board.shown)) != before
    if acted or work.new_mends:
        unbind(work, plan)
    return acted


def only_repaired(work: Work, step: str = "") -> Outcome:
    """The repaired request without any reduction; reasoning that a repair unbound goes."""
    plan = work.planner()
    if work.new_mends:
        unbind(work, plan)
    new = plan.edits()
    return _outcome(work, (*plan.kept(), *new), new, None, step)


def _outcome(
    work: Work, edits: Sequence[Edit], new: Sequence[Edit], target: int | None, step: str
) -> Outcome:
    """Apply and check.  Raises TrimtabError where the result would break a rule."""
    transcript, source = work.transcript, work.repaired
    applied = with_option(work, edits)
    ops = edit_ops.in_order(applied)
    sent = source.after([ops]) if ops else source
    after = work.known.as_sent(sent, transcript.format, work.settings.model)
    if edits and (found := work.check(after)):
        where = paths.escape(found[0].path)
        raise TrimtabError(f"edits broke a rule at {where}: {found[0].message}")
    fresh = {edit.handle for edit in new}
    originals = {
        a.edit.handle: edit_ops.original(transcript, source.tree, a, source.spelled)
        for a in applied
        if a.edit.handle in fresh
    }
    return Outcome(
        work, sent, work.usage.measure(work.given), work.usage.measure(after), tuple(applied),
        tuple(new), {**originals, **taken(work)}, target, step, signed=work.usage.signed(after),
    )  # fmt: skip


def taken(work: Work) -> dict[str, str]:
    """What repairs took out, by handle."""
    if work.mends is None:
        return {}
    key = work.settings.handle_key
    return {
        taken_handle(value, key): value if isinstance(value, str) else paths.dump(value)
        for _, _, value in work.mends.taken
    }


def taken_handle(value: Any, key: bytes) -> str:
    """The handle of something a repair took out."""
    data = paths.dump(value).encode("utf-8", "surrogatepass")
    return edit_ops.handle((hashlib.blake2b(data, digest_size=8).hexdigest(), "taken"), key)
