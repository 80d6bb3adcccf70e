"""Shortens the values in call arguments; keys and types stay, and the JSON stays valid."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from trimtab.jsontext.parsing import dump
from trimtab.reducers.base import Config, Offer, loss_of, smaller
from trimtab.reducers.cutting import cut_levels
from trimtab.reducers.json_tree import (
    CUT_KEY,
    JsonLimits,
    Members,
    longest_string,
    parse,
    write_limited,
)
from trimtab.reducers.text_boundaries import at_or_before
from trimtab.transcript.model import Block

SHORTEST_CHARS = 125
QUOTED_CHARS = 80
_LAST = (  # characters a string, items an array, members an object
    JsonLimits(SHORTEST_CHARS, items=20, strict=True),
    JsonLimits(40, items=5, members=40, strict=True),
)
"""The last two levels; in the very last, each string over 40 characters becomes a note."""


def arguments(block: Block, config: Config) -> Iterator[Offer]:
    """Offers for one call's arguments: strings of at most 125 × 2ⁿ characters, n falling.

    Then arrays are cut to 20 items; then strings over 40 characters to ``[N chars cut]``, arrays
    to 5 items and objects to 40 members.  Arguments that are not a JSON object have one offer: an
    object that says so and quotes their beginning.
    """
    if block.kind != "call" or not block.text:
        return
    if block.spelling == "string":
        yield from cut_levels(block.text, config, "")
        return
    try:
        tree = parse(block.text)
    except ValueError:
        tree = None
    candidates = _shapes(tree) if isinstance(tree, Members) else iter([_not_an_object(block.text)])
    total, last = config.count(block.text), block.text
    for text, why in candidates:
        if smaller(text, last, config.count):
            loss = loss_of(config.count(text), total)
            yield Offer("replace", text, loss, "arguments", why)
            last = text


def _shapes(tree: Members) -> Iterator[tuple[str, str]]:
    longest = longest_string(tree)
    chars = SHORTEST_CHARS
    while chars * 8 <= longest * 3:
        chars *= 2
    wide = []
    while SHORTEST_CHARS <= chars <= longest * 3 // 4:
        wide.append(JsonLimits(chars, strict=True))
        chars //= 2
    for shape in chain(wide, _LAST):
        text = write_limited(tree, shape)
        if text is not None:
            yield text, f"strings of at most {shape.chars:,} chars"


def _not_an_object(text: str) -> tuple[str, str]:
    begin = text[: at_or_before(text, QUOTED_CHARS)]
    while len(dump(begin)) > 2 * QUOTED_CHARS:  # escapes take up to six characters each
        begin = begin[: at_or_before(begin, len(begin) // 2)]
    shown = f"{len(text):,} chars that were not a valid JSON object, first part: {begin}"
    return dump({CUT_KEY: shown}), "not a JSON object: its size and first part"
