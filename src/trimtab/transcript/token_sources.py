"""Where raw token counts come from: a vocabulary, a caller's function, or an estimate from bytes.

Vocabularies are those that ``splintr`` ships; each is loaded on its first count (20 to 100 ms, that
of Gemma 260).  Where ``splintr`` is missing, the estimator counts instead and ``Source.name`` says
so.  ``bench/counts.py`` compares each with the tokenizer of its family.
"""

from __future__ import annotations

import operator
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from trimtab import interruption
from trimtab.forking import Lock, loading
from trimtab.transcript.corrections import Correction

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
_OTHER_ASCII, _DOUBLE_SPACE, _DIGIT_APART = 505, 280, 1000
_CLASS_OF = bytes(
    next((i for i, (_, members, _) in enumerate(_CLASSES) if byte in members), len(_CLASSES))
    for byte in range(256)
)
_WEIGHTS = (*(weight for _, _, weight in _CLASSES), _OTHER_ASCII)
_WEIGHTS_DIGITS_APART = (*_WEIGHTS[:2], _DIGIT_APART, *_WEIGHTS[3:])


def estimate(text: str, digits_apart: bool = False) -> int:
    """Estimate o200k tokens from byte classes and add a quarter; at most the UTF-8 bytes.

    With that quarter the sum over a transcript was below the exact one in 3 of 449 transcripts
    (lowest 0.95 ×, median 1.27 ×).  For short, unusual texts it can still be 50 % too low.
    ``digits_apart``: for tokenizers that make one token of each digit.
    """
    raw = text.encode("utf-8", "surrogatepass")
    classes = raw.translate(_CLASS_OF)
    weights = _WEIGHTS_DIGITS_APART if digits_apart else _WEIGHTS
    weighed = sum(weight * classes.count(i) for i, weight in enumerate(weights))
    weighed += _DOUBLE_SPACE * raw.count(b"  ")
    at_least = (len(raw) + 15) // 16  # the longest runs of one token: 16 newlines
    return min(max(-(-weighed * 5 // 4000), at_least), len(raw))


_MAX_PROBLEM_CHARS = 120


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


class Source(ABC):
    """One way to count raw tokens; caches counts of longer texts and evicts the oldest first."""

    name = ""
    missing = False
    digits_apart = False
    """Whether each digit is a token."""
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

    def load(self) -> None:
        """Load what the first count would load, so that ``name`` and ``missing`` are final."""
        return None  # most have nothing to load

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


class Estimate(Source):
    """The byte-class estimator on its own."""

    name = "estimate"

    def __init__(self, digits_apart: bool = False) -> None:
        super().__init__()
        self.digits_apart = digits_apart
        if digits_apart:
            self.name = "estimate, digits apart"

    def measure(self, text: str) -> int:
        return estimate(text, self.digits_apart)


class Vocabulary(Source):
    """A vocabulary of splintr, or the estimator if that cannot be loaded.

    ``pretrained``: splintr's name for it.  ``composed``: the family's tokenizer brings a text into
    Unicode's form C first.  ``digits_apart``: whether it makes one token of each digit.
    """

    def __init__(
        self, name: str, pretrained: str, *, composed: bool = False, digits_apart: bool = False
    ) -> None:
        super().__init__()
        self.name, self._pretrained = name, pretrained
        self.digits_apart, self._composed = digits_apart, composed
        self._tokenizer: Any = None
        self._special: dict[str, list[str]] = {}
        self._has_cache, self._chars = False, 0

    def measure(self, text: str) -> int:
        tokenizer = self._tokenizer or self._loaded()
        if tokenizer is None:
            return estimate(text, self.digits_apart)
        if self._composed and not text.isascii():
            text = unicodedata.normalize("NFC", text)
        try:
            return self._exact(tokenizer, text)
        except UnicodeEncodeError:
            # Lone surrogates, as JavaScript clients cut them: each becomes one U+FFFD.
            data = text.encode("utf-16-le", "surrogatepass")
            return self._exact(tokenizer, data.decode("utf-16-le", "replace"))

    def load(self) -> None:
        self._loaded()

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
        if self._has_cache and self._chars > CACHE_MAX_CHARS:
            self._chars = 0
            tokenizer.clear_cache()
        # encode_flat makes no list of ints (80 against 57 MB/s), but reads special tokens in the
        # text as one token; a provider encodes them as ordinary text.
        for begin, names in self._special.items():
            # One character is found many times faster than two.
            if begin[1] in text and begin in text and any(name in text for name in names):
                return len(tokenizer.encode_ordinary(text))
        return len(tokenizer.encode_flat(text)) // 4

    def _loaded(self) -> Any:
        with loading:
            if self._tokenizer is None and not self.missing:
                try:
                    import splintr

                    tokenizer = splintr.Tokenizer.from_pretrained(self._pretrained)
                    for name in tokenizer.special_tokens():
                        self._special.setdefault(name[:2], []).append(name)
                    self._has_cache = tokenizer.family == "BPE"
                    self._tokenizer = tokenizer
                except Exception:  # no wheel, a broken one, or one without this vocabulary
                    self.missing = True
                    self.name = "estimate (splintr-rs cannot be loaded)"
            return self._tokenizer


class Corrected(Source):
    """The counts of a vocabulary, corrected by features of the text for a family that has no
    vocabulary of its own here."""

    def __init__(self, base: Vocabulary, correction: Correction) -> None:
        super().__init__()
        self._base, self._correction = base, correction
        self.digits_apart, self._ready = base.digits_apart, False
        self._named()

    def measure(self, text: str) -> int:
        if not text.isascii():
            text = unicodedata.normalize("NFC", text)
        if not self._ready:
            self.load()
        return self._correction.tokens(text, self._base.measure(text))

    def load(self) -> None:
        self._base.load()
        self.missing = self._base.missing
        self._named()
        self._ready = True

    def _named(self) -> None:
        self.name = f"{self._base.name}, corrected for {self._correction.name}"


class OwnFunction(Source):
    """A caller's function; texts that it fails to count go to the counter ``otherwise``."""

    def __init__(self, count: Callable[[str], int], otherwise: Callable[[str], int]) -> None:
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
        self.failures, self.problem = self.failures + 1, problem[:_MAX_PROBLEM_CHARS]
        return self._otherwise(text)
