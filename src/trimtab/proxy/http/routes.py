"""What a request asks for, judged by its method and path alone, for each API."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

from trimtab.formats.registry import api_path_at

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


_DEPLOYMENT = re.compile(r"/deployments/([^/]+)/")


def route(method: str, path: str, query: str = "") -> Route:
    """The route of a request; ``OTHER`` for everything that asks a model for no answer.

    Counting (``…/count_tokens``), models, files, batches and the rest are ``OTHER``.
    """
    if method != "POST":
        return OTHER
    found = api_path_at(path)
    if found is None or not found[1].fitted:
        return OTHER
    format, api_path, model = found
    if model is None and (deployed := _DEPLOYMENT.search(path)):  # Azure has it in the path
        model = unquote(deployed[1])
    listed = api_path.listed and "alt=sse" not in query.split("&")
    return Route("generate", format.name, model, api_path.streams, listed, api_path.framed)
