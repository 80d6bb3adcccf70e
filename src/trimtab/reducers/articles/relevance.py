"""Scores how relevant each piece of some articles is to a question.

A score counts the words shared with the question, rare words more, and adds a share of the scores
of neighbouring pieces.  A ranker's scores can replace or join the words.  The weights were chosen
on 54 recorded retrieval conversations in seven languages.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite, log

from trimtab.reducers.articles.article import Ranker

QUERY = 0.5
"""A word of the tool call's query weighs half a word of the user's question."""
NEXT, NEXT_BUT_ONE = 0.5, 0.25
"""Shares of a piece's match that its neighbours get: the answer is often next to it."""
SECTION, ARTICLE = 1.0, 0.5
"""Shares of the match of the heading above, and of the article's best piece, added to a piece."""
FIRST, LEADING = 0.02, 0.01
"""Bonus for earlier articles and for earlier pieces; it decides only where nothing matches."""
ASKED_FOR = 0.2
"""Bonus of a matching piece that has a number or a name, where the question asks for one.  It
decides between equal matches; on the recorded conversations it changed nothing."""
RANKER = 0.5
"""The ranker's part of a piece's own match; the rest is shared words.  On 37 conversations with an
embedding model .35 kept one whole passage more: too few to choose by."""

_ASKS_NUMBER = re.compile(
    r"\b(?:how (?:many|much|long|old|far|often|big|large)|when|what (?:year|date|percent)"
    r"|which year|percent(?:age)?"
    r"|wie ?viele?|wann|welche[ms] jahr|prozent|cu[áa]nt[oa]s?|cu[áa]ndo|qu[ée] año"
    r"|combien|quand|quanti|quando|quantos?|сколько|когда|каком году|процент|πόσ\w+|πότε|kaç"
    r"|ne zaman|bao nhiêu|khi nào|câ[țţt]i|când|كم|متى|कितन\w+|कब)\b"
    r"|多少|几[个年月日]|幾|哪(?:一)?年|何年|何人|いつ|いくつ|몇|언제|เท่าไร|กี่|เมื่อไร|เมื่อใด"
)
_ASKS_NAME = re.compile(
    r"\b(?:who|whom|whose|where|wer|wen|wem|wo|qui|où|quién(?:es)?|dónde|chi|dove|quem|onde|кто"
    r"|кого|где|ποιος|πού|kim|nerede|ai là|cine|unde)\b"
)
_NUMBER = re.compile(r"\d|[一二三四五六七八九十百千万億]{2}")
_NAME = re.compile(r"(?<=[^.!?\s] )[^\W\d_a-zа-яα-ωß-ÿ]\w+")


@dataclass(frozen=True)
class Question:
    """Weighted search terms, and whether the question asks for a number or a name."""

    weights: dict[str, float]
    number: bool = False
    name: bool = False

    @classmethod
    def of(cls, question: str, query: str = "") -> Question:
        """A question from the user's words and from the query of the search call."""
        weights = dict.fromkeys(terms(query), QUERY)
        weights.update(dict.fromkeys(terms(question), 1.0))
        lower = question.casefold()
        return cls(weights, bool(_ASKS_NUMBER.search(lower)), bool(_ASKS_NAME.search(lower)))


TitledSegments = tuple[str, Sequence[tuple[str, bool]]]
"""An article: its title, and its pieces with whether each is a heading."""


@lru_cache(maxsize=64)
def ranked(rank: Ranker, question: str, texts: tuple[str, ...]) -> tuple[float, ...]:
    """The ranker's score of each text; cached, so that a ranker runs once per block.

    Raises ValueError unless it returns one finite number per text.
    """
    scores = tuple(round(float(number), 6) for number in rank(question, texts))
    if len(scores) != len(texts) or not all(map(isfinite, scores)):
        raise ValueError(
            f"the ranker gave {len(scores)} numbers for {len(texts)} texts, or not all finite"
        )
    return scores


def score_segments(
    articles: Sequence[TitledSegments],
    question: Question,
    ranks: Sequence[float] | None = None,
) -> list[list[float]]:
    """A score for each piece of each article, about 0 to 4; comparable within one question.

    A piece's own match is the share of the question's words that it has, rare words weighing more
    (inverse document frequency over all pieces, Robertson and Spärck Jones 1976).  Shares of the
    neighbours', the heading's and the article's matches are added.  ``ranks``: the ranker's score
    of each piece, in order.
    """
    wanted = question.weights
    terms_by_article = [
        [{term for term in terms(text) if term in wanted} for text, _ in pieces]
        for _, pieces in articles
    ]
    sets = [terms_in for pieces in terms_by_article for terms_in in pieces]
    seen = Counter(term for terms_in in sets for term in terms_in)
    rare = {
        term: wanted[term] * log(1 + (len(sets) - number + 0.5) / (number + 0.5))
        for term, number in sorted(seen.items())
    }
    total = sum(rare.values()) or 1.0
    if ranks is not None:  # beside a ranker, words weigh less where many of them occur nowhere
        unseen = sum(weight for term, weight in sorted(wanted.items()) if term not in seen)
        total += unseen * log(1 + (len(sets) + 0.5) / 0.5)
    scores, given = [], iter(ranks or ())
    for place, (article, terms_of) in enumerate(zip(articles, terms_by_article, strict=True)):
        own = [sum(sorted(rare[term] for term in hits)) / total for hits in terms_of]
        if ranks is not None:
            own = [RANKER * next(given) + (1 - RANKER) * words for words in own]
        titled = {term for term in terms(article[0]) if term in rare}
        title = sum(sorted(rare[term] for term in titled)) / total
        first = FIRST * (1 - place / len(articles))
        scores.append(_lent(article[1], own, first, title, question))
    return scores


def _lent(
    pieces: Sequence[tuple[str, bool]],
    own: list[float],
    first: float,
    title: float,
    question: Question,
) -> list[float]:
    best = max([*own, title], default=0.0)
    section, scores = 0.0, []
    for number, (text, heading) in enumerate(pieces):
        around = own[max(0, number - 1) : number] + own[number + 1 : number + 2]
        further = own[max(0, number - 2) : max(0, number - 1)] + own[number + 2 : number + 3]
        near = own[number] + NEXT * sum(around) + NEXT_BUT_ONE * sum(further)
        if near:
            asked = (question.number and _NUMBER.search(text)) or (
                question.name and _NAME.search(text)
            )
            near *= 1 + ASKED_FOR * bool(asked)
        section = own[number] if heading else section
        leading = LEADING * (1 - number / len(pieces))
        scores.append(round(near + SECTION * section + ARTICLE * best + first + leading, 6))
    return scores


# --- terms to compare two texts by, in any script: words, stems, pairs of characters ---

STEM = 5
"""Of longer words the first letters are a term too: ``invade`` and ``invaders`` share ``invad``."""

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
