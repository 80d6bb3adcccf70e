"""The providers a proxy may send to, and the choice of one for each request.

Addresses come from the configuration alone.  A request can only name a configured upstream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from trimtab.errors import InvalidSetting
from trimtab.setting_kinds import AMOUNT, TEXT, TEXTS, check_kinds, required, setting

CHOOSE = "x-trimtab-upstream"
"""The header by which a client names one of the configured upstreams."""
PREFIX = "/to/"
"""``/to/NAME/v1/…`` is sent to that upstream as ``/v1/…``."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """One provider.  Raises InvalidSetting for a value of the wrong kind."""

    name: str = required(TEXT, "what requests and the dashboard call it")
    url: str = required(TEXT, "its address; a path in it goes before the path of each request")
    paths: tuple[str, ...] = setting((), TEXTS, "prefixes of the paths that belong to it")
    header: str = setting("", TEXT, "a header (`name` or `name: value`) that marks its requests")
    window: int | None = setting(
        None, AMOUNT, "tokens of context, for models that the model table does not have"
    )
    sign: str = setting(
        "", TEXT, "`aws`: sign each request with the credentials of the proxy's machine"
    )
    region: str = setting("", TEXT, "of AWS, for the signature")

    def __post_init__(self) -> None:
        check_kinds(self, f"upstream {self.name}: ")
        parts = urlsplit(self.url)
        named = "" if self.name == "upstream" else f" {self.name}"  # the name that --upstream gives
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidSetting(
                f"upstream{named}: {self.url!r} is no http or https address: give one such as "
                "https://api.openai.com or http://localhost:8000"
            )
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
        """The URL for a request with this path and query."""
        base = self.url.rstrip("/")
        # Both the client's base URL and the upstream's may end with /v1: send it only once.
        if path.startswith("/v1/") and base.endswith("/v1"):
            base = base.removesuffix("/v1")
        return f"{base}{path}?{query}" if query else f"{base}{path}"

    def matches_header(self, headers: Mapping[str, str]) -> bool:
        """Whether the request has this upstream's header."""
        name, _, value = (part.strip() for part in self.header.partition(":"))
        header_value = headers.get(name.lower())
        return header_value is not None and (not value or header_value == value)


def standard() -> tuple[Upstream, ...]:
    """The public addresses of the providers, with the paths and headers of their APIs."""
    bedrock = "https://bedrock-runtime.us-east-1.amazonaws.com"
    anthropic = "https://api.anthropic.com"
    return (
        Upstream("anthropic", anthropic, ("/v1/messages", "/v1/complete", "/api/")),
        Upstream("anthropic", anthropic, header="anthropic-version"),
        Upstream("bedrock", bedrock, ("/model/",), sign="aws", region="us-east-1"),
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
    """The upstream of a request, and the request's path there; None where none matches.

    A name decides first: ``/to/NAME/…``, then the header ``x-trimtab-upstream``.  Otherwise the
    best match of paths and header wins; of equal matches, the first configured.
    """
    if path.startswith(PREFIX):
        name, slash, rest = path.removeprefix(PREFIX).partition("/")
        named = next((u for u in upstreams if u.name == name), None)
        return (named, slash + rest) if named and rest else None
    if (wanted := headers.get(CHOOSE)) is not None:
        named = next((u for u in upstreams if u.name == wanted), None)
        return (named, path) if named else None
    ranked = [
        (rank, -number, upstream)
        for number, upstream in enumerate(upstreams)
        if (rank := _rank(upstream, path, headers)) >= 0
    ]
    return (max(ranked)[2], path) if ranked else None


_HEADER_RANK = len("/v1/") + 1
"""A header outranks the path "/v1/", which most APIs share, but no longer path."""


def _rank(upstream: Upstream, path: str, headers: Mapping[str, str]) -> int:
    """How well an upstream matches a request; -1: not at all."""
    if upstream.header and not upstream.matches_header(headers):
        return -1
    longest = max((len(start) for start in upstream.paths if path.startswith(start)), default=-1)
    if upstream.paths and longest < 0:
        return -1
    return max(longest, 0) + (_HEADER_RANK if upstream.header else 0)
