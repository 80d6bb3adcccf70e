"""Images, files and audio as parts of an OpenAI chat message."""

from __future__ import annotations

from typing import Any

from trimtab.conversion import media as medium
from trimtab.conversion.neutral_request import ConversionLog, MediaPart
from trimtab.jsontext.paths import Path


def read_media(item: Any, kind: Any, path: Path, log: ConversionLog) -> MediaPart | None:
    """The medium of a part of this kind, None for any other kind."""
    value = item.get(kind) if isinstance(kind, str) else None
    if kind == "image_url":
        if isinstance(value, dict) and value.get("detail") not in (None, "auto"):
            log.lose((*path, kind, "detail"), "detail")
        url = value.get("url") if isinstance(value, dict) else value
        return medium.from_url(str(url), path, "image")
    if kind == "file" and isinstance(value, dict):
        name = str(value.get("filename") or "")
        if value.get("file_data"):
            data = str(value["file_data"])
            if data.startswith("data:"):
                return medium.from_url(data, path, "document", name=name)
            mime = medium.guess(name, "application/pdf")
            return MediaPart("document", mime, path, data=medium.base64_of(data), name=name)
        stored = f"openai:{value.get('file_id')}"
        return MediaPart("document", "application/pdf", path, file=stored, name=name)
    if kind == "input_audio" and isinstance(value, dict):
        mime = medium.MIME.get(str(value.get("format")), "audio/wav")
        return MediaPart("audio", mime, path, data=medium.base64_of(value.get("data")))
    return None


def write_media(part: MediaPart) -> Any:
    """The part that carries a medium, None where the format has none for it."""
    owner, _, stored = part.file.partition(":")
    if part.kind == "image" and (part.data or part.url.startswith(("http:", "https:"))):
        return {"type": "image_url", "image_url": {"url": medium.data_url(part)}}
    if part.kind == "document" and (part.data or owner == "openai"):
        named = {"filename": part.name} if part.name else {}
        if part.data:
            return {"type": "file", "file": {"file_data": medium.data_url(part), **named}}
        return {"type": "file", "file": {"file_id": stored, **named}}
    if part.kind == "audio" and part.data:
        sound = {"data": part.data, "format": medium.BEDROCK.get(part.mime, "wav")}
        return {"type": "input_audio", "input_audio": sound}
    return None
