"""Limits of single images, in pixels and bytes: images above them are made smaller.

Nothing is left out for it, unless the limit is one that was set or refused and an image can't be
made smaller.  A body with too many bytes has its images made smaller before anything else goes.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.errors import MissingExtra
from trimtab.formats.engine import payloads
from trimtab.jsontext import paths
from trimtab.planning.eligibility import Bounds
from trimtab.planning.planner import Planner
from trimtab.reducers import Offer
from trimtab.reducers.smaller_images import SmallerImage, smaller_image
from trimtab.transcript.model import Picture, Place
from trimtab.transcript.transcript import Transcript

MANY_IMAGES = 20
"""With more images in a request, each may have fewer pixels (Anthropic's guide to vision)."""
LOSS = 0.2
SIDES = 1_568, 1_024
"""Pixels a side to which images go for the bytes of a body.  Anthropic shows its models no more
than 1,568; text of a screen is still read at 1,024, mostly."""


def too_large(picture: Picture, bounds: Bounds, images: int) -> str:
    """What is wrong with one of so many images, in words; "" if it is small enough."""
    side, size = max_side(bounds, images), bounds.image_bytes
    if side is not None and max(picture.width, picture.height) > side:
        return f"at most {side:,} pixels a side"
    if size is not None and picture.encoded > size:
        return f"at most {size:,} bytes in base64"
    return ""


def max_side(bounds: Bounds, images: int) -> int | None:
    """The most pixels that a side of one of so many images may have; None without a limit."""
    many = bounds.many_image_pixels if images > MANY_IMAGES else None
    return min(filter(None, (bounds.image_pixels, many)), default=None)


def has_too_large_image(transcript: Transcript, bounds: Bounds) -> bool:
    """Whether an image is above a limit of single images."""
    if bounds.image_pixels is None and bounds.image_bytes is None:
        return False
    blocks = [b for message in transcript.messages for b in message.blocks if b.media == "image"]
    pictures = [block.picture for block in blocks if block.picture is not None]
    return any(too_large(picture, bounds, len(blocks)) for picture in pictures)


def meet_image_sizes(planner: Planner) -> None:
    """Make each image that is above a limit smaller.  One that can't be is left out if the limit
    was set or refused, else it stays, with a warning."""
    bounds = planner.bounds
    if bounds.image_pixels is None and bounds.image_bytes is None:
        return
    places = list(_images(planner))
    for place in places:
        picture = _now(planner, place)
        if picture is None or not (why := too_large(picture, bounds, len(places))):
            continue
        if not _may_change(planner, place):
            continue
        side = max_side(bounds, len(places)) or max(picture.width, picture.height)
        if not _shrink(planner, place, side, why) and bounds.leaves_out_images:
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
                _shrink(planner, place, side, "the request has too many bytes")


def _images(planner: Planner) -> Iterator[Place]:
    """The images that are shown, oldest first, those by URL too."""
    state = planner.state
    for place in planner.transcript.places():
        if place.block.media == "image" and place.message >= 0 and not state.is_dropped(place):
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
    return not (open or place.block.sealed or planner.eligibility.pinned(place))


def _shrink(planner: Planner, place: Place, side: int, why: str) -> bool:
    """Show a smaller image, made of the original; False if there is none."""
    picture = place.block.picture
    if picture is None:
        return False
    limit = min(planner.bounds.image_bytes or picture.encoded, picture.encoded - 1)
    key = place.message, place.index, side, limit
    cache = planner.inputs.smaller_images
    if key not in cache:
        cache[key] = _made(planner, place, side, limit)
    made = cache[key]
    if made is None:
        return False
    sizes = f"{picture.width:,} × {picture.height:,} → {made.width:,} × {made.height:,}"
    url = payloads.data_url(made.media_type, made.data)
    kind, text = "smaller-image", f"image {sizes}"
    offer = Offer("replace", text, LOSS, kind, f"{text}: {why}", payload=url)
    planner.show(place, offer)
    return True


def _made(planner: Planner, place: Place, side: int, limit: int) -> SmallerImage | None:
    """The smaller image in at most ``limit`` characters of base64."""
    part = paths.get(planner.inputs.tree, planner.transcript.item(place))
    data = payloads.data(part)
    if data is None:
        return None
    try:
        return smaller_image(data, side, limit // 4 * 3)
    except MissingExtra as error:
        planner.inputs.failures.append(f"an image is too large and not made smaller: {error}")
        return None


def _leave_out(planner: Planner, place: Place) -> None:
    offer = next(planner.offers(place), None)
    if offer is not None:
        planner.show(place, offer)
