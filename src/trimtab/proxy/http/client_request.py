"""A client's request as the proxy forwards it: where it goes, under which headers, for whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from trimtab.formats.registry import FORMATS
from trimtab.proxy.config.upstreams import Upstream
from trimtab.proxy.http import aws_signing
from trimtab.proxy.http.headers import DIGESTS, Raw, fingerprint, plain, session_hint, upwards
from trimtab.proxy.http.routes import Route


@dataclass(frozen=True)
class ClientRequest:
    """Everything of a request but its body.

    ``raw_headers``: without our own tokens; ``has_token``: whether it came with one.
    """

    method: str
    path: str
    query: str
    raw_headers: Raw
    upstream: Upstream
    route: Route
    has_token: bool = False

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """The client's headers by lower-case name."""
        return plain(self.raw_headers)

    @property
    def address(self) -> str:
        """The URL it is sent to."""
        return self.upstream.address(self.path, self.query)

    @property
    def client(self) -> str:
        """The client's own name for itself, ``claude-cli/2.1``; "" if it has none."""
        return self.headers.get("user-agent", "")[:60]

    @property
    def encoding(self) -> str:
        """How its body is compressed; "" if it is not."""
        return self.headers.get("content-encoding", "").lower()

    @property
    def hint(self) -> str:
        """What the client calls its session; "" where it does not say."""
        return session_hint(self.headers)

    @property
    def credential(self) -> str:
        """The digest of its credential (``headers.fingerprint``)."""
        return fingerprint(self.headers, self.query)

    @property
    def format(self) -> str:
        """The format, with the version of the API that a header names."""
        return FORMATS[self.route.format].named_in(self.headers)

    def headers_upwards(self, body: bytes, *, repacked: bool) -> Raw:
        """The headers sent to the provider with this body, signed if the proxy signs for this
        upstream.  ``repacked``: whether the body is not the client's own any more."""
        signing = self.upstream.sign == "aws"
        readable = self.route.operation == "generate"
        fields = upwards(self.raw_headers, readable=readable, signed=signing)
        if repacked:
            changed = {"content-encoding", *DIGESTS}
            fields = [pair for pair in fields if pair[0].decode("latin-1").lower() not in changed]
        if signing:
            region = self.upstream.region
            fields = aws_signing.signed(self.method, self.address, fields, body, region)
        return fields
