"""Makes images smaller, with Pillow (extra ``images``).

Same bytes and same Pillow, same result.  Another release of Pillow may write other bytes; the
journal has those that were sent.
"""

from __future__ import annotations

import hashlib
import io
import warnings
from dataclasses import dataclass, field
from math import sqrt
from typing import TYPE_CHECKING, Literal, NamedTuple

from trimtab import interruption

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
MAX_PIXELS = 100_000_000
"""Pixels of the largest image that is decoded, at up to 4 bytes each: 8,000 × 8,000, the most that
a provider takes, and half as much again.  A file of a few kB can claim any size."""
MADE_PIXELS = 16_000_000
"""The most pixels that are written.  No model is shown more: OpenAI's ``detail: original`` has
10,000 patches of 32 × 32 pixels (codex, history.rs), Claude 2,576 pixels a side."""
MAX_WORK = 400_000_000
"""Pixels that are decoded and written for one request: some 30 seconds of a core, and 50 screens of
2,880 × 1,800 pixels."""
QUALITY = 85
"""Of JPEG and WebP."""
FLAT = 0.5
"""Bytes for a pixel: a PNG of a screen or a drawing has less (0.1 to 0.3), of a photo 1 or more.
Once a screen is resized, its file has more bytes than before; 256 colours are a quarter of it."""
NEAR = 8
"""Another kind of file has at most so many times fewer bytes (a JPEG of a scan with noise)."""
MARGIN = 0.95
"""The share of the estimated side that is tried: small images have more bytes for a pixel."""
MIN_SIDE = 200
"""Images below 200 pixels a side are hard to read (Anthropic's guide to vision)."""

Kind = Literal["png", "palette", "jpeg", "greys", "webp"]


class SmallerImage(NamedTuple):
    """An image as a file, with its media type and pixels."""

    data: bytes
    media_type: str
    width: int
    height: int


@dataclass
class SmallerImages:
    """Makes the images of one request smaller: each once, with MAX_WORK pixels in all."""

    _made: dict[tuple[bytes, int, int | None], SmallerImage | str] = field(default_factory=dict)
    _pixels: int = 0

    def make(self, data: bytes, side: int, max_bytes: int | None) -> SmallerImage | str:
        """The image with at most ``side`` pixels a side in at most ``max_bytes``; a text that says
        why there is none.

        It stays a file of its kind where that is small enough, else it becomes a JPEG; a screen as
        PNG gets 256 colours; a GIF becomes a PNG of its first frame, which is all that models see.
        """
        key = hashlib.blake2b(data).digest(), side, max_bytes
        if key not in self._made:
            self._made[key] = self._make(data, side, max_bytes)
        return self._made[key]

    def _make(self, data: bytes, side: int, max_bytes: int | None) -> SmallerImage | str:
        try:
            from PIL import Image
        except ImportError:
            return "images need Pillow: pip install 'trimtab[images]'"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # ours is stricter
                opened = Image.open(io.BytesIO(data), formats=FORMATS)
            pixels = opened.width * opened.height
            if pixels > MAX_PIXELS:
                return f"it has more than {MAX_PIXELS:,} pixels"
            if self._pixels + pixels > MAX_WORK:
                return f"the images of one request may take the work of {MAX_WORK:,} pixels"
            self._pixels += pixels
            kinds = _kinds(opened, flat=len(data) < FLAT * pixels)
            return self._fitting(opened, kinds, side, max_bytes)
        except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError):
            return "its data can't be decoded"  # what a decoder says of damaged data

    def _fitting(
        self, opened: Image, kinds: tuple[Kind, ...], side: int, max_bytes: int | None
    ) -> SmallerImage | str:
        """The largest file that is small enough.  The next side is estimated from the bytes."""
        longest = max(opened.size)
        few = sqrt(MADE_PIXELS / (opened.width * opened.height))
        side = min(side, longest, int(few * longest))
        opened.draft(None, (side, side))  # a JPEG is decoded at half or a quarter if that is enough
        whole, least = _upright(opened), min(MIN_SIDE, side)
        while side >= least:
            interruption.check()
            image, sizes = _resized(whole, side), dict[Kind, int]()
            for kind in kinds:
                file = self._saved(image, kind)
                if max_bytes is None or len(file.data) <= max_bytes:
                    return file
                sizes[kind] = len(file.data)
                if min(sizes.values()) > NEAR * max_bytes:
                    break  # no other kind is small enough at this side
            best, wanted = min(sizes, key=lambda kind: sizes[kind]), max_bytes or 0
            if len(sizes) == len(kinds):
                kinds = (best,)
            else:
                wanted *= NEAR
            if side == least:
                break
            side = max(least, int(side * MARGIN * min(1.0, sqrt(wanted / sizes[best]))))
        return f"it would have less than {least} pixels a side"

    def _saved(self, image: Image, kind: Kind) -> SmallerImage:
        """The image as a file of this kind."""
        self._pixels += image.width * image.height
        name, file = kind.upper() if kind in ("jpeg", "webp") else "PNG", io.BytesIO()
        written = _reduced(image, kind)
        written.save(file, name, **({} if name == "PNG" else {"quality": QUALITY}))
        return SmallerImage(file.getvalue(), f"image/{name.lower()}", *image.size)


def _kinds(opened: Image, *, flat: bool) -> tuple[Kind, ...]:
    """Kinds of files to try, the best first."""
    clear = _is_clear(opened)
    if opened.format == "JPEG":
        return ("jpeg",)
    if opened.format == "WEBP":
        return ("webp",) if clear else ("webp", "jpeg")
    if clear:  # a JPEG has no transparency
        return ("palette",) if flat else ("png", "palette")
    if _is_grey(opened):
        return "png", "jpeg", "greys"
    return ("palette", "jpeg", "greys") if flat else ("png", "jpeg")


def _is_clear(image: Image) -> bool:
    return image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info


def _is_grey(image: Image) -> bool:
    return image.mode in ("1", "L", "I", "I;16")


def _upright(opened: Image) -> Image:
    """The first frame as colours, or grey, turned as its camera says: the note on that is not
    written again."""
    from PIL import ImageOps

    image = ImageOps.exif_transpose(opened)
    if _is_grey(image) and not _is_clear(image):
        return image.convert("L")
    return image.convert("RGBA" if _is_clear(image) else "RGB")


def _resized(image: Image, side: int) -> Image:
    from PIL.Image import Resampling

    longest = max(image.size)
    if longest <= side:
        return image
    width, height = (max(1, round(length * side / longest)) for length in image.size)
    return image.resize((width, height), Resampling.LANCZOS, reducing_gap=3.0)


def _reduced(image: Image, kind: Kind) -> Image:
    """With fewer colours, where the kind has fewer: 256 are enough for a screen, 16 greys for a
    scan in black and white."""
    from PIL.Image import Quantize

    if kind == "palette":
        return image.quantize(256, Quantize.FASTOCTREE)
    return image.convert("L").quantize(16) if kind == "greys" else image
