"""Lossless re-spelling: the same content in fewer tokens.

It removes what has no meaning (layout, colours), was overwritten on the screen (progress), can be
derived from the rest (line numbers), is an escape of a letter, or is recorded in a note.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import groupby, islice, pairwise
from operator import eq

from trimtab.reducers.base import Config, Offer, smaller
from trimtab.transcript.model import Block

NOTE = "[the line above, {} more times]"
_JSON_STRING = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")', re.DOTALL)


def respell(block: Block, config: Config) -> Iterator[Offer]:
    """One offer for a tool result, loss 0: all steps that apply, composed.  None if none does."""
    if block.kind != "result":
        return
    text, steps = respell_text(block.text, config.count)
    if steps and smaller(text, block.text, config.count):
        yield Offer("replace", text, 0.0, "respell", ", ".join(steps))


def respell_text(text: str, count: Callable[[str], int]) -> tuple[str, tuple[str, ...]]:
    """The text re-spelled and the names of the steps; the same object and () if none applies."""
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
    """Valid JSON without whitespace between its tokens; any other text unchanged.

    Strings, numbers and the order and number of keys keep their spelling: nothing is decoded.
    """
    ends = text[:64].lstrip(" \t\n\r")[:1] + text[-64:].rstrip(" \t\n\r")[-1:]
    if ends not in ("{}", "[]") or not any(space in text for space in ("\n", ": ", ", ", " ")):
        return text
    try:  # only to validate: these hooks keep a 50 MB result from becoming a tree
        json.loads(text, object_pairs_hook=bool, parse_int=bool, parse_float=bool)
    except (ValueError, RecursionError):
        return text
    parts = _JSON_STRING.split(text)
    parts[::2] = ["".join(part.split()) for part in parts[::2]]  # the text between strings
    compact = "".join(parts)
    return text if len(compact) == len(text) else compact


def strip_line_ends(text: str) -> str:
    """Remove spaces and tabs at line ends, except in a file with line numbers.

    An edit call must quote a file exactly as the model saw it, blanks included.
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
    # Searching one character is many times faster than two, and most texts lack one of them.
    if "\n" not in text:
        return False
    ends = ("\n", "\r\n") if "\r" in text else ("\n",)
    return any(blank in text and any(blank + end in text for end in ends) for blank in " \t")


def fold_repeats(text: str, count: Callable[[str], int]) -> str:
    """Replace three or more equal lines in a row by the line and a note, if that is shorter.

    It can be undone by repeating the line above each note.  Repeated until nothing changes, since
    a note can end up next to lines that look like it.
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


# --- text as a terminal shows it (ECMA-48); if the cursor moves up, every frame is kept ---

# Bounded and within a line, so that a forged sequence cannot swallow a whole result.
_CONTROL = re.compile(
    r"\x1b(?:"
    r"\[[0-?]{0,64}[ -/]{0,8}[@-~]?"  # CSI: colours, cursor
    r"|\]8;[^\x07\x1b\n;]{0,256};(?P<link>[^\x07\x1b\n]{0,2048})(?:\x07|\x1b\\)"  # hyperlink
    r"|\][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)"  # OSC: window title
    r"|[PX^_][^\x1b\n]{0,4096}\x1b\\"  # DCS, SOS, PM, APC
    r"|[()*+\-./#%][0-9A-Za-z@<=>]"  # character sets
    r"|[=>78cDEHMNOZ]"
    r")?"  # else the bare escape character alone
)
_ERASE = re.compile(r"\x1b\[[012]?K")
_MOVE = re.compile(r"\x1b\[[0-9;]*[ABCDEFGHJLMPSTXdfsu@]|\x1b[78DEM]|\x08")


def strip_escapes(text: str) -> str:
    """Remove escape sequences; a hyperlink's address, which was not on screen, is kept as <…>."""
    return _CONTROL.sub(_shown, text) if "\x1b" in text else text


def _shown(match: re.Match[str]) -> str:
    return f"<{match['link']}>" if match["link"] else ""


def settle_progress(text: str) -> str:
    """Reduce lines rewritten by carriage returns to their last state; CR LF line ends are kept."""
    if "\r" not in text or text.count("\r") == text.count("\r\n"):
        return text
    *lines, last = text.split("\n")
    settled = [
        settle_line(line[:-1]) + "\r" if line.endswith("\r") else settle_line(line)
        for line in lines
    ]
    return "\n".join([*settled, settle_line(last)])


def settle_line(line: str) -> str:
    """One line as a terminal finally shows it, with later text written over earlier text.

    If that cannot be known (cursor movement, wide characters under shorter text), every state is
    kept, each on its own line.
    """
    if "\r" not in line:
        return line
    states = [state for state in line.split("\r") if state]
    if _MOVE.search(line):
        return "\n".join(states)
    shown: list[str] = []  # pieces of the screen line from the left
    cells = 0
    certain = True
    for state in reversed(states):
        text = strip_escapes(state)
        if len(text) > cells:
            certain = certain and (not cells or (_one_cell_each(text) and _one_cell_each(shown[0])))
            shown.append(text[cells:])
            cells = len(text)
        if _ERASE.search(state):
            break
    return "".join(shown) if certain else "\n".join(states)


def _one_cell_each(text: str) -> bool:
    if text.isascii():
        return text.isprintable()
    return text.isprintable() and not any(
        unicodedata.east_asian_width(char) in "WF" or unicodedata.category(char) in ("Mn", "Me")
        for char in text
    )


_STEPS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("progress as last shown", settle_progress),
    ("no colour codes", strip_escapes),
    ("no blanks at line ends", strip_line_ends),
)


# --- line numbers ---

EVERY = 10
_NUMBER = re.compile(r"( *)([0-9]{1,9})(→|\t| ?\| ?|: )")
_CELLS = re.compile(r" *[0-9]+\t[^\t\n]+\t")
_SIGNS = ("→", "\t", "|", ": ")
Mark = tuple[int, int, str, int]
"""(number, its width with indent, the sign after it, the start of the line's own text)."""


def line_numbers(block: Block, config: Config) -> Iterator[Offer]:
    """One offer for a tool result with numbered lines, loss 0; none if it cannot be exact."""
    if block.kind != "result":
        return
    text = thin_line_numbers(block.text)
    if text is not block.text and smaller(text, block.text, config.count):
        yield Offer("replace", text, 0.0, "line-numbers", "a number on each tenth line")


def thin_line_numbers(text: str) -> str:
    """The text with fewer line numbers; the same object if it has none or this is not exact.

    The text after the numbers stays byte for byte the same, so that an edit call can quote it.

    A number is kept on the first and last line of a run, on each tenth, and where the line's own
    text begins like a number.  To restore the rest: if the lines between two numbers of one kind
    are as many as the missing numbers, each line has the next number.
    """
    if "\n" not in text or not any(sign in text for sign in _SIGNS):
        return text
    lines = text.split("\n")
    if not any(map(_NUMBER.match, lines)):
        return text  # most texts with such a sign
    marks = [_mark(line) for line in lines]
    if _is_table(lines, marks):
        return text
    shown: list[int] = []
    counted = False  # whether this line's number is the one before it plus one
    for at, mark in enumerate(marks):
        if mark is None:
            counted = False
            continue
        goes_on = at + 1 < len(marks) and _follows(mark, marks[at + 1])
        tenth = mark[0] % EVERY == 0
        if tenth or not (counted and goes_on) or _NUMBER.match(lines[at], mark[3]):
            shown.append(at)
        else:
            lines[at] = lines[at][mark[3] :]
        counted = goes_on
    for start, end in pairwise(shown):
        # Lines that never had a number could be mistaken for lines whose number was removed.
        if marks[start + 1] is None and _follows(marks[start], marks[end], end - start):
            return text
    numbers = sum(mark is not None for mark in marks)
    return text if len(shown) == numbers else "\n".join(lines)


def _is_table(lines: list[str], marks: list[Mark | None]) -> bool:
    """Whether the numbers are a table's column: most lines have further tab-separated cells."""
    tabbed = [at for at, mark in enumerate(marks) if mark is not None and mark[2] == "\t"]
    cells = sum(_CELLS.match(lines[at]) is not None for at in tabbed)
    return 2 * cells > len(tabbed)


def is_numbered(text: str) -> bool:
    """Whether two numbered lines differ in number by the count of lines between them."""
    marks = [_mark(line) for line in text.split("\n")]
    shown = [at for at, mark in enumerate(marks) if mark is not None]
    return any(_follows(marks[at], marks[end], end - at) for at, end in pairwise(shown))


def _mark(line: str) -> Mark | None:
    match = _NUMBER.match(line)
    if match is None or (len(match[2]) > 1 and match[2][0] == "0"):
        return None
    return int(match[2]), match.end(2), match[3], match.end()


def _follows(first: Mark | None, second: Mark | None, step: int = 1) -> bool:
    if first is None or second is None or second[0] != first[0] + step or first[2] != second[2]:
        return False
    return second[1] == max(first[1], len(str(second[0])))


# --- ``\u0434`` in JSON replaced by the letter itself, at a fifth of the tokens ---

MIN_ESCAPES = 16
"""Least number of escapes; fewer are not worth changing a block."""
_ESCAPE = re.compile(
    r"\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|u([0-9a-f]{4})|.)", re.DOTALL
)
_UPPER = re.compile(r"\\u(?=[0-9a-f]{0,3}[A-F])[0-9A-Fa-f]{4}")


def unescape(block: Block, config: Config) -> Iterator[Offer]:
    """One offer for a tool result, loss 0: escaped printable characters written as themselves.

    None unless the result is JSON, all ASCII, with only lower-case escapes: then writing each
    character above ASCII as an escape again restores the original exactly.
    """
    if block.kind != "result" or block.text.count("\\u") < MIN_ESCAPES or not block.text.isascii():
        return
    if _UPPER.search(block.text):
        return
    try:  # only to validate: these hooks keep a 50 MB result from becoming a tree
        json.loads(block.text, object_pairs_hook=bool, parse_int=bool, parse_float=bool)
    except (ValueError, RecursionError):
        return
    text = _ESCAPE.sub(_character, block.text)
    if smaller(text, block.text, config.count):
        yield Offer("replace", text, 0.0, "unescape", "characters instead of \\u escapes")


def _character(match: re.Match[str]) -> str:
    high, low, code = match.groups()
    if high:
        char = chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    elif code:
        char = chr(int(code, 16))
    else:
        return match[0]
    return char if char > "\x7f" and char.isprintable() else match[0]
