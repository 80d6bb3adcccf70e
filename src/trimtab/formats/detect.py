"""Detection of a request's format, dialect and version from its address, its headers and its shape.

What each format is recognised by is its own (``engine.base.Format``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from trimtab.errors import InvalidRequest, expect, expect_text
from trimtab.formats import misnamed
from trimtab.formats.engine.base import Format
from trimtab.formats.no_request import no_shape, no_type
from trimtab.formats.registry import FORMATS, api_path_at, in_variant
from trimtab.jsontext import paths
from trimtab.jsontext.parsing import parse_bytes

Headers = Mapping[str, str] | Iterable[tuple[str | bytes, str | bytes]]


def find(tree: Any, name: str | None = None) -> tuple[Format, str]:
    """The format of a parsed request, and the reason.

    ``name`` may include a dialect or a version: ``openai-chat:deepseek``, ``anthropic:2026-10-21``.
    Raises InvalidSetting for an unknown name, InvalidRequest if the shape fits no format.
    """
    if name is None:
        with _unexpected_types():
            return shape(tree)
    expect_text("format", name)
    base, _, variant = name.partition(":")
    if base not in FORMATS:
        raise misnamed.no_format(name)
    format = FORMATS[base]
    lacks = isinstance(tree, dict) and format.messages_key not in tree
    if lacks or misnamed.is_foreign(tree, format):
        _name_the_other(tree, name, format)
    if isinstance(tree, list) and tree and misnamed.lacks_parts(tree, format):
        raise InvalidRequest(
            f"as {base} no message has {format.content_key}: name another format, or correct it"
        )
    if not variant:
        return format, "given"
    if variant not in (*format.dialects, *format.versions):
        raise misnamed.no_variant(variant, format)
    return in_variant(format, variant), "given"


def _name_the_other(tree: Any, name: str, format: Format) -> None:
    """Raise InvalidRequest that says which format a body looks like, if it has another's shape."""
    try:
        other, reason = shape(tree)
    except (InvalidRequest, TypeError, AttributeError, KeyError, IndexError):
        return
    if other is not format:
        raise InvalidRequest(
            f"format={name!r}, but this looks like {other.name} ({reason}): give "
            f"format={other.name!r}, or leave format out"
        )


@contextmanager
def _unexpected_types() -> Iterator[None]:
    """Turn errors of shape detection, which assumes types, into InvalidRequest."""
    try:
        yield
    except (TypeError, AttributeError, KeyError, IndexError) as error:
        raise InvalidRequest(
            f"no request format: a value has an unexpected type ({error}); correct the request"
        ) from error


@dataclass(frozen=True, slots=True)
class Detected:
    """A format, its dialect ("" if it has only one), and the reason for the choice."""

    format: str
    dialect: str
    reason: str
    version: str = ""
    """The version of the provider's API that a header names, where our rules tell it apart."""

    @property
    def name(self) -> str:
        """For ``format=``: ``openai-chat:deepseek``, ``anthropic:2026-10-21``, or the format's name
        alone."""
        named = self.dialect if self.dialect in FORMATS[self.format].dialects else self.version
        return f"{self.format}:{named}" if named else self.format


def detect(request: Any, *, url: str | None = None, headers: Headers | None = None) -> Detected:
    """Return the format and dialect of a request, and the reason.

    ``request``: a body (dict), a bare list of messages, or JSON as str or bytes; ``url``: the
    address it is sent to, or its path; ``headers``: a mapping or pairs.  These are tried in order,
    and the first match that the body's shape allows is taken:

    1. the path: ``…/chat/completions``, ``…/responses``, ``…/messages``,
       ``…/model/{id}/converse``, ``…:generateContent``, ``…/interactions``;
    2. the host: Anthropic's, Bedrock's, Google's (the dialect: those of OpenAI, Azure, DeepSeek,
       Moonshot, Zhipu, MiniMax, Mistral, Xiaomi, OpenRouter …);
    3. headers that begin with ``anthropic-``, ``x-goog-``, ``x-amz``, ``openai-``;
    4. the shape, by what only one format has: Responses (``input``, server-held state), Bedrock
       (``inferenceConfig``, parts without a type), Chat Completions (``stop``, ``response_format``,
       ``image_url`` …), Anthropic (its blocks, ``input_schema``, a system prompt beside the
       messages, a Claude with ``max_tokens``), Gemini (``contents``); messages that hold only text
       are Chat Completions.

    Pass the answer on as ``format=detected.name``; any ``format=`` overrides detection.
    Raises InvalidRequest if the body is not JSON (also multipart or compressed) or fits no format.
    """
    fields = _plain(headers)
    tree = _parsed(request, fields)
    host, path = _split(url)
    with _unexpected_types():
        format, reason = _first_match(tree, host, path, fields)
        facts = format.read_facts(tree, _model_in(path))
    for variant in (format.dialect_at(host, fields), format.version_in(fields)):
        facts = format.facts_in(facts, variant) if variant else facts
    return Detected(format.name, facts.dialect, reason, facts.version)


_HEADERS = sorted(
    ((start, key, format) for format in FORMATS.values() for start, key in format.headers.items()),
    key=lambda one: (-len(one[0]), not one[1]),
)
"""(beginning of a header's name, the key that such a body has, format); the longest
beginnings first, as they say most; of equal ones, that with a key."""
_MODEL_IN_PATH = re.compile(r"/(?:model|models|deployments|engines)/([^/:?]+(?::\d+)?)")


def _parsed(request: Any, headers: Mapping[str, str]) -> Any:
    """The body as a tree.  Raises InvalidRequest if it is not JSON."""
    if isinstance(request, (dict, list)):
        return request
    if headers.get("content-type", "").startswith("multipart/"):
        raise InvalidRequest("a multipart body carries files, no request: pass it on as it is")
    if isinstance(request, (bytes, bytearray, memoryview)):
        data = bytes(request)
        if (
            data[:2] == b"\x1f\x8b"
            or data[:4] == b"\x28\xb5\x2f\xfd"
            or headers.get("content-encoding", "identity") not in ("identity", "")
        ):
            raise InvalidRequest("the body is compressed: decompress it first")
        return parse_bytes(data)
    if isinstance(request, str):
        return paths.parse(request)
    raise InvalidRequest(no_type(request))


def _plain(headers: Headers | None) -> dict[str, str]:
    """Headers by lower-case name, from a mapping or from pairs."""
    try:
        pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
        return {_text(name).lower(): _text(value) for name, value in pairs}
    except Exception:  # not a list of pairs
        expect(False, "headers", headers, "a mapping, or a list of pairs")
        raise


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _split(url: str | None) -> tuple[str, str]:
    """(host, path) of an address; the host is "" for a path alone."""
    expect(url is None or isinstance(url, str), "url", url, "a text")
    rest = (url or "").partition("#")[0].partition("?")[0]
    if "://" not in rest and rest.startswith("/"):
        return "", rest
    host, _, path = rest.partition("://")[2 if "://" in rest else 0].partition("/")
    return host.rpartition("@")[2].partition(":")[0].lower(), f"/{path}"


def _model_in(path: str) -> str | None:
    """The model that an address names: Bedrock, Gemini, Azure deployments."""
    match = _MODEL_IN_PATH.search(path.replace("%3A", ":").replace("%2F", "/"))
    return match.group(1) if match else None


# --- evidence --------------------------------------------------------------------------------


def _first_match(tree: Any, host: str, path: str, headers: Mapping[str, str]) -> tuple[Format, str]:
    """(format, reason): by path, by host, by headers, by shape; the first that the body can be."""
    for format, reason in _outside(tree, host, path, headers):
        if _can_be(tree, format):
            return format, reason
    return shape(tree)


def _outside(
    tree: Any, host: str, path: str, headers: Mapping[str, str]
) -> Iterator[tuple[Format, str]]:
    if found := api_path_at(path):
        yield found[0], f"the path {path}"
    for format in FORMATS.values():
        if format.hosts and re.search(format.hosts, host) and "/openai/" not in path:
            yield format, f"the host {host}"
    for start, key, format in _HEADERS:
        header = next((header for header in headers if header.startswith(start)), None)
        if header and (not key or _has(tree, key)):
            yield format, f"the header {header}"


def _has(tree: Any, *keys: str) -> bool:
    return isinstance(tree, dict) and any(tree.get(key) is not None for key in keys)


def _can_be(tree: Any, format: Format) -> bool:
    """Whether the body has messages (or server-held state) under this format's keys."""
    if isinstance(tree, list):
        return bool(tree)
    if format.state_keys:  # its messages may be one text
        return "messages" not in tree and _has(tree, format.messages_key, *format.state_keys)
    return isinstance(tree, dict) and isinstance(tree.get(format.messages_key), list)


def shape(tree: Any) -> tuple[Format, str]:
    """(format, reason) by the body alone.  Raises InvalidRequest if it fits no format."""
    for format in FORMATS.values() if isinstance(tree, (dict, list)) else ():
        for other in FORMATS.values():
            if (only := other.told_from.get(format.name)) and (reason := only(tree)):
                return other, reason
        if reason := format.detect(tree):
            return format, reason
    raise InvalidRequest(no_shape(tree, tuple(FORMATS)))
