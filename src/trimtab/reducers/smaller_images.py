"""Makes an image smaller, with Pillow (extra ``images``).

Same bytes and same Pillow, same result.  Another release of Pillow may write other bytes; the
journal has those that were sent.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

from trimtab import interruption
from trimtab.errors import MissingExtra

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
MAX_PIXELS = 100_000_000
"""Pixels of the largest image that is decoded, at up to 4 bytes each: 8,000 × 8,000, the most that
a provider takes, and half as much again.  A file of a few kB can claim any size."""
MADE_PIXELS = 16_000_000
"""The most pixels that are written: ten times what models see, and a second's work."""
QUALITY = 85
"""Of JPEG and WebP."""
STEP = 0.8
"""The next size that is tried where the file is too large."""
MIN_SIDE = 200
"""Images below 200 pixels a side are hard to read (Anthropic's guide to vision)."""


class SmallerImage(NamedTuple):
    """An image as a file, with its media type and pixels."""

    data: bytes
    media_type: str
    width: int
    height: int


def smaller_image(data: bytes, side: int, max_bytes: int) -> SmallerImage | None:
    """The image with at most ``side`` pixels a side in at most ``max_bytes``; None if it can't be
    decoded, has too many pixels, or would be too small to read.

    It stays a file of its kind where that is small enough, else it becomes a JPEG; a GIF becomes a
    PNG of its first frame, which is all that models see.  Raises MissingExtra without Pillow.
    """
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("images need Pillow: pip install 'trimtab[images]'") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # ours is stricter
            opened = Image.open(io.BytesIO(data), formats=FORMATS)
        if opened.width * opened.height > MAX_PIXELS:
            return None
        return next(_files(opened, side, max_bytes), None)
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError):
        return None  # what a decoder says of damaged data


def _files(opened: Image, side: int, max_bytes: int) -> Iterator[SmallerImage]:
    """Files that are small enough, the largest image first."""
    kind, longest = str(opened.format), max(opened.size)
    few = sqrt(MADE_PIXELS / (opened.width * opened.height))
    side = min(side, longest, int(few * longest))
    opened.draft(None, (side, side))  # a JPEG is decoded at half or a quarter if that is enough
    whole = _upright(opened)
    least = min(MIN_SIDE, side)
    while side >= least:
        interruption.check()
        image = _resized(whole, side)
        for media_type, file in _encoded(image, kind):
            if len(file) <= max_bytes:
                yield SmallerImage(file, media_type, *image.size)
        side = int(side * STEP)


def _upright(opened: Image) -> Image:
    """The first frame as colours, or grey, turned as its camera says: the note on that is not
    written again."""
    from PIL import ImageOps

    image = ImageOps.exif_transpose(opened)
    if image.mode in ("1", "L", "I", "I;16"):
        return image.convert("L")
    clear = image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info
    return image.convert("RGBA" if clear else "RGB")


def _resized(image: Image, side: int) -> Image:
    from PIL.Image import Resampling

    longest = max(image.size)
    if longest <= side:
        return image
    width, height = (max(1, round(length * side / longest)) for length in image.size)
    return image.resize((width, height), Resampling.LANCZOS)


def _encoded(image: Image, kind: str) -> Iterator[tuple[str, bytes]]:
    """Yields (media type, file), the best first: the same type; 256 colours, a third of the bytes
    and enough for a screen; JPEG; 16 greys, for a black and white scan.  An image with transparency
    keeps its type."""
    opaque, palette = image.mode != "RGBA", kind in ("PNG", "GIF")
    if kind != "JPEG":
        name = "WEBP" if kind == "WEBP" else "PNG"
        yield f"image/{name.lower()}", _saved(image, name)
    if opaque and palette:
        yield "image/png", _saved(image.quantize(256), "PNG")
    if opaque:
        yield "image/jpeg", _saved(image, "JPEG")
    if opaque and palette:
        yield "image/png", _saved(image.convert("L").quantize(16), "PNG")


def _saved(image: Image, name: str) -> bytes:
    file = io.BytesIO()
    image.save(file, name, **({} if name == "PNG" else {"quality": QUALITY}))
    return file.getvalue()
