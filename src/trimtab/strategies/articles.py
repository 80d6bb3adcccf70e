"""Articles that a search gave: the least relevant shortened first, title and URL always kept.

Knows lists of articles, a question and how well each piece answers it.  Does not know how lists
are spelled, which other results there are, or how many tokens have to go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from trimtab.model import Block
from trimtab.strategies.base import Ask, Config, Offer
from trimtab.strategies.marker import recall_call
from trimtab.strategies.retrieval.article import written
from trimtab.strategies.retrieval.found import LEAST_BYTES, read_articles
from trimtab.strategies.retrieval.order import Item, Step, in_order, read_items, worth_of
from trimtab.strategies.retrieval.pieces import joined

STEP = 1 / 20
"""Share of the block that a level takes away at the least, so that levels are few."""
MOST_LOSS = 0.8
"""With titles and URLs alone: less than an excerpt of that size, which has not even them."""


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
        item for item in read_items(found, config)
        if not item.article.compressed and item.tokens >= rule.least_tokens
    ]  # fmt: skip
    if able:
        yield from _levels(block.text, able, config)


def _levels(text: str, items: list[Item], config: Config) -> Iterator[Offer]:
    whole = sum(item.tokens for item in items)
    every = sum(worth_of(item, item.kept) for item in items)
    gone, lost, unsaid, price = 0, 0.0, 0, 0.0
    steps = list(in_order(items, config.articles))
    for number, step in enumerate(steps):
        items[step.item] = replace(items[step.item], kept=step.kept)
        gone, unsaid = gone + step.tokens, unsaid + step.tokens
        lost, price = lost + step.lost, price + step.lost
        if unsaid < whole * STEP and number + 1 < len(steps):
            continue
        share = round(MOST_LOSS * lost / every, 3) if every else MOST_LOSS
        reduced = tuple(item for item in items if len(item.kept) < len(item.pieces))
        reduced = tuple(sorted(reduced, key=lambda item: item.article.start))
        why = f"{len(reduced)} of {len(items)} articles shortened, least relevant first"
        with_answers = partial(_shown, text, reduced, config)
        yield Offer(
            "replace", with_answers(()), share, "articles", why,
            _price(step, price / max(unsaid, 1), config), _asks(reduced, config), with_answers,
        )  # fmt: skip
        unsaid, price = 0, 0.0


def _price(step: Step, lost: float, config: Config) -> float:
    """By relevance; where results go by age, before everything else and in that order."""
    newest_first = config.articles.newest_first
    if newest_first is None:
        return round(lost, 9)
    age = config.age if newest_first else 1 - config.age
    return round(1e-5 * (1 + age) * (1 if step.kept else 10), 9)


def _asks(reduced: Sequence[Item], config: Config) -> tuple[Ask, ...]:
    """One for each article of which something stays: to say as much in as many tokens."""
    return tuple(
        Ask(
            item.article.title, item.article.url, item.article.content, config.question,
            sum(item.sizes[n] for n in sorted(item.kept)),
        )
        for item in reduced if item.kept and not item.repeated
    )  # fmt: skip


def _shown(text: str, reduced: Sequence[Item], config: Config, answers: Sequence[str]) -> str:
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
