"""Token counts of texts by the tokenizer of the model that is billed.

A ``Counter`` joins a source of counts (``token_sources``) with what the model's family bills beside
texts; ``families`` says which family a model is of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from trimtab.errors import InvalidSetting
from trimtab.transcript.families import CALL_TOKENS, VOCABULARIES, Family, family_of
from trimtab.transcript.token_sources import Estimate, OwnFunction, Source

# Overheads in o200k tokens; put them through ``Counter.scaled``.
MESSAGE_TOKENS = 4
"""Role and delimiters of one message."""
IMAGE_TOKENS = 1600
"""One image, whatever its base64: Anthropic's (width × height) / 750 at its 1.15 megapixels."""
DOCUMENT_TOKENS = 1600
"""Least cost of a document; a long one costs more, by its size."""
SEALED_CHARS_PER_TOKEN = 5
"""For encrypted payloads that the provider decrypts: redacted thinking, encrypted content."""


@dataclass(frozen=True, eq=False)
class Counter:
    """Counts the tokens of a text as ``ceil(raw × factor)``; never raises, takes linear time.

    ``source`` counts raw tokens; ``factor`` scales them to what the models named in ``label`` bill;
    ``frame`` scales overheads and images, which no tokenizer counts; ``call_tokens``: the frame of
    one call or result; ``own``: the source is those
    models' own tokenizer, and their frames are known.
    """

    source: Source
    factor: float = 1.0
    label: str = ""
    own: bool = False
    signature_rate: float = 0.0
    frame: float = 1.0
    call_tokens: int = CALL_TOKENS

    def __call__(self, text: str) -> int:
        """Tokens of ``text``; 0 for ``""``."""
        raw = self.source(text)
        return raw if self.factor == 1.0 else ceil(raw * self.factor)

    def scaled(self, raw_tokens: int) -> int:
        """Scale an overhead or fixed cost in o200k tokens by ``frame``, rounded up."""
        return raw_tokens if self.frame == 1.0 else ceil(raw_tokens * self.frame)

    def signature(self, chars: int) -> int:
        """Tokens billed for hidden thinking whose signature has ``chars`` characters."""
        return ceil(chars * self.signature_rate)

    @property
    def name(self) -> str:
        """Readable name: ``"tekken (mistral)"``; final after the first count."""
        factor = "" if self.factor == 1.0 else f"×{self.factor:g}"
        # The label says for whom a vocabulary is corrected.
        base, corrected, _ = self.source.name.partition(" corrected for ")
        source = f"{base} corrected" if corrected else base
        return f"{source}{factor}" + (f" ({self.label})" if self.label else "")

    @property
    def version(self) -> str:
        """Source, revision of these tables and factor; counters of equal versions count equally."""
        return f"{self.source.name}/1×{self.factor!r}"

    @property
    def exact(self) -> bool:
        """Whether the model's own tokenizer counted every text; final after the last count."""
        return self.own and not self.source.missing and not self.failures

    @property
    def failures(self) -> int:
        """How often a caller's function raised or returned no valid count, so that the default
        counted instead."""
        return self.source.failures

    @property
    def problem(self) -> str:
        """The last of these failures, as text."""
        return self.source.problem


_ESTIMATE, _ESTIMATE_DIGITS_APART = Estimate(), Estimate(digits_apart=True)


def counter_for(
    counter: str | Callable[[str], int] | Counter | None, *, model: str | None, format: str
) -> Counter:
    """The counter for a model in a format.

    None: that of the model's family, by its name in any spelling (``us.anthropic.claude-…``,
    ``anthropic/claude-…``, ``claude-…@date``).  An unknown name is taken as Gemini in Gemini's
    formats, as the newest Claude in formats "anthropic" and "bedrock", else as o200k.  The name of
    a vocabulary ("o200k", "qwen3", …): that one for every model, uncorrected.  "estimate": byte
    classes instead of a vocabulary.  A callable is used as it is; for a text where it raises or
    does not return a whole number ≥ 0, the default counts.  A ``Counter`` is returned unchanged.

    Raises ``InvalidSetting`` for anything else.
    """
    if isinstance(counter, Counter):
        return counter
    family = family_of(model, format)
    if counter is None:
        return _counter(family, family.source, family.factor, family.own)
    if counter == "estimate":
        source = _ESTIMATE_DIGITS_APART if family.source.digits_apart else _ESTIMATE
        return _counter(family, source, family.factor * family.frame, own=False)
    if isinstance(counter, str) and counter in VOCABULARIES:
        return Counter(VOCABULARIES[counter], own=True)
    if callable(counter):
        default = counter_for(None, model=model, format=format)
        own = OwnFunction(counter, default)
        return Counter(own, own=True, signature_rate=family.signature_rate)
    raise InvalidSetting(
        f"counter={counter!r} is unknown: give 'o200k', 'estimate' or a function from text to int; "
        f"the other vocabularies are {', '.join(sorted(VOCABULARIES.keys() - {'o200k'}))}"
    )


def _counter(family: Family, source: Source, factor: float, own: bool) -> Counter:
    return Counter(
        source, factor, family.label, own, family.signature_rate, family.frame, family.call_tokens
    )
