"""The control arm of an experiment: conversations that are sent unchanged as long as they fit.

A hash of a conversation's key decides its arm, so it is the same in every process and after a
restart.
"""

from __future__ import annotations

from hashlib import blake2b

from trimtab.settings import Settings


def is_control(key: str, share: float) -> bool:
    """Whether a conversation belongs to the control arm."""
    digest = blake2b(key.encode(), digest_size=8, person=b"control").digest()
    return int.from_bytes(digest, "big") < share * 2**64


def control_arm_settings(settings: Settings) -> Settings:
    """Settings with which a request that fits is not reduced.  A request that the provider would
    refuse is still repaired."""
    return settings | Settings(trigger=1.0, early=None, quote_embedded=False)
