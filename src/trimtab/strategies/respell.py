"""Lossless re-spelling: the same content in fewer tokens.

Knows JSON whitespace, terminal control and repeated lines.  What is taken away is either without
meaning (layout, colours), never stayed on the screen (progress), or is written down in a note.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import groupby, islice
from operator import eq

from trimtab.model import Block
from trimtab.strategies import terminal
from trimtab.strategies.base import Config, Offer, smaller
from trimtab.strategies.line_numbers import is_numbered

NOTE = "[the line above, {} more times]"
_JSON_STRING = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")', re.DOTALL)


def respell(block: Block, config: Config) -> Iterator[Offer]:
    """One offer for a tool result, loss 0: all that applies, composed.  Nothing if none does."""
    if block.kind != "result":
        return
    text, steps = respelled(block.text, config.count)
    if steps and smaller(text, block.text, config.count):
        yield Offer("replace", text, 0.0, "respell", ", ".join(steps))


def respelled(text: str, count: Callable[[str], int]) -> tuple[str, tuple[str, ...]]:
    """The text re-spelled, and what was done; the same object and () when nothing applies."""
    compact = compact_json(text)
    if compact is not text:
        return compact, ("compact JSON",)
    steps = []
    new = text
    for name, step in _STEPS:
        before, new = new, step(new)
        if new != before:
            steps.append(name)
    if steps and (compact := compact_json(new)) is not new:  # JSON in colours
        return compact, (*steps, "compact JSON")
    folded = fold_repeats(new, count)
    if folded != new:
        steps.append("repeated lines once")
    # Nothing visible left: an empty result is refused by some providers.
    return (folded, tuple(steps)) if steps and folded.strip() else (text, ())


def compact_json(text: str) -> str:
    """Valid JSON without whitespace between its parts; any other text as it is.

    Strings, numbers and the order and number of keys keep their spelling: nothing is decoded.
    """
    ends = text[:64].lstrip(" \t\n\r")[:1] + text[-64:].rstrip(" \t\n\r")[-1:]
    if ends not in ("{}", "[]") or not any(space in text for space in ("\n", ": ", ", ", " ")):
        return text
    try:  # hooks that keep next to nothing: a 50 MB result must not become a tree
        json.loads(text, object_pairs_hook=bool, parse_int=bool, parse_float=bool)
    except (ValueError, RecursionError):
        return text
    parts = _JSON_STRING.split(text)
    parts[::2] = ["".join(part.split()) for part in parts[::2]]  # what stands between strings
    compact = "".join(parts)
    return text if len(compact) == len(text) else compact


def strip_line_ends(text: str) -> str:
    """Spaces and tabs at line ends removed; not in a file with line numbers.

    What the model saw of a file it may quote to change it, and there every blank counts.
    """
    if not text.endswith((" ", "\t", " \r", "\t\r")) and not _has_blank_end(text):
        return text
    if is_numbered(text):
        return text
    return "\n".join(
        line[:-1].rstrip(" \t") + "\r" if line.endswith("\r") else line.rstrip(" \t")
        for line in text.split("\n")
    )


def _has_blank_end(text: str) -> bool:
    # One character is found many times faster than two, and most texts lack one of the first.
    if "\n" not in text:
        return False
    ends = ("\n", "\r\n") if "\r" in text else ("\n",)
    return any(blank in text and any(blank + end in text for end in ends) for blank in " \t")


def fold_repeats(text: str, count: Callable[[str], int]) -> str:
    """Three or more equal lines in a row become the line and a note, where that is shorter.

    Read back by repeating the line above each note.  Until nothing changes: a note can come to
    stand beside lines that look like it.
    """
    while (folded := _fold(text, count)) != text:
        text = folded
    return text


def _fold(text: str, count: Callable[[str], int]) -> str:
    lines = text.split("\n")
    if b"\1\1" not in bytes(map(eq, lines, islice(lines, 1, None))):  # no three in a row
        return text
    kept: list[str] = []
    for line, run in groupby(lines):
        times = sum(1 for _ in run)
        note = NOTE.format(f"{times - 1:,}") + ("\r" if line.endswith("\r") else "")
        saved = (times - 1) * (len(line) + 1) - len(note) - 1
        if times < 3 or saved <= 0 or not line.strip():
            kept += [line] * times
        elif (times - 1) * count(line + "\n") > count(note + "\n"):
            kept += [line, note]
        else:
            kept += [line] * times
    return "\n".join(kept)


_STEPS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("progress as last shown", terminal.settle_progress),
    ("no colour codes", terminal.strip_escapes),
    ("no blanks at line ends", strip_line_ends),
)
