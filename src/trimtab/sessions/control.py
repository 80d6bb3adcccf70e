"""The control arm of an experiment: conversations that pass untouched while they fit.

Which ones is decided by a hash of what a conversation is known by: alike in every process and after
a restart.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Literal

from trimtab.settings import Settings

Arm = Literal["", "treated", "control", "control, outgrown"]
"""Of one request: no experiment; reduced as ever; untouched; of the control arm, but it no longer
fits as it is, and is reduced since."""

NEVER = 2**60
"""Tokens of dead weight that no request has."""


def is_control(key: str, share: float) -> bool:
    """Whether a conversation belongs to the control arm."""
    digest = blake2b(key.encode(), digest_size=8, person=b"control").digest()
    return int.from_bytes(digest, "big") < share * 2**64


def untouched(settings: Settings) -> Settings:
    """Settings under which nothing is reduced that fits.  A request that providers refuse is still
    repaired."""
    return settings | Settings(
        trigger=1.0, early=NEVER, on_arrival="none", idle_seconds=0.0, quote_embedded=False
    )
