"""Images in every format's spelling, drawn with Pillow, and read back without our code."""

from __future__ import annotations

import base64
import io
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

from PIL import Image, ImageDraw, ImageFont
from shapes import KEYS, MODELS, Call, request, result, said, user

MIME = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
GENERATED = "image_generation_call"
_DATA = {False: ("data", "bytes"), True: ("result",)}
WORDS = [
    "the",
    "parser",
    "reads",
    "each",
    "line",
    "of",
    "the",
    "file",
    "and",
    "keeps",
    "what",
    "it",
    "found",
    "until",
    "the",
    "end",
    "of",
    "the",
    "block",
    "where",
    "a",
    "second",
    "reader",
    "counts",
    "tokens",
    "words",
    "errors",
    "and",
    "numbers",
    "before",
    "it",
    "writes",
    "a",
    "report",
]


@cache
def picture(
    width: int, height: int, kind: str = "PNG", seed: int = 0, noise: bool = False
) -> bytes:
    """A page of text; ``noise``: with a ground that does not compress."""
    image = (
        Image.effect_noise((width, height), 20) if noise else Image.new("L", (width, height), 255)
    )
    image = image.convert("RGB")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(size=max(8, height // 40))
    for number, line in enumerate(text_of(seed)):
        draw.text((width // 50, (number + 1) * height // 32), line, fill="black", font=font)
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def text_of(seed: int) -> list[str]:
    """The lines of a page."""
    chosen = random.Random(seed)
    return [" ".join(chosen.choices(WORDS, k=8)) for _ in range(28)]


def part(format: str, data: bytes, kind: str = "PNG") -> dict[str, Any]:
    """A content part with an image."""
    encoded, mime = base64.b64encode(data).decode(), MIME[kind]
    url = f"data:{mime};base64,{encoded}"
    return {
        "openai-chat": {"type": "image_url", "image_url": {"url": url, "detail": "high"}},
        "openai-responses": {"type": "input_image", "detail": "high", "image_url": url},
        "anthropic": {"type": "image", "source": {
            "type": "base64", "media_type": mime, "data": encoded}},
        "bedrock": {"image": {"format": kind.lower(), "source": {"bytes": encoded}}},
        "gemini": {"inlineData": {"mimeType": mime, "data": encoded}},
        "gemini-interactions": {"type": "image", "mime_type": mime, "data": encoded},
    }[format]  # fmt: skip


def shown(format: str, *parts: Any, words: str = "What does it say?") -> list[dict[str, Any]]:
    """The user's message with these parts and words."""
    (message,) = user(format, words)
    key = "parts" if format == "gemini" else "content"
    text = message[key]
    if isinstance(text, str):
        text = [{"type": "input_text" if format == "openai-responses" else "text", "text": text}]
    return [{**message, key: [*parts, *text]}]


def album(format: str, *parts: Any, model: str = "") -> dict[str, Any]:
    """A conversation in which each message of the user has an image."""
    items = [item for one in parts for item in (*shown(format, one), *said(format, "I see it."))]
    return request(format, [*items, *user(format, "And now?")], model or MODELS[format])


def in_result(format: str, images: list[Any]) -> dict[str, Any]:
    """A conversation with the images in the result of a tool."""
    call = {
        "openai-chat": [
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "see", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": images},
        ],
        "anthropic": [
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "c1", "name": "see", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": images}]},
        ],
        "bedrock": [
            {"role": "assistant", "content": [
                {"toolUse": {"toolUseId": "c1", "name": "see", "input": {}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": images}}]},
        ],
        "openai-responses": [
            {"type": "function_call", "call_id": "c1", "name": "see", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": images},
        ],
        "gemini": [
            {"role": "model", "parts": [{"functionCall": {"name": "see", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {
                "name": "see", "response": {"output": "see the parts"}, "parts": images}}]},
        ],
        "gemini-interactions": [
            {"type": "function_call", "id": "c1", "name": "see", "arguments": {}},
            {"type": "function_result", "call_id": "c1", "name": "see", "result": images},
        ],
    }[format]  # fmt: skip
    return request(format, [*user(format, "Look."), *call], MODELS[format])


def images_in(value: Any) -> Iterator[Image.Image]:
    """Every image with data, anywhere in a request."""
    for data in data_in(value):
        yield Image.open(io.BytesIO(data))


def data_in(value: Any) -> Iterator[bytes]:
    """The bytes of every image with data, anywhere in a request."""
    if isinstance(value, list):
        for inner in value:
            yield from data_in(inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, (bytes, bytearray)):
                yield bytes(inner)
            elif isinstance(inner, str) and key in _DATA[value.get("type") == GENERATED]:
                yield base64.b64decode(inner)
            elif isinstance(inner, str) and inner.startswith("data:image/"):
                yield base64.b64decode(inner.partition(",")[2])
            else:
                yield from data_in(inner)


def sizes_in(value: Any) -> list[tuple[int, int]]:
    """The pixels of every image with data."""
    return [image.size for image in images_in(value)]


__all__ = ["KEYS", "MODELS", "Call", "album", "images_in", "part", "picture", "result", "shown"]
