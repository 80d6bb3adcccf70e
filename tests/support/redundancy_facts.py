"""What ``Redundancy`` finds in a short conversation, and what ``fit`` makes of it.

Knows the library's inner parts that find duplicates and failures.
"""

from __future__ import annotations

from typing import Any

from settings_words import as_keywords
from tool_calls import conversation

import trimtab
from trimtab import formats
from trimtab.planning.redundancy import FailedInputs, Redundancy
from trimtab.reducers.base import BlockFacts
from trimtab.transcript.model import Place
from trimtab.transcript.tool_calls import CallReader, ToolCall

FILE = "".join(f"def function_{n}(value_{n * 7919}): return value_{n * 31}\n" for n in range(60))
OTHER = "".join(f"class Thing{n}: size = {n * 104729}\n" for n in range(60))
AT_ONCE = FailedInputs(min_calls=0, min_turns=0)


def redundancy_of(
    format: str, *turns: Any, reader: CallReader | None = None, **options: Any
) -> Redundancy:
    """The redundancy of a conversation (or of a body, given as a dict)."""
    body = turns[0] if turns and isinstance(turns[0], dict) else conversation(format, *turns)
    found, _ = formats.find(body, format)
    transcript = formats.read(body, found)
    return Redundancy(transcript, reader or CallReader(), **options)


def of_results(found: Redundancy) -> list[BlockFacts]:
    """The facts of the first block of each result, in the order of the calls."""
    return [found.facts(place(found, c.outputs[0])) for c in found.calls.calls if c.outputs]


def of_calls(found: Redundancy) -> list[BlockFacts]:
    """The facts of each call."""
    return [found.facts(place(found, call.inputs[0])) for call in found.calls.calls]


def tool_calls(format: str, *turns: Any, **options: Any) -> list[ToolCall]:
    """Calls with their results."""
    return redundancy_of(format, *turns, **options).calls.calls


def place(found: Redundancy, key: tuple[int, int]) -> Place:
    """The block with this position."""
    return found.transcript.at(*key)


def squeezed(format: str, body: dict[str, Any], target: float = 0.5, **options: Any) -> Any:
    """The body fitted a little below its own size, so that a batch of reductions is made."""
    size = trimtab.fit(
        body, window=10**9, format=format, settings=trimtab.Settings(counter="o200k")
    ).report.tokens_before
    limits = trimtab.Settings(window=int(size / 0.95), reserve=0, trigger=0.9, target=target)
    return trimtab.fit(
        body, **as_keywords(format=format, counter="o200k", settings=limits, **options)
    )


def kinds(fitted: Any) -> set[str]:
    """The kinds of edits that were made."""
    return {edit.kind for edit in fitted.report.edits}
