"""Images and documents between formats: data URLs, base64, media types.

Never decodes an image, never fetches a URL.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from trimtab.formats.neutral.request import ConversionLog, MediaPart, TextPart
from trimtab.jsontext.paths import Path

_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]+)*?;base64,", re.IGNORECASE)
_STANDARD = str.maketrans("-_", "+/")

BEDROCK = {
    "image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp",
    "application/pdf": "pdf", "text/csv": "csv", "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/html": "html", "text/plain": "txt", "text/markdown": "md",
    "video/mp4": "mp4", "video/quicktime": "mov", "video/x-matroska": "mkv", "video/webm": "webm",
    "audio/mpeg": "mp3", "audio/wav": "wav", "audio/flac": "flac", "audio/ogg": "ogg",
}  # fmt: skip
"""Media type → the short name Converse uses (botocore service model, formats of each block)."""
MIME = {short: mime for mime, short in BEDROCK.items()}
IMAGES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
"""What Anthropic, OpenAI and Bedrock all take."""


def base64_of(data: Any) -> str:
    """Standard base64 of a payload that is given as bytes, or as base64 of either alphabet."""
    if isinstance(data, (bytes, bytearray)):
        return base64.b64encode(data).decode("ascii")
    text = str(data)
    if "-" in text or "_" in text:
        text = text.translate(_STANDARD)
    return text


def text_data(text: str) -> str:
    """The base64 of a text."""
    return base64.b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")


def data_text(data: str) -> str | None:
    """The text a base64 payload holds, or None."""
    try:
        return base64.b64decode(data, validate=True).decode("utf-8", "surrogatepass")
    except (binascii.Error, UnicodeDecodeError):
        return None


def kind_of(mime: str) -> Any:
    """image, audio, video or document."""
    kind = mime.partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "document"


def guess(url: str, otherwise: str) -> str:
    """The media type a URL's ending suggests."""
    path = url.partition("?")[0].partition("#")[0].lower()
    return ENDINGS.get(path.rpartition(".")[2]) or otherwise


ENDINGS = {short: mime for mime, short in BEDROCK.items()} | {"jpg": "image/jpeg"}


def from_url(url: str, path: Path, kind: Any, name: str = "") -> MediaPart:
    """A medium given by a URL, which may hold the data itself."""
    match = _DATA_URL.match(url)
    if match:
        mime = match[1].lower() or "application/octet-stream"
        kind = kind if kind == "document" else kind_of(mime)
        return MediaPart(kind, mime, path, data=url[match.end() :], name=name)
    default = {"image": "image/jpeg", "audio": "audio/wav", "video": "video/mp4"}
    mime = guess(url, default.get(kind, "application/pdf"))
    return MediaPart(kind, mime, path, url=url, name=name)


def data_url(media: MediaPart) -> str:
    """``data:image/png;base64,…``, or the URL it was given by."""
    return f"data:{media.mime};base64,{media.data}" if media.data else media.url


def named(media: MediaPart, log: ConversionLog) -> TextPart:
    """The text that replaces a medium the target does not take; listed."""
    where = media.url or media.file or media.name
    log.lose(media.path, media.kind, f"{log.to} cannot take it; a line of text names it")
    text = f"[{media.kind} ({media.mime}){': ' + where if where else ''}]"
    return TextPart(text, media.path, media.mark)
