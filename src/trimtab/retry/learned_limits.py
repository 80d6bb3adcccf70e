"""Limits learned from refusals, per endpoint, model and credential.

A limit is converted to our tokens and expires after a time that depends on how exact it was.  The
limits are kept in a mapping that the caller passes in.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import asdict, dataclass, replace
from typing import Any

HOUR = 3_600.0
BELIEVED = {"exact": 7 * 24 * HOUR, "estimate": 24 * HOUR, "lower_bound": 24 * HOUR, "guess": HOUR}
"""Seconds for which a limit is kept, by how exact it was."""
_BELOW_REFUSED = 0.9
"""Where no limit was named: this share of the smallest size that was refused."""
_NARROW, _WIDE = 0.25, 4.0
"""How far a provider's count of a request may be from ours and still be a count of it."""


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """What is known of one model behind one endpoint.

    ``limit`` is in the provider's tokens, ``ratio`` how many of them one of ours is;
    ``output_counts`` whether the requested output shares it.  ``refused`` and ``accepted`` are
    the smallest prompt refused and the largest accepted, in our tokens.  ``mends`` are
    the rules that it turned out to have and whose repair it accepted.  ``short`` is a count of
    its that was too small, and ours of the same request (``truncation``).  ``unnamed``: after a
    refusal that named nothing, tool results of at most so many chars were accepted, the longest
    refused had so many, and when that was.
    """

    limit: int | None = None
    ratio: float = 1.0
    output_counts: bool = False
    exactness: str = "guess"
    refused: int | None = None
    accepted: int = 0
    request_bytes: int | None = None
    result_chars: int | None = None
    images: int | None = None
    mends: tuple[str, ...] = ()
    short: tuple[int, int] | None = None
    unnamed: tuple[int, int, float] | None = None
    at: float = 0.0

    def allowed_chars(self, longest: int) -> int | None:
        """To how many chars each tool result is cut where the longest has so many; None: it may be
        as long, as far as is known.  Between what was accepted and what was refused nobody knows:
        the lower half of that, by factors, is tried."""
        if self.unnamed is None:
            return None
        accepted, refused, _ = self.unnamed
        return accepted if longest * longest >= accepted * refused else None

    def prompt_tokens(self, output: int) -> int | None:
        """How many of our tokens a prompt may have beside so much output; None: unknown."""
        if self.limit is not None:
            room = self.limit - (output if self.output_counts else 0)
            return max(int(room / self.ratio), 0)
        if self.refused is not None:
            return min(max(self.accepted, int(self.refused * _BELOW_REFUSED)), self.refused - 1)
        return None


NO_LIMITS = ModelLimits()


def ratio(theirs: int, ours: int) -> float:
    """Provider's tokens per one of ours; 1 where the two cannot be counts of the same text."""
    factor = theirs / max(ours, 1)
    return factor if _NARROW <= factor <= _WIDE else 1.0


class LearnedLimits:
    """Facts by key, forgotten after a while.

    ``facts``: any mapping from str to JSON-able dicts (a store's, so that they outlast the
    process); ``clock``: seconds.
    """

    def __init__(
        self,
        facts: MutableMapping[str, Mapping[str, Any]] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._facts: MutableMapping[str, Mapping[str, Any]] = {} if facts is None else facts
        self.clock = clock

    def get(self, key: str) -> ModelLimits:
        """What is known and still believed; nothing at all is a value too."""
        row = self._facts.get(key)
        if row is None:
            return NO_LIMITS
        try:
            short, unnamed = row.get("short"), row.get("unnamed")
            if unnamed and self.clock() - unnamed[2] >= BELIEVED["guess"]:
                unnamed = None
            plain = {"mends": tuple(row["mends"]), "short": tuple(short) if short else None}
            known = ModelLimits(**{**row, **plain, "unnamed": tuple(unnamed) if unnamed else None})
            fresh = self.clock() - known.at < BELIEVED[known.exactness]
        except (TypeError, KeyError):  # a row of another release
            return NO_LIMITS
        return known if fresh else NO_LIMITS

    def put(self, key: str, known: ModelLimits) -> None:
        """Keep this from now on."""
        self._facts[key] = asdict(replace(known, at=self.clock()))

    def accepted(self, key: str, tokens: int, output: int) -> None:
        """A prompt of so many of our tokens was accepted: what contradicts that is forgotten."""
        known = self.get(key)
        if known is NO_LIMITS:
            return
        room = known.prompt_tokens(output)
        if room is not None and tokens > room:
            beyond = known.refused is not None and tokens >= known.refused
            refused = None if beyond else known.refused
            self.put(key, replace(known, limit=None, refused=refused, accepted=tokens))
        elif known.limit is None and known.refused is not None and tokens > known.accepted:
            self.put(key, replace(known, accepted=tokens))


def host_of(key: str) -> str:
    """The host in a key of ``key_for``; "" where there is none."""
    host, bar, _ = key.partition("|")
    return host if bar else ""


def key_for(host: str, model: str, credential: str | bytes = "") -> str:
    """``api.openai.com|gpt-5.1|3f2a9c1d``: the credential only as a short digest."""
    secret = credential.encode() if isinstance(credential, str) else credential
    finger = hashlib.blake2b(secret, digest_size=4).hexdigest() if secret else "-"
    return f"{host}|{model}|{finger}"
