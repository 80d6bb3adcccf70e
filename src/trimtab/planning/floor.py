"""The smallest form of a request, and the refusal where even that is too large.

Knows how to say what cannot shrink.  Does not know how anything is reduced.
"""

from __future__ import annotations

from trimtab import paths
from trimtab.errors import CannotFit
from trimtab.planning.binding import unbind, with_option
from trimtab.planning.edits import in_order
from trimtab.planning.hard_limits import meet_images, meet_result_chars
from trimtab.planning.plan import SHORTEST, Bounds, Planner
from trimtab.tokens import MESSAGE_TOKENS
from trimtab.turns.work import Work


def smallest(work: Work) -> Planner:
    """Everything that may be reduced, reduced as far as it goes: its size is the floor."""
    plan = work.planner()
    meet_images(plan)
    _choose_smallest(plan)
    meet_result_chars(plan)
    unbind(work, plan)
    return plan


def _choose_smallest(planner: Planner) -> None:
    end, scope = len(planner.transcript.messages), planner.scope
    planner.exhaust(planner.reducible(0, end, prose=True, spared=True))
    planner.drop_until(lambda: False, end, spared=True)
    planner.bare_notes(lambda: False)
    for place in scope.user_texts:
        planner.cut_user(place, SHORTEST)


def least(work: Work) -> int:
    """Tokens that no plan gets below, told without one: what stands beside the messages, the
    system's words, and the frames of what the user said."""
    transcript, usage, counter = work.transcript, work.usage, work.usage.counter
    head = sum(usage.block_cost(block) for block in transcript.head if block.kind != "text")
    words = [transcript.messages[number] for number in transcript.index.said]
    system = sum(usage.message(message) for message in words if message.role == "system")
    said = sum(message.role == "user" and message.framed for message in words)
    return head + system + said * counter.scaled(MESSAGE_TOKENS)


def floor(work: Work) -> int:
    """The smallest window that works, output reserve included, in tokens."""
    return work.force.theirs(smallest(work).board.tokens) + work.force.reserve


def smallest_or_refuse(work: Work, bounds: Bounds) -> Planner:
    """The smallest plan; CannotFit where a limit is not met even so."""
    plan = smallest(work)
    if plan.board.tokens > bounds.capacity:
        raise cannot_fit(work, plan, "window")
    if meet_images(plan):
        raise cannot_fit(work, plan, "images")
    if meet_result_chars(plan):
        raise cannot_fit(work, plan, "result_chars")
    if bounds.body_bytes is not None and body_after(work, plan) > bounds.body_bytes:
        raise cannot_fit(work, plan, "request_bytes")
    return plan


def body_after(work: Work, plan: Planner) -> int:
    """Encoded bytes of the request with this plan's edits on it."""
    if not plan.body_bytes:
        return 0
    edits = (*plan.kept(), *plan.edits())
    return work.repaired.after([in_order(with_option(work, edits))]).body_bytes


def cannot_fit(work: Work, plan: Planner, limit: str) -> CannotFit:
    """The error that names the limit, the floor, and what cannot shrink."""
    force, bounds = work.force, work.force.bounds
    arrived = work.usage.measure(work.given)
    allowed, reserve = force.given or force.window, force.reserve
    low, high = force.theirs(plan.board.tokens) + reserve, force.theirs(arrived) + reserve
    if limit == "request_bytes":
        size = work.repaired.body_bytes
        allowed, low, high = bounds.body_bytes or 0, body_after(work, plan), size
    elif limit == "images":
        allowed, high = bounds.images or 0, work.usage.media(work.transcript)
        low = allowed + meet_images(plan)
    elif limit == "result_chars":
        allowed, high = bounds.result_chars or 0, work.longest_result()
        low = meet_result_chars(plan)
    elif plan.choice.pinned and smallest(work.unpinned()).board.tokens <= bounds.capacity:
        limit = "pin"
    hint = "Enlarge the window, shorten these parts, or start a new conversation."
    if limit == "pin":
        hint = "Without its pins it would fit: unpin what can go."
    elif reserve > 0.8 * allowed:
        hint = f"The output reserve takes {reserve:,} of {allowed:,}: lower it first."
    if limit in ("window", "pin") and force.factors is not None:
        learned = f"{force.factors.worst:.3g} for one of our count, learned from its answers"
        hint += f" Tokens are the provider's: {learned}."
    return CannotFit(
        limit=limit, allowed=allowed, floor=low, projected=high, tried=tuple(plan.tried),
        largest=_largest(work, plan), hint=hint,
    )  # fmt: skip


def _largest(work: Work, plan: Planner) -> tuple[tuple[str, int, str], ...]:
    """The five biggest parts that are left, as (path, tokens, what it is)."""
    rows = []
    for place in work.transcript.places():
        if not plan.board.gone(place):
            pin = "pinned " if plan.scope.pinned(place) else ""
            path = paths.escape(work.before_repair(work.transcript.where(place)))
            size = work.force.theirs(plan.board.cost(place))
            rows.append((path, size, f"{pin}{place.block.kind}"))
    return tuple(sorted(rows, key=lambda row: (-row[1], row[0]))[:5])
