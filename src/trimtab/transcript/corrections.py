"""Corrects the token counts of one vocabulary for a family that counts otherwise, by features of
the text.

For families whose vocabulary no package ships: a weight for each character of a kind, added to
a share of the counted tokens.  Each term is a sum over characters, so that the pieces of a text
count together what the text counts.  ``bench/fit_counts.py`` prints the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import NamedTuple

_ASCII = bytes(range(0x80))
_UPPER = bytes(range(0x41, 0x5B))
_LOWER = bytes(range(0x61, 0x7B))
_SIGNS = bytes(byte for byte in range(0x21, 0x7F) if byte not in _UPPER + _LOWER + b"0123456789")
_CAPITAL = bytes(0x41 if byte in _UPPER else 0x20 for byte in range(256))


def _of(members: bytes) -> Callable[[bytes], int]:
    """Counts the bytes that are in ``members``."""
    return lambda raw: len(raw) - len(raw.translate(None, members))


def _led(first: int, last: int) -> Callable[[bytes], int]:
    """Counts the characters whose first UTF-8 byte is from ``first`` to ``last``."""
    return _of(bytes(range(first, last + 1)))


def _thai(raw: bytes) -> int:
    return raw.count(b"\xe0\xb8") + raw.count(b"\xe0\xb9")


def _kana(raw: bytes) -> int:
    return raw.count(b"\xe3\x81") + raw.count(b"\xe3\x82") + raw.count(b"\xe3\x83")


FEATURES: Mapping[str, Callable[[bytes], int]] = {
    "upper": _of(_UPPER),
    "capital": lambda raw: len(raw.translate(_CAPITAL).split()),
    "lower": _of(_LOWER),
    "sign": _of(_SIGNS),
    "newline": _of(b"\n"),
}
"""Counts of one kind of character in a text's UTF-8 bytes; "capital": runs of upper case."""
OTHER_FEATURES: Mapping[str, Callable[[bytes], int]] = {
    "Latin": _led(0xC2, 0xCD),
    "Vietnamese": lambda raw: raw.count(b"\xe1\xba") + raw.count(b"\xe1\xbb"),
    "Greek": _led(0xCE, 0xCF),
    "Cyrillic": _led(0xD0, 0xD3),
    "Armenian": _led(0xD4, 0xD5),
    "Hebrew": _led(0xD6, 0xD7),
    "Arabic": _led(0xD8, 0xDB),
    "Indic": lambda raw: _led(0xE0, 0xE0)(raw) - _thai(raw),
    "Thai": _thai,
    "Georgian": lambda raw: raw.count(b"\xe1\x83"),
    "symbol": _led(0xE2, 0xE2),
    "kana": _kana,
    "Han": lambda raw: _led(0xE3, 0xE9)(raw) - _kana(raw),
    "Hangul": _led(0xEA, 0xED),
    "emoji": _led(0xF0, 0xF4),
}
"""The same among the bytes outside ASCII."""


class Correction(NamedTuple):
    """``share`` of each token of the base vocabulary and ``weights`` by feature; ``name``: of what
    family, with the revision of the weights, as both are part of a counter's version."""

    name: str
    share: float
    weights: Mapping[str, float]

    def tokens(self, text: str, base: int) -> int:
        """Tokens of a text for which the base vocabulary counts ``base``."""
        raw = text.encode("utf-8", "surrogatepass")
        total = self.share * base
        for feature, count in FEATURES.items():
            if weight := self.weights.get(feature):
                total += weight * count(raw)
        if not text.isascii():
            raw = raw.translate(None, _ASCII)
            for feature, count in OTHER_FEATURES.items():
                if weight := self.weights.get(feature):
                    total += weight * count(raw)
        return max(ceil(total), 1) if text else 0
