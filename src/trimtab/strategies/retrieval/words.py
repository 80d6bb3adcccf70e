"""What two texts can have in common, in any script: whole words, stems, and pairs of characters.

Knows which scripts put no spaces between words.  Does not know any language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

STEM = 5
"""A longer word also counts by its first letters: ``invade`` and ``invaders`` share ``invad``."""

_MARKS = "\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
_INDIC = "\u0900-\u0963\u0966-\u0dff"  # letters and vowel signs, which \w has only in part
_WORD = re.compile(rf"(?:[^\W_]|[{_INDIC}])(?:[^\W_]|[{_MARKS}{_INDIC}])*")
_UNSPACED = (  # Thai, Lao, Myanmar, Khmer, kana, Han; Hangul joins its particles to the word
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\u1100-\u11ff\uac00-\ud7af\U00020000-\U0003ffff"
)
_RUNS = re.compile(rf"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_HAS_UNSPACED = re.compile(rf"[{_UNSPACED}]").search
_JOINED = re.compile("[\u0590-\u08ff\u0900-\u0dff]")  # Arabic, Hebrew, Indic: affixes on both sides


def terms(text: str) -> Iterator[str]:
    """The terms of a text, repeats included.

    >>> list(terms("Which tribes?"))
    ['which', 'tribes', 'tribe~']
    >>> list(terms("顶级联赛"))
    ['顶级', '级联', '联赛']
    """
    for word in _WORD.findall(text.casefold()):
        if not word.isascii() and _HAS_UNSPACED(word):
            for run in _RUNS.findall(word):
                if _HAS_UNSPACED(run):
                    yield from (run[i : i + 2] for i in range(max(1, len(run) - 1)))
                else:
                    yield from _spaced(run)
        else:
            yield from _spaced(word)


def _spaced(word: str) -> Iterator[str]:
    yield word
    if len(word) > STEM:
        yield word[:STEM] + "~"
    if len(word) > 4 and not word.isascii() and _JOINED.match(word):
        yield from ("~" + word[i : i + 4] for i in range(1, len(word) - 3))
