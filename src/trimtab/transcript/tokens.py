"""Token counts of texts: exact o200k counts, scaled to the tokenizer of the billed model.

``splintr`` (45 ms to load) is loaded on the first count; where it is missing, a byte-class
estimator counts instead and ``Counter.name`` says so.

Measured by ``bench/growth.py``.
"""

from __future__ import annotations

import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

from trimtab import interruption
from trimtab.errors import InvalidSetting
from trimtab.forking import Lock, loading

# Overheads in o200k tokens; put them through ``Counter.scaled``.
MESSAGE_TOKENS = 4
"""Role and delimiters of one message."""
CALL_TOKENS = 10
"""Frame of one tool call or one tool result."""
IMAGE_TOKENS = 1600
"""One image, whatever its base64: Anthropic's (width × height) / 750 at its 1.15 megapixels."""
DOCUMENT_TOKENS = 1600
"""Least cost of a document; a long one costs more, by its size."""
SEALED_CHARS_PER_TOKEN = 5
"""For encrypted payloads that the provider decrypts: redacted thinking, encrypted content."""

CLAUDE_LAST_OF_OLD = (4, 6)
CLAUDE_OLD = 1.5
"""Claude 3 … 4.6 against o200k: billed growth was 1.24 × (median of 183 sessions, 95th percentile
1.45); 1.5 covers 98 % of them."""
CLAUDE_NEW = 1.75
"""Claude 4.7 and later, visible text only: 1.59 × (median of 442 steps without thinking); 1.75
covers 82 % of the steps."""
SIGNATURE_TOKENS_PER_CHAR = 0.28
"""Claude 4.7 and later bill hidden thinking with the block that carries its signature: 0.24
tokens a character beyond the text (median of 452 steps), the rest is margin.  Text and signatures
together cover 94 % of 35 sessions, text alone 6 %."""

MEMO_MIN_CHARS = 128
MEMO_MAX_CHARS = 32_000_000
PIECE_CHARS = 250_000
"""Characters that are counted at once: splintr takes 0.2 s for a megabyte without a space, in which
no other thread runs and nothing can be interrupted."""
_LINE_START = re.compile(r"\n(?=[A-Za-z])")
CACHE_MAX_CHARS = 32_000_000
"""Characters counted before splintr's cache is cleared: splintr bounds it by the number of pieces,
not by bytes, and one piece can be a megabyte of base64."""

# Thousandths of an o200k token a byte, fitted on code, logs, JSON, base64, listings and prose
# (English, Chinese, Russian).
_CLASSES: tuple[tuple[str, range, int], ...] = (
    ("lower case", range(0x61, 0x7B), 220),
    ("upper case", range(0x41, 0x5B), 975),
    ("digit", range(0x30, 0x3A), 746),
    ("space", range(0x20, 0x21), -10),
    ("newline", range(0x0A, 0x0B), -260),
    ("first of 2 bytes", range(0xC0, 0xE0), 275),
    ("first of 3 bytes", range(0xE0, 0xF0), 756),
    ("first of 4 bytes", range(0xF0, 0x100), 3430),
    ("further byte", range(0x80, 0xC0), 0),
)
_OTHER_ASCII, _DOUBLE_SPACE = 505, 280
_CLASS_OF = bytes(
    next((i for i, (_, members, _) in enumerate(_CLASSES) if byte in members), len(_CLASSES))
    for byte in range(256)
)
_WEIGHTS = (*(weight for _, _, weight in _CLASSES), _OTHER_ASCII)


def estimate(text: str) -> int:
    """Estimate o200k tokens from byte classes and add a quarter; at most the UTF-8 bytes.

    With that quarter the sum over a transcript was below the exact one in 3 of 449 transcripts
    (lowest 0.95 ×, median 1.27 ×).  For short, unusual texts it can still be 50 % too low.
    """
    raw = text.encode("utf-8", "surrogatepass")
    classes = raw.translate(_CLASS_OF)
    weighed = sum(weight * classes.count(i) for i, weight in enumerate(_WEIGHTS))
    weighed += _DOUBLE_SPACE * raw.count(b"  ")
    at_least = (len(raw) + 15) // 16  # the longest runs of one token: 16 newlines
    return min(max(-(-weighed * 5 // 4000), at_least), len(raw))


_MOST_PROBLEM_CHARS = 120


def pieces(text: str) -> Iterator[str]:
    """A long text in pieces, cut where a line begins with a letter, if there is such a place near
    the end of a piece: no token of o200k reaches across it."""
    start = 0
    while start < len(text):
        end = start + PIECE_CHARS
        if end < len(text):
            lines = list(_LINE_START.finditer(text, end - PIECE_CHARS // 10, end))
            end = lines[-1].end() if lines else end
        yield text[start:end]
        start = end


class _Source(ABC):
    """One way to count raw tokens; caches counts of longer texts and evicts the oldest first."""

    name = ""
    missing = False
    failures = 0
    problem = ""
    """The last failure, as text."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._known_chars = 0
        self._lock = Lock()

    @abstractmethod
    def measure(self, text: str) -> int:
        """Raw tokens of ``text``, counted now."""

    def __call__(self, text: str) -> int:
        chars = len(text)
        if chars < MEMO_MIN_CHARS:
            return self.measure(text)
        tokens = self._known.get(text)
        if tokens is None:
            tokens = self.measure(text)
            if chars <= MEMO_MAX_CHARS // 4:
                self._keep(text, tokens)
        return tokens

    def _keep(self, text: str, tokens: int) -> None:
        with self._lock:
            if text not in self._known:
                self._known[text] = tokens
                self._known_chars += len(text)
            while self._known_chars > MEMO_MAX_CHARS:
                oldest = next(iter(self._known))
                del self._known[oldest]
                self._known_chars -= len(oldest)


class _Estimate(_Source):
    """The byte-class estimator on its own."""

    name = "estimate"

    def measure(self, text: str) -> int:
        return estimate(text)


class _O200k(_Source):
    """The o200k vocabulary of splintr-rs, or the estimator if that cannot be loaded."""

    name = "o200k"

    def __init__(self) -> None:
        super().__init__()
        self._tokenizer: Any = None
        self._chars = 0

    def measure(self, text: str) -> int:
        tokenizer = self._tokenizer or self._load()
        if tokenizer is None:
            return estimate(text)
        try:
            return self._exact(tokenizer, text)
        except UnicodeEncodeError:
            # Lone surrogates, as JavaScript clients cut them: each becomes one U+FFFD.
            data = text.encode("utf-16-le", "surrogatepass")
            return self._exact(tokenizer, data.decode("utf-16-le", "replace"))

    def _exact(self, tokenizer: Any, text: str) -> int:
        if len(text) <= PIECE_CHARS:
            return self._encoded(tokenizer, text)
        tokens = 0
        for piece in pieces(text):
            interruption.check()
            tokens += self._encoded(tokenizer, piece)
        return tokens

    def _encoded(self, tokenizer: Any, text: str) -> int:
        self._chars += len(text)
        if self._chars > CACHE_MAX_CHARS:
            self._chars = 0
            tokenizer.clear_cache()
        # encode_flat makes no list of ints (80 against 57 MB/s), but reads special tokens in the
        # text as one token; a provider encodes them as ordinary text.
        if "|" in text and "<|" in text:  # one character is found many times faster than two
            return len(tokenizer.encode_ordinary(text))
        return len(tokenizer.encode_flat(text)) // 4

    def _load(self) -> Any:
        with loading:
            if self._tokenizer is None and not self.missing:
                try:
                    import splintr

                    self._tokenizer = splintr.Tokenizer.from_pretrained("o200k_base")
                except Exception:  # no wheel, a broken one, or one without this vocabulary
                    self.missing = True
                    self.name = "estimate (splintr-rs cannot be loaded)"
            return self._tokenizer


class _Own(_Source):
    """A caller's function; texts that it fails to count go to the counter ``otherwise``."""

    def __init__(self, count: Callable[[str], int], otherwise: Counter) -> None:
        super().__init__()
        self.name = f"custom ({getattr(count, '__name__', type(count).__name__)})"
        self._count = count
        self._otherwise = otherwise

    def measure(self, text: str) -> int:
        try:
            answer = self._count(text)
            tokens = -1 if isinstance(answer, bool) else operator.index(answer)
            problem = f"it gave {answer!r}"
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic in Rust (tiktoken on 1 MB of spaces)
            tokens, problem = -1, f"{type(error).__name__}: {error}"
        if tokens >= 0:
            return tokens
        self.failures, self.problem = self.failures + 1, problem[:_MOST_PROBLEM_CHARS]
        return self._otherwise(text)


@dataclass(frozen=True, eq=False)
class Counter:
    """Counts the tokens of a text as ``ceil(raw × factor)``; never raises, takes linear time.

    ``source`` counts raw tokens; ``factor`` scales them to what the models named in ``label`` bill;
    ``own``: the source is those models' own tokenizer.
    """

    source: _Source
    factor: float = 1.0
    label: str = ""
    own: bool = False
    signature_rate: float = 0.0

    def __call__(self, text: str) -> int:
        """Tokens of ``text``; 0 for ``""``."""
        return self.scaled(self.source(text))

    def scaled(self, raw_tokens: int) -> int:
        """Scale an overhead or fixed cost in o200k tokens by the same factor, rounded up."""
        return raw_tokens if self.factor == 1.0 else ceil(raw_tokens * self.factor)

    def signature(self, chars: int) -> int:
        """Tokens billed for hidden thinking whose signature has ``chars`` characters."""
        return ceil(chars * self.signature_rate)

    @property
    def name(self) -> str:
        """Readable name: ``"o200k×1.5 (claude up to 4.6)"``; final after the first count."""
        factor = "" if self.factor == 1.0 else f"×{self.factor:g}"
        return f"{self.source.name}{factor}" + (f" ({self.label})" if self.label else "")

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


_o200k, _estimate = _O200k(), _Estimate()

_CLAUDE = re.compile(r"(?<![a-z])(?:claude|sonnet|opus|haiku|fable|mythos)")
_VERSION = re.compile(r"(?<!\d)(\d{1,2})(?:[.-](\d{1,2}))?(?!\d)")  # a date has more digits
_O200K_MODELS = re.compile(
    r"(?<![a-z0-9])(?:gpt-(?:4o|4\.1|4\.5|[5-9]|oss)|chatgpt-4o|codex|o[1-9](?![a-z0-9]))"
)
_OTHER_MODELS = re.compile(
    r"(?<![a-z])(?:gpt|chatgpt|codex|gemini|gemma|llama|[a-z]*stral|mixtral|qwen|qwq|deepseek|kimi"
    r"|glm|minimax|grok|nova|titan|command|jamba|nemotron|phi)"
)


def _factor_for(model: str | None, format: str) -> tuple[float, str, float]:
    """Factor, label and signature rate; the highest factor for a Claude without a version."""
    new = (CLAUDE_NEW, "claude from 4.7", SIGNATURE_TOKENS_PER_CHAR)
    name = (model or "").lower()
    if claude := _CLAUDE.search(name):
        version = _VERSION.search(name, claude.end())
        if version and (int(version[1]), int(version[2] or 0)) <= CLAUDE_LAST_OF_OLD:
            return CLAUDE_OLD, "claude up to 4.6", 0.0
        return new
    known = _O200K_MODELS.search(name) or _OTHER_MODELS.search(name)
    if format in ("anthropic", "bedrock") and not known:
        return new[0], "model unknown, taken as claude from 4.7", new[2]
    return 1.0, "", 0.0


def counter_for(
    counter: str | Callable[[str], int] | Counter | None, *, model: str | None, format: str
) -> Counter:
    """The counter for a model in a format.

    None: o200k, which is exact for OpenAI's models since gpt-4o.  For Claude it is multiplied by
    the factor of the generation in the name (``us.anthropic.claude-…``, ``anthropic/claude-…``,
    ``claude-…@date`` too); for an unknown name by the highest factor in formats "anthropic" and
    "bedrock", else by 1.0.  "o200k": factor 1.0 for every model.  "estimate": byte classes instead
    of the vocabulary, same factors as None.  A callable is used as it is; for a text where it
    raises or does not return a whole number ≥ 0, the default counts.  A ``Counter`` is returned
    unchanged.

    Raises ``InvalidSetting`` for anything else.
    """
    if isinstance(counter, Counter):
        return counter
    factor, label, signature_rate = _factor_for(model, format)
    if counter is None:
        own = bool(_O200K_MODELS.search((model or "").lower())) and factor == 1.0
        return Counter(_o200k, factor, label, own, signature_rate)
    if counter == "o200k":
        return Counter(_o200k, own=True)
    if counter == "estimate":
        return Counter(_estimate, factor, label, False, signature_rate)
    if callable(counter):
        default = counter_for(None, model=model, format=format)
        return Counter(_Own(counter, default), own=True, signature_rate=signature_rate)
    raise InvalidSetting(
        f"counter={counter!r} is unknown: give 'o200k', 'estimate' or a function from text to int"
    )
