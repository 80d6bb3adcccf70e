"""Texts whose every line says who wrote it.

A line carries a mark such as ``tq1f0c29ab``: its first letter is the writer, the rest is unique.
So a judge can tell from any text whose words stand in it, and which are missing.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator

MARK = re.compile(r"(?<![a-z0-9])([umatsr])q[0-9a-f]{8}(?![0-9a-f])")
"""u user, m model, a the model's arguments, t tool, s system, r reasoning."""
_WORDS = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "parser",
    "report",
    "token",
    "index",
    "branch",
    "commit",
    "retry",
    "module",
    "value",
    "handler",
    "queue",
    "worker",
    "cache",
    "table",
    "column",
    "shard",
    "socket",
    "buffer",
    "schema",
    "render",
    "layout",
    "route",
    "signal",
    "policy",
]
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
"""A PNG of one pixel, base64."""


def marks(text: str) -> Iterator[tuple[str, str]]:
    """(writer, mark) of each mark in a text."""
    for found in MARK.finditer(text):
        yield found[1], found[0]


class Words:
    """Draws texts; the same seed draws the same."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def mark(self, writer: str) -> str:
        """A new mark."""
        return f"{writer}q{self.rng.getrandbits(32):08x}"

    def id(self, size: int = 12) -> str:
        """Letters and digits for an id."""
        return "".join(self.rng.choice("abcdefghjkmnpqrstuvwxyz23456789") for _ in range(size))

    def line(self, writer: str, words: int = 0) -> str:
        """A line with one mark."""
        count = words or self.rng.randint(4, 11)
        return " ".join([*self.rng.choices(_WORDS, k=count), self.mark(writer)])

    def prose(self, writer: str, lines: int = 0) -> str:
        """Sentences."""
        count = lines or self.rng.choice((1, 1, 1, 2, 3))
        return " ".join(f"{self.line(writer).capitalize()}." for _ in range(count))

    def output(self, lines: int = 0) -> str:
        """What a tool prints: a log, a table, JSON or a listing."""
        count = lines or self.rng.choice((1, 3, 8, 20, 40, 70))
        kind = self.rng.randrange(4)
        if kind == 0:
            return "\n".join(
                f"2026-11-27T10:{n // 60 % 60:02}:{n % 60:02} INFO {self.line('t')}"
                for n in range(count)
            )
        if kind == 1:
            rows = (f"{n},{self.mark('t')},{self.rng.randrange(10**6)}" for n in range(count))
            return "\n".join(["row,key,value", *rows])
        if kind == 2:
            rows = [{"n": n, "note": self.line("t", 4)} for n in range(count)]
            return json.dumps(rows, indent=self.rng.choice((None, 1)))
        return "\n".join(f"src/{self.mark('t')}.py:{n}: {self.line('t', 5)}" for n in range(count))

    def arguments(self) -> dict[str, object]:
        """What a call is given."""
        kind = self.rng.randrange(3)
        if kind == 0:
            return {"path": f"src/{self.mark('a')}.py"}
        if kind == 1:
            return {"command": f"grep -rn {self.mark('a')} src", "timeout": 20}
        text = "\n".join(self.line("a") for _ in range(self.rng.choice((2, 6, 15))))
        return {"path": f"src/{self.mark('a')}.py", "text": text}

    def one_in(self, chances: int) -> bool:
        """True once in so many times."""
        return self.rng.randrange(chances) == 0
