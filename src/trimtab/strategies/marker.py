"""The marker: one short line in place of a text, saying what stood there and how big it was.

Knows a block's kind, tool and size.  Does not know handles: where one belongs stands ``HANDLE``,
which is as long as a handle, for the caller to fill in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.model import Block
from trimtab.strategies.base import Config, Offer, smaller, utf8_bytes
from trimtab.strategies.boundaries import at_or_before

HANDLE = "{h-4nD_1eX}"
"""Stands for the handle: 11 characters, and 13 tokens with its call in o200k, where 97 % of
random handles take no more.  ``with_handle`` puts the real one in."""

LOSS = 0.95
ADVICE_BYTES = 36
ERROR_CHARS, ERROR_BYTES = 120, 160
_NAME = re.compile(r"[\w.:/-]{1,64}")
_UNSEEN = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def recall_call(text: str, config: Config) -> str:
    """How the original of ``text`` is fetched; "" where the model has no tool for it."""
    return f'recall("{HANDLE}")' if config.recall and HANDLE not in text else ""


def with_handle(text: str, original: str, handle: str) -> str:
    """An offer's text with the real handle; unchanged where the content itself has ``HANDLE``.

    A tool can write that word to be given a handle, so such a text is never offered with one.
    """
    return text if HANDLE in original else text.replace(HANDLE, handle)


def error_line(text: str) -> str:
    """The first line that says anything: at most 120 characters and 160 bytes, no controls."""
    start = text[:4096].lstrip()
    line = _UNSEEN.sub("", start.split("\n", 1)[0]).strip()
    line = line[: at_or_before(line, ERROR_CHARS)]
    while utf8_bytes(line) > ERROR_BYTES:
        line = line[: at_or_before(line, len(line) - 1)]
    return line.strip()


def marker(block: Block, config: Config) -> str:
    """``[Read result, 8,214 chars, left out to fit; run the tool again if it is needed]``

    The first line of an error stays.  The size is that of ``block.text``, in characters.
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
    return f"[{what}, {len(block.text):,} chars, left out to fit{tail}{began}]"


def marker_offer(block: Block, config: Config) -> Iterator[Offer]:
    """The marker as the last level of a text, if it takes at most half the tokens and bytes.

    Half, because then no marker is ever offered a marker: its own would be about as long.
    """
    text = marker(block, config)
    advised = block.kind == "result" or recall_call(block.text, config)
    least = utf8_bytes(text) + (0 if advised else ADVICE_BYTES)  # as long as one with advice
    half = 2 * least <= utf8_bytes(block.text)
    if half and smaller(text + text, block.text, config.count):
        yield Offer("replace", text, LOSS, "marker", "left out, its name and size kept")


def markers(block: Block, config: Config) -> Iterator[Offer]:
    """One offer for a tool result: its marker, loss 0.95."""
    if block.kind == "result" and block.text:
        yield from marker_offer(block, config)
