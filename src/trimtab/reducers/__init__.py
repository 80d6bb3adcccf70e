"""The reducers, in the order of what they lose, and the chain that applies them.

To add one: write a ``Reducer`` in its own file and put it into ``REDUCERS``, or pass your own
tuple to ``levels``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from trimtab.reducers.arguments import arguments
from trimtab.reducers.article_selection import articles
from trimtab.reducers.base import (
    HANDLE,
    Ask,
    Config,
    Offer,
    Reducer,
    json_bytes,
    marker,
    markers,
    smaller,
    utf8_bytes,
    with_handle,
)
from trimtab.reducers.blobs import blobs
from trimtab.reducers.cutting import (
    cut,
    cut_to,
    cut_to_chars,
    cut_to_tokens,
    long_lines,
    text_levels,
)
from trimtab.reducers.digest import digest, digest_to
from trimtab.reducers.html_text import html_text
from trimtab.reducers.json_digest import records, records_to
from trimtab.reducers.redundant import duplicates, failed_inputs
from trimtab.reducers.respell import line_numbers, respell, unescape
from trimtab.reducers.user_cut import has_paste, user_cut, written_tokens
from trimtab.reducers.whole_blocks import media, reasoning
from trimtab.transcript.model import Block

__all__ = [
    "DEAD",
    "DEEP",
    "HANDLE",
    "REDUCERS",
    "Ask",
    "Config",
    "Offer",
    "Reducer",
    "cut_to",
    "cut_to_chars",
    "cut_to_tokens",
    "digest_to",
    "has_paste",
    "levels",
    "marker",
    "records_to",
    "text_levels",
    "user_cut",
    "with_extra",
    "with_handle",
    "written_tokens",
]

REDUCERS: tuple[Reducer, ...] = (
    line_numbers,
    unescape,
    respell,
    duplicates,
    failed_inputs,
    articles,  # before tables: they would lay out long texts as cells
    records,
    long_lines,  # before blobs: they tell minified code by its size alone
    blobs,
    reasoning,
    html_text,
    digest,
    cut,
    arguments,
    media,
    markers,
)


DEAD = frozenset((duplicates, failed_inputs))
"""Reducers of dead weight: content that is not needed again."""
DEEP = frozenset((reasoning, digest, cut, arguments, media, markers))
"""Reducers whose every offer loses something that a reader may need.  They are not called where
only light offers are wanted; offers of the others are then chosen by their stated loss."""


def with_extra(ours: Sequence[Reducer], extra: Sequence[Reducer]) -> tuple[Reducer, ...]:
    """Insert the ``extra`` reducers before the first of ``ours`` that loses unknown content.

    So they come after lossless reducers and duplicates; they keep their order.
    """
    losing = {articles, *DEEP}  # articles are not in DEEP, as their first offers lose little
    at = next((index for index, one in enumerate(ours) if one in losing), len(ours))
    return (*ours[:at], *extra, *ours[at:])


def levels(
    block: Block,
    config: Config,
    *,
    reducers: Sequence[Reducer] = REDUCERS,
    failures: list[str] | None = None,
) -> Iterator[Offer]:
    """All offers for one block, lazily: each strictly smaller than the block and the offer before.

    After a lossless offer, later reducers work on its text.  If a reducer raises, its further
    offers are skipped; this and reducers' warnings are appended to ``failures``.  Sealed text is
    removed or left, never replaced.
    """
    if failures is not None:
        config = replace(config, warn=failures.append)
    last = whole = block.text
    loss = 0.0
    for reducer in reducers:
        try:
            for offer in reducer(block, config):
                if reducer not in REDUCERS:
                    _check(offer, block)
                if block.sealed and offer.op != "remove":
                    continue
                text = offer.op == "replace" and not block.media  # media do not cost by their text
                if text and block.spelling == "part" and not _fewer_as_string(offer.text, whole):
                    continue
                if text and not smaller(offer.text, last, config.count):
                    continue
                last, loss = offer.text, max(loss, offer.loss)
                if offer.loss == 0 and offer.op == "replace":
                    block = replace(block, text=offer.text)
                yield offer if offer.loss == loss else replace(offer, loss=loss)
        except Exception as error:  # an error in a reducer must never break a request
            if failures is not None:
                name = getattr(reducer, "__name__", repr(reducer))
                failures.append(f"reducer skipped: {name}: {type(error).__name__}: {error}")


def _check(offer: Offer, block: Block) -> None:
    """Raises ``ValueError`` if an offer (of a reducer from outside) would break a request."""
    if not isinstance(offer, Offer):
        raise ValueError(f"{type(offer).__name__} is no Offer")
    if offer.op not in ("replace", "remove") or not 0 <= offer.loss <= 1:
        raise ValueError(f"op {offer.op!r}, loss {offer.loss!r}")
    if not isinstance(offer.text, str) or (offer.op == "replace" and not offer.text.strip()):
        raise ValueError("no text to show")
    if offer.op == "remove" and block.kind != "reasoning":
        raise ValueError(f"a {block.kind} cannot be removed")
    objects = block.spelling in ("json", "json-string")
    if objects and not isinstance(json.loads(offer.text), dict):
        raise ValueError("not a JSON object")


def _fewer_as_string(new: str, json_text: str) -> bool:
    """Whether ``new``, spelled as a JSON string, is smaller than the JSON that it replaces."""
    return 6 * len(new) + 2 < len(json_text) or json_bytes(new) < utf8_bytes(json_text)
