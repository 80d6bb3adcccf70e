"""Which headers are forwarded to the provider and to the client, and whose credential they carry.

A credential is only ever turned into a keyed digest; it is never stored.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from urllib.parse import parse_qsl

from trimtab.retry import credentials
from trimtab.retry.own_header import HEADER

Raw = list[tuple[bytes, bytes]]

_HOP = frozenset(
    (
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization"),
        *("proxy-connection", "te", "trailer", "trailers", "transfer-encoding", "upgrade"),
    )
)
"""Hop-by-hop headers (RFC 9110 §7.6.1): they belong to one connection."""
_AWS = "AWS4-"
"""How AWS signatures begin.  They name an access key id, which is not secret and not verified
here."""
DIGESTS = frozenset(("content-md5", "digest", "content-digest", "repr-digest"))
"""Digests of a body, which are wrong once it is changed."""
_UNSENT = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
"""Characters that a server does not send in a header's value; it would break the connection."""
_SIGNED = ("authorization", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256")


def plain(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by lower-case name; the last one of a repeated name."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in raw}


def what_is_wrong(raw: Iterable[tuple[bytes, bytes]], headers: Mapping[str, str]) -> str:
    """Why a request cannot be passed on with these headers; "" where it can."""
    coding = headers.get("transfer-encoding")
    if coding is not None and "content-length" in headers:
        return "Content-Length and Transfer-Encoding: send one"
    if coding is not None and coding.strip().lower() != "chunked":
        return "a Transfer-Encoding that is not chunked: compress by Content-Encoding"
    if any(_UNSENT.search(value) for _, value in raw):
        return "control characters in a header: leave them out"
    return ""


def upwards(
    raw: Iterable[tuple[bytes, bytes]], *, readable: bool = False, signed: bool = False
) -> Raw:
    """The headers forwarded to the provider: all but hop-by-hop headers and ours.

    ``readable`` asks for an uncompressed answer.  ``signed``: the proxy signs the request itself,
    so the client's signature is left out.
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
        if (low := name.decode("latin-1").lower()) not in dropped and not low.startswith(HEADER)
    ]
    return [*kept, (b"accept-encoding", b"identity")] if readable else kept


def downwards(raw: Iterable[tuple[bytes, bytes]], *, length: bool = True) -> Raw:
    """The headers forwarded to the client; ``length`` False drops the length of a changed body."""
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
    """The header names listed in the header ``connection``."""
    return {
        item.strip().lower()
        for name, value in raw
        if name.lower() == b"connection"
        for item in value.decode("latin-1").split(",")
    }


def fingerprint(headers: Mapping[str, str], query: str, more: Sequence[str] = ()) -> str:
    """20 hex characters that tell one credential from another, the same in each replica and for
    each way to send a key.

    ``more``: further headers that hold keys.  Keys are long and random: their digest tells nothing.
    "" where the request carries none, or only a signature that nobody has verified.
    """
    return next(iter(fingerprints(headers, query, more)), "")


def fingerprints(
    headers: Mapping[str, str], query: str, more: Sequence[str] = ()
) -> tuple[str, ...]:
    """``fingerprint``, and those that earlier releases made of the same credential: theirs told
    ``Authorization: Bearer KEY`` from ``x-api-key: KEY``.  () where there is none."""
    # All of them: we cannot know which one the provider uses, and one may be a dummy.
    credentials_sent = [
        headers[name] for name in (*credentials.HEADERS, *more) if headers.get(name)
    ]
    sent = [value for value in credentials_sent if not value.startswith(_AWS)]
    if "key=" in query and (key := dict(parse_qsl(query)).get("key")):
        sent.append(key)
    if not sent:
        return ()
    keys = list(dict.fromkeys(map(credentials.bare_key, sent)))
    former = [sent]
    if len(keys) == 1:
        bearer = f"Bearer {keys[0]}"
        former = [[bearer], [bearer, keys[0]], sent]
    return tuple(dict.fromkeys(map(_digest, (keys, *former))))


def _digest(keys: Sequence[str]) -> str:
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
