"""Limits of single images, in pixels and bytes: images above them are made smaller.

Nothing is left out for it, unless the limit is one that was set or refused and an image can't be
made smaller.  A body with too many bytes has its images made smaller before anything else goes.
Fewer pixels may be more bytes: a resized screen has more colours.  Only limits of bytes forbid it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trimtab.formats.engine import payloads
from trimtab.jsontext import paths
from trimtab.planning.eligibility import Bounds
from trimtab.planning.planner import Planner
from trimtab.reducers import Offer
from trimtab.transcript.model import Block, Picture, Place
from trimtab.transcript.transcript import Transcript

MANY_IMAGES = 20
"""With more images in a request, each may have fewer pixels (Anthropic's guide to vision)."""
LOSS = 0.2
SIDES = 1_568, 1_024
"""Pixels a side to which images go for the bytes of a body.  Anthropic shows its models no more
than 1,568; text of a screen is still read at 1,024, mostly."""


class SizeLimit(NamedTuple):
    """A limit of single images that one of them is above."""

    words: str
    was_given: bool
    """Whether it was set or refused, and not looked up: then what can't be made smaller goes."""


def limits_above(picture: Picture, bounds: Bounds, images: int) -> Iterator[SizeLimit]:
    """The limits that one of so many images is above."""
    longest, size, given = max(picture.width, picture.height), bounds.image_bytes, bounds.given
    side = max_side(bounds, images)
    if side is not None and longest > side:
        own = bounds.image_pixels is not None and longest > bounds.image_pixels
        yield SizeLimit(f"at most {side:,} pixels a side", own and "image_pixels" in given)
    if size is not None and picture.encoded > size:
        yield SizeLimit(f"at most {size:,} bytes in base64", "image_bytes" in given)


def max_side(bounds: Bounds, images: int) -> int | None:
    """The most pixels that a side of one of so many images may have; None without a limit."""
    many = bounds.many_image_pixels if images > MANY_IMAGES else None
    return min(filter(None, (bounds.image_pixels, many)), default=None)


def has_too_large_image(transcript: Transcript, bounds: Bounds) -> bool:
    """Whether an image is above a limit of single images."""
    if bounds.image_pixels is None and bounds.image_bytes is None:
        return False
    blocks = [place.block for place in transcript.places() if is_image(place.block)]
    pictures = [block.picture for block in blocks if block.picture is not None]
    return any(any(limits_above(one, bounds, len(blocks))) for one in pictures)


def meet_image_sizes(planner: Planner) -> None:
    """Make each image that is above a limit smaller.  One that can't be is left out if the limit
    was set or refused, else it stays.  Both with a warning."""
    bounds = planner.bounds
    if bounds.image_pixels is None and bounds.image_bytes is None:
        return
    places = list(_images(planner))
    for place in places:
        picture = _now(planner, place)
        if picture is None or not _may_change(planner, place):
            continue
        limits = list(limits_above(picture, bounds, len(places)))
        if not limits:
            continue
        side = max_side(bounds, len(places)) or max(picture.width, picture.height)
        made = _shrink(planner, place, side, bounds.image_bytes, limits[0].words)
        if not made and any(limit.was_given for limit in limits):
            _leave_out(planner, place)


def shrink_for_bytes(planner: Planner) -> None:
    """Make images smaller, all of them a little before any of them more, the newest last.

    All at once, so that the next turns need no new edit."""
    for side in SIDES:
        if not planner.bytes_over():
            return
        for place in _images(planner):
            picture = _now(planner, place)
            if picture is None or max(picture.width, picture.height) <= side:
                continue
            if _may_change(planner, place):
                most = min(planner.bounds.image_bytes or picture.encoded, picture.encoded - 1)
                _shrink(planner, place, side, most, "the request has too many bytes")


def is_image(block: Block) -> bool:
    """Whether it is an image: a part that a text may replace, or a sealed item with a picture."""
    return block.media == "image" or block.picture is not None


def _images(planner: Planner) -> Iterator[Place]:
    """The images that are shown, oldest first, those by URL too."""
    state = planner.state
    for place in planner.transcript.places():
        if is_image(place.block) and not state.is_dropped(place):
            offer = state.offer_at(place)
            if offer is None or offer.payload:
                yield place


def _now(planner: Planner, place: Place) -> Picture | None:
    offer = planner.state.offer_at(place)
    if offer is None:
        return place.block.picture
    return payloads.picture({"url": offer.payload})


def _may_change(planner: Planner, place: Place) -> bool:
    open = place.message >= planner.eligibility.open_from
    return not (open or planner.eligibility.pinned(place))


def _shrink(planner: Planner, place: Place, side: int, most: int | None, why: str) -> bool:
    """Show a smaller image, made of the original, in at most ``most`` characters of base64; if
    there is none, a warning says why."""
    picture = place.block.picture
    part = paths.get(planner.inputs.tree, planner.transcript.item(place))
    data = None if picture is None else payloads.data(part)
    if picture is None or data is None:
        return False
    made = planner.inputs.images.make(data, side, None if most is None else most // 4 * 3)
    if isinstance(made, str):
        one = f"an image of {picture.width:,} × {picture.height:,} pixels"
        planner.inputs.failures.append(f"{one} was not made smaller ({why}): {made}")
        return False
    sizes = f"{picture.width:,} × {picture.height:,} → {made.width:,} × {made.height:,}"
    url = payloads.data_url(made.media_type, made.data)
    kind, text = "smaller-image", f"image {sizes}"
    offer = Offer("replace", text, LOSS, kind, f"{text}: {why}", payload=url)
    planner.show(place, offer)
    return True


def _leave_out(planner: Planner, place: Place) -> None:
    """Show a line of text instead; a sealed item stays, as no text may be in its place."""
    offer = next(planner.offers(place), None)
    if offer is not None:
        planner.show(place, offer)
