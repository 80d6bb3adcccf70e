"""Splits blocks into lines, finds the identifiers on each line and their weights, and finds the
lines that earlier notes kept.

Lines are verbatim, except that colours and the line numbers of read tools are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from trimtab.reducers.respell import strip_escapes
from trimtab.reducers.text_boundaries import at_or_after, at_or_before
from trimtab.transcript.identifiers import TOKEN, names_in
from trimtab.transcript.model import Block, Message
from trimtab.transcript.transcript import Transcript
from trimtab.transcript.user_constraints import demand_spans

LONG_CHARS, PIECE_CHARS = 240, 160
"""A line above LONG_CHARS is split into pieces of about PIECE_CHARS."""
GROUND_WORDS = 2
"""How many plain words a line needs for its identifiers to count fully."""
HEADER_CHARS = 80
"""The most chars of a header (a call's tool and arguments)."""
_NUMBERED = re.compile(r"[ \t]*\d+(?:→|\t)")
_BREAK = re.compile(r"[\s,;]\S*$")


class Line(NamedTuple):
    """One line, or a piece of a long one: ``joined`` to the piece before it.

    ``names``: the identifiers on it; ``has_words``: whether it has at least two plain words.
    """

    text: str
    names: tuple[str, ...]
    has_words: bool = False
    joined: bool = False


@dataclass(frozen=True, slots=True)
class Lines:
    """A block's lines in order, and every identifier in it, ``grounded`` among words or not."""

    lines: tuple[Line, ...]
    names: frozenset[str]
    grounded: frozenset[str]
    header: str = ""
    """For a call: its tool and the beginning of its argument values, on one line."""
    chars: int = 0
    """Chars of the text that was split into them, where it is a result's; else 0."""


def lines_of(block: Block) -> Lines:
    """The lines of one block; of arguments, those of their values."""
    read_lines: list[Line] = []
    every: set[str] = set()
    chars = 0
    for text in texts_of(block):
        text = strip_escapes(text) if "\x1b" in text else text
        if block.kind == "result":
            text = joined_members(text)
        chars += len(text)
        for row, joined in _split(text, numbered=block.kind == "result"):
            line = _line(row, joined)
            every.update(line.names)
            read_lines.append(line)
    grounded = frozenset(name for line in read_lines if line.has_words for name in line.names)
    header = _header(block) if block.kind == "call" else ""
    told = chars if block.kind == "result" else 0
    return Lines(tuple(read_lines), frozenset(every), grounded, header, told)


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


def _split(text: str, *, numbered: bool) -> Iterator[tuple[str, bool]]:
    """Rows that are not empty, and whether each is joined to the one before it."""
    for row in text.split("\n"):
        if numbered and (match := _NUMBERED.match(row)):
            row = row[match.end() :]
        row = row.rstrip()
        if not row:
            continue
        if len(row) <= LONG_CHARS:
            yield row, False
            continue
        for number, piece in enumerate(pieces(row)):
            yield piece, number > 0


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
    """(lines of a user's text, numbers of those with demands); a sentence with a demand is a piece
    of its own."""
    lines: list[Line] = []
    wanted: set[int] = set()
    spans, start = demand_spans(text), 0
    for row in text.split("\n"):
        at, stop, joined = start, start + len(row), False
        own = [(max(begin, start), min(end, stop)) for begin, end in spans]
        for begin, end in [*((b, e) for b, e in own if b < e), (stop, stop)]:
            for piece in pieces(text[at:begin]):
                if joined or piece.strip():
                    lines.append(_line(piece, joined))
                    joined = True
            if begin < end:
                wanted.add(len(lines))
                lines.append(_line(text[begin:end], joined))
                joined = True
            at = end
        start = stop + 1
    every = frozenset(name for line in lines for name in line.names)
    grounded = frozenset(name for line in lines if line.has_words for name in line.names)
    return Lines(tuple(lines), every, grounded), frozenset(wanted)


def _line(text: str, joined: bool) -> Line:
    names, words = _names(text)
    return Line(text, names, words >= GROUND_WORDS, joined)


def _names(text: str) -> tuple[tuple[str, ...], int]:
    """The identifiers of a line, and how many plain words it has."""
    names: list[str] = []
    words = 0
    for token in TOKEN.findall(text):
        own_names = names_in(token)
        if own_names:
            names += [name for name, _ in own_names]
        elif len(token) > 1 and not token.isdigit():
            words += 1
    return tuple(names), words


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
    seen: set[str] = set()
    weights: dict[str, float] = {}
    for own, lines in blocks:
        if own:
            weights |= dict.fromkeys(lines.names - weights.keys(), WRITTEN)
            weights |= dict.fromkeys(lines.names & seen, WRITTEN * REUSED)
        seen |= lines.names
    return weights


# --- where the lines of old steps stand ---

Key = tuple[int, int]
"""(message, index) of a block."""


Speaker = Literal["tool", "model", "user"]


def speaker_of(message: Message, block: Block) -> Speaker:
    """The speaker of a block."""
    if block.kind == "result":
        return "tool"
    return "model" if message.role == "assistant" else "user"


class LineIndex:
    """An index of one speaker's lines in the first ``end`` messages; of equal lines, the newest."""

    def __init__(
        self,
        transcript: Transcript,
        end: int,
        read: Callable[[Block], Lines] = lines_of,
        speaker: Speaker | None = None,
    ) -> None:
        self._at: dict[str, tuple[int, int, int]] = {}
        """Text of a line → message, index of the block, number of the line."""
        for number, message in enumerate(transcript.messages[:end]):
            for index, block in enumerate(message.blocks):
                if counts(block) and speaker in (None, speaker_of(message, block)):
                    for row, line in enumerate(read(block).lines):
                        self._at[line.text] = number, index, row

    def left(self, notes: Iterable[str]) -> dict[Key, list[int]]:
        """Block → the numbers of its lines that occur in one of ``notes``."""
        rows_by_block: dict[Key, set[int]] = {}
        for text in dict.fromkeys(row for note in notes for row in note.split("\n")):
            for message, index, row in self._stand(text):
                rows_by_block.setdefault((message, index), set()).add(row)
        return {key: sorted(rows_by_block[key]) for key in sorted(rows_by_block)}

    def _stand(self, row: str) -> Iterator[tuple[int, int, int]]:
        """The origins of a row of a note; a row may be several joined pieces of one line."""
        if whole := self._at.get(row):
            yield whole
        else:
            yield from filter(None, map(self._at.get, pieces(row)))


def only(lines: Lines, numbers: Iterable[int]) -> Lines:
    """``lines`` with only these numbers; a piece whose previous piece is missing begins a row."""
    kept, before = [], -1
    for number in numbers:
        line = lines.lines[number]
        joined = line.joined and before == number - 1
        kept.append(line if joined == line.joined else line._replace(joined=joined))
        before = number
    return replace(lines, lines=tuple(kept))
