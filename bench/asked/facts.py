"""What is planted in a text: a fact, how near its name and its answer are, and who judges it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Near = Literal["line", "lines", "chars"]
"""Name and answer belong together on one line, within ``MAX_LINES``, or within ``MAX_CHARS``."""
MAX_LINES, MAX_CHARS = 12, 300


@dataclass(frozen=True)
class Fact:
    """``name`` and ``answer`` as they are in the text; ``asked``: the words that ask for it, which
    hold the name and not the answer."""

    name: str
    answer: str
    asked: str

    @property
    def questions(self) -> tuple[str, str]:
        """How the name is put where somebody asks: in words, or in quotes in a command."""
        return self.asked, f"'{self.name}'"


@dataclass(frozen=True)
class Content:
    """A text as a tool gives it.  ``source``: the file, table or address it came from."""

    text: str
    facts: tuple[Fact, ...]
    near: Near
    source: str


def _places(text: str, words: str) -> list[int]:
    """Where a name or an answer is, as a word and not as part of a longer one."""
    pattern = rf"(?<!\w){re.escape(words)}(?!\w)"
    return [found.start() for found in re.finditer(pattern, text)]


def told(text: str, fact: Fact, near: Near) -> bool:
    """Whether the text tells the answer where it tells the name."""
    if fact.answer not in text or fact.name not in text:
        return False
    names, answers = _places(text, fact.name), _places(text, fact.answer)
    if near == "chars":
        return any(abs(one - other) <= MAX_CHARS for one in names for other in answers)
    line = [text.count("\n", 0, at) for at in names]
    apart = [abs(one - text.count("\n", 0, at)) for one in line for at in answers]
    return min(apart, default=MAX_LINES + 1) <= (0 if near == "line" else MAX_LINES)


def told_once(text: str, fact: Fact, near: Near) -> bool:
    """The same, and the answer is nowhere else: what a generator has to give."""
    return len(_places(text, fact.answer)) == 1 and told(text, fact, near)


def strings(tree: Any) -> Iterator[str]:
    """Every text of a request; what is JSON in a string (arguments of a call) is read as well."""
    if isinstance(tree, str):
        yield tree
        if tree.startswith('{"'):
            try:
                inner = json.loads(tree)
            except ValueError:
                return
            yield from strings(inner)
    elif isinstance(tree, (Mapping, list)):
        for value in tree.values() if isinstance(tree, Mapping) else tree:
            yield from strings(value)


def answered(request: Any, fact: Fact, near: Near) -> bool:
    """Whether whoever asks can read the answer in this request.

    The name in a question counts for nothing: a note may have the call that asks close to a value
    that has lost its own name.
    """
    return any(told(_unasked(text, fact), fact, near) for text in strings(request))


def _unasked(text: str, fact: Fact) -> str:
    for question in fact.questions:
        text = text.replace(question, "...")
    return text
