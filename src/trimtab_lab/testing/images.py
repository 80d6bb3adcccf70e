"""Reads the images of a request as a provider does: with Pillow, and no code of the library."""

from __future__ import annotations

import base64
import io
from typing import Any

from trimtab.errors import MissingExtra
from trimtab.jsontext.paths import Path

MANY_IMAGES = 20
"""With more images in a request, each may have fewer pixels (Anthropic's guide to vision)."""


def image_data(part: Any) -> str:
    """The base64 of the image in a content part; "" for a URL or a file id."""
    match part:
        case {"source": {"type": "base64", "data": data}} | {"type": "image", "data": data}:
            return str(data)
        case {"image": {"source": {"bytes": data}}} | {"inlineData": {"data": data}}:
            return str(data)
        case {"inline_data": {"data": data}}:
            return str(data)
        case {"type": "image_generation_call", "result": str(data)}:
            return data
        case {"image_url": {"url": str(url)}} | {"image_url": str(url)}:
            return url.partition(";base64,")[2]
    return ""


def longest_side(data: str, *, required: bool) -> int:
    """Pixels of the longest side; 0 for what is no image, and without Pillow.  Raises MissingExtra
    without it if ``required``."""
    try:
        from PIL import Image
    except ImportError:
        if not required:
            return 0
        raise MissingExtra(
            "limits of images need Pillow: pip install 'trimtab[images]', or give none"
        ) from None
    try:
        with Image.open(io.BytesIO(base64.b64decode(data))) as image:
            return max(image.size)
    except (OSError, ValueError, Image.DecompressionBombError):
        return 0


def image_path(path: Path, format: str) -> str:
    """Where the image is, as Anthropic and Bedrock write it."""
    dotted = ".".join(map(str, path))
    ends = {"anthropic": ".image.source.base64.data", "bedrock": ".image.source.bytes"}
    return dotted + ends.get(format, "")
