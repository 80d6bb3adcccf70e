"""The interface of reducers (functions from one block to offers), the comparison of sizes, and the
marker: one short line in place of a text, with its kind, tool and size.

A marker contains the placeholder ``HANDLE``, which is as long as a handle; the caller replaces it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Literal

from trimtab.reducers.articles.article import DEFAULT_RULE, ArticleRule
from trimtab.reducers.query_terms import NO_TERMS, QueryTerms
from trimtab.reducers.text_boundaries import at_or_before
from trimtab.transcript.model import Block


@dataclass(frozen=True, slots=True)
class Ask:
    """An article for a model to summarise in at most ``tokens``, with regard to ``question``."""

    title: str
    url: str
    text: str
    question: str
    tokens: int


Answer = str | int | None
"""What is shown of a shortened article: a model's summary (str; "": the excerpt as offered), an
excerpt of so many tokens (int), or the whole article (None)."""


@dataclass(frozen=True, slots=True)
class Shortened:
    """One article that an offer shortens: the question for a model (None if only its title is
    kept), and its place in the order in which articles are shortened."""

    ask: Ask | None
    order: tuple[float, int]


@dataclass(frozen=True, slots=True)
class Offer:
    """One level of detail of a block: the text shown instead, and the loss.

    ``op`` "remove" deletes the whole part and has no text.  ``loss`` runs from 0 (the original
    can be recovered from the text) to 1 (nothing is left).  ``kind``: the reducer, for reports.
    ``price``: value lost per token saved, if the reducer knows it better than ``loss`` tells.
    ``shortened``: the articles that it shortens; ``with_answers`` returns the text with other
    answers for them.
    """

    op: Literal["replace", "remove"]
    text: str
    loss: float
    kind: str
    why: str
    price: float | None = None
    shortened: tuple[Shortened, ...] = ()
    with_answers: Callable[[Sequence[Answer]], str] | None = None
    payload: str = ""
    """Of a medium made smaller: its new data as a data URL; ``text`` names it in the report."""


def never(content: str) -> bool:
    """False: the default of ``Config.repeated``."""
    return False


def ignore_warning(warning: str) -> None:
    """Ignore a warning: the default of ``Config.warn``."""


@dataclass(frozen=True, slots=True)
class BlockFacts:
    """What the rest of the transcript says about one block.

    ``duplicate``: the same content occurs again later, from the same call ("call"), from another
    ("text"), or from the same call except for the lines in ``unique`` ("near").  ``superseded``:
    what later replaced these lines of the file, or that the same call was repeated; ``lacks``: the
    lines missing from that later content.  ``failed``: the category of a call's error, if the
    call's input may be reduced for it; ``flagged``: a flag of the format says that it failed.
    """

    duplicate: Literal["", "call", "text", "near"] = ""
    unique: tuple[str, ...] = ()
    superseded: Literal["", "read", "write", "edit", "call"] = ""
    lacks: tuple[str, ...] = ()
    failed: str = ""
    flagged: bool = False


NO_FACTS = BlockFacts()


@dataclass(frozen=True, slots=True)
class Config:
    """What reducers may know besides the block.

    ``count`` returns the tokens of a text; it is called on the whole block more than once, so it
    should cache.  ``recall``: the model has a tool to fetch originals.  ``question``: the user's
    last question; ``query``: what the model searched for since then, and for this block.
    ``repeated``: whether an article with this content also occurs in a later result.  ``age`` of
    the block: 0 newest … 1 oldest.  ``facts``: what the rest of the transcript says about this
    block.  ``warn`` takes a line for the report.  ``terms``: the names that the user, the model
    and the block's own call ask for; they raise what tells about them.
    """

    count: Callable[[str], int]
    recall: bool = False
    question: str = ""
    query: str = ""
    repeated: Callable[[str], bool] = never
    age: float = 0.0
    articles: ArticleRule = DEFAULT_RULE
    facts: BlockFacts = NO_FACTS
    warn: Callable[[str], None] = ignore_warning
    terms: QueryTerms = NO_TERMS


Reducer = Callable[[Block, Config], Iterator[Offer]]
"""Yields offers for one block, lazily, with rising loss, each smaller than the one before.

It must yield nothing for blocks it is not meant for and nothing for its own output, and must not
rely on marker text in the content: a tool can forge that.
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
    if 6 * len(new) + 2 < len(old):
        return True
    raw = utf8_bytes(old)
    if utf8_bytes(new) >= raw:
        return False
    size = json_bytes(new)
    # As JSON the old text has two quotes more at the least: mostly it need not be encoded.
    return size < raw + 2 or size < json_bytes(old)


def smaller(new: str, old: str, count: Callable[[str], int]) -> bool:
    """Whether ``new`` is strictly smaller in tokens and in bytes."""
    return fewer_bytes(new, old) and count(new) < count(old)


def loss_of(kept_tokens: int, of_tokens: int) -> float:
    """Loss of an excerpt: 0 if all is kept, 0.9 if (nearly) nothing is; rounded to 3 places.

    It is below a marker's 0.95 because an excerpt always says at least as much.
    """
    return round(0.9 * (1 - min(1.0, kept_tokens / max(1, of_tokens))), 3)


# --- markers ---

HANDLE = "{h-4nD_1eX}"
"""Placeholder for the handle: 11 characters, and 13 tokens with its call in o200k; 97 % of random
handles take no more.  ``with_handle`` replaces it."""

MARKER_LOSS = 0.95
ADVICE_BYTES = 36
ERROR_CHARS, ERROR_BYTES = 120, 160
_NAME = re.compile(r"[\w.:/-]{1,64}")
_UNSEEN = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def recall_call(text: str, config: Config) -> str:
    """The call that fetches the original of ``text``; "" if the model has no tool for it."""
    return f'recall("{HANDLE}")' if config.recall and HANDLE not in text else ""


def with_handle(text: str, original: str, handle: str) -> str:
    """An offer's text with the real handle; unchanged if ``original`` itself contains ``HANDLE``.

    A tool could write that word to obtain a handle, so such a text is never offered with one.
    """
    return text if HANDLE in original else text.replace(HANDLE, handle)


def error_line(text: str) -> str:
    """The first non-blank line: at most 120 characters and 160 bytes, no control characters."""
    start = text[:4096].lstrip()
    line = _UNSEEN.sub("", start.split("\n", 1)[0]).strip()
    line = line[: at_or_before(line, ERROR_CHARS)]
    while utf8_bytes(line) > ERROR_BYTES:
        line = line[: at_or_before(line, len(line) - 1)]
    return line.strip()


def marker(block: Block, config: Config) -> str:
    """``[Read result, 2,053 tokens, left out to fit; run the tool again if it is needed]``

    It quotes the first line of an error.  The size is that of ``block.text``: in tokens for a
    result, else in characters.
    """
    fetch = recall_call(block.text, config)
    if block.kind == "result":
        name = block.tool if block.tool and _NAME.fullmatch(block.tool) else "tool"
        what = f"{name} {'error' if block.error else 'result'}"
        advice = f"{fetch} has it" if fetch else "run the tool again if it is needed"
    else:
        what = "text" if block.kind == "text" else "part"
        advice = f"{fetch} has it" if fetch else ""
    line = error_line(block.text) if block.error else ""
    began = f", it began: {line}" if line else ""
    tail = f"; {advice}" if advice else ""
    size = f"{len(block.text):,} chars"
    if block.kind == "result":
        size = f"{config.count(block.text):,} tokens"
    return f"[{what}, {size}, left out to fit{tail}{began}]"


def marker_offer(block: Block, config: Config) -> Iterator[Offer]:
    """The marker as the last level of a text, if it takes at most half the tokens and bytes.

    Half, so that no marker is replaced by a marker, which would be about as long.
    """
    text = marker(block, config)
    advised = block.kind == "result" or recall_call(block.text, config)
    least = utf8_bytes(text) + (0 if advised else ADVICE_BYTES)  # counted as if it had advice
    half = 2 * least <= utf8_bytes(block.text)
    if half and smaller(text + text, block.text, config.count):
        yield Offer("replace", text, MARKER_LOSS, "marker", "left out, its name and size kept")


def markers(block: Block, config: Config) -> Iterator[Offer]:
    """One offer for a tool result: its marker, loss 0.95."""
    if block.kind == "result" and block.text:
        yield from marker_offer(block, config)
