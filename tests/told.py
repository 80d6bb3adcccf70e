"""What ``History`` tells of a short conversation, and what ``fit`` makes of it.

Knows the library's inner parts that find duplicates and failures.
"""

from __future__ import annotations

from typing import Any

from tool_calls import conversation

import trimtab
from trimtab import formats
from trimtab.model import Place
from trimtab.reading.exchanges import Exchange, Reader
from trimtab.reading.history import FailedInputs, History
from trimtab.reading.past import Past
from trimtab.strategies.base import BlockFacts

FILE = "".join(f"def function_{n}(value_{n * 7919}): return value_{n * 31}\n" for n in range(60))
OTHER = "".join(f"class Thing{n}: size = {n * 104729}\n" for n in range(60))
AT_ONCE = FailedInputs(min_calls=0, min_turns=0)


def history(format: str, *turns: Any, reader: Reader | None = None, **options: Any) -> History:
    """The history of a conversation (or of a body, given as a dict)."""
    body = turns[0] if turns and isinstance(turns[0], dict) else conversation(format, *turns)
    found, _ = formats.find(body, format)
    transcript = formats.read(body, found, memo=formats.Memo())
    return History(transcript, Past(reader or Reader()), **options)


def of_results(told: History) -> list[BlockFacts]:
    """What is told of the first block of each result, in the order of the calls."""
    return [told.facts(place(told, e.outputs[0])) for e in told.exchanges if e.outputs]


def of_calls(told: History) -> list[BlockFacts]:
    """What is told of each call."""
    return [told.facts(place(told, e.inputs[0])) for e in told.exchanges]


def exchanges(format: str, *turns: Any, **options: Any) -> tuple[Exchange, ...]:
    """Calls with their results."""
    return history(format, *turns, **options).exchanges


def place(told: History, key: tuple[int, int]) -> Place:
    return told.transcript.at(*key)


def squeezed(format: str, body: dict[str, Any], target: float = 0.5, **options: Any) -> Any:
    """The body fitted a little below its own size, so that a batch of reductions is made."""
    size = trimtab.fit(body, window=10**9, format=format, counter="o200k").report.tokens_before
    limits = trimtab.Limits(window=int(size / 0.95), reserve=0, trigger=0.9, target=target)
    return trimtab.fit(body, limits=limits, format=format, counter="o200k", **options)


def kinds(fitted: Any) -> set[str]:
    """The kinds of edits that were made."""
    return {edit.kind for edit in fitted.report.edits}
