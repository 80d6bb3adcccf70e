"""Which headers are passed on, upwards and downwards, and whose credential they carry.

A credential is only ever turned into a keyed digest; it is never kept.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from urllib.parse import parse_qsl

Raw = list[tuple[bytes, bytes]]

_HOP = frozenset(
    (
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization"),
        *("proxy-connection", "te", "trailer", "trailers", "transfer-encoding", "upgrade"),
    )
)
"""RFC 9110 §7.6.1: they belong to one connection."""
_OURS = "x-trimtab"
CREDENTIALS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
"""Headers in which providers take keys."""
_AWS = "AWS4-"
"""Such a signature names an access key id, which is no secret, and is not verified here."""
DIGESTS = frozenset(("content-md5", "digest", "content-digest", "repr-digest"))
"""Of a body: wrong for another one."""
_UNSENT = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
"""Characters that no server sends in a header's value: it would rather break the connection."""
_SIGNED = ("authorization", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256")


def plain(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by lower-case name; of one that comes twice the last."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in raw}


def is_off(headers: Mapping[str, str]) -> bool:
    """Whether a request says ``x-trimtab: off``: it is passed on as it came."""
    return headers.get(_OURS, "").strip().lower() == "off"


def upwards(
    raw: Iterable[tuple[bytes, bytes]], *, readable: bool = False, signed: bool = False
) -> Raw:
    """The client's headers as the provider gets them: all but those of the connection and ours.

    ``readable``: the answer is asked for uncompressed.  ``signed``: the proxy signs anew, so the
    client's own signature is left out.
    """
    pairs = list(raw)
    dropped = {*_HOP, "host", "content-length", "expect", *_named(pairs)}
    if readable:
        dropped.add("accept-encoding")
    if signed:
        dropped.update(_SIGNED)
    kept = [
        (name, value)
        for name, value in pairs
        if (low := name.decode("latin-1").lower()) not in dropped and not low.startswith(_OURS)
    ]
    return [*kept, (b"accept-encoding", b"identity")] if readable else kept


def downwards(raw: Iterable[tuple[bytes, bytes]], *, length: bool = True) -> Raw:
    """The provider's headers as the client gets them; without a length where the body changes."""
    pairs = list(raw)
    dropped = {*_HOP, *_named(pairs)}
    if not length:
        dropped.update(("content-length", "etag", *DIGESTS))
    return [
        (name, value)
        for name, value in pairs
        if name.decode("latin-1").lower() not in dropped and not _UNSENT.search(value)
    ]


def _named(raw: Iterable[tuple[bytes, bytes]]) -> set[str]:
    """What the header ``connection`` names as its own."""
    return {
        item.strip().lower()
        for name, value in raw
        if name.lower() == b"connection"
        for item in value.decode("latin-1").split(",")
    }


def fingerprint(headers: Mapping[str, str], query: str, more: Sequence[str] = ()) -> str:
    """20 hex characters that tell one credential from another, the same in each replica.

    ``more``: further headers that hold keys.  Keys are long and random: their digest tells nothing.
    "" where the request carries none, or only a signature that nobody has verified.
    """
    # All of them: which one the provider goes by is not ours to know, and one may be a dummy.
    given = [headers[name] for name in (*CREDENTIALS, *more) if headers.get(name)]
    keys = [key for key in given if not key.startswith(_AWS)]
    if "key=" in query and (key := dict(parse_qsl(query)).get("key")):
        keys.append(key)
    if not keys:
        return ""
    secret = "\0".join(keys).encode("utf-8", "replace")
    return hmac.new(b"trimtab tenant", secret, sha256).hexdigest()[:20]


HINTS = (
    *("x-claude-code-session-id", "session-id", "session_id", "x-session-id"),
    *("x-session-affinity", "x-litellm-session-id"),
)
"""Headers in which known clients name their session: a hint, never an identity (subrequests and
subagents share it)."""


def session_hint(headers: Mapping[str, str]) -> str:
    """What the client calls its session; "" where it does not say."""
    return next((headers[name][:200] for name in HINTS if headers.get(name)), "")
