"""The target of a request: whether it is fitted, its format, and the key of its learned limits.

Found by path and headers; the body is read only for the model's name and ``stream``.  Requests for
token counts, compaction and embeddings are not fitted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from trimtab.formats.engine.api_path import ApiPath
from trimtab.formats.engine.base import Format
from trimtab.formats.registry import FormatName, api_path_at
from trimtab.retry import credentials
from trimtab.retry.learned_limits import key_for

_URL = re.compile(r"[a-zA-Z][\w+.-]*://(?P<host>[^/?#]*)(?P<path>[^?#]*)")
_MODEL = re.compile(rb'"model"\s*:\s*"([^"\\]{1,200})"')
_STREAM = re.compile(rb'"stream"\s*:\s*true')
_OBJECT = re.compile(rb"\s*\{")
_SIGNED = "aws4-hmac-sha256"
_END_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """``format``; ``key`` of learned limits; ``model`` if it is in the path; ``streams``: whether
    the answer is a stream; ``version`` of the API, where our rules tell it apart; ``listed`` and
    ``framed``: how it streams (``ApiPath``)."""

    format: FormatName
    key: str
    model: str | None = None
    streams: bool = False
    version: str = ""
    listed: bool = False
    framed: bool = False

    @property
    def fitted_as(self) -> FormatName:
        """``format`` for ``fit``, with the version of the provider's API."""
        name = f"{self.format}:{self.version}" if self.version else self.format
        return cast(FormatName, name)


def request_target(
    method: str, url: str, headers: Mapping[str, str], body: bytes
) -> RequestTarget | None:
    """The target of a request; None if it is not fitted, or must not be changed: its body is
    encoded, or covered by a signature.
    """
    if method.upper() != "POST" or headers.get("content-encoding", "identity") != "identity":
        return None
    if headers.get("authorization", "").lower().startswith(_SIGNED):
        return None
    found = path_target(url)
    if found is None or not _OBJECT.match(body):
        return None
    format, api_path, model = found
    host = _split(url)[0]
    dialect = format.dialect_at(host, {})
    model_name = model or _model(body)
    credential = next((headers[name] for name in credentials.HEADERS if headers.get(name)), "")
    asked = not model and _STREAM.search(body[-_END_BYTES:] + body[:_END_BYTES]) is not None
    return RequestTarget(
        cast(FormatName, f"{format.name}:{dialect}" if dialect else format.name),
        key_for(host, model_name, credentials.bare_key(credential)),
        model,
        bool(api_path.streams) or asked,
        format.version_in(headers),
        api_path.listed,
        api_path.framed,
    )


def path_target(url: str) -> tuple[Format, ApiPath, str | None] | None:
    """(format, path of its API, model in the path) of a URL whose requests are fitted."""
    found = api_path_at(_split(url)[1])
    return found if found is not None and found[1].fitted else None


def _split(url: str) -> tuple[str, str]:
    """(host with port, path) of a URL."""
    match = _URL.match(url)
    return (match["host"].rpartition("@")[2], match["path"]) if match else ("", url)


def _model(body: bytes) -> str:
    """The model's name in ``body``; both ends are searched first."""
    for part in (body[:_END_BYTES], body[-_END_BYTES:], body):
        if match := _MODEL.search(part):
            return match[1].decode("utf-8", "replace")
    return ""
