"""Providers that a proxy may send to, and which of them a request is for.

An upstream is never taken from a request: a request can at most name one that is configured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from trimtab.errors import InvalidSetting

CHOOSE = "x-trimtab-upstream"
"""The header by which a client names one of the configured upstreams."""
PREFIX = "/to/"
"""``/to/NAME/v1/…`` is sent to that upstream as ``/v1/…``."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """One provider.

    ``url``: its address, with a path in front of each request's own where it has one; ``paths``:
    beginnings of the paths that are for it; ``header``: a header (``name`` or ``name: value``) by
    which requests for it are known; ``window``: tokens its models take, where they are not known
    by name; ``sign``: "aws" to sign each request with credentials of the proxy's own.
    """

    name: str
    url: str
    paths: tuple[str, ...] = ()
    header: str = ""
    window: int | None = None
    sign: str = ""
    region: str = ""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        named = "" if self.name == "upstream" else f" {self.name}"  # what --upstream calls it
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidSetting(f"upstream{named}: {self.url!r} is no http or https address")
        if parts.query or parts.fragment or "@" in parts.netloc:
            raise InvalidSetting(
                f"upstream{named}: give the address alone, without key, query or fragment"
            )
        if self.sign not in ("", "aws"):
            raise InvalidSetting(f"upstream{named}: sign={self.sign!r}: choose 'aws' or none")

    @property
    def host(self) -> str:
        """Its host name, in lower case."""
        return (urlsplit(self.url).hostname or "").lower()

    def address(self, path: str, query: str) -> str:
        """Where a request with this path and query goes."""
        base = self.url.rstrip("/")
        # Clients are told to take …/v1 or not to, and so are users for upstreams: never twice.
        if path.startswith("/v1/") and base.endswith("/v1"):
            base = base.removesuffix("/v1")
        return f"{base}{path}?{query}" if query else f"{base}{path}"

    def matches_header(self, headers: Mapping[str, str]) -> bool:
        """Whether its header is there."""
        name, _, value = (part.strip() for part in self.header.partition(":"))
        given = headers.get(name.lower())
        return given is not None and (not value or given == value)


def standard(region: str = "us-east-1") -> tuple[Upstream, ...]:
    """The five providers' own addresses, by the paths and headers of their APIs."""
    bedrock = f"https://bedrock-runtime.{region}.amazonaws.com"
    anthropic = "https://api.anthropic.com"
    return (
        Upstream("anthropic", anthropic, ("/v1/messages", "/v1/complete", "/api/")),
        Upstream("anthropic", anthropic, header="anthropic-version"),
        Upstream("bedrock", bedrock, ("/model/",), sign="aws", region=region),
        Upstream(
            "gemini",
            "https://generativelanguage.googleapis.com",
            ("/v1beta/", "/v1alpha/", "/upload/", "/v1/models/gemini", "/v1/models/gemma"),
        ),
        Upstream("gemini", "https://generativelanguage.googleapis.com", header="x-goog-api-key"),
        Upstream("openai", "https://api.openai.com", ("/v1/",)),
    )


def choose(
    upstreams: Sequence[Upstream], path: str, headers: Mapping[str, str]
) -> tuple[Upstream, str] | None:
    """The upstream of a request, and the path it has there.

    First by name (``/to/NAME/…``, then the header ``x-trimtab-upstream``), then by what of its
    paths and header fits best; of equals the first.  None: for none.
    """
    if path.startswith(PREFIX):
        name, slash, rest = path.removeprefix(PREFIX).partition("/")
        found = next((u for u in upstreams if u.name == name), None)
        return (found, slash + rest) if found and rest else None
    if (wanted := headers.get(CHOOSE)) is not None:
        found = next((u for u in upstreams if u.name == wanted), None)
        return (found, path) if found else None
    ranked = [
        (rank, -number, upstream)
        for number, upstream in enumerate(upstreams)
        if (rank := _rank(upstream, path, headers)) >= 0
    ]
    return (max(ranked)[2], path) if ranked else None


_HEADER_RANK = len("/v1/") + 1
"""A header says more than "/v1/", which most APIs have, and less than any longer path."""


def _rank(upstream: Upstream, path: str, headers: Mapping[str, str]) -> int:
    """How much speaks for an upstream; -1: it does not take this request."""
    if upstream.header and not upstream.matches_header(headers):
        return -1
    longest = max((len(start) for start in upstream.paths if path.startswith(start)), default=-1)
    if upstream.paths and longest < 0:
        return -1
    return max(longest, 0) + (_HEADER_RANK if upstream.header else 0)
