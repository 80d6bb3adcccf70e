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
"""If no limit was named: the share of the smallest refused size that is assumed to be allowed."""
_OF_OLD_ROWS = "o200k/1×1.0"
"""The counter of a stored row that names none: of an earlier release, in most cases."""
_NARROW, _WIDE = 0.25, 4.0
"""The provider's count divided by ours: outside this range it can't count the same request."""


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """The limits of one model behind one endpoint.

    ``limit`` is in the provider's tokens; ``ratio``: the provider's tokens per one of ours;
    ``output_counts``: whether the requested output shares the limit.  ``refused`` and ``accepted``
    are the smallest prompt refused and the largest accepted, in our tokens.  ``mends``: rules that
    a refusal named and whose repair was accepted.  ``short``: the provider's count that was too
    small, and our count of the same request (``truncation_check``).  ``unnamed``, after a refusal
    without a reason: (chars to which tool results were cut when accepted, chars of the longest
    result when refused, time in seconds).  ``counter``: the version of the counter whose tokens
    are ours here.
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
    counter: str = _OF_OLD_ROWS

    def by_counter(self, version: str) -> ModelLimits:
        """These limits without what another counter than ``version`` counted."""
        if self.counter == version or self is NO_LIMITS:
            return self
        return replace(self, ratio=1.0, refused=None, accepted=0, short=None, counter=version)

    def allowed_chars(self, longest: int) -> int | None:
        """Chars to which each tool result is cut if the longest has ``longest``; None: not cut.

        A length between the accepted and the refused one is uncertain: below their geometric mean
        it is tried uncut."""
        if self.unnamed is None:
            return None
        accepted, refused, _ = self.unnamed
        return accepted if longest * longest >= accepted * refused else None

    def prompt_tokens(self, output: int) -> int | None:
        """The most tokens (ours) of a prompt that asks for ``output`` tokens; None: unknown."""
        if self.limit is not None:
            room = self.limit - (output if self.output_counts else 0)
            return max(int(room / self.ratio), 0)
        if self.refused is not None:
            return min(max(self.accepted, int(self.refused * _BELOW_REFUSED)), self.refused - 1)
        return None


NO_LIMITS = ModelLimits()


def ratio(theirs: int, ours: int) -> float:
    """Provider's tokens per one of ours; 1 if the two can't be counts of the same text."""
    factor = theirs / max(ours, 1)
    return factor if _NARROW <= factor <= _WIDE else 1.0


class LearnedLimits:
    """``ModelLimits`` by key; each expires after a time (``BELIEVED``).

    ``facts``: any mapping from str to JSON-able dicts (a store's, so that they outlast the
    process); ``clock``: returns seconds.
    """

    def __init__(
        self,
        facts: MutableMapping[str, Mapping[str, Any]] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._facts: MutableMapping[str, Mapping[str, Any]] = {} if facts is None else facts
        self.clock = clock

    def get(self, key: str, counter: str = "") -> ModelLimits:
        """The limits learned for ``key`` that have not expired; NO_LIMITS if there are none.

        ``counter``: the version of the counter that counts now; what another counted is left out.
        """
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
        if not fresh:
            return NO_LIMITS
        return known.by_counter(counter) if counter else known

    def put(self, key: str, known: ModelLimits) -> None:
        """Store ``known`` under ``key``, dated now."""
        self._facts[key] = asdict(replace(known, at=self.clock()))

    def accepted(self, key: str, tokens: int, output: int, counter: str = "") -> None:
        """Record that a prompt of ``tokens`` (ours) was accepted; drop limits it contradicts."""
        known = self.get(key, counter)
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
    """The host in a key of ``key_for``; "" if it has none."""
    host, bar, _ = key.partition("|")
    return host if bar else ""


def key_for(host: str, model: str, credential: str | bytes = "") -> str:
    """The key of learned limits: ``api.openai.com|gpt-5.1|3f2a9c1d``, with the credential as a
    short digest."""
    secret = credential.encode() if isinstance(credential, str) else credential
    finger = hashlib.blake2b(secret, digest_size=4).hexdigest() if secret else "-"
    return f"{host}|{model}|{finger}"
