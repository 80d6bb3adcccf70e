"""Where a model's turn begins, where it ends, and how far the results of its calls may reach.

Knows the order of messages, in both layouts of results.  Does not look at calls or results.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trimtab.formats.base import may_answer
from trimtab.model import Transcript


class Runs(NamedTuple):
    """Indices of a model turn: messages[first:end] are the model's, [end:stop] may hold results."""

    first: int
    end: int
    stop: int


def runs(transcript: Transcript, start: int = 0) -> Iterator[Runs]:
    """Every model turn, and every run of results that no model turn precedes; from ``start`` on,
    where a run begins."""
    messages, merges = transcript.messages, transcript.format.merges_roles
    role = "user" if transcript.format.results_in_user else "tool"
    index, count = start, len(messages)
    while index < count:
        first = index
        while index < count and messages[index].role == "assistant":
            index += 1
            if not merges:
                break
        end = index
        while index < count and may_answer(messages[index], role):
            index += 1
        if index == first:
            index += 1
        else:
            yield Runs(first, end, index)


def last_run(transcript: Transcript, known: int) -> int:
    """Where the last run of the first ``known`` messages that a model's turn opens begins; what
    stands before it belongs to runs that are over, whatever follows."""
    messages, merges = transcript.messages, transcript.format.merges_roles
    number = known - 1
    while number > 0:
        opens = messages[number].role == "assistant"
        if opens and not (merges and messages[number - 1].role == "assistant"):
            return number
        number -= 1
    return 0
