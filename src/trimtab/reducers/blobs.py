"""Shortens base64, hex, data URLs and minified code to their beginning and size."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256

from trimtab.reducers.base import Config, Offer, smaller
from trimtab.reducers.text_boundaries import at_or_after, at_or_before
from trimtab.transcript.model import Block

LOSS = 0.1
"""Low, because an encoded run cannot be read anyway; its presence, size and digest are shown."""
MIN_RUN, MIN_LINE = 256, 2_000
MIN_WORD = 60
"""Least length in chars, without a blank, of a run or of one of its lines."""
HEAD, TAIL = 48, 12
CODE_HEAD = 200
MAX_BLANKS, MIN_SIGNS = 0.1, 0.05
"""Shares of blanks and of signs in minified code; in prose one character in six is a blank."""

# The lookbehind keeps the search linear: a match is tried only where a run begins.
_RUN = re.compile(
    r"(?<![\w+/=-])(?P<whole>(?:data:[\w.+/-]{1,80}(?:;[\w=-]{1,40}){0,4},)?"
    rf"(?P<text>[\w+/-]{{{MIN_RUN},}}={{0,2}}))",
    re.ASCII,
)
_LINES = re.compile(
    rf"(?<![^\n])(?P<whole>(?P<text>(?:[A-Za-z0-9+/]{{{MIN_WORD},76}}\r?\n){{6,}}))"
)
_KINDS = (
    ("hex", re.compile(r"[0-9a-fA-F]+")),
    ("base64", re.compile(r"(?=.*[A-Z])(?=.*[a-z])(?=.*[0-9])[\w+/-]+={0,2}", re.ASCII)),
)
_CODE = re.compile(r"[;{}()\[\]=,]")
_SAME = {code: " " if chr(code).isspace() else "x" for code in range(128)}
"""Every character of a word as x."""


def blobs(block: Block, config: Config) -> Iterator[Offer]:
    """One offer for a tool result: each run reduced to head, size, digest and tail; loss 0.1."""
    if block.kind != "result" or len(block.text) < MIN_RUN:
        return
    text = shorten_blobs(block.text)
    if text is not block.text and smaller(text, block.text, config.count):
        yield Offer("replace", text, LOSS, "blobs", "encoded or minified runs to head and size")


def shorten_blobs(text: str) -> str:
    """The text with all encoded or minified runs shortened; the same object if there are none."""
    longest = _longest_word(text)
    if not longest and (len(text) < MIN_LINE or max(map(len, text.split("\n"))) < MIN_LINE):
        return text  # most texts have no word or line that is long enough
    new = _RUN.sub(_run, text) if longest >= MIN_RUN else text
    new = _LINES.sub(_run, new) if longest else new
    if len(new) >= MIN_LINE:
        lines = new.split("\n")
        less = [_line(line) for line in lines]
        new = "\n".join(less) if less != lines else new
    return text if new == text else new


def _longest_word(text: str) -> int:
    """Chars of the longest word; 0 if it has less than ``MIN_WORD``."""
    signs = text if text.isascii() else text.encode("ascii", "replace").decode()
    if "x" * MIN_WORD not in signs.translate(_SAME):  # ten times as fast as to split it
        return 0
    longest = max(map(len, text.split()), default=0)
    return longest if longest >= MIN_WORD else 0


def _run(match: re.Match[str]) -> str:
    whole = match["whole"]
    run = "".join(match["text"].split())
    kind = next((name for name, looks in _KINDS if looks.fullmatch(run)), "")
    if not kind or len(set(run[:MIN_RUN])) < 8:
        return whole
    end = "\n" if whole.endswith("\n") else ""
    start = len(whole) - len(match["text"]) + HEAD
    return whole[:start] + _note(kind, match["text"]) + (end or whole[-TAIL:])


def _note(kind: str, text: str) -> str:
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"[{kind}, {len(text):,} chars in all, sha256 {digest[:12]}]"


def _line(line: str) -> str:
    """A line of minified code as its beginning and end; any other line as it is."""
    if len(line) < MIN_LINE or line[:1] in ("{", "["):  # JSON has its own reducer
        return line
    blanks = line.count(" ") + line.count("\t")
    signs = sum(1 for _ in _CODE.finditer(line))
    varied = len(set(line[:MIN_LINE])) >= 16
    if not varied or blanks > MAX_BLANKS * len(line) or signs < MIN_SIGNS * len(line):
        return line
    head, tail = at_or_before(line, CODE_HEAD), at_or_after(line, len(line) - CODE_HEAD // 2)
    return line[:head] + _note("minified", line) + line[tail:]
