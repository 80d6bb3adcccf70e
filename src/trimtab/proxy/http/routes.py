"""What a request asks for, judged by its method and path alone, for each API."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

Operation = Literal["generate", "other"]


@dataclass(frozen=True, slots=True)
class Route:
    """``generate`` requests are fitted; ``other`` ones are forwarded untouched.

    ``streams``: None if the body decides (``"stream": true``); ``listed``: the stream is one JSON
    array instead of events; ``framed``: it consists of AWS event-stream frames.
    """

    operation: Operation = "other"
    format: str = ""
    model: str | None = None
    streams: bool | None = None
    listed: bool = False
    framed: bool = False


OTHER = Route()

_DOTS = re.compile(r"(?:^|[/\\])\.{1,2}(?:[/\\;]|$)")
_DECODED_TIMES = 3


def climbs(path: str) -> bool:
    """Whether a path has dot segments, encoded once or several times.  Servers resolve them
    differently, and a signature for one path may give access to another."""
    for _ in range(_DECODED_TIMES):
        if _DOTS.search(path):
            return True
        path, before = unquote(path), path
        if path == before:
            return False
    return bool(_DOTS.search(path)) or "%2e" in path.lower()


_PATHS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"/chat/completions/?$"), "openai-chat"),
    (re.compile(r"/responses/?$"), "openai-responses"),
    (re.compile(r"/messages/?$"), "anthropic"),
    (re.compile(r"/interactions/?$"), "gemini-interactions"),
)
_BEDROCK = re.compile(r"/model/(?P<model>[^/]+)/converse(?P<stream>-stream)?/?$")
_BEDROCK_CLAUDE = re.compile(
    r"/model/(?P<model>[^/]*(?:anthropic|claude)[^/]*)/invoke(?P<stream>-with-response-stream)?/?$"
)
_GEMINI = re.compile(r"/models/(?P<model>[^/:]+):(?P<verb>generateContent|streamGenerateContent)$")
_VERTEX_CLAUDE = re.compile(  # a model called count-tokens only counts
    r"/publishers/anthropic/models/(?!count-tokens:)(?P<model>[^/:]+)"
    r":(?P<verb>rawPredict|streamRawPredict)$"
)
_DEPLOYMENT = re.compile(r"/deployments/([^/]+)/")


def route(method: str, path: str, query: str = "") -> Route:
    """The route of a request; ``OTHER`` for everything that asks a model for no answer.

    Counting (``…/count_tokens``), models, files, batches and the rest are ``OTHER``.
    """
    if method != "POST":
        return OTHER
    for pattern, name in _PATHS:
        if pattern.search(path):
            deployed = _DEPLOYMENT.search(path)  # Azure has the model in the path
            return Route("generate", name, unquote(deployed[1]) if deployed else None)
    if match := _BEDROCK.search(path):
        streams = bool(match["stream"])
        return Route("generate", "bedrock", unquote(match["model"]), streams, framed=True)
    if match := _BEDROCK_CLAUDE.search(path):
        streams = bool(match["stream"])
        return Route("generate", "anthropic", unquote(match["model"]), streams, framed=True)
    if match := _GEMINI.search(path):
        streams = match["verb"] == "streamGenerateContent"
        listed = streams and "alt=sse" not in query.split("&")
        return Route("generate", "gemini", unquote(match["model"]), streams, listed)
    if match := _VERTEX_CLAUDE.search(path):
        streams = match["verb"] == "streamRawPredict"
        return Route("generate", "anthropic", unquote(match["model"]), streams)
    return OTHER
