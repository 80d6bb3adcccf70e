"""Articles that a search gave: the least relevant shortened first, title and URL always kept.

Knows lists of articles, a question and how well each piece answers it.  Does not know how lists
are spelled, which other results there are, or how many tokens have to go.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

from trimtab.model import Block
from trimtab.strategies.base import Ask, Config, Offer, utf8_bytes
from trimtab.strategies.marker import recall_call
from trimtab.strategies.retrieval.article import Article, ArticleRule, written
from trimtab.strategies.retrieval.json_lists import json_articles
from trimtab.strategies.retrieval.pieces import Piece, joined, pieces
from trimtab.strategies.retrieval.relevance import Question, relevance
from trimtab.strategies.retrieval.text_lists import text_articles

LEAST_BYTES = 400
"""A list whose articles are all shorter is a table, not a list of articles."""
STEP = 1 / 20
"""Share of the block that a level takes away at the least, so that levels are few."""
GAP_TOKENS = 3
"""What ``[...]`` between two pieces takes at the most."""
MOST_LOSS = 0.8
"""With titles and URLs alone: less than an excerpt of that size, which has not even them."""
BASE, SLOPE = 0.002, 0.01
"""Value lost per token of a piece: what cannot matter, and what each unit of relevance adds.
A text that is cut in half loses 0.002 to 0.02 a token, by its age and size."""


def read_articles(text: str, rule: ArticleRule) -> list[Article]:
    """The articles of a text that are long enough to shorten; none where it is no list of them."""
    found = all_articles(text, rule)
    return [article for article in found if utf8_bytes(article.content) >= LEAST_BYTES]


def all_articles(text: str, rule: ArticleRule) -> list[Article]:
    """The articles of a text, short ones too."""
    found = json_articles(text, rule.list_keys)
    if not found and text[:64].lstrip()[:1] not in ("{", "["):
        found = text_articles(text)
    if not found and text[:1] == "[" and text[1:2].isdigit():  # "[1] …" is not JSON
        found = text_articles(text)
    return found


def articles(block: Block, config: Config) -> Iterator[Offer]:
    """Each level takes more from the articles that matter least.

    First what stands in another result too; then, article by article, ``rule.shares`` of its
    tokens: the pieces that match the question best, in their order, ``[...]`` between them; last
    title and URL alone.  An article that says it is compressed is left as it is.
    """
    if block.kind != "result" or len(block.text) < LEAST_BYTES:
        return
    rule = config.articles
    found = read_articles(block.text, rule)
    if not found:
        return
    able = [
        item for item in _read(found, config)
        if not item.article.compressed and item.tokens >= rule.least_tokens
    ]  # fmt: skip
    if able:
        yield from _levels(block.text, able, config)


@dataclass
class _Item:
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


def _read(found: Sequence[Article], config: Config) -> list[_Item]:
    cut = [pieces(article.content) for article in found]
    texts = [
        (a.title, [(a.content[p.start : p.end], p.heading) for p in of])
        for a, of in zip(found, cut, strict=True)
    ]
    scores = relevance(texts, Question.of(config.question, config.query))
    seen: set[str] = set()
    items = []
    for article, of, score, (_, spoken) in zip(found, cut, scores, texts, strict=True):
        sizes = [config.count(text) for text, _ in spoken]
        repeated = article.content in seen or config.repeated(article.content)
        seen.add(article.content)
        items.append(_Item(article, of, score, sizes, frozenset(range(len(of))), repeated))
    return items


@dataclass(frozen=True)
class _Step:
    """What of one article stays, and what is lost for each token that goes."""

    item: int
    kept: frozenset[int]
    tokens: int
    lost: float


def _levels(text: str, items: list[_Item], config: Config) -> Iterator[Offer]:
    whole = sum(item.tokens for item in items)
    worth = sum(_worth(item, item.kept) for item in items)
    gone, lost, unsaid, price = 0, 0.0, 0, 0.0
    steps = list(_order(items, config.articles))
    for number, step in enumerate(steps):
        items[step.item] = replace(items[step.item], kept=step.kept)
        gone, unsaid = gone + step.tokens, unsaid + step.tokens
        lost, price = lost + step.lost, price + step.lost
        if unsaid < whole * STEP and number + 1 < len(steps):
            continue
        share = round(MOST_LOSS * lost / worth, 3) if worth else MOST_LOSS
        reduced = tuple(item for item in items if len(item.kept) < len(item.pieces))
        reduced = tuple(sorted(reduced, key=lambda item: item.article.start))
        why = f"{len(reduced)} of {len(items)} articles shortened, least relevant first"
        with_answers = partial(_shown, text, reduced, config)
        yield Offer(
            "replace", with_answers(()), share, "articles", why,
            _price(step, price / max(unsaid, 1), config), _asks(reduced, config), with_answers,
        )  # fmt: skip
        unsaid, price = 0, 0.0


def _price(step: _Step, lost: float, config: Config) -> float:
    """By relevance; where results go by age, before everything else and in that order."""
    newest_first = config.articles.newest_first
    if newest_first is None:
        return round(lost, 9)
    age = config.age if newest_first else 1 - config.age
    return round(1e-5 * (1 + age) * (1 if step.kept else 10), 9)


def _worth(item: _Item, which: Iterable[int]) -> float:
    if item.repeated:
        return 0.0
    return sum(item.sizes[n] * (BASE + SLOPE * item.scores[n]) for n in sorted(which))


def _order(items: Sequence[_Item], rule: ArticleRule) -> Iterator[_Step]:
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


def _steps(number: int, item: _Item, rule: ArticleRule) -> Iterator[_Step]:
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


def _step(number: int, item: _Item, before: frozenset[int], kept: frozenset[int]) -> _Step:
    gone = before - kept
    return _Step(number, kept, sum(item.sizes[n] for n in gone), _worth(item, gone))


def _asks(reduced: Sequence[_Item], config: Config) -> tuple[Ask, ...]:
    """One for each article of which something stays: to say as much in as many tokens."""
    return tuple(
        Ask(
            item.article.title, item.article.url, item.article.content, config.question,
            sum(item.sizes[n] for n in sorted(item.kept)),
        )
        for item in reduced if item.kept and not item.repeated
    )  # fmt: skip


def _shown(text: str, reduced: Sequence[_Item], config: Config, answers: Sequence[str]) -> str:
    """The block with these articles shortened; the first of them says how to get the rest."""
    fetch = recall_call(text, config)
    advice = f"; {fetch} has all" if fetch else "; run the tool again to see them"
    given, contents = iter(answers), []
    for item in reduced:
        content, chars = item.article.content, len(item.article.content)
        if item.repeated:
            new = f"[{chars:,} chars, given more than once, left out here{advice}]"
        elif not item.kept:
            new = f"[{chars:,} chars left out to fit{advice}]"
        elif answer := next(given, ""):
            new = f"[a model's summary of {chars:,} chars{advice}] {answer}"
        else:
            new = joined(content, item.pieces, item.kept)
            new = f"{new.rstrip()} [of {chars:,} chars{advice}]"
        contents.append((item.article, new))
        advice = ""
    return written(text, contents)
