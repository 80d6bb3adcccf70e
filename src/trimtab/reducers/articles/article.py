"""One article within a text: its title, URL and the position of its content; and how a shortened
article is written back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from trimtab.setting_kinds import (
    COUNT,
    FLAG_OR_NONE,
    SHARES,
    TEXTS,
    program_only,
    setting,
)

Ranker = Callable[[str, Sequence[str]], Sequence[float]]
"""(question, texts) → a score for each text: about 0 (does not answer it) to 1."""

LIST_KEYS = (
    "articles", "results", "documents", "items", "hits", "passages", "chunks", "sources", "docs",
    "pages", "records", "entries", "matches", "snippets", "contexts", "value", "data", "content",
    "organic", "organic_results", "search_results", "nodes", "points", "result",
)  # fmt: skip
"""JSON keys whose list of objects may be a list of articles."""


Order = Literal["match", "position"]


@dataclass(frozen=True)
class ArticleRule:
    """How lists of articles are shortened.

    ``ranker``: your own function from a question and texts to a score for each text, half of a
    text's match.  If it fails, only the words shared with the question decide.
    """

    order: Order = setting(
        "match", program_only(lambda value: value in get_args(Order), "'match' or 'position'"),
        "who goes first: what matches the question least, or the lowest score, and without scores "
        "the last in the list",
    )  # fmt: skip
    shares: Sequence[float] = setting(
        (0.30, 0.10), SHARES,
        "of an article's tokens, step by step; after the last only title and URL are left",
    )  # fmt: skip
    keep: int = setting(0, COUNT, "best articles of each list that stay whole")
    min_tokens: int = setting(64, COUNT, "a shorter article is left alone")
    newest_first: bool | None = setting(
        None, FLAG_OR_NONE, "newer results before older ones; unset: by relevance"
    )
    list_keys: Sequence[str] = setting(LIST_KEYS, TEXTS, "JSON keys that hold lists of articles")
    ranker: Ranker | None = setting(
        None, program_only(callable, "a function"), "says how well sentences answer the question"
    )

    @classmethod
    def just_in_time(cls) -> ArticleRule:
        """Cut each article to 30 % of its tokens: the newest result first, and in each result the
        last article first."""
        return cls(order="position", shares=(0.30,), newest_first=True)


class Splice(NamedTuple):
    """``text`` in place of ``[start:end]``."""

    start: int
    end: int
    text: str


DEFAULT_RULE = ArticleRule()


@dataclass(frozen=True, slots=True)
class Article:
    """``content`` (as the model reads it) is at ``[start:end]``; ``spelled`` encodes a new content.

    ``mark``: the insertion that marks it as shortened.  ``score``: higher is better; None without
    one.  ``compressed``: it is already marked as shortened.
    """

    title: str
    url: str
    content: str
    start: int
    end: int
    mark: Splice | None
    spelled: Callable[[str], str]
    score: float | None = None
    compressed: bool = False


def write_articles(text: str, articles: Iterable[tuple[Article, str, bool]]) -> str:
    """The text with each article's new content; the rest is unchanged.

    The third of each says whether it is done, and so marked: an article that may be shortened
    again, where the agent's state keeps it like this, has no mark.
    """
    splices = []
    for article, content, done in articles:
        splices.append(Splice(article.start, article.end, article.spelled(content)))
        if done and article.mark is not None:
            splices.append(article.mark)
    parts, at = [], 0
    for splice in sorted(splices):
        parts += [text[at : splice.start], splice.text]
        at = splice.end
    return "".join([*parts, text[at:]])


def number_in(text: str) -> float | None:
    """The number in a written score, without its percent sign; None if it is not a number."""
    try:
        number = float(text.strip().rstrip("% "))
    except ValueError:
        return None
    return number if abs(number) < 1e15 else None
