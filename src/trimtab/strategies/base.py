"""What a strategy is: a function from one block to the ways of showing less of it.

Knows blocks and how to compare two spellings of a text.  Does not know formats, rules, where a
block stands, or which offer will be chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Literal

from trimtab.model import Block
from trimtab.strategies.retrieval.article import DEFAULT_RULE, ArticleRule


@dataclass(frozen=True, slots=True)
class Ask:
    """A text that a model may say in fewer words: at most ``tokens``, for this question."""

    title: str
    url: str
    text: str
    question: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Offer:
    """One level of detail of a block: what would be shown instead, and what that loses.

    ``op`` "remove" takes the whole part out and has no text.  ``loss`` runs from 0 (the original
    can be told from the text) to 1 (nothing is left).  ``kind`` names the strategy in the report.
    ``price``: value lost per token saved, where the strategy knows it better than by the loss.
    ``asks``: what a model could say better, and ``with_answers`` the text with its answers ("" for
    one that is missing: the text's own words stand there).
    """

    op: Literal["replace", "remove"]
    text: str
    loss: float
    kind: str
    why: str
    price: float | None = None
    asks: tuple[Ask, ...] = ()
    with_answers: Callable[[Sequence[str]], str] | None = None


def never(content: str) -> bool:
    """No content is repeated."""
    return False


def untold(warning: str) -> None:
    """Nobody is told."""


@dataclass(frozen=True, slots=True)
class BlockFacts:
    """What the rest of the transcript tells about one block.

    ``duplicate``: the same came again later, from the same call ("call"), from another ("text"),
    or from the same call but for the lines in ``unique`` ("near").  ``superseded``: what later
    came over the same lines of the file, or the same call again.  ``failed``: the kind of error
    that a call met, where its input may go.
    """

    duplicate: Literal["", "call", "text", "near"] = ""
    unique: tuple[str, ...] = ()
    superseded: Literal["", "read", "write", "edit", "call"] = ""
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Config:
    """What strategies may know besides the block.

    ``count`` gives the tokens of a text; it is called on the whole block more than once, so it
    should remember what it counted.  ``recall``: the model has a tool to fetch originals.
    ``question``: what the user asked last; ``query``: what the model searched for since then, and
    for this block.  ``repeated``: whether an article with this content stands in a later result
    too.  ``age`` of the block: 0 newest … 1 oldest.
    ``facts``: what the rest of the transcript tells about this very block.  ``warn`` takes a line
    for the report.
    """

    count: Callable[[str], int]
    recall: bool = False
    question: str = ""
    query: str = ""
    repeated: Callable[[str], bool] = never
    age: float = 0.0
    articles: ArticleRule = DEFAULT_RULE
    facts: BlockFacts = BlockFacts()
    warn: Callable[[str], None] = untold


Strategy = Callable[[Block, Config], Iterator[Offer]]
"""Levels of one block, lazily, loss rising, each smaller than the one before.

Nothing for blocks it is not meant for, nothing on its own output, and never a decision that
rests on marker text in the content: a tool can forge that.
"""


def utf8_bytes(text: str) -> int:
    """Bytes of the text in UTF-8; a lone surrogate counts 3."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def json_bytes(text: str) -> int:
    """Bytes of the text as a JSON string, quotes included: line breaks and quotes cost two."""
    return utf8_bytes(encode_basestring(text))


def fewer_bytes(new: str, old: str) -> bool:
    """Whether ``new`` is strictly smaller in bytes, both raw and as a JSON string."""
    # No character takes more than 6 bytes in JSON, so far shorter texts need no encoding.
    return 6 * len(new) + 2 < len(old) or (
        utf8_bytes(new) < utf8_bytes(old) and json_bytes(new) < json_bytes(old)
    )


def smaller(new: str, old: str, count: Callable[[str], int]) -> bool:
    """Whether ``new`` is strictly smaller in tokens and in bytes."""
    return fewer_bytes(new, old) and count(new) < count(old)


def loss_of(kept_tokens: int, of_tokens: int) -> float:
    """Loss of an excerpt: 0 if all is kept, 0.9 if (nearly) nothing is; rounded to 3 places.

    It stays below a marker's 0.95: an excerpt always says at least as much.
    """
    return round(0.9 * (1 - min(1.0, kept_tokens / max(1, of_tokens))), 3)
