"""Signed thinking: signatures over the thinking's text and over everything before it.

A signature is an HMAC over the digests of ``prompt_parts``.  ``rules`` knows which models bind
thinking to its prefix.  A signature that this provider did not make is ignored, as one from another
model would be.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Sequence
from typing import NamedTuple

from trimtab.jsontext.paths import Path
from trimtab.transcript.transcript import Transcript
from trimtab_lab.testing.http_apis import HttpApi
from trimtab_lab.testing.prompt_parts import PromptPart

_TAG = b"trimtab:1"
_BYTES = 15


class BrokenSignature(NamedTuple):
    """A thinking block whose signature does not match: the kind of refusal, and its place."""

    kind: str
    message: int
    path: Path
    signature: str


def sign(secret: str, thinking: str, before: str) -> str:
    """The signature of ``thinking`` after the prefix ``before``: base64, deterministic."""
    return base64.b64encode(_TAG + _mac(secret, thinking) + _mac(secret, before)).decode("ascii")


def _mac(secret: str, text: str) -> bytes:
    key, data = secret.encode("utf-8"), text.encode("utf-8", "surrogatepass")
    return hmac.digest(key, data, "sha256")[:_BYTES]


def _read(signature: str) -> tuple[bytes, bytes] | None:
    """(HMAC of the text, HMAC of the prefix) in a signature made here; None for any other."""
    try:
        raw = base64.b64decode(signature, validate=True)
    except ValueError:
        return None
    body = raw[len(_TAG) :]
    ours = raw.startswith(_TAG) and len(body) == 2 * _BYTES
    return (body[:_BYTES], body[_BYTES:]) if ours else None


def check(
    api: HttpApi, transcript: Transcript, parts: Sequence[PromptPart], secret: str, *, binds: bool
) -> list[BrokenSignature]:
    """Every thinking block whose text was changed or (``binds``) whose prefix has moved."""
    spoken = [n for n, message in enumerate(transcript.messages) if message.role == "assistant"]
    latest = spoken[-1] if spoken else -1
    broken = []
    for part in parts:
        signed = api.signed(part.raw) if part.message >= 0 else None
        macs = _read(signed[1]) if signed else None
        if signed is None or macs is None:
            continue
        kind = ""
        if macs[0] != _mac(secret, signed[0]):
            kind = "thinking_modified" if part.message == latest else "bad_signature"
        elif binds and macs[1] != _mac(secret, part.before):
            kind = "thinking_binding"
        if kind:
            broken.append(BrokenSignature(kind, part.message, part.path, signed[1]))
    return broken


def with_siblings(
    broken: Sequence[BrokenSignature], api: HttpApi, parts: Sequence[PromptPart]
) -> list[tuple[int, Path]]:
    """The dropped blocks, and the thinking blocks that directly follow each."""
    places = {(item.message, item.path) for item in broken}
    dropping, siblings = False, list[tuple[int, Path]]()
    for part in parts:
        thinks = part.message >= 0 and api.signed(part.raw) is not None
        dropping = thinks and (dropping or (part.message, part.path) in places)
        if dropping:
            siblings.append((part.message, part.path))
    return siblings
