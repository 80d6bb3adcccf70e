"""Limits learned from refusals, per endpoint, model and credential.

A limit is converted to our tokens and expires after a time that depends on how exact it was.  The
limits are kept in a mapping that the caller passes in.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from trimtab.amounts import many

HOUR = 3_600.0
BELIEVED = {"exact": 7 * 24 * HOUR, "estimate": 24 * HOUR, "lower_bound": 24 * HOUR, "guess": HOUR}
"""Seconds for which a limit is kept, by how exact it was."""
_BELOW_REFUSED = 0.9
"""If no limit was named: the share of the smallest refused size that is assumed to be allowed."""
_OF_OLD_ROWS = "o200k/1×1.0"
"""The counter of a stored row that names none: of an earlier release, in most cases."""
_NARROW, _WIDE = 0.25, 4.0
"""The provider's count divided by ours: outside this range it can't count the same request."""


KINDS = {
    "tokens": ("limit", "ratio", "output_counts", "exactness", "refused", "accepted"),
    "bytes": ("request_bytes",),
    "chars": ("result_chars",),
    "images": ("images",),
    "image_pixels": ("image_pixels",),
    "image_bytes": ("image_bytes",),
    "output": ("output",),
}
"""Kind of limit → the fields of ``ModelLimits`` that hold it."""
CONVERSATIONS = 2
"""A limit that so many conversations were told holds for all; before, only for those that were."""


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """The limits of one model behind one endpoint.

    ``limit`` is in the provider's tokens; ``ratio``: the provider's tokens per one of ours;
    ``output_counts``: whether the requested output shares the limit.  ``refused`` and ``accepted``
    are the smallest prompt refused and the largest accepted, in our tokens.  ``output``: the most
    output tokens that may be asked for.  ``short``: the provider's count that was too small, and
    our count of the same request (``truncation_check``).  ``unnamed``, after refusals without a
    reason: (chars to which tool results were cut when accepted, chars of the longest result when
    refused, time in seconds, how often).

    ``told``: kind of limit (``KINDS``) → conversations that were refused for it, at most
    ``CONVERSATIONS``.  ``rules``: rules of the endpoint (``named_rules.is_of_endpoint``) → the
    same.  ``counter``: the version of the counter whose tokens are ours here.
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
    image_pixels: int | None = None
    image_bytes: int | None = None
    output: int | None = None
    short: tuple[int, int] | None = None
    unnamed: tuple[int, int, float, int] | None = None
    told: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    at: float = 0.0
    counter: str = _OF_OLD_ROWS

    def by_counter(self, version: str) -> ModelLimits:
        """These limits without what another counter than ``version`` counted."""
        if self.counter == version or self is NO_LIMITS:
            return self
        return replace(self, ratio=1.0, refused=None, accepted=0, short=None, counter=version)

    def allowed_chars(self, longest: int) -> int | None:
        """Chars to which each tool result is cut if the longest has ``longest``; None: not cut.

        One refusal without a reason is a coincidence.  A length between the accepted and the
        refused one is uncertain: below their geometric mean it is tried uncut."""
        if self.unnamed is None or self.unnamed[3] < 2:
            return None
        accepted, refused = self.unnamed[:2]
        return accepted if longest * longest >= accepted * refused else None

    def prompt_tokens(self, output: int) -> int | None:
        """The most tokens (ours) of a prompt that asks for ``output`` tokens; None: unknown."""
        if self.limit is not None:
            room = self.limit - (output if self.output_counts else 0)
            return max(int(room / self.ratio), 0)
        if self.refused is not None:
            return min(max(self.accepted, int(self.refused * _BELOW_REFUSED)), self.refused - 1)
        return None

    @property
    def described(self) -> str:
        """The limits in words, for logs and people; "" if there are only counts to compare."""
        words = {
            "window": self.limit, "body bytes": self.request_bytes, "images": self.images,
            "pixels of an image": self.image_pixels, "bytes of an image": self.image_bytes,
            "chars of a tool result": self.result_chars, "output tokens": self.output,
            "refused prompt tokens": self.refused if self.limit is None else None,
        }  # fmt: skip
        parts = [f"{name} {number:,}" for name, number in words.items() if number is not None]
        parts += self.rules
        if self.unnamed is not None:
            parts.append(f"refused without a reason {many(self.unnamed[3], 'time')}")
        return ", ".join(parts)

    @property
    def until(self) -> float:
        """When they expire, in seconds since 1970."""
        return self.at + BELIEVED[self.exactness]

    @property
    def known_rules(self) -> tuple[str, ...]:
        """The rules of the endpoint that enough conversations were refused for."""
        return tuple(
            name
            for name, conversations in self.rules.items()
            if len(conversations) >= CONVERSATIONS
        )

    def for_conversation(self, conversation: str) -> ModelLimits:
        """What holds for one conversation: what it was told itself, or what several were told."""
        hidden = [
            name
            for kind, conversations in self.told.items()
            if len(conversations) < CONVERSATIONS and conversation not in conversations
            for name in KINDS.get(kind, ())
        ]
        return replace(self, **{name: getattr(NO_LIMITS, name) for name in hidden})

    def taught(self, kind: str, conversation: str, before: ModelLimits) -> ModelLimits:
        """These limits, of which ``conversation`` was told ``kind``; ``before``: what all knew.

        Another number is another limit: those that were told the earlier one don't count for it.
        """
        main = KINDS[kind][0]
        same = getattr(self, main) == getattr(before, main)
        others = before.told.get(kind, ()) if same else ()
        conversations = tuple(dict.fromkeys((*others, conversation)))[-CONVERSATIONS:]
        return replace(self, told={**before.told, kind: conversations})


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
        if not row:
            return NO_LIMITS
        try:
            short, unnamed = row.get("short"), row.get("unnamed")
            if unnamed and self.clock() - unnamed[2] >= BELIEVED["guess"]:
                unnamed = None
            if unnamed and len(unnamed) == 3:  # a row of release 0.1: learned from one refusal
                unnamed = [*unnamed, 1]
            limits = ModelLimits(**{
                **{name: value for name, value in row.items() if name != "mends"},
                "short": tuple(short) if short else None,
                "unnamed": tuple(unnamed) if unnamed else None,
                "told": _tuples(row.get("told")),
                "rules": _tuples(row.get("rules")),
            })  # fmt: skip
            fresh = self.clock() - limits.at < BELIEVED[limits.exactness]
        except (TypeError, KeyError):  # a row of another release
            return NO_LIMITS
        if not fresh:
            return NO_LIMITS
        return limits.by_counter(counter) if counter else limits

    def put(self, key: str, limits: ModelLimits) -> None:
        """Store ``limits`` under ``key``, dated now."""
        self._facts[key] = asdict(replace(limits, at=self.clock()))

    def forget(self, key: str) -> None:
        """Forget what was learned for ``key``."""
        self._facts[key] = {}

    def items(self) -> list[tuple[str, ModelLimits]]:
        """(key, limits) of all that is known and has not expired, by key."""
        every = ((key, self.get(key)) for key in sorted(self._facts))
        return [(key, limits) for key, limits in every if limits is not NO_LIMITS]

    def accepted(self, key: str, tokens: int, output: int, counter: str = "") -> None:
        """Record that a prompt of ``tokens`` (ours) was accepted; drop limits it contradicts."""
        limits = self.get(key, counter)
        if limits is NO_LIMITS:
            return
        room = limits.prompt_tokens(output)
        if room is not None and tokens > room:
            beyond = limits.refused is not None and tokens >= limits.refused
            refused = None if beyond else limits.refused
            self.put(key, replace(limits, limit=None, refused=refused, accepted=tokens))
        elif limits.limit is None and limits.refused is not None and tokens > limits.accepted:
            self.put(key, replace(limits, accepted=tokens))

    def accepted_chars(self, key: str, longest: int) -> None:
        """Record that a tool result of ``longest`` chars was accepted after a refusal without a
        reason: one as long as what was refused shows that the length was not the reason."""
        limits = self.get(key)
        if limits.unnamed is None:
            return
        accepted, refused, at, times = limits.unnamed
        if longest >= refused:
            self.put(key, replace(limits, unnamed=None))
        elif longest > accepted:
            self.put(key, replace(limits, unnamed=(longest, refused, at, times)))


def _tuples(row: Any) -> dict[str, tuple[str, ...]]:
    return {str(name): tuple(conversations) for name, conversations in row.items()} if row else {}


def destination_in(key: str) -> str:
    """The endpoint and model in a key of ``key_for``, without the credential."""
    return key.rpartition("|")[0]


def key_for(host: str, model: str, credential: str | bytes = "") -> str:
    """The key of learned limits: ``api.openai.com|gpt-5.1|3f2a9c1d``, with the credential as a
    short digest."""
    secret = credential.encode() if isinstance(credential, str) else credential
    finger = hashlib.blake2b(secret, digest_size=4).hexdigest() if secret else "-"
    return f"{host}|{model}|{finger}"
