"""The terminal: its width, its colours, and bars."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

_EIGHTHS = " ▏▎▍▌▋▊▉"
_COLOURS = {"bar": "36", "good": "32", "over": "31", "dim": "2", "bold": "1"}


def clean(text: str) -> str:
    """``text`` with control characters replaced, because names in a request are not trusted."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


@dataclass(frozen=True)
class Terminal:
    """Columns; whether colours and block characters may be used; whether a person looks at it."""

    columns: int = 80
    colour: bool = False
    blocks: bool = True
    watched: bool = False

    @classmethod
    def of(cls, stream: TextIO) -> Terminal:
        """The width and colours of a stream; 80 plain columns if it is not a terminal."""
        tty = stream.isatty()
        colour = tty and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        blocks = (stream.encoding or "").lower().replace("-", "") == "utf8"
        return cls(max(40, shutil.get_terminal_size((80, 24)).columns), colour, blocks, tty)

    @classmethod
    def of_stdout(cls) -> Terminal:
        """Of standard output."""
        return cls.of(sys.stdout)

    def paint(self, name: str, text: str) -> str:
        """The text in a colour, if colours may be used."""
        return f"\x1b[{_COLOURS[name]}m{text}\x1b[0m" if self.colour and name and text else text

    def wrapped(self, line: str) -> str:
        """The line unchanged, or wrapped to the columns of a terminal."""
        if not self.watched or len(line) <= self.columns:
            return line
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        return textwrap.fill(
            line, self.columns, subsequent_indent=indent, break_long_words=False,
            break_on_hyphens=False,
        )  # fmt: skip

    def bar(self, share: float, columns: int) -> str:
        """A bar of ``share`` (0 … 1) of ``columns``, to an eighth of a column; never empty."""
        share = min(max(share, 0.0), 1.0)
        if not self.blocks:
            return "#" * max(1 if share > 0 else 0, round(share * columns))
        full, eighths = divmod(round(share * columns * 8), 8)
        text = "█" * full + _EIGHTHS[eighths].strip()
        return text or ("▏" if share > 0 else "")

    def gauge(self, tokens: int, window: int, columns: int) -> str:
        """Tokens against the window; ``████████│███`` if they exceed it."""
        full, empty, mark = ("█", "░", "│") if self.blocks else ("#", ".", "|")
        scale = max(tokens, window, 1)
        edge = round(window / scale * columns)
        filled = round(tokens / scale * columns)
        inside = full * min(filled, edge) + empty * max(0, edge - filled)
        return self.paint("bar", inside) + mark + self.paint("over", full * max(0, filled - edge))

    def shorten(self, text: str, columns: int) -> str:
        """At most ``columns`` characters; the end of a path says more than its beginning."""
        dots = "…" if self.blocks else "~"
        return text if len(text) <= columns else dots + text[-(columns - 1) :]


def print_report(lines: Sequence[str], stream: TextIO, verdict: str = "bold") -> None:
    """Print a report: the first line in the colour of its verdict, all as wide as the terminal."""
    terminal = Terminal.of(stream)
    for number, line in enumerate(lines):
        text = terminal.wrapped(clean(line))
        print(text if number else terminal.paint(verdict, text), file=stream)
