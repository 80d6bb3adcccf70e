"""All kinds of content, each from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from asked import documents, rows, runs
from asked.facts import Content, Fact, told_once
from asked.source import LANGUAGES, source
from asked.words import Words

Generator = Callable[[Words, float], Content]
KINDS: dict[str, Generator] = {
    **{name: partial(source, language) for name, language in LANGUAGES.items()},
    **rows.KINDS, **runs.KINDS, **documents.KINDS,
}  # fmt: skip


def made(kind: str, seed: str, held_out: bool = False, size: float = 1.0) -> Content:
    """A content of this kind; ``size``: a share of the usual."""
    return KINDS[kind](Words(f"{kind}/{seed}", held_out), size)


def planted(content: Content, draw: random.Random) -> Fact:
    """One of its facts, at a random place; one that it tells once."""
    shuffled = draw.sample(content.facts, len(content.facts))
    return next(one for one in shuffled if told_once(content.text, one, content.near))
