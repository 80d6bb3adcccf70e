"""Signs requests to Bedrock with credentials of the proxy's own, by botocore.

botocore finds the credentials (environment, files, roles) and keeps them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from trimtab.errors import MissingExtra, TrimtabError
from trimtab.proxy.http.headers import Raw


class NoCredentials(TrimtabError):
    """Nothing to sign with: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE."""


@cache
def _credentials() -> Any:
    try:
        from botocore.session import Session
    except ImportError:
        raise MissingExtra(
            "signing for Bedrock needs botocore: pip install 'trimtab[bedrock]'"
        ) from None
    return Session().get_credentials()


def forget() -> None:
    """Look for credentials anew at the next request."""
    _credentials.cache_clear()


def signed(method: str, address: str, headers: Raw, body: bytes, region: str) -> Raw:
    """The headers with a signature over method, address, body and content type.

    Raises NoCredentials, MissingExtra.
    """
    credentials = _credentials()
    if credentials is None:
        raise NoCredentials(
            "no AWS credentials to sign with: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
            "or AWS_PROFILE, where the proxy runs"
        )
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest

    kept = {b"content-type", b"accept"}
    plain = {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in headers
        if name.lower() in kept or name.lower().startswith(b"x-amzn-")
    }
    request = AWSRequest(method, address, plain, body)
    SigV4Auth(credentials.get_frozen_credentials(), "bedrock", region).add_auth(request)
    rest = [pair for pair in headers if pair[0].decode("latin-1").lower() not in _SET]
    fresh = [
        (name.encode("latin-1"), value.encode("latin-1"))
        for name, value in request.headers.items()
        if name.lower() in _SET
    ]
    return [*rest, *fresh]


_SET = ("authorization", "x-amz-date", "x-amz-security-token")
