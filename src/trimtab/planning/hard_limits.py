"""Limits other than size: how many images, how long one result."""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.planning.planner import Planner
from trimtab.reducers import Offer, cut_to_chars
from trimtab.transcript.model import Place

NOTHING = "."
"""Replaces a text of which only white space would be left."""
LEFT_OUT = "[...]"
"""Replaces a text between others of one result, where there is no room for a part of it."""
SHARE_CHARS = 120
"""A smaller share of a text says nothing beside its note of about 60 chars."""


def meet_images(planner: Planner) -> int:
    """Replace the oldest images until the limit is met; return how many are still too many."""
    limit = planner.bounds.images
    if limit is None or planner.sizes.media(planner.transcript) <= limit:
        return 0
    state, eligibility = planner.state, planner.eligibility
    images = [
        place
        for place in planner.transcript.places()
        if place.block.media
        and place.message >= 0
        and not state.is_dropped(place)
        and ((offer := state.offer_at(place)) is None or offer.payload)
    ]
    spare = len(images) - limit
    for place in images:
        if spare <= 0 or place.message >= eligibility.open_from:
            break
        offer = next(planner.offers(place), None)
        if offer is not None and not eligibility.pinned(place):
            planner.show(place, offer)
            spare -= 1
    return max(spare, 0)


def meet_result_chars(planner: Planner) -> int:
    """Cut each result that is too long; return the chars of the longest still too long, or 0."""
    limit = planner.bounds.result_chars
    if limit is None:
        return 0
    worst, messages = 0, planner.transcript.messages
    for number, message in enumerate(messages[: planner.eligibility.open_from]):
        for part in message.results:
            places = [
                Place(number, index, block)
                for index, block in enumerate(message.blocks)
                if block.kind in ("result", "media") and block.item[: len(part.path)] == part.path
            ]
            worst = max(worst, _shorten(planner, list(planner.state.joined.as_one(places)), limit))
    return worst


def _shorten(planner: Planner, places: list[Place], limit: int) -> int:
    """Cut the longest texts of one result; return its chars if it is still too long, else 0."""
    state = planner.state
    if places and all(state.is_dropped(place) for place in places):
        return 0
    chars = sum(len(state.text(place)) for place in places)
    pinned = planner.eligibility.pinned
    free = [place for place in places if state.text(place) and not pinned(place)]
    lengths = [len(state.text(place)) for place in free]
    rooms = _rooms(lengths, limit - (chars - sum(lengths))) if chars > limit else lengths
    for place, room in zip(free, rooms, strict=True):
        now = state.text(place)
        if room >= len(now):
            continue
        text = cut_to_chars(place.block.text, room, "over the limit") or now[:room]
        # A short cut of spaces or digits can cost more tokens than it saves: then cut plainly.
        count = planner.sizes.counter
        if len(text) >= len(now) or count(text) > count(now):
            text = now[:room]
        if room == len(LEFT_OUT) and len(free) > 1:
            text = LEFT_OUT
        if not text.strip():
            text = NOTHING  # a text of white space alone is refused
        why = f"a result may have {limit:,} chars"
        planner.show(place, Offer("replace", text, 0.5, "result-limit", why))
        chars += len(text) - len(now)
    return 0 if chars <= limit else chars


def _rooms(lengths: Sequence[int], room: int) -> list[int]:
    """The chars that each text of one result may keep of ``room`` together.

    Short ones stay whole, the others get equal shares.  Where a share is too small to say
    anything, the first and the last of them share what there is, and a mark stands for each
    other: (5000, 5000, 5000) in 500 chars → (247, 5, 247).
    """
    level, left, count = 1, max(room, len(lengths)), len(lengths)
    for length in sorted(lengths):
        level = max(1, left // count)
        if length > level:
            break
        left, count = left - length, count - 1
    rooms = [min(length, level) for length in lengths]
    long = [number for number, length in enumerate(lengths) if length > level]
    if level >= SHARE_CHARS or len(long) < 3:
        return rooms
    for number in long[1:-1]:
        rooms[number] = min(level, len(LEFT_OUT))
    spare = room - sum(rooms[number] for number in range(len(rooms)) if number not in long)
    spare -= sum(rooms[number] for number in long[1:-1])
    for number in (long[0], long[-1]):
        rooms[number] = max(rooms[number], spare // 2)
    return rooms
