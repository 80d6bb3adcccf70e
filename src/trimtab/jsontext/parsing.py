"""JSON text: decode, parse, dump, and locate values in a source text."""

from __future__ import annotations

import json
import marshal
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trimtab.errors import InvalidRequest

MAX_DEPTH = 256
"""Most levels of nested containers.  serde_json stops at 128, protobuf's JSON at 100, Python's own
parser where the current stack ends; a fixed number is the same on every machine."""


BYTES = "surrogateescape"
"""The codec error handler: bytes that are not UTF-8 become lone surrogates, which ``encode`` turns
back into the same bytes."""


def parse_bytes(data: bytes) -> Any:
    """Parse as ``parse`` does; bytes in strings that are not UTF-8 become lone surrogates."""
    try:
        return parse(decode_any(data))
    except InvalidRequest:
        decode(data)  # invalid UTF-8 is the likelier cause, and this error gives its offset
        raise


def decode_any(data: bytes) -> str:
    """Decode bytes that need not all be UTF-8; ``encode`` restores the same bytes."""
    return data.decode("utf-8", BYTES)


def encode(text: str) -> bytes:
    """Encode a text from ``decode_any``, changed or not."""
    return text.encode("utf-8", BYTES)


def decode(data: bytes) -> str:
    """UTF-8 to text.  A BOM stays as the first character, so that encoding restores it."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = data[error.start]
        raise InvalidRequest(
            f"not UTF-8: byte 0x{byte:02x} at offset {error.start:,}; send JSON encoded as UTF-8"
        ) from None


def parse(text: str) -> Any:
    """Parse as ``json.loads`` does, including NaN, lone surrogates and duplicate keys (last wins).

    A leading BOM is skipped.  Raises ``InvalidRequest`` if the text is not JSON, is nested more
    than ``MAX_DEPTH`` deep, or has an integer longer than Python reads (4,300 digits).
    """
    try:
        tree = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise _unreadable(error) from None
    check_depth(tree)
    return tree


def check_depth(tree: Any) -> None:
    """Raises InvalidRequest where containers nest too deep."""
    level = [tree] if isinstance(tree, (dict, list)) else []
    for _ in range(MAX_DEPTH):
        if not level:
            return
        level = [
            child
            for box in level
            for child in (box.values() if type(box) is dict else box)
            if type(child) in _BOXES
        ]
    if level:
        raise too_deep()


def too_deep() -> InvalidRequest:
    """The error for a request that nests too deep."""
    return _unreadable(RecursionError())


_BOXES = frozenset((dict, list))


def dump(value: Any) -> str:
    """Compact JSON with as few escapes as possible.  The result always encodes to UTF-8.

    Lone surrogates are written ``\\udXXX``; two that form a pair are parsed as one character.
    NaN and infinities are spelled as by Python's ``json``.
    """
    try:
        text = _encode(value)
    except (RecursionError, ValueError, TypeError) as error:
        raise _unreadable(error) from None
    try:
        text.encode("utf-8")  # much faster than a search for surrogates
    except UnicodeEncodeError:
        return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return text


def is_same(one: Any, other: Any) -> bool:
    """Whether both are equal in values, types and key order; False if ``marshal`` cannot tell."""
    if type(one) is type(other) is str:
        return bool(one == other)
    try:
        return bool(one == other) and marshal.dumps(one, 0) == marshal.dumps(other, 0)
    except ValueError:
        return False


def _base64(value: Any) -> str:
    """Bytes in base64, as they are sent: clients pass payloads unencoded."""
    if isinstance(value, (bytes, bytearray)):
        return b64encode(value).decode("ascii")
    raise TypeError(f"{type(value).__name__} is not JSON")


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_base64).encode
_SURROGATE = re.compile("[\ud800-\udfff]")


def _unreadable(error: Exception) -> InvalidRequest:
    if isinstance(error, RecursionError):
        return InvalidRequest(f"nested more than {MAX_DEPTH} levels deep; flatten the request")
    if isinstance(error, json.JSONDecodeError):
        size = len(error.doc.rstrip())
        if size and (error.pos >= size or error.msg.startswith("Unterminated string")):
            return InvalidRequest(f"not JSON: cut off after {size:,} characters; send all of it")
        return InvalidRequest(f"not JSON: {error}; send one JSON value")
    if isinstance(error, TypeError):
        return InvalidRequest(f"no JSON value: {error}; give JSON values alone")
    if "Circular" in str(error):
        return InvalidRequest("a value holds itself; give a request without cycles")
    return InvalidRequest("an integer has more than 4,300 digits; send it as a string")


class Wanted(Protocol):
    """Which places of a text to locate: the elements ``below``, if this container ``opens``."""

    @property
    def opens(self) -> bool:
        """Whether any elements of this container are wanted."""
        ...

    @property
    def below(self) -> Mapping[str | int, Any]:
        """Element → what is wanted inside it, again a ``Wanted``."""
        ...


@dataclass(slots=True)
class ValueSpan:
    """Position of a value in the text (chars); for a wanted container also of its elements.

    ``starts`` and ``ends`` bound each item or member, key included; ``inner`` holds only the wanted
    elements, the last one of equal keys.
    """

    start: int
    end: int
    keys: Sequence[str]
    starts: Sequence[int]
    ends: Sequence[int]
    inner: Mapping[str | int, ValueSpan]


def layout(text: str, wanted: Wanted) -> ValueSpan:
    """Positions of the wanted values.  Raises ``InvalidRequest`` if the text is not JSON.

    One pass, linear in the text: it opens only wanted containers and skips the rest at C speed.
    """
    start = _next(text, 1 if text.startswith("\ufeff") else 0)
    try:
        top = _locate(text, start, wanted)
        if _next(text, top.end) < len(text):
            raise json.JSONDecodeError("Extra data", text, top.end)
    except (ValueError, RecursionError) as error:
        raise _unreadable(error) from None
    return top


_scan: Callable[[str, int], tuple[Any, int]]
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
_blank = re.compile(r"[ \t\n\r]*").match
_BLANK = " \t\n\r"
_simple_key = re.compile(r'"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*').match
_CLOSING = {"{": "}", "[": "]"}


def _locate(text: str, pos: int, wanted: Wanted) -> ValueSpan:
    closing = _CLOSING.get(text[pos : pos + 1]) if wanted.opens else None
    if closing is None:
        return ValueSpan(pos, _passed(text, pos), (), (), (), {})
    first, below = pos, wanted.below
    keys: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    inner: dict[str | int, ValueSpan] = {}
    pos = _next(text, pos + 1)
    mark = text[pos : pos + 1]
    while mark != closing:
        key: str | int = len(starts)
        starts.append(pos)
        if closing == "}":
            key, pos = _member_key(text, pos)
            keys.append(key)
        if key in below:
            span = inner[key] = _locate(text, pos, below[key])
            pos = span.end
        else:
            pos = _passed(text, pos)
        ends.append(pos)
        pos = _next(text, pos)
        mark = text[pos : pos + 1]
        if mark == ",":
            pos = _next(text, pos + 1)
        elif mark != closing:
            raise json.JSONDecodeError("Expecting ',' delimiter", text, pos)
    return ValueSpan(first, pos + 1, keys, starts, ends, inner)


def _passed(text: str, pos: int) -> int:
    """Where the value ends that begins at ``pos``."""
    try:
        return _scan(text, pos)[1]
    except StopIteration:
        raise json.JSONDecodeError("Expecting value", text, pos) from None


def _next(text: str, pos: int) -> int:
    """Where the next thing stands that is no whitespace, or the end."""
    blanks = _blank(text, pos) if text[pos : pos + 1] in _BLANK else None  # also at the end
    return blanks.end() if blanks else pos


def _member_key(text: str, pos: int) -> tuple[str, int]:
    """The key that begins at ``pos`` and where its value begins."""
    simple = _simple_key(text, pos)
    if simple is not None:
        return simple[1], simple.end()
    if text[pos : pos + 1] != '"':
        raise json.JSONDecodeError("Expecting property name in double quotes", text, pos)
    key, end = _scan(text, pos)
    end = _next(text, end)
    if text[end : end + 1] != ":":
        raise json.JSONDecodeError("Expecting ':' delimiter", text, end)
    return key, _next(text, end + 1)
