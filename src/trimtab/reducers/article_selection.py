"""Shortens the articles of a search result, the least relevant first; title and URL are kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from trimtab.reducers.articles.article import Article, ArticleRule, write_articles
from trimtab.reducers.articles.json_lists import json_articles
from trimtab.reducers.articles.relevance import Question, TitledSegments, ranked, score_segments
from trimtab.reducers.articles.text_lists import text_articles
from trimtab.reducers.base import (
    Answer,
    Ask,
    Config,
    Offer,
    Shortened,
    recall_call,
    utf8_bytes,
)
from trimtab.reducers.text_boundaries import at_or_before
from trimtab.transcript.model import Block

STEP = 1 / 40
"""Least share of the articles' tokens that a level removes, so that there are few levels; one
article of 21 that is cut to 30 % is more."""
MAX_LOSS = 0.8
"""Loss if only titles and URLs are kept; less than that of an excerpt of the same size, which may
not even have them."""


def articles(block: Block, config: Config) -> Iterator[Offer]:
    """Offers that shorten the articles of a search result, the least relevant first.

    First articles that another result repeats are removed; then, article by article, each is cut
    to the ``rule.shares`` of its tokens: the pieces that match the question best, in their order,
    with ``[...]`` between them; last to title and URL.  An article of which at most the largest of
    these shares is left is marked as compressed; one with the mark is not changed.
    """
    if block.kind != "result" or len(block.text) < MIN_BYTES:
        return
    rule = config.articles
    candidates = long_articles(block.text, rule)
    if not candidates:
        return
    able = [
        item for item in rank_articles(candidates, config)
        if not item.article.compressed and item.tokens >= rule.min_tokens
    ]  # fmt: skip
    if able:
        yield from _levels(block.text, able, config)


def _levels(text: str, items: list[RankedArticle], config: Config) -> Iterator[Offer]:
    whole = sum(item.tokens for item in items)
    every = sum(value_of(item, item.kept) for item in items)
    lost, held_back, paid, order = 0.0, 0, 0.0, dict[int, tuple[float, int]]()
    steps = ordered_steps(items, config.articles)
    for number, step in enumerate(steps):
        items[step.item] = replace(items[step.item], kept=step.kept)
        held_back, lost = held_back + step.tokens, lost + step.lost
        paid = max(paid, _price(step, config))  # a later step is never the cheaper one
        order.setdefault(items[step.item].article.start, (paid, len(order)))
        if held_back < whole * STEP and number + 1 < len(steps):
            continue
        share = round(MAX_LOSS * lost / every, 3) if every else MAX_LOSS
        reduced = tuple(item for item in items if len(item.kept) < len(item.segments))
        reduced = tuple(sorted(reduced, key=lambda item: item.article.start))
        why = f"{len(reduced)} of {len(items)} articles shortened, least relevant first"
        with_answers = partial(_shown, text, reduced, config)
        yield Offer(
            "replace", with_answers(()), share, "articles", why, paid,
            tuple(_shortened(item, order, config) for item in reduced), with_answers,
        )  # fmt: skip
        held_back = 0


def _price(step: ShorteningStep, config: Config) -> float:
    """Value lost per token; if results are ordered by age, a low price that gives that order."""
    newest_first = config.articles.newest_first
    if newest_first is None:
        return round(step.lost / max(step.tokens, 1), 9)
    age = config.age if newest_first else 1 - config.age
    return round(1e-5 * (1 + age) * (1 if step.kept or not step.lost else 10), 9)


def _shortened(
    item: RankedArticle, order: Mapping[int, tuple[float, int]], config: Config
) -> Shortened:
    """The record of one shortened article; with ``ask`` only if some of its text is kept."""
    article, ask = item.article, None
    if item.kept and not item.repeated:
        tokens = sum(item.sizes[n] for n in sorted(item.kept))
        ask = Ask(article.title, article.url, article.content, config.question, tokens)
    return Shortened(ask, order[article.start])


def _shown(
    text: str, reduced: Sequence[RankedArticle], config: Config, answers: Sequence[Answer]
) -> str:
    """The block with these articles shortened; the first one says how to get the rest.

    ``answers``: one for each article, or () to show an excerpt of each.
    """
    fetch = recall_call(text, config)
    advice = f"; {fetch} has all" if fetch else "; run the tool again to see them"
    contents = []
    for item, answer in zip(reduced, answers or [""] * len(reduced), strict=True):
        if answer is None:
            continue
        content, chars = item.article.content, len(item.article.content)
        kept = item.kept if isinstance(answer, str) else best_segments(item, answer)
        if item.repeated:
            new = f"[{chars:,} chars, given more than once, left out here{advice}]"
        elif not kept:
            new = f"[{chars:,} chars left out to fit{advice}]"
        elif answer and isinstance(answer, str):
            new = f"[a model's summary of {chars:,} chars{advice}] {answer}"
        else:
            new = join_segments(content, item.segments, kept)
            new = f"{new.rstrip()} [of {chars:,} chars{advice}]"
        size = sum(item.sizes[n] for n in sorted(kept))
        done = size <= max(config.articles.shares, default=0.0) * item.tokens
        contents.append((item.article, new, done))
        advice = ""
    return write_articles(text, contents)


# --- the order in which they are shortened ---

GAP_TOKENS = 3
"""Most tokens of ``[...]`` between two pieces."""
BASE, SLOPE = 0.002, 0.01
"""Value lost per token of a piece: ``BASE`` for an irrelevant one, plus ``SLOPE`` for each unit of
relevance.  A text that is cut in half loses 0.002 to 0.02 a token, by its age and size."""
ALIKE = 0.5
"""Articles match about as well if the least match is this share of the best."""


@dataclass
class RankedArticle:
    """One article with its pieces, their scores and sizes (tokens), and the pieces still kept."""

    article: Article
    segments: Sequence[Segment]
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


def rank_articles(articles: Sequence[Article], config: Config) -> list[RankedArticle]:
    """Split the articles of one text into pieces and score each piece against the question."""
    cut = [split_segments(article.content) for article in articles]
    texts = [
        (a.title, [(a.content[p.start : p.end], p.heading) for p in of])
        for a, of in zip(articles, cut, strict=True)
    ]
    question = Question.of(config.question, config.query)
    scores = score_segments(texts, question, _ranks(texts, config))
    seen: set[str] = set()
    items = []
    for article, of, score, (_, spoken) in zip(articles, cut, scores, texts, strict=True):
        sizes = [config.count(text) for text, _ in spoken]
        repeated = article.content in seen or config.repeated(article.content)
        seen.add(article.content)
        items.append(RankedArticle(article, of, score, sizes, frozenset(range(len(of))), repeated))
    return items


def _ranks(texts: Sequence[TitledSegments], config: Config) -> Sequence[float] | None:
    """The rule's ranker's scores of all pieces in order; None without a ranker or if it fails."""
    rank = config.articles.ranker
    if rank is None:
        return None
    try:
        spoken = tuple(text for _, of in texts for text, _ in of)
        return ranked(rank, config.question or config.query, spoken)
    except Exception as error:  # a ranker's error must never break a request
        problem = f"{type(error).__name__}: {error}"
        config.warn(f"articles by shared words, their ranker failed: {problem}")
        return None


@dataclass(frozen=True)
class ShorteningStep:
    """One step for article ``item``: pieces kept, tokens removed, value lost."""

    item: int
    kept: frozenset[int]
    tokens: int
    lost: float


def value_of(item: RankedArticle, which: Iterable[int]) -> float:
    """The value of these pieces of an article; 0 if the article is repeated elsewhere."""
    if item.repeated:
        return 0.0
    return sum(item.sizes[n] * (BASE + SLOPE * item.scores[n]) for n in sorted(which))


def ordered_steps(items: Sequence[RankedArticle], rule: ArticleRule) -> list[ShorteningStep]:
    """The steps of all articles but the best ``rule.keep``; what is repeated is left out first.

    By match: the least loss a token first, so that what is beside the question is gone before what
    answers it is cut.  By score, or without scores by place, if the rule says so or all match about
    as well: all to a share, the lowest first, then all to the next.
    """
    bests = [item.best for item in items]
    by_match = rule.order == "match" and min(bests) < ALIKE * max(bests)
    if not by_match:
        known = all(item.article.score is not None for item in items)
        bests = [(item.article.score or 0.0) * known for item in items]
    turns = sorted(range(len(items)), key=lambda n: (-bests[n], n))[rule.keep :][::-1]
    turns.sort(key=lambda n: not items[n].repeated)
    rows = list[tuple[float, int, ShorteningStep]]()
    for turn, number in enumerate(turns):
        price = 0.0
        for depth, step in enumerate(_steps(number, items[number], rule)):
            if step:
                price = max(price, step.lost / max(step.tokens, 1))
                rows.append((price if by_match else depth, turn, step))
    return [step for _, _, step in sorted(rows, key=lambda row: row[:2])]


def _steps(number: int, item: RankedArticle, rule: ArticleRule) -> Iterator[ShorteningStep | None]:
    """The steps of one article, one a share; None where no piece fits, or all do."""
    kept = item.kept
    for share in () if item.repeated else rule.shares:
        chosen = best_segments(item, int(item.tokens * share), kept)
        if chosen and len(chosen) < len(kept):
            yield _step(number, item, kept, chosen)
            kept = chosen
        else:
            yield None
    yield _step(number, item, kept, frozenset())


def best_segments(
    item: RankedArticle, tokens: int, among: frozenset[int] | None = None
) -> frozenset[int]:
    """The pieces that match the question best, as many as fit into ``tokens``; ``among``: only
    these."""
    room, chosen = tokens - GAP_TOKENS, set[int]()
    every = range(len(item.segments)) if among is None else among
    for piece in sorted(every, key=lambda n: (-item.scores[n], n)):
        gaps = 1 - (piece - 1 in chosen) - (piece + 1 in chosen)
        if (cost := item.sizes[piece] + GAP_TOKENS * gaps) <= room:
            chosen.add(piece)
            room -= cost
    return frozenset(chosen)


def _step(
    number: int, item: RankedArticle, before: frozenset[int], kept: frozenset[int]
) -> ShorteningStep:
    gone = before - kept
    return ShorteningStep(number, kept, sum(item.sizes[n] for n in gone), value_of(item, gone))


# --- the segments of an article ---

MIN_CHARS, MAX_CHARS = 20, 600
GAP = "[...]"
_END = re.compile(
    r"\n+"
    r"|(?<=[.!?؟…])[\"'”’»)\]]{0,4}[ \t]{1,8}(?=\S)"
    r"|(?<=[。！？।॥])[」』”’）\"]{0,4}[ \t]{0,8}"
)
_FENCE = re.compile(r"^[ \t]{0,3}(?:```|~~~).*$", re.MULTILINE)
_HEADING = re.compile(r"[ \t]{0,3}(?:#{1,6} |={2,6} ?\w|<h[1-6]\b|\*\*[^*\n]{1,120}\*\*[ \t]*\n)")
_BLANK = re.compile(r"\n[ \t]*\n+")


class Segment(NamedTuple):
    """``text[start:end]``; ``heading``: whether it is one."""

    start: int
    end: int
    heading: bool


def split_segments(text: str) -> list[Segment]:
    """Split the whole text, in order, into pieces of 20 to 600 characters where possible.

    Inside code fences it is split only at blank lines.
    """
    segments: list[Segment] = []
    for start, end, code in _stretches(text):
        segments += _divided(text, start, end, _BLANK if code else _END)
    return segments


def _stretches(text: str) -> Iterator[tuple[int, int, bool]]:
    """(start, end, whether it is code) of each stretch outside or inside code fences."""
    at, opened = 0, False
    for fence in _FENCE.finditer(text):
        end = min(len(text), fence.end() + 1) if opened else fence.start()
        if end > at:
            yield at, end, opened
            at = end
        opened = not opened
    if at < len(text):
        yield at, len(text), False


def _divided(text: str, start: int, stop: int, ends: re.Pattern[str]) -> Iterator[Segment]:
    heading = bool(_HEADING.match(text, start))
    for match in ends.finditer(text, start, stop):
        line_ends = "\n" in match[0]
        if match.end() - start >= MIN_CHARS or (heading and line_ends):
            yield from _bounded(text, start, match.end(), heading)
            start = match.end()
            heading = bool(_HEADING.match(text, start))
    if start < stop:
        yield from _bounded(text, start, stop, heading)


def _bounded(text: str, start: int, end: int, heading: bool) -> Iterator[Segment]:
    while end - start > MAX_CHARS:
        middle = text.rfind(" ", start + MAX_CHARS // 2, start + MAX_CHARS) + 1
        middle = max(middle or at_or_before(text, start + MAX_CHARS), start + 1)
        yield Segment(start, middle, heading)
        start, heading = middle, False
    yield Segment(start, end, heading)


def join_segments(text: str, whole: Sequence[Segment], kept: frozenset[int] | set[int]) -> str:
    """The kept pieces in their order, with ``[...]`` where pieces were left out."""
    parts: list[str] = []
    for number in sorted(kept):
        piece = whole[number]
        if number and number - 1 not in kept:
            before = whole[number - 1]
            parts.append(GAP + ("\n" if text[before.end - 1 : before.end] == "\n" else " "))
        parts.append(text[piece.start : piece.end])
    if whole and len(whole) - 1 not in kept:
        return "".join(parts).rstrip() + " " + GAP
    return "".join(parts)


# --- the articles of a text, in any format of list ---

MIN_BYTES = 400
"""Least bytes of an article; a list of shorter items is treated as a table."""


def long_articles(text: str, rule: ArticleRule) -> list[Article]:
    """The articles of a text that are long enough to shorten; [] if it has no list of articles."""
    articles = all_articles(text, rule)
    return [article for article in articles if utf8_bytes(article.content) >= MIN_BYTES]


def all_articles(text: str, rule: ArticleRule) -> list[Article]:
    """The articles of a text, short ones too."""
    articles = json_articles(text, rule.list_keys)
    if not articles and text[:64].lstrip()[:1] not in ("{", "["):
        articles = text_articles(text)
    if not articles and text[:1] == "[" and text[1:2].isdigit():  # "[1] …" is not JSON
        articles = text_articles(text)
    return articles
