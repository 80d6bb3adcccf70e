"""Splits blocks into lines and finds the identifiers on each line and their weights.

Lines are verbatim, except that colours and the line numbers of read tools are left out, and that
the short members of a JSON object or list are on one line.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, compress
from typing import Any

from trimtab.reducers.respell import strip_escapes
from trimtab.reducers.text_boundaries import at_or_after, at_or_before
from trimtab.transcript.identifiers import NAMES_BY_RUN, apart, is_split_by_spaces, runs
from trimtab.transcript.model import Block
from trimtab.transcript.transcript import Transcript
from trimtab.transcript.user_text import pieces_of, spans_of

LONG_CHARS, PIECE_CHARS = 240, 160
"""A line above LONG_CHARS is split into pieces of about PIECE_CHARS."""
PORTION_CHARS = 65_536
"""About how many characters of a text are split into lines at once, to save memory."""
GROUND_WORDS = 2
"""How many plain words a line needs for its identifiers to count fully."""
HEADER_CHARS = 80
"""The most chars of a header (a call's tool and arguments)."""
_NUMBERED = re.compile(r"[ \t]*\d+(?:→|\t)")
_BREAK = re.compile(r"[\s,;]\S*$")


@dataclass(frozen=True, slots=True)
class Lines:
    """A block's lines in order, as parts of one ``text``: a long one in pieces.

    There may be a million of them, so their places and names are kept in one row each.
    """

    text: str
    starts: array[int]
    ends: array[int]
    names: list[str]
    """The identifiers of all lines, in order."""
    name_ends: array[int]
    """For each line, the number of identifiers up to its end."""
    has_words: bytearray
    """Whether a line with identifiers has at least two plain words as well."""
    joined: set[int]
    """The numbers of pieces that follow the piece before them on one line."""
    header: str = ""
    """For a call: its tool and the beginning of its argument values, on one line."""
    chars: int = 0
    """Chars of the text that was split into them, where it is a result's; else 0."""

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, number: int) -> str:
        return self.text[self.starts[number] : self.ends[number]]

    def __iter__(self) -> Iterator[str]:
        text = self.text
        return (text[start:end] for start, end in zip(self.starts, self.ends, strict=True))

    def names_on(self, number: int) -> list[str]:
        """The identifiers on one line."""
        start = self.name_ends[number - 1] if number else 0
        return self.names[start : self.name_ends[number]]

    def grounded(self) -> set[str]:
        """Every identifier that is among words."""
        among = compress(range(len(self)), self.has_words)
        return set(chain.from_iterable(map(self.names_on, among)))

    def add(self, start: int, row: str, spaced: str, *, joined: bool = False) -> None:
        """Add the row, or piece of one, at ``start``; ``spaced``: what ``apart`` gave for it."""
        if joined:
            self.joined.add(len(self.starts))
        names, words = self.names, 0
        for run in runs(row, spaced):
            own = NAMES_BY_RUN[run]
            if own is None:
                words += 1
            elif own:
                names += own
        self.starts.append(start)
        self.ends.append(start + len(row))
        self.name_ends.append(len(names))
        self.has_words.append(words >= GROUND_WORDS)


def _packed(lines: Lines) -> Lines:
    """The same, without the spare room of lists that grew, where the text is long: a session keeps
    them."""
    if len(lines.text) <= PORTION_CHARS:
        return lines
    return replace(
        lines, starts=lines.starts[:], ends=lines.ends[:], names=lines.names[:],
        name_ends=lines.name_ends[:],
    )  # fmt: skip


def _none_of(text: str, header: str = "", chars: int = 0) -> Lines:
    """No line of a text yet."""
    return Lines(text, array("I"), array("I"), [], array("I"), bytearray(), set(), header, chars)


def lines_of(block: Block) -> Lines:
    """The lines of one block that are not empty; of arguments, those of their values."""
    whole = "\n".join(strip_escapes(t) if "\x1b" in t else t for t in texts_of(block))
    is_result, start = block.kind == "result", 0
    whole = joined_members(whole) if is_result else whole
    header = _header(block) if block.kind == "call" else ""
    lines = _none_of(whole, header, len(whole) if is_result else 0)
    names, known = lines.names, NAMES_BY_RUN
    starts, ends, name_ends = lines.starts.append, lines.ends.append, lines.name_ends.append
    has_words = lines.has_words.append
    for text in _portions(whole):
        numbered = is_result and ("\t" in text or "→" in text)
        split = is_split_by_spaces(text)
        for row, spaced in zip(text.split("\n"), apart(text).split("\n"), strict=True):
            begin, start = start, start + len(row) + 1
            if numbered and (match := _NUMBERED.match(row)):
                row, spaced, begin = row[match.end() :], spaced[match.end() :], begin + match.end()
            row = row.rstrip()
            if not row:
                continue
            if (size := len(row)) <= LONG_CHARS:  # ``lines.add``, inlined: there may be a million
                words = 0
                for run in spaced.split() if split else runs(row, spaced):
                    own = known[run]
                    if own is None:
                        words += 1
                    elif own:
                        names += own
                starts(begin)
                ends(begin + size)
                name_ends(len(names))
                has_words(words >= GROUND_WORDS)
                continue
            at = 0
            for piece in pieces(row):
                lines.add(begin + at, piece, spaced[at : at + len(piece)], joined=at > 0)
                at += len(piece)
    return _packed(lines)


def _portions(text: str) -> Iterator[str]:
    """A text in portions that end where a line ends."""
    start = 0
    while start <= len(text):
        end = text.find("\n", start + PORTION_CHARS)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1


def texts_of(block: Block) -> list[str]:
    """The texts the model reads in a block: the values of arguments, else the text itself."""
    if block.kind != "call" or block.spelling == "string":
        return [block.text]
    try:
        tree = json.loads(block.text)
    except (ValueError, RecursionError):
        return [block.text]
    return list(_strings(tree))


def _strings(tree: Any) -> Iterator[str]:
    stack = [tree]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            stack.extend(reversed(value.values()))
        elif isinstance(value, list):
            stack.extend(reversed(value))
        elif isinstance(value, int) and not isinstance(value, bool):
            yield str(value)


def _header(block: Block) -> str:
    """``Read src/app.py 40``: the tool and the first line of each argument value, shortened."""
    shown = ""
    for text in texts_of(block):
        line = text.strip().split("\n", 1)[0].strip()
        shown = f"{shown} {line}" if shown and line else shown or line
        if len(shown) > HEADER_CHARS:
            shown = _begun(shown)
            break
    return f"{block.tool or 'tool'} {shown}".rstrip()


def _begun(line: str) -> str:
    return line[: at_or_before(line, HEADER_CHARS - 2)].rstrip() + " …"


def joined_members(text: str) -> str:
    """JSON over several lines with the short members of each object or list on one line, as far as
    a piece goes; another text as it is.

    One member alone says nothing: which ticket is it that has ``"assignee": "lin"``?
    """
    begun = text.lstrip()[:1] in ("{", "[") and "\n" in text
    try:
        if not begun or not isinstance(json.loads(text), dict | list):
            return text
    except (ValueError, RecursionError):
        return text
    joined: list[str] = []
    for row in filter(None, map(str.strip, text.split("\n"))):
        if joined and row not in ("{", "[") and len(joined[-1]) + len(row) < PIECE_CHARS:
            joined[-1] += f" {row}"
        else:
            joined.append(row)
    return "\n".join(joined)


def pieces(row: str) -> Iterator[str]:
    """A long line in pieces, split in the same way whatever follows a piece."""
    start = 0
    while start < len(row):
        end = start + PIECE_CHARS
        if end < len(row) and (match := _BREAK.search(row, start + PIECE_CHARS // 2, end)):
            end = match.start() + 1
        end = at_or_after(row, end)
        yield row[start:end]
        start = end


def asked_lines(text: str) -> tuple[Lines, frozenset[int]]:
    """(lines of a user's text, numbers of those that the user wrote).

    What was written is split into its pieces (see ``transcript/user_text``), which may span lines;
    what was pasted into lines.
    """
    lines, written, spaced = _none_of(text), set[int](), apart(text)
    for span in spans_of(text):
        if span.kind == "written":
            joined = False
            for start, end in pieces_of(text, span):
                piece = text[start:end].strip()
                if not piece:
                    continue
                begin = text.index(piece, start)
                # A piece in mid-line carries the blank that parts it from the one before it.
                if joined := joined and "\n" not in text[lines.ends[-1] : begin]:
                    begin = lines.ends[-1]
                stop = start + len(text[start:end].rstrip())
                written.add(len(lines))
                lines.add(begin, text[begin:stop], spaced[begin:stop], joined=joined)
                joined = True
            continue
        start = span.start
        for row in text[span.start : span.end].split("\n"):
            at = start
            for piece in pieces(row.rstrip()):
                lines.add(at, piece, spaced[at : at + len(piece)], joined=at > start)
                at += len(piece)
            start += len(row) + 1
    return lines, frozenset(written)


# --- what an identifier weighs: most where the agent itself wrote it ---

WRITTEN, REUSED = 4.0, 2.5
"""Weight of an identifier that the agent ever wrote, and of one that it wrote after having seen it
(tuned on recorded sessions: docs/benchmark.md)."""


def counts(block: Block) -> bool:
    """Whether a block has lines that are weighed."""
    return block.kind in ("text", "call", "result") and bool(block.text)


def identifier_weights(
    transcript: Transcript, read: Callable[[Block], Lines] = lines_of
) -> Mapping[str, float]:
    """Identifier → weight in a transcript; a missing one has weight 1."""
    return weighed(
        (message.role == "assistant", read(block))
        for message in transcript.messages
        for block in message.blocks
        if counts(block)
    )


def weighed(blocks: Iterable[tuple[bool, Lines]]) -> Mapping[str, float]:
    """Identifier → weight, from (whether the agent wrote it, lines) of each block in order."""
    blocks = list(blocks)
    written = set[str]().union(*(lines.names for own, lines in blocks if own))
    seen: set[str] = set()
    weights: dict[str, float] = {}
    for own, lines in blocks if written else ():
        names = written.intersection(lines.names)
        if own:
            # not ``names - weights.keys()``, which walks over all weights for each block
            weights |= dict.fromkeys(names.difference(weights), WRITTEN)
            weights |= dict.fromkeys(names & seen, WRITTEN * REUSED)
        seen |= names
    return weights


Key = tuple[int, int]
"""(message, index) of a block."""


def only(lines: Lines, numbers: Iterable[int]) -> Lines:
    """``lines`` with only these numbers; a piece whose previous piece is missing begins a row."""
    some, before = _none_of(lines.text, lines.header, lines.chars), -1
    for number in numbers:
        if number in lines.joined and before == number - 1:
            some.joined.add(len(some))
        some.starts.append(lines.starts[number])
        some.ends.append(lines.ends[number])
        some.names.extend(lines.names_on(number))
        some.name_ends.append(len(some.names))
        some.has_words.append(lines.has_words[number])
        before = number
    return some
