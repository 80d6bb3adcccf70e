"""Replaces redundant content: results of repeated calls, files read or written again, and long
values in the inputs of failed calls (their error text is kept).

``Config.facts`` says what was repeated or superseded, and which calls failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from trimtab.jsontext.parsing import dump
from trimtab.reducers.base import Config, Offer, recall_call, smaller
from trimtab.reducers.json_tree import MAX_DEPTH, Literal, Members, longest_string, parse
from trimtab.transcript.model import Block

# --- duplicate and superseded ---

LOSS_SAME, LOSS_NEAR, LOSS_SUPERSEDED = 0.02, 0.04, 0.1

_AGAIN = {
    "call": "the same call gave the same result again later",
    "text": "the same text came again later",
    "near": "the same call gave this again later, but for these lines",
}
_OVER = {
    "read": "the same file was read again later",
    "write": "the file was written anew later",
    "edit": "an edit replaced these lines later",
    "call": "the same call was made again later",
}


def duplicates(block: Block, config: Config) -> Iterator[Offer]:
    """One offer for a result whose content occurs again later, with its unique lines kept; one for
    a superseded result, with the lines kept that the later content lacks; for the call that wrote
    a superseded file, a note in place of the content."""
    facts = config.facts
    if block.kind == "call":
        yield from _written(block, config)
        return
    if block.kind == "result" and not block.text:
        return
    if block.kind not in ("result", "media"):
        return
    if facts.duplicate and not (block.media and facts.duplicate == "near"):
        text = _marker("duplicate", _AGAIN[facts.duplicate], block, config)
        if facts.duplicate == "near":
            text = "\n".join((text, *facts.unique))
        loss = LOSS_NEAR if facts.duplicate == "near" else LOSS_SAME
        offer = Offer("replace", text, loss, "duplicate", _AGAIN[facts.duplicate])
        if _pays(offer, block, config):
            yield offer
    if facts.superseded and not block.media:
        why = _OVER[facts.superseded]
        text = "\n".join((_marker("superseded", why, block, config), *facts.lacks))
        offer = Offer("replace", text, LOSS_SUPERSEDED, "superseded", why)
        if _pays(offer, block, config):
            yield offer


def _marker(what: str, why: str, block: Block, config: Config) -> str:
    """``[superseded: the same file was read again later]``"""
    fetch = recall_call(block.text, config)
    return f"[{what}: {why}{f'; {fetch} has it' if fetch else ''}]"


def _pays(offer: Offer, block: Block, config: Config) -> bool:
    if block.media:
        return config.count(offer.text) < block.fixed_tokens
    return smaller(offer.text, block.text, config.count)


def _written(block: Block, config: Config) -> Iterator[Offer]:
    over = config.facts.superseded
    if not over:
        return
    why = _OVER[over]
    text = replace_long_strings(block, lambda chars: f"[superseded, {chars:,} chars: {why}]")
    if text is not None and smaller(text, block.text, config.count):
        yield Offer("replace", text, LOSS_SUPERSEDED, "superseded", why)


# --- inputs of failed calls ---

LOSS_FAILED = 0.15
LOSS_OPEN = 0.35
"""Loss where only the text of the result says that the call failed, and the input may still matter:
a command may have run with a bad outcome only, and a call that was not permitted may be tried
again.  A flag of the format is proof."""
_OPEN = ("other", "permission")


def failed_inputs(block: Block, config: Config) -> Iterator[Offer]:
    """One offer for the input of a failed call: keys and short values are kept.

    ``{"file_path": "a.py", "old_string": "[input of a failed call, 2,114 chars, left out]"}``
    """
    failed = config.facts.failed
    if block.kind != "call" or not failed:
        return
    text = replace_long_strings(
        block, lambda chars: f"[input of a failed call, {chars:,} chars, left out]"
    )
    if text is not None and smaller(text, block.text, config.count):
        is_open = failed in _OPEN and not config.facts.flagged
        loss = LOSS_OPEN if is_open else LOSS_FAILED
        yield Offer("replace", text, loss, "failed-input", _FAILED.format(failed))


_FAILED = "the call failed ({})"


def failure_of(why: str) -> str:
    """The error category in an offer's reason ``why``; "" if the offer is of another kind."""
    begin, end = _FAILED.split("{}")
    return why[len(begin) : -len(end)] if why.startswith(begin) and why.endswith(end) else ""


# --- long strings of arguments by notes; keys, types and short values stay ---

LONG_CHARS = 60
"""Shorter values are kept: they would save little, and they name what the call was about."""
_NAMES = ("path", "file", "url", "uri", "name", "id")

Note = Callable[[int], str]
"""Number of characters → the text shown instead of them."""


def replace_long_strings(block: Block, note: Note) -> str | None:
    """The input of a call with notes in place of its long strings; None if it has none.

    A JSON object stays a JSON object; the input of a tool that takes free text becomes a note.
    """
    if block.spelling == "string":
        return note(len(block.text)) if len(block.text) > LONG_CHARS else None
    try:
        tree = parse(block.text)
        if not isinstance(tree, Members) or longest_string(tree) <= LONG_CHARS:
            return None
        return "".join(_pieces(tree, note, "", 0))
    except ValueError:
        return None


def _pieces(value: Any, note: Note, key: str, depth: int) -> Iterator[str]:
    """Compact JSON in pieces.  Raises ``ValueError`` if it is nested more than ``MAX_DEPTH``."""
    if depth > MAX_DEPTH:
        raise ValueError("nested too deep")
    if isinstance(value, Literal):
        yield str(value)
    elif isinstance(value, str):
        named = key.lower().endswith(_NAMES) and "\n" not in value
        yield dump(value if len(value) <= LONG_CHARS or named else note(len(value)))
    elif isinstance(value, Members):
        sign = "{"
        for name, inner in value:
            yield f"{sign}{dump(name)}:"
            yield from _pieces(inner, note, name, depth + 1)
            sign = ","
        yield "{}" if sign == "{" else "}"
    elif isinstance(value, list):
        sign = "["
        for inner in value:
            yield sign
            yield from _pieces(inner, note, key, depth + 1)
            sign = ","
        yield "[]" if sign == "[" else "]"
    else:
        yield dump(value)
