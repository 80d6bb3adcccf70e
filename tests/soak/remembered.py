"""Pure functions of a text, remembered for a whole run: the histories' texts come from pools.

What is remembered is what the library itself worked out for an equal text, kind and tool; a chain
of offers that could depend on the question or on other blocks is worked out each time.  Knows which
functions these are.  Changes no result: one history in sixteen is tried without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import trimtab.planning.planner
import trimtab.request.message_cache
import trimtab.transcript.tool_calls
from trimtab.planning.lines import Lines, lines_of
from trimtab.reducers import Config, Offer, levels
from trimtab.reducers.article_selection import long_articles
from trimtab.transcript.call_arguments import read_call
from trimtab.transcript.model import Block

MAX = 40_000
"""Results of each function that are kept."""

_lines: dict[Any, Lines] = {}
_levels: dict[Any, tuple[list[Offer], list[str]]] = {}


def _remembered_lines(block: Block) -> Lines:
    key = (block.kind, block.text, block.spelling, block.tool)
    found = _lines.get(key)
    if found is None:
        _make_room(_lines)
        found = _lines[key] = lines_of(block)
    return found


def _remembered_levels(
    block: Block, config: Config, *, reducers: Any, failures: list[str] | None = None
) -> Iterator[Offer]:
    if _has_articles(block.text) or block.media:
        return levels(block, config, reducers=reducers, failures=failures)
    key = (
        block.kind, block.text, block.label, block.spelling, block.tool, block.error, block.sealed,
        block.fixed_tokens, block.signature_chars, block.payload_bytes, block.identity,
        config.count.version, config.recall, config.articles, config.facts, reducers,
    )  # fmt: skip
    found = _levels.get(key)
    if found is None:
        _make_room(_levels)
        failed: list[str] = []
        found = list(levels(block, config, reducers=reducers, failures=failed)), failed
        _levels[key] = found
    if failures is not None:
        failures += found[1]
    return iter(found[0])


def _make_room(kept: dict[Any, Any]) -> None:
    if len(kept) >= MAX:
        kept.clear()


@lru_cache(maxsize=MAX)
def _has_articles(text: str) -> bool:
    return bool(long_articles(text, Config(len).articles))


_PLACES: tuple[tuple[Any, str, Any, Any], ...] = (
    (trimtab.request.message_cache, "lines_of", lines_of, _remembered_lines),
    (trimtab.planning.planner, "levels_of", levels, _remembered_levels),
    (trimtab.transcript.tool_calls, "read_call", read_call, lru_cache(maxsize=MAX)(read_call)),
)


def remember(on: bool) -> None:
    """From here on remember, or work everything out anew."""
    for module, name, plain, remembered in _PLACES:
        setattr(module, name, remembered if on else plain)
