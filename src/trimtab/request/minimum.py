"""The smallest form of a request, and the CannotFit error if even that is too large.

The error names what cannot shrink.  How blocks are reduced is known elsewhere.
"""

from __future__ import annotations

from trimtab.errors import CannotFit
from trimtab.formats.body import RequestBody
from trimtab.jsontext import paths
from trimtab.planning.advice import advice, advice_beside, size_in_bytes
from trimtab.planning.eligibility import PlanInputs
from trimtab.planning.hard_limits import meet_images, meet_result_chars
from trimtab.planning.image_sizes import meet_image_sizes, shrink_for_bytes
from trimtab.planning.planner import Planner
from trimtab.planning.reasoning_signatures import unbind
from trimtab.planning.tool_definitions import definition_name
from trimtab.planning.user_cuts import SHORTEST, cut_user
from trimtab.planning.user_turns import fold_all_user_turns
from trimtab.reducers.base import json_bytes
from trimtab.request.applied import body_with
from trimtab.request.measured import MeasuredRequest
from trimtab.request.planned import planner_for, reduce


def smallest(measured: MeasuredRequest, inputs: PlanInputs) -> Planner:
    """A plan that reduces everything as far as possible: its size is the minimum."""
    planner = planner_for(measured, inputs)
    meet_images(planner)
    meet_image_sizes(planner)
    shrink_for_bytes(planner)
    _choose_smallest(planner)
    meet_result_chars(planner)
    unbind(planner, measured.settings.thinking, measured.new_repairs)
    return planner


def _choose_smallest(planner: Planner) -> None:
    end, eligibility = len(planner.transcript.messages), planner.eligibility
    planner.exhaust(planner.reducible(0, end, prose=True, protected=True))
    planner.drop_until(lambda: False, end, protected=True)
    planner.strip_notes(lambda: False)
    if planner.inputs.drops:
        fold_all_user_turns(planner, constraints=False)
    for place in eligibility.user_texts:
        cut_user(planner, place, SHORTEST)


def minimum(measured: MeasuredRequest) -> int:
    """The smallest window that works, output reserve included, in tokens."""
    tokens = smallest(measured, reduce(measured)).state.tokens
    return measured.limits.theirs(tokens) + measured.limits.reserve


def smallest_or_cannot_fit(measured: MeasuredRequest, inputs: PlanInputs) -> Planner:
    """The smallest plan.  Raises CannotFit if it still exceeds a limit."""
    planner, bounds = smallest(measured, inputs), measured.limits.bounds
    if planner.state.tokens > bounds.capacity:
        raise cannot_fit(measured, planner, "window")
    if meet_images(planner):
        raise cannot_fit(measured, planner, "images")
    if meet_result_chars(planner):
        raise cannot_fit(measured, planner, "result_chars")
    if bounds.body_bytes is not None and _body_bytes(measured, planner) > bounds.body_bytes:
        raise cannot_fit(measured, planner, "request_bytes")
    return planner


def _body_bytes(measured: MeasuredRequest, planner: Planner) -> int:
    """Encoded bytes of the request with this plan's edits applied."""
    return _after(measured, planner).body_bytes if planner.body_bytes else 0


def _after(measured: MeasuredRequest, planner: Planner) -> RequestBody:
    """The request with this plan's edits applied."""
    return body_with(measured, (*planner.kept(), *planner.edits()))


def cannot_fit(measured: MeasuredRequest, planner: Planner, limit: str) -> CannotFit:
    """The error that names the limit, the minimum, and what cannot shrink."""
    limits, bounds = measured.limits, measured.limits.bounds
    arrived = measured.tokens_before
    allowed, reserve = limits.given or limits.window, limits.reserve
    low, high = limits.theirs(planner.state.tokens) + reserve, limits.theirs(arrived) + reserve
    if limit == "request_bytes":
        size = measured.received.body.body_bytes
        allowed, low, high = bounds.body_bytes or 0, _body_bytes(measured, planner), size
    elif limit == "images":
        allowed, high = bounds.images or 0, measured.sizes.media(measured.transcript)
        low = allowed + meet_images(planner)
    elif limit == "result_chars":
        allowed, high = bounds.result_chars or 0, measured.transcript.longest_result()
        low = meet_result_chars(planner)
    elif planner.inputs.pinned and _fits_without_pins(measured):
        limit = "pin"
    unit = "bytes" if limit == "request_bytes" else "tokens"
    hint = _advice(measured, planner, unit)
    tools = measured.tools_advice() if unit == "tokens" else ""
    if limit == "window" and tools and not hint.startswith(tools.split(" take")[0]):
        hint = f"{hint} {tools}".lstrip()
    hint = hint or "Enlarge the window, shorten these parts, or start a new conversation."
    if limit == "pin":
        hint = "Without its pins it would fit: unpin what can go."
    elif reserve > 0.8 * allowed:
        hint = f"The output reserve takes {reserve:,} of {allowed:,}: lower it first."
    if limit in ("window", "pin") and limits.factors is not None:
        learned = f"{limits.factors.worst:.3g} for one of our count, learned from its answers"
        hint += f" Tokens are the provider's: {learned}."
    return CannotFit(
        limit=limit, allowed=allowed, minimum=low, projected=high, tried=tuple(planner.tried),
        largest=_largest(measured, planner), hint=hint,
    )  # fmt: skip


def _fits_without_pins(measured: MeasuredRequest) -> bool:
    unpinned = measured.without_pins()
    tokens = smallest(unpinned, reduce(unpinned)).state.tokens
    return tokens <= measured.limits.bounds.capacity


def _advice(measured: MeasuredRequest, planner: Planner, unit: str) -> str:
    """Advice about the parts that are left; "" if no part takes most of the space."""
    state = planner.state
    left = [place for place in measured.transcript.places() if not state.is_dropped(place)]
    if unit == "bytes":
        read = sum(json_bytes(state.text(place)) + place.block.payload_bytes for place in left)
        beside = advice_beside(_after(measured, planner).tree, read)
        return beside or advice(measured.transcript, [(p, size_in_bytes(p)) for p in left], unit)
    sizes = [(place, measured.limits.theirs(state.cost(place))) for place in left]
    return advice(measured.transcript, sizes, unit)


def _largest(measured: MeasuredRequest, planner: Planner) -> tuple[tuple[str, int, str], ...]:
    """The five largest parts that are left, as (path, tokens, kind)."""
    rows = []
    for place in measured.transcript.places():
        if not planner.state.is_dropped(place):
            pin = "pinned " if planner.eligibility.pinned(place) else ""
            path = paths.escape(measured.repaired.before_repair(measured.transcript.where(place)))
            size = measured.limits.theirs(planner.state.cost(place))
            tool = definition_name(place.block)
            rows.append((path, size, f"{pin}tool {tool}" if tool else f"{pin}{place.block.kind}"))
    return tuple(sorted(rows, key=lambda row: (-row[1], row[0]))[:5])
