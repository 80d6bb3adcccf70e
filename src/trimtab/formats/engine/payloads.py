"""Finds the data of an image in a content part, in the spelling of any format, and replaces them.

    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO…"}}
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO…"}}
    {"inlineData": {"mimeType": "image/png", "data": "iVBO…"}}
    {"image": {"format": "png", "source": {"bytes": "iVBO…"}}}
    {"type": "image_generation_call", "result": "iVBO…"}

URLs and file ids have no data.  No image is decoded here: of its bytes only the head is read.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from trimtab.jsontext.paths import Path, get
from trimtab.transcript.model import Picture

_DATA_URL = re.compile(r"data:image/[\w.+-]+(?:;[^;,]+)*?;base64,", re.ASCII | re.IGNORECASE)
_MEDIA_TYPES = ("media_type", "mimeType", "mime_type")
_BEDROCK = {"png": "png", "jpeg": "jpeg", "jpg": "jpeg", "gif": "gif", "webp": "webp"}
_STANDARD = str.maketrans("-_", "+/", " \r\n\t")
_HEAD = 4_096
"""Characters of base64 in which the size of most images is; a JPEG with a preview needs more."""
_DEPTH = 3
_FRAMES = (*range(0xC0, 0xC4), *range(0xC5, 0xC8), *range(0xC9, 0xCC), *range(0xCD, 0xD0))
"""Markers of a JPEG that say how large it is: those of a frame, without tables and restarts."""


class _Place(NamedTuple):
    """Where a part has its data and their media type, relative to the part."""

    data: Path
    type: Path | None
    """``()``: a data URL says it; None: the part may say it, at no place that we know."""


def picture(part: Any) -> Picture | None:
    """Pixels and length of an image; None if its data are elsewhere or don't say."""
    place = _place(part)
    if place is None:
        return None
    text = _text(part, place)
    size = _pixels(_decoded(text[:_HEAD])) or (_pixels(_decoded(text)) if text[_HEAD:] else None)
    return None if size is None else Picture(*size, len(text))


def data(part: Any) -> bytes | None:
    """The bytes of the image; None if there are none or they are no base64."""
    place = _place(part)
    return None if place is None else _decoded(_text(part, place)) or None


def with_payload(part: Any, url: str) -> Iterator[tuple[Path, Any]]:
    """(path, value) of each leaf of the part that changes if its image becomes that of the data
    URL ``url``."""
    place = _place(part)
    if place is None:
        raise LookupError("this part has no image data")
    old, new = get(part, place.data), data_of_url(url)
    if place.type == ():
        yield place.data, url
        return
    mime = url[len("data:") : url.index(";")]
    if place.type is not None and mime != (was := get(part, place.type)):
        yield place.type, mime if "/" in was else mime.removeprefix("image/")
    yield place.data, base64.b64decode(new) if isinstance(old, (bytes, bytearray)) else new


def data_url(mime: str, data: bytes) -> str:
    """``data:image/png;base64,…``"""
    return f"data:{mime};base64,{base64.b64encode(data).decode('ascii')}"


def data_of_url(url: str) -> str:
    """The base64 in a data URL."""
    return url[url.index(",") + 1 :]


def _place(part: Any, depth: int = 0) -> _Place | None:
    if not isinstance(part, dict):
        return None
    for key in _MEDIA_TYPES:
        if str(part.get(key)).lower().startswith("image/") and _is_data(part.get("data")):
            return _Place(("data",), (key,))
    if part.get("type") == "image_generation_call" and _is_data(part.get("result")):
        stated = isinstance(part.get("output_format"), str)
        return _Place(("result",), ("output_format",) if stated else None)
    source = part.get("source")
    if (
        part.get("format") in _BEDROCK
        and isinstance(source, dict)
        and _is_data(source.get("bytes"))
    ):
        return _Place(("source", "bytes"), ("format",))
    for key, inner in part.items():
        if isinstance(inner, str) and _DATA_URL.match(inner):
            return _Place((key,), ())
        below = _place(inner, depth + 1) if depth < _DEPTH else None
        if below is not None:
            type = (key, *below.type) if below.type else below.type
            return _Place((key, *below.data), type)
    return None


def _is_data(value: Any) -> bool:
    return isinstance(value, (str, bytes, bytearray)) and bool(value)


def _text(part: Any, place: _Place) -> str:
    """The base64 as it is sent."""
    value = get(part, place.data)
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    return data_of_url(str(value)) if place.type == () else str(value)


def _decoded(text: str) -> bytes:
    """The bytes of base64 in either alphabet; b"" for anything else."""
    text = text.translate(_STANDARD).rstrip("=")
    if len(text) % 4 == 1:
        text = text[:-1]
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""


# --- how large an image is, by its first bytes ---


def _pixels(data: bytes) -> tuple[int, int] | None:
    """(width, height); None for anything but PNG, JPEG, GIF and WebP."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        return _big(data[16:20]), _big(data[20:24])
    if data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 10:
        return _little(data[6:8]), _little(data[8:10])
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP" and len(data) >= 30:
        return _webp(data)
    return _jpeg(data) if data.startswith(b"\xff\xd8") else None


def _webp(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X":
        return 1 + _little(data[24:27]), 1 + _little(data[27:30])
    if kind == b"VP8L":
        bits = _little(data[21:25])
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        return _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
    return None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in _FRAMES:
            return _big(data[at + 7 : at + 9]), _big(data[at + 5 : at + 7])
        lone = marker in (0x01, 0xFF) or 0xD0 <= marker <= 0xD8
        at += (1 if marker == 0xFF else 2) if lone else 2 + _big(data[at + 2 : at + 4])
    return None


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
