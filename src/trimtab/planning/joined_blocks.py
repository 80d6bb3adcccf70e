"""Treats a result of many small texts as one block, because each text alone is too small to reduce.

The first text represents all of them; if less is shown, the others are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from trimtab.transcript.model import Message, Place
from trimtab.transcript.token_sizes import TokenSizes
from trimtab.transcript.transcript import Transcript

Key = tuple[int, int]
"""(message, index) of a block."""
LEAST_TEXTS = 8
"""Fewer texts are reduced one by one."""
SMALL_TOKENS = 96
"""Texts that are larger on average are documents, and are reduced one by one too."""


class JoinedBlocks:
    """The runs of small texts in one transcript that are treated as one block each."""

    def __init__(self, transcript: Transcript, usage: TokenSizes) -> None:
        self._runs: dict[Key, tuple[Place, ...]] = {}
        """Key of the first text → all texts of its run."""
        self._first: dict[Key, Key] = {}
        """Key of each text of a run → key of the first."""
        for number, message in enumerate(transcript.messages):
            if len(message.blocks) < LEAST_TEXTS or not message.results:
                continue
            for run in _runs(number, message):
                tokens = sum(usage.block(transcript, place) for place in run)
                if len(run) >= LEAST_TEXTS and tokens <= SMALL_TOKENS * len(run):
                    self.add(run)

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, run: Sequence[Place]) -> None:
        """Treat these texts as one block."""
        first = (run[0].message, run[0].index)
        self._runs[first] = tuple(run)
        self._first.update(((place.message, place.index), first) for place in run)

    def leave_out(self, place: Place) -> None:
        """Separate one text from its run; the texts before it, and those after it, stay joined."""
        run = self._runs.pop(self.first(place), ())
        for member in run:
            del self._first[member.message, member.index]
        at = next((n for n, one in enumerate(run) if one.index == place.index), 0)
        for part in (run[:at], run[at + 1 :]):
            if len(part) >= LEAST_TEXTS:
                self.add(part)

    def first(self, place: Place) -> Key:
        """The key of the first text of this text's run; its own key if it is in none."""
        key = (place.message, place.index)
        return self._first.get(key, key)

    def members(self, place: Place) -> tuple[Place, ...]:
        """The texts that a place represents: all for the first of a run, none for the others."""
        key = (place.message, place.index)
        if key not in self._first:
            return (place,)
        return self._runs.get(key, ())

    def as_one(self, places: Iterable[Place]) -> Iterator[Place]:
        """``places`` with each run reduced to its first place, which has the text of all."""
        for place in places:
            key = (place.message, place.index)
            if key not in self._first:
                yield place
            elif key in self._runs:
                text = "\n".join(one.block.text for one in self._runs[key])
                first = self._runs[key][0].block
                yield Place(*key, replace(first, text=text, fixed_tokens=0))


def _runs(number: int, message: Message) -> Iterator[list[Place]]:
    """Runs of neighbouring plain texts of one result, without a cache breakpoint among them."""
    marked = set(message.inner_marks)
    run: list[Place] = []
    for index, block in enumerate(message.blocks):
        plain = block.kind == "result" and not block.sealed and block.spelling == "string"
        in_list = len(block.item) > 1 and isinstance(block.item[-1], int)
        if not (plain and in_list and block.text) or block.item in marked:
            yield run
            run = []
            continue
        place = Place(number, index, block)
        if run and not _neighbours(run[-1], place):
            yield run
            run = []
        run.append(place)
    yield run


def _neighbours(one: Place, other: Place) -> bool:
    if one.block.call_id != other.block.call_id:
        return False  # two results, which need not have a text each: none may be removed
    (*home, at), (*next_home, behind) = one.block.item, other.block.item
    return home == next_home and isinstance(at, int) and behind == at + 1
