"""The smallest form of a request, and the CannotFit error if even that is too large.

The error names what cannot shrink.  How blocks are reduced is known elsewhere.
"""

from __future__ import annotations

from trimtab.errors import CannotFit
from trimtab.formats.body import RequestBody
from trimtab.jsontext import paths
from trimtab.planning.advice import advice, advice_beside, size_in_bytes
from trimtab.planning.crossing import cross_all
from trimtab.planning.eligibility import Bounds
from trimtab.planning.hard_limits import meet_images, meet_result_chars
from trimtab.planning.operations import in_order
from trimtab.planning.planner import SHORTEST, Planner
from trimtab.planning.reasoning_signatures import unbind, with_option
from trimtab.reducers.base import json_bytes
from trimtab.request.prepared_request import PreparedRequest
from trimtab.transcript.tokens import MESSAGE_TOKENS


def smallest(prepared: PreparedRequest) -> Planner:
    """A plan that reduces everything as far as possible: its size is the minimum."""
    plan = prepared.planner()
    meet_images(plan)
    _choose_smallest(plan)
    meet_result_chars(plan)
    unbind(plan, prepared.settings.thinking, prepared.new_repairs)
    return plan


def _choose_smallest(planner: Planner) -> None:
    end, eligibility = len(planner.transcript.messages), planner.eligibility
    planner.exhaust(planner.reducible(0, end, prose=True, protected=True))
    planner.drop_until(lambda: False, end, protected=True)
    planner.strip_notes(lambda: False)
    if planner.inputs.drops:
        cross_all(planner, constraints=False)
    for place in eligibility.user_texts:
        planner.cut_user(place, SHORTEST)


def lower_bound(prepared: PreparedRequest) -> int:
    """A lower bound of the tokens of any plan, found without planning: the head, the system
    messages, and the frame of one user message."""
    transcript, sizes, counter = prepared.transcript, prepared.sizes, prepared.sizes.counter
    head = sum(sizes.block_cost(block) for block in transcript.head if block.kind != "text")
    words = [transcript.messages[number] for number in transcript.table.user_and_system]
    system = sum(sizes.message(message) for message in words if message.role == "system")
    said = any(message.role == "user" and message.framed for message in words)
    return head + system + said * counter.scaled(MESSAGE_TOKENS)


def minimum(prepared: PreparedRequest) -> int:
    """The smallest window that works, output reserve included, in tokens."""
    return prepared.limits.theirs(smallest(prepared).state.tokens) + prepared.limits.reserve


def smallest_or_cannot_fit(prepared: PreparedRequest, bounds: Bounds) -> Planner:
    """The smallest plan.  Raises CannotFit if it still exceeds a limit."""
    plan = smallest(prepared)
    if plan.state.tokens > bounds.capacity:
        raise cannot_fit(prepared, plan, "window")
    if meet_images(plan):
        raise cannot_fit(prepared, plan, "images")
    if meet_result_chars(plan):
        raise cannot_fit(prepared, plan, "result_chars")
    if bounds.body_bytes is not None and body_after(prepared, plan) > bounds.body_bytes:
        raise cannot_fit(prepared, plan, "request_bytes")
    return plan


def body_after(prepared: PreparedRequest, plan: Planner) -> int:
    """Encoded bytes of the request with this plan's edits applied."""
    return _after(prepared, plan).body_bytes if plan.body_bytes else 0


def _after(prepared: PreparedRequest, plan: Planner) -> RequestBody:
    """The request with this plan's edits applied."""
    edits = (*plan.kept(), *plan.edits())
    applied = with_option(
        prepared.transcript, prepared.repaired.tree, edits, prepared.settings.thinking,
        changed=bool(edits) or prepared.repairs is not None,
    )  # fmt: skip
    return prepared.repaired.after([in_order(applied)])


def cannot_fit(prepared: PreparedRequest, plan: Planner, limit: str) -> CannotFit:
    """The error that names the limit, the minimum, and what cannot shrink."""
    limits, bounds = prepared.limits, prepared.limits.bounds
    arrived = prepared.sizes.measure(prepared.arrived)
    allowed, reserve = limits.given or limits.window, limits.reserve
    low, high = limits.theirs(plan.state.tokens) + reserve, limits.theirs(arrived) + reserve
    if limit == "request_bytes":
        size = prepared.body.body_bytes
        allowed, low, high = bounds.body_bytes or 0, body_after(prepared, plan), size
    elif limit == "images":
        allowed, high = bounds.images or 0, prepared.sizes.media(prepared.transcript)
        low = allowed + meet_images(plan)
    elif limit == "result_chars":
        allowed, high = bounds.result_chars or 0, prepared.longest_result()
        low = meet_result_chars(plan)
    elif plan.inputs.pinned and smallest(prepared.without_pins()).state.tokens <= bounds.capacity:
        limit = "pin"
    unit = "bytes" if limit == "request_bytes" else "tokens"
    hint = _advice(prepared, plan, unit)
    hint = hint or "Enlarge the window, shorten these parts, or start a new conversation."
    if limit == "pin":
        hint = "Without its pins it would fit: unpin what can go."
    elif reserve > 0.8 * allowed:
        hint = f"The output reserve takes {reserve:,} of {allowed:,}: lower it first."
    if limit in ("window", "pin") and limits.factors is not None:
        learned = f"{limits.factors.worst:.3g} for one of our count, learned from its answers"
        hint += f" Tokens are the provider's: {learned}."
    return CannotFit(
        limit=limit, allowed=allowed, minimum=low, projected=high, tried=tuple(plan.tried),
        largest=_largest(prepared, plan), hint=hint,
    )  # fmt: skip


def _advice(prepared: PreparedRequest, plan: Planner, unit: str) -> str:
    """Advice about the parts that are left; "" if no part takes most of the space."""
    state = plan.state
    left = [place for place in prepared.transcript.places() if not state.is_dropped(place)]
    if unit == "bytes":
        read = sum(json_bytes(state.text(place)) + place.block.payload_bytes for place in left)
        beside = advice_beside(_after(prepared, plan).tree, read)
        return beside or advice(prepared.transcript, [(p, size_in_bytes(p)) for p in left], unit)
    sizes = [(place, prepared.limits.theirs(state.cost(place))) for place in left]
    return advice(prepared.transcript, sizes, unit)


def _largest(prepared: PreparedRequest, plan: Planner) -> tuple[tuple[str, int, str], ...]:
    """The five largest parts that are left, as (path, tokens, kind)."""
    rows = []
    for place in prepared.transcript.places():
        if not plan.state.is_dropped(place):
            pin = "pinned " if plan.eligibility.pinned(place) else ""
            path = paths.escape(prepared.before_repair(prepared.transcript.where(place)))
            size = prepared.limits.theirs(plan.state.cost(place))
            rows.append((path, size, f"{pin}{place.block.kind}"))
    return tuple(sorted(rows, key=lambda row: (-row[1], row[0]))[:5])
