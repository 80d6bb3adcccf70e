"""The protocol of a format as an HTTP API: its paths and the form of its answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from trimtab_lab.testing.http_apis.answers import Call, Stop
from trimtab_lab.testing.http_apis.compaction import MadeCompaction
from trimtab_lab.testing.http_apis.refusals import ErrorResponse

STARTED = 1_700_000_000
"""Unix time of the first answer; each is one second later, so that equal runs are equal."""


class ApiRoute(NamedTuple):
    """The operation of a path.  ``streams``: None if the body decides."""

    operation: Literal["generate", "count"]
    model: str | None = None
    streams: bool | None = None
    listed: bool = False
    """Whether a stream is sent as one JSON array instead of events."""


class UsageCounts(NamedTuple):
    """Tokens: of the prompt (all of it), read from the cache, put into it, and of the answer."""

    input: int
    cached: int = 0
    written: int = 0
    output: int = 0
    thinking: int = 0

    @property
    def fresh(self) -> int:
        """Prompt tokens that were neither read from the cache nor written."""
        return self.input - self.cached - self.written


@dataclass(frozen=True, slots=True)
class ModelReply:
    """An answer with everything an API needs to write it."""

    number: int
    model: str
    text: str
    thinking: str
    signature: str
    calls: tuple[Call, ...]
    bill: UsageCounts
    stop: Stop
    request: Mapping[str, Any]
    dropped: tuple[str, ...] = ()
    listed: bool = False
    style: str = ""
    compaction: MadeCompaction | None = None

    @property
    def created(self) -> int:
        """Unix time."""
        return STARTED + self.number

    def hex(self, what: str, chars: int = 24) -> str:
        """An id that is the same in each equal run."""
        return hex_id(f"{self.number}/{what}", chars)


class HttpApi(Protocol):
    """One format as an HTTP API."""

    format: str
    stream_type: str
    """Content type of a stream."""
    call_id: str
    """The pattern of call ids with hex9, hex24, name, number; "" if calls need no id."""

    def route(self, path: str, query: str) -> ApiRoute | None:
        """The route of this path; None if it is not of this format."""
        ...

    def request(self, body: Any, route: ApiRoute) -> Any:
        """The request inside a body."""
        ...

    def streams(self, body: Any) -> bool:
        """Whether the body asks for a stream."""
        ...

    def response_body(self, reply: ModelReply) -> Any:
        """The answer as one JSON body."""
        ...

    def events(self, reply: ModelReply) -> Iterator[bytes]:
        """The answer as a stream."""
        ...

    def broken(self, reply: ModelReply, refusal: ErrorResponse) -> Iterator[bytes]:
        """A stream with status 200 that begins normally and then has this error."""
        ...

    def counted(self, tokens: int) -> Any:
        """The answer to a request that only counts."""
        ...

    def headers(self, number: int, refusal: ErrorResponse | None) -> tuple[tuple[str, str], ...]:
        """Headers that the provider adds to its answers and refusals."""
        ...

    def signed(self, part: Any) -> tuple[str, str] | None:
        """(thinking, signature) of a content part that carries signed thinking, else None."""
        ...

    def drops_unbound(self, body: Any) -> bool:
        """Whether the request asks to drop thinking whose prefix has changed."""
        ...


def hex_id(text: str, chars: int) -> str:
    """Hexadecimal digits made from a text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()[
        :chars
    ]


def dump(value: Any) -> bytes:
    """Compact JSON in ASCII."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def sse(data: Any, event: str = "", end: str = "\n") -> bytes:
    """One server-sent event."""
    name = f"event: {event}{end}".encode() if event else b""
    return name + b"data: " + dump(data) + 2 * end.encode()


_PIECE_CHARS = 24


def pieces(text: str) -> Iterator[str]:
    """A text in the pieces in which it is streamed."""
    return (text[at : at + _PIECE_CHARS] for at in range(0, len(text), _PIECE_CHARS))


def arguments(call: Call) -> str:
    """The arguments as the JSON string a model writes."""
    return json.dumps(dict(call.arguments), separators=(",", ":"), ensure_ascii=False)


def inner(value: Any, *keys: str) -> Any:
    """The value below these keys; None where something is missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


# --- what several formats have in common, or do not have ---


def request_id(number: int, refusal: ErrorResponse | None) -> tuple[tuple[str, str], ...]:
    """The header ``x-request-id``."""
    return (("x-request-id", f"req_{number:08x}"),)


def no_headers(number: int, refusal: ErrorResponse | None) -> tuple[tuple[str, str], ...]:
    return ()


def unsigned(part: Any) -> tuple[str, str] | None:
    """None: this format's signatures don't cover the text; rules only require their presence."""
    return None


def no_such_option(body: Any) -> bool:
    """False: this format has no option to drop thinking whose prefix has changed."""
    return False
