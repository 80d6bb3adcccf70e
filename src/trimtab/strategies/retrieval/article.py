"""One article within a text: what it is called, where its content stands, how it is re-written.

Knows spans of a text.  Does not know how they were found nor what is to be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Ranker = Callable[[str, Sequence[str]], Sequence[float]]
"""How well each of some texts answers a question: about 0, not at all, to 1."""

LIST_KEYS = (
    "articles", "results", "documents", "items", "hits", "passages", "chunks", "sources", "docs",
    "pages", "records", "entries", "matches", "snippets", "contexts", "value", "data", "content",
    "organic", "organic_results", "search_results", "nodes", "points", "result",
)  # fmt: skip
"""Under these keys a list of objects can be a list of articles."""


@dataclass(frozen=True)
class ArticleRule:
    """How lists of articles are shortened.

    ``order``: who goes first: the articles that match the question least ("match"), or those with
    the lowest score, and without scores the last in the list ("position").  ``shares``: of an
    article's tokens, step by step; after the last step only title and URL are left.  ``keep``: so
    many of each list's best articles stay whole.  ``least_tokens``: a shorter article is left
    alone.  ``newest_first``: whether later results go before earlier ones; None: by relevance.
    ``ranker``: tells how well each sentence answers the question: an ``EmbeddingRanker``, or a
    function of yours.  ``ranker_share``: how much of the match is its word; the rest is that of
    the words they share, as all is without one and where it fails.
    """

    order: Literal["match", "position"] = "match"
    shares: tuple[float, ...] = (0.60, 0.30, 0.10)
    keep: int = 0
    least_tokens: int = 64
    newest_first: bool | None = None
    list_keys: tuple[str, ...] = LIST_KEYS
    ranker: Ranker | None = None
    ranker_share: float = 0.5

    @classmethod
    def just_in_time(cls) -> ArticleRule:
        """Each article to 30 % of its tokens, the newest result first, in it the last first."""
        return cls(order="position", shares=(0.30,), newest_first=True)


class Splice(NamedTuple):
    """``text`` in place of ``[start:end]``."""

    start: int
    end: int
    text: str


DEFAULT_RULE = ArticleRule()


@dataclass(frozen=True, slots=True)
class Article:
    """``content`` as the model reads it stands at ``[start:end]``, spelled by ``spelled``.

    ``mark``: what says that it was shortened.  ``score``: higher is better; None without one.
    ``compressed``: it says already that it was shortened.
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


def written(text: str, articles: Iterable[tuple[Article, str]]) -> str:
    """The text with these contents instead, each marked as shortened; all else as it was."""
    splices = []
    for article, content in articles:
        splices.append(Splice(article.start, article.end, article.spelled(content)))
        if article.mark is not None:
            splices.append(article.mark)
    parts, at = [], 0
    for splice in sorted(splices):
        parts += [text[at : splice.start], splice.text]
        at = splice.end
    return "".join([*parts, text[at:]])


def number_in(text: str) -> float | None:
    """A score as it is written: ``0.93``, ``93 %``; None where it is no number."""
    try:
        number = float(text.strip().rstrip("% "))
    except ValueError:
        return None
    return number if abs(number) < 1e15 else None
