"""Tells what a user wrote from what a user pasted, by the shapes of lines and by length.

In doubt a text is written.  No word decides, so it works in any language.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

Kind = Literal["written", "pasted", "client"]

MIN_PASTED = 400
"""Characters; something shorter is cheap to keep, so it counts as written whatever its shape."""
MIN_DOCUMENT, MIN_ANCHORS = 3_000, 5
"""Characters and headings from which prose with headings is a pasted document: what people type for
an agent has less of both."""
MAX_TYPED = 12_000
"""Characters; nobody types more at one go, so the middle of a longer stretch was pasted."""
TYPICAL, TYPICAL_SHARE = 3, 0.25
"""A paragraph belongs to a document if so many are at the same distance from a heading, in this
share of its sections."""
MAX_ODD_SHARE, MAX_ODD = 0.25, 8
"""A document in which more of the paragraphs are not typical is irregular: all of them are its."""
MAX_JOINED_LINES = 3
"""Lines without a shape between lines with one, no blank line around them, that are pasted too."""


class TextSpan(NamedTuple):
    """A part of a text: ``text[start:end]``; ``client``: between ``<system-reminder>`` tags."""

    start: int
    end: int
    kind: Kind


def spans_of(text: str) -> list[TextSpan]:
    """The text in parts, in order and without gaps; neighbours differ in kind."""
    found: list[TextSpan] = []
    at = 0
    while (start := text.find(_REMINDER, at)) >= 0:
        if (end := text.find(_REMINDER_END, start)) < 0:
            break
        end += len(_REMINDER_END)
        found += _outside_fences(text, at, start)
        found.append(TextSpan(start, end, "client"))
        at = end
    found += _outside_fences(text, at, len(text))
    return _merged(found)


_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"
_FENCE = re.compile(
    r"^[ ]{0,3}(`{3,}|~{3,})[^\n`]*\n.*?(?:^[ ]{0,3}\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE
)


def _outside_fences(text: str, start: int, end: int) -> list[TextSpan]:
    if end - start < MIN_PASTED:
        return [TextSpan(start, end, "written")] if start < end else []
    blocks: list[_TextBlock] = []
    at = start
    for match in _FENCE.finditer(text, start, end):
        blocks += _blocks(text, at, match.start())
        blocks.append(_TextBlock(match.start(), match.end(), "machine"))
        at = match.end()
    blocks += _blocks(text, at, end)
    if not blocks:
        return [TextSpan(start, end, "written")]
    _mark_documents(blocks)
    _mark_machine(text, blocks)
    edges = [start, *(block.start for block in blocks[1:]), end]
    rows = zip(edges, edges[1:], blocks, strict=False)
    parts = _merged(TextSpan(a, b, "pasted" if one.pasted else "written") for a, b, one in rows)
    long = (
        part if part.kind == "written" or part.end - part.start >= MIN_PASTED
        else part._replace(kind="written") for part in parts
    )  # fmt: skip
    return [piece for part in _merged(long) for piece in _beyond_typing(text, part)]


def _merged(spans: Iterator[TextSpan] | list[TextSpan]) -> list[TextSpan]:
    merged: list[TextSpan] = []
    for span in spans:
        if merged and merged[-1].kind == span.kind:
            merged[-1] = merged[-1]._replace(end=span.end)
        elif span.start < span.end:
            merged.append(span)
    return merged


# --- lines of one shape make a block ---

Shape = Literal["machine", "heading", "mail", "quote", "list", "prose"]


@dataclass
class _TextBlock:
    """Neighbouring lines of one shape; ``joined``: no blank line before it."""

    start: int
    end: int
    shape: Shape
    joined: bool = False
    lines: int = 1
    pasted: bool = False


def _blocks(text: str, start: int, end: int) -> list[_TextBlock]:
    """The blocks of ``text[start:end]``; blank lines belong to none."""
    blocks: list[_TextBlock] = []
    blank, at = True, start
    for line in text[start:end].split("\n"):
        if line.strip():
            shape = shape_of(line)
            last = blocks[-1] if blocks else None
            if last is not None and not blank and _continues(last.shape, shape, line):
                last.end, last.lines = at + len(line), last.lines + 1
            else:
                blocks.append(_TextBlock(at, at + len(line), shape, joined=not blank))
        blank = not line.strip()
        at += len(line) + 1
    return blocks


def _continues(before: Shape, shape: Shape, line: str) -> bool:
    """Whether a line belongs to the block before it, as indented lines below code or an item do."""
    if shape == "prose" and before in ("list", "machine"):
        return line[0].isspace()
    return before == shape


_HEADING = re.compile(
    r"#{1,6}\s+\S|(?:§\s*)?\d+(?:\.\d+)+\.?\s+\S|\d{1,2}\s+\w[^.!?]{0,58}$|[A-Z0-9][A-Z0-9 ]{6,60}$"
)
_MAIL = re.compile(r"(?:From|To|Cc|Bcc|Date|Sent|Subject|Reply-To|Message-ID|Von|An|Betreff): \S")
_LIST = re.compile(r"\s*(?:[-*•–+·]|\d{1,3}[.)]|[a-zA-Z][.)]|[①-⑳]|[（(]\d+[)）])\s*(?=\S)")
_BULLET = re.compile(r"\s*(?:[-*•–·]\s|\d{1,3}[.)]\s|[①-⑳])")
_MACHINE = re.compile(
    r"""
      \W{0,2}(?:\d{4}-\d\d-\d\d|\d\d?:\d\d\b|\d{1,2}/\w{3}/\d{4}|[A-Z][a-z]{2}\s+\d{1,2}\ \d\d:)
    | \W{0,2}(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|TRACE|CRITICAL|NOTICE)\b[\]: |\-]
    | \s*(?:File\ "|Traceback\ \(|Caused\ by:|at\ [\w.$<>]+[ (]|goroutine\ \d)
    | [\w.]+(?:Error|Exception|Warning)\b[:(]
    | (?:diff\ --git|index\ [0-9a-f]{7}|@@\ |\+\+\+\ |---\ \S|\+[^\s+]|\+\s{2}|-\s{2,}\S)
    | \s*["'{}\[\]].*[,{}\[\]:"']\s*$
    | \s*[\])}{\[,;]+\s*$
    | \s*(?:def|class|func|fn|import|package|namespace|struct|interface)\ [\w.]+
      .*[({:;]?\s*$(?<![.!?])
    | \s*from\ [\w.]+\ import\ | \#include\b | \#!/ | \s*(?://|/\*|\*/|<!--)
    | \s*(?:public|private|protected|static|const|let|var|export|async)\ .*[({=;]
    | \s*(?:return|raise|throw|if|for|while|elif|else|except|try|with|case)\b.*[(=\[].*[:;{)]\s*$
    | .*(?:[{;]|\)\s*->.*|\)\s*:|=>)\s*$
    | \s*</?[a-zA-Z!][^>\n]*>
    | \s*\|.*\|\s*$ | \s*\+[-=+]{3,}
    | \s*[\w.\-]+\s*=\s*\S+\s*$
    | .*\S{100}
    """,
    re.VERBOSE,
)
_SEPARATED = re.compile(r"[,;|\t](?=\S)")
_SIGNS = re.compile(r"[#$%&*+/<=>@\\^_`{|}~\[\]]")
_DIGITS = re.compile(r"\d")
SIGNS_SHARE = 0.16
"""Share of a line's characters, signs of code and half of the digits, above which no person wrote
it."""
MAX_SHAPED_CHARS = 2_000
"""No more of a line is looked at."""


def shape_of(line: str) -> Shape:
    """The shape of one line that is not blank."""
    line = line[:MAX_SHAPED_CHARS].rstrip()
    if _HEADING.match(line):
        return "heading"
    if _MAIL.match(line):
        return "mail"
    if line[0] == ">":
        return "quote"
    if _BULLET.match(line):
        return "list"
    return "machine" if _is_machine(line) else "prose"


def _is_machine(line: str) -> bool:
    if _MACHINE.match(line) and not _spaceless_script(line):
        return True
    if len(_SEPARATED.findall(line)) >= 3:
        return True
    signs = len(_SIGNS.findall(line)) + len(_DIGITS.findall(line)) / 2
    return len(line) >= 16 and signs / len(line) > SIGNS_SHARE


def _spaceless_script(line: str) -> bool:
    """Whether most of a line is of a script such as Chinese or Thai: its long runs are prose."""
    return sum(char >= "\u0e00" for char in line) * 2 > len(line)


# --- blocks that were pasted ---


def _mark_documents(blocks: list[_TextBlock]) -> None:
    """Mark the headings of a long document, and the paragraphs that are where its paragraphs do.

    A paragraph that only one place has, such as one after the last list of a section, is the
    user's, unless the document has many such.
    """
    anchors = [n for n, block in enumerate(blocks) if block.shape in ("heading", "mail")]
    size = sum(blocks[n].lines for n in anchors)
    if not anchors or size < MIN_ANCHORS:
        return
    if blocks[-1].end - blocks[anchors[0]].start < MIN_DOCUMENT:
        return
    places = dict(_places(blocks, anchors[0]))
    if blocks[-1].shape == "prose":
        places.pop(len(blocks) - 1)  # what ends a message is mostly the request
    times = Counter(places.values())
    often = max(TYPICAL, TYPICAL_SHARE * len(anchors))
    typical = {n for n, place in places.items() if times[place] >= often or n in anchors}
    last = max(typical)
    inside = {n for n in places if n < last}
    if len(inside - typical) > max(MAX_ODD, MAX_ODD_SHARE * len(inside)):
        typical |= inside
    if sum(blocks[n].end - blocks[n].start for n in typical) >= MIN_DOCUMENT:
        for number in typical:
            blocks[number].pasted = True


def _places(blocks: list[_TextBlock], first: int) -> Iterator[tuple[int, tuple[str, str, int]]]:
    """Block → its place: the shape of the anchor before it, its own shape, and the distance."""
    anchor, distance = blocks[first].shape, 0
    for number in range(first, len(blocks)):
        block = blocks[number]
        if block.shape in ("heading", "mail"):
            anchor, distance = block.shape, 0
        else:
            distance += 1
        yield number, (anchor, block.shape, distance)


def _mark_machine(text: str, blocks: list[_TextBlock]) -> None:
    """Mark blocks that look as programs print, and short ones without a shape between them."""
    for block in blocks:
        block.pasted = block.pasted or block.shape == "machine"
    for number in range(1, len(blocks) - 1):
        before, block, after = blocks[number - 1 : number + 2]
        between = before.pasted and (after.pasted or after.shape == "machine")
        joined = block.joined and after.joined
        comment = block.shape == "heading" and text[block.start] == "#"
        if between and (comment or (joined and block.lines <= MAX_JOINED_LINES)):
            block.pasted = True


_PARAGRAPH_END = re.compile(r"\n[ \t]*\n\s*")


def _beyond_typing(text: str, span: TextSpan) -> list[TextSpan]:
    """A written part that is too long to have been typed: its first and last paragraphs."""
    start, end, kind = span
    if kind != "written" or end - start <= MAX_TYPED:
        return [span]
    ends = [match.end() for match in _PARAGRAPH_END.finditer(text, start, end)]
    ends = [at for at in ends if start < at < end]
    head = ends[0] if ends and ends[0] - start <= MIN_PASTED * 4 else start
    tail = ends[-1] if ends and end - ends[-1] <= MIN_PASTED * 4 else end
    parts = (
        TextSpan(start, head, "written"),
        TextSpan(head, tail, "pasted"),
        TextSpan(tail, end, "written"),
    )
    return [part for part in parts if part.start < part.end]


# --- the pieces of what was written ---

MAX_PIECE, MAX_LIST, MAX_SENTENCE = 300, 2_000, 600
"""Characters: of a paragraph that is one piece; of a list with its heading; of a sentence."""
SHORT_SENTENCE = 60
"""Characters; a shorter sentence goes with the one before it: it is seldom clear alone."""
_SENTENCE_END = re.compile(r"[.!?…]+[\"'»”’)\]]*(?=\s+[^a-z\s])|[。！？]+[”」』）]*|[।؟]\s")
_EXCEPTION = re.compile(
    r"\W*(?:but|except|unless|however|only|sauf|mais|pero|salvo|excepto|aber|außer|jedoch|ma|tranne"
    r"|но|кроме|ただし|但|除|다만|단)\b|\W*[(（]",
    re.IGNORECASE,
)
"""How an exception begins: such a sentence is not parted from its rule."""


def pieces_of(text: str, span: TextSpan) -> list[tuple[int, int]]:
    """Start and end of each piece of a written part, in order and without gaps: a sentence, a short
    paragraph, a list with its heading, a rule with its exception."""
    pieces: list[tuple[int, int]] = []
    at = span.start
    ends = [match.end() for match in _PARAGRAPH_END.finditer(text, span.start, span.end)]
    for end in [*ends, span.end]:
        if at < end:
            if pieces and _goes_with(text, pieces[-1], (at, end)):
                at = pieces.pop()[0]
            pieces += _within_paragraph(text, at, end)
            at = end
    return pieces


def _goes_with(text: str, before: tuple[int, int], own: tuple[int, int]) -> bool:
    """Whether a paragraph must not be parted from the piece before it."""
    earlier, later = text[slice(*before)].rstrip(), text[slice(*own)]
    if len(earlier) + len(later) > MAX_LIST:
        return False
    is_list = _LIST.match(later) is not None
    heading = earlier.endswith((":", "：")) and (is_list or len(later) <= MAX_PIECE)
    goes_on = is_list and _LIST.match(earlier.rsplit("\n", 1)[-1]) is not None
    return heading or goes_on or _EXCEPTION.match(later) is not None


def _within_paragraph(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    if end - start <= MAX_PIECE:
        yield start, end
        return
    rows = [at for at, stop in _lines(text, start, end) if _LIST.match(text, at, stop)]
    if rows and end - start <= MAX_LIST:
        yield start, end
        return
    bounds = [start, *rows[1:], end] if rows else [start, end]
    for first, last in pairwise(bounds):
        yield from _sentences(text, first, last)


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Start and end of each line."""
    at = start
    while at < end:
        stop = text.find("\n", at, end)
        stop = end if stop < 0 else stop
        yield at, stop
        at = stop + 1


def _sentences(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Sentences, wrapped ones whole; short ones and exceptions with the one before them."""
    found: list[tuple[int, int]] = []
    at = start
    for stop in [
        *(_behind(text, m.end(), end) for m in _SENTENCE_END.finditer(text, start, end)),
        end,
    ]:
        if stop <= at:
            continue
        sentence = text[at:stop].strip()
        with_rule = len(sentence) <= SHORT_SENTENCE or _EXCEPTION.match(sentence) is not None
        if found and with_rule and stop - found[-1][0] <= 2 * MAX_PIECE:
            found[-1] = found[-1][0], stop
        else:
            found += _parts(text, at, stop)
        at = stop
    return found


def _behind(text: str, at: int, end: int) -> int:
    """The first place from ``at`` that is not blank."""
    while at < end and text[at].isspace():
        at += 1
    return at


def _parts(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A sentence; one without end in parts, at a line or a blank if there is one."""
    while end - start > MAX_SENTENCE:
        reach = start + MAX_PIECE, start + MAX_SENTENCE
        at = text.rfind("\n", *reach) + 1 or text.rfind(" ", *reach) + 1 or reach[1]
        yield start, at
        start = at
    yield start, end
