"""Which pieces of which article go first: those that lose least for each token saved.

Knows articles, what each of their pieces is worth and costs, and the rule.  Does not know what is
written in place of what goes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from trimtab.strategies.base import Config
from trimtab.strategies.retrieval.article import Article, ArticleRule
from trimtab.strategies.retrieval.pieces import Piece, pieces
from trimtab.strategies.retrieval.relevance import Question, Written, ranked, relevance

GAP_TOKENS = 3
"""What ``[...]`` between two pieces takes at the most."""
BASE, SLOPE = 0.002, 0.01
"""Value lost per token of a piece: what cannot matter, and what each unit of relevance adds.
A text that is cut in half loses 0.002 to 0.02 a token, by its age and size."""


@dataclass
class Item:
    """One article with its pieces, what each is worth and costs, and which still stand."""

    article: Article
    pieces: Sequence[Piece]
    scores: Sequence[float]
    sizes: Sequence[int]
    kept: frozenset[int]
    repeated: bool

    @property
    def tokens(self) -> int:
        return sum(self.sizes)

    @property
    def best(self) -> float:
        return max(self.scores, default=0.0)


def read_items(found: Sequence[Article], config: Config) -> list[Item]:
    """The articles of one text in pieces, each piece with its worth for the question."""
    cut = [pieces(article.content) for article in found]
    texts = [
        (a.title, [(a.content[p.start : p.end], p.heading) for p in of])
        for a, of in zip(found, cut, strict=True)
    ]
    question = Question.of(config.question, config.query)
    scores = relevance(texts, question, _ranks(texts, config), config.articles.ranker_share)
    seen: set[str] = set()
    items = []
    for article, of, score, (_, spoken) in zip(found, cut, scores, texts, strict=True):
        sizes = [config.count(text) for text, _ in spoken]
        repeated = article.content in seen or config.repeated(article.content)
        seen.add(article.content)
        items.append(Item(article, of, score, sizes, frozenset(range(len(of))), repeated))
    return items


def _ranks(texts: Sequence[Written], config: Config) -> Sequence[float] | None:
    """What the rule's ranker says of all pieces in order; None without one, or where it fails."""
    rank = config.articles.ranker
    if rank is None:
        return None
    try:
        spoken = tuple(text for _, of in texts for text, _ in of)
        return ranked(rank, config.question or config.query, spoken)
    except Exception as error:  # a model's fault must never break a request (law 10)
        said = f"{type(error).__name__}: {error}"
        config.warn(f"articles by shared words, their ranker failed: {said}")
        return None


@dataclass(frozen=True)
class Step:
    """What of one article stays, and what is lost for each token that goes."""

    item: int
    kept: frozenset[int]
    tokens: int
    lost: float


def worth_of(item: Item, which: Iterable[int]) -> float:
    """What these pieces of an article are worth; nothing where it stands elsewhere too."""
    if item.repeated:
        return 0.0
    return sum(item.sizes[n] * (BASE + SLOPE * item.scores[n]) for n in sorted(which))


def in_order(items: Sequence[Item], rule: ArticleRule) -> Iterator[Step]:
    """Every step of every article, those that lose least first; the best ``keep`` have none."""
    ranked = sorted(range(len(items)), key=lambda n: (-items[n].best, n))
    if rule.order == "position":
        known = all(item.article.score is not None for item in items)
        ranked.sort(key=lambda n: (-(items[n].article.score or 0.0) * known, n))
    ways = [list(_steps(n, items[n], rule)) for n in reversed(ranked[rule.keep :])]
    if rule.order == "position":
        for depth in range(max(map(len, ways), default=0)):
            yield from (way[depth] for way in ways if depth < len(way))
    else:
        prices = (accumulate((s.lost / max(s.tokens, 1) for s in way), max) for way in ways)
        rows = (
            [(price, n, step) for price, step in zip(of, way, strict=True)]
            for n, (of, way) in enumerate(zip(prices, ways, strict=True))
        )
        yield from (step for _, _, step in heapq.merge(*rows, key=lambda row: row[:2]))


def _steps(number: int, item: Item, rule: ArticleRule) -> Iterator[Step]:
    kept = item.kept
    best = sorted(kept, key=lambda n: (-item.scores[n], n))
    for share in () if item.repeated else rule.shares:
        room, chosen = int(item.tokens * share) - GAP_TOKENS, set[int]()
        for piece in best:
            gaps = 1 - (piece - 1 in chosen) - (piece + 1 in chosen)
            if (cost := item.sizes[piece] + GAP_TOKENS * gaps) <= room:
                chosen.add(piece)
                room -= cost
        if chosen and len(chosen) < len(kept):
            yield _step(number, item, kept, frozenset(chosen))
            kept = frozenset(chosen)
    yield _step(number, item, kept, frozenset())


def _step(number: int, item: Item, before: frozenset[int], kept: frozenset[int]) -> Step:
    gone = before - kept
    return Step(number, kept, sum(item.sizes[n] for n in gone), worth_of(item, gone))
