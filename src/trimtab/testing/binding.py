"""Thinking that is signed, over its own text and over all that stands before it.

Knows how signatures are made and checked (HMAC over the chain of ``prefix``).  Does not know
which models bind thinking (``rules`` does) nor where a format keeps a signature (its wire does).
A signature that this provider did not make says nothing here, as if it came from another model.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Sequence
from typing import NamedTuple

from trimtab.model import Path, Transcript
from trimtab.testing.prefix import Unit
from trimtab.testing.wire import Wire

_TAG = b"trimtab:1"
_BYTES = 15


class Broken(NamedTuple):
    """A thinking block that is not what was said: the kind of refusal, and where it stands."""

    kind: str
    message: int
    path: Path
    signature: str


def sign(secret: str, thinking: str, before: str) -> str:
    """The signature of this thinking behind that prefix: plain base64, the same each time."""
    return base64.b64encode(_TAG + _mac(secret, thinking) + _mac(secret, before)).decode("ascii")


def _mac(secret: str, text: str) -> bytes:
    key, data = secret.encode("utf-8"), text.encode("utf-8", "surrogatepass")
    return hmac.digest(key, data, "sha256")[:_BYTES]


def _read(signature: str) -> tuple[bytes, bytes] | None:
    """(over the text, over the prefix) of a signature made here; None for any other."""
    try:
        raw = base64.b64decode(signature, validate=True)
    except ValueError:
        return None
    body = raw[len(_TAG) :]
    ours = raw.startswith(_TAG) and len(body) == 2 * _BYTES
    return (body[:_BYTES], body[_BYTES:]) if ours else None


def check(
    wire: Wire, transcript: Transcript, units: Sequence[Unit], secret: str, *, binds: bool
) -> list[Broken]:
    """Every thinking block whose text was changed or (``binds``) whose prefix has moved."""
    spoken = [n for n, message in enumerate(transcript.messages) if message.role == "assistant"]
    latest = spoken[-1] if spoken else -1
    found = []
    for unit in units:
        said = wire.signed(unit.raw) if unit.message >= 0 else None
        macs = _read(said[1]) if said else None
        if said is None or macs is None:
            continue
        kind = ""
        if macs[0] != _mac(secret, said[0]):
            kind = "thinking_modified" if unit.message == latest else "bad_signature"
        elif binds and macs[1] != _mac(secret, unit.before):
            kind = "thinking_binding"
        if kind:
            found.append(Broken(kind, unit.message, unit.path, said[1]))
    return found


def with_siblings(
    broken: Sequence[Broken], wire: Wire, units: Sequence[Unit]
) -> list[tuple[int, Path]]:
    """What goes with blocks that are dropped: the thinking that follows each without a break."""
    gone = {(item.message, item.path) for item in broken}
    dropping, found = False, list[tuple[int, Path]]()
    for unit in units:
        thinks = unit.message >= 0 and wire.signed(unit.raw) is not None
        dropping = thinks and (dropping or (unit.message, unit.path) in gone)
        if dropping:
            found.append((unit.message, unit.path))
    return found
