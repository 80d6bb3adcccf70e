"""Where everything stands in a recording, and what each model call needed of it.

Worked out once for all policies and windows.  Knows nothing of what any policy sends.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from functools import cached_property
from typing import Any, NamedTuple

from trimtab import rules
from trimtab.model import Message
from trimtab.replay.recording import Recording, Turn
from trimtab.replay.views import Unit, View, Views, transcript


class Need(NamedTuple):
    """What the agent wrote in one turn that stood in the request it answered.

    ``atoms``: identifiers; ``lines``: whole lines; ``fresh``: those identifiers that stood only
    in the results just received.
    """

    atoms: tuple[str, ...]
    lines: tuple[str, ...]
    fresh: tuple[str, ...]


class Index:
    """A recording with its views, postings and needs."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.store = Views(recording.reader)
        self.views: list[View] = self.store.all(recording.messages)
        self.turns: tuple[Turn, ...] = recording.turns
        self._sums = [0]
        for view in self.views:
            self._sums.append(self._sums[-1] + view.tokens)
        self.full_views = frozenset(map(id, self.views))

    @cached_property
    def head(self) -> tuple[Unit, ...]:
        """System text and tool definitions, for sizes and the prefix cache."""
        blocks = self.recording.reader.read_head(self.recording.body(()))
        cost = self.store.usage.block_cost
        return tuple(Unit(f"head:{block.digest}", cost(block)) for block in blocks)

    @cached_property
    def head_atoms(self) -> Set[str]:
        """Identifiers of the system text, which no policy here takes away."""
        return self._head_view.spans.keys() if self._head_view else frozenset()

    @cached_property
    def _head_view(self) -> View | None:
        blocks = self.recording.reader.read_head(self.recording.body(()))
        texts = tuple(block for block in blocks if block.kind == "system")
        return View(Message("system", texts), self.store.usage) if texts else None

    @cached_property
    def atoms(self) -> Mapping[str, list[int]]:
        """Identifier → numbers of the messages in which it stands, ascending."""
        found: dict[str, list[int]] = {}
        for number, view in enumerate(self.views):
            for atom in view.spans:
                found.setdefault(atom, []).append(number)
        return found

    @cached_property
    def lines(self) -> Mapping[str, list[int]]:
        """Line → numbers of the messages in which it stands, ascending."""
        found: dict[str, list[int]] = {}
        for number, view in enumerate(self.views):
            for line in view.lines:
                found.setdefault(line, []).append(number)
        return found

    @cached_property
    def needs(self) -> tuple[Need, ...]:
        """What each turn needed, in the order of the turns."""
        ends = [0, *(turn.end for turn in self.turns)]
        return tuple(self._need(turn, ends[n]) for n, turn in enumerate(self.turns))

    def _need(self, turn: Turn, answered: int) -> Need:
        atoms: dict[str, None] = {}
        lines: dict[str, None] = {}
        for view in self.views[turn.sent : turn.end]:
            if view.message.role == "assistant":
                own = view.written()
                atoms.update(dict.fromkeys(own.spans))
                lines.update(dict.fromkeys(own.lines))
        head = self.head_atoms
        stood = tuple(
            a for a in atoms if a in head or self.atoms.get(a, [turn.sent])[0] < turn.sent
        )
        results = any(view.message.results for view in self.views[answered : turn.sent])
        fresh = (a for a in stood if a not in head and self.atoms[a][0] >= answered > 0)
        return Need(
            stood,
            tuple(line for line in lines if self.lines.get(line, [turn.sent])[0] < turn.sent),
            tuple(fresh) if results else (),
        )

    def tokens(self, turn: Turn) -> int:
        """Size of the whole request of a turn."""
        return self._sums[turn.sent] + sum(unit.tokens for unit in self.head)

    def newest(self, turn: Turn, tokens: int) -> int:
        """The first of the newest messages that take at most so many tokens together.

        The message that straddles the border counts among them.
        """
        start = self._sums[turn.sent] - tokens
        return max(0, bisect_left(self._sums, start) - 1) if start > 0 else 0

    def last(self, postings: Sequence[int], turn: Turn) -> int:
        """The last message before a turn in a list of postings."""
        return postings[bisect_left(postings, turn.sent) - 1]

    @cached_property
    def broken(self) -> tuple[Counter[str], ...]:
        """For each turn: the rules that the recorded request itself breaks, and how often.

        Recordings hold what clients logged, which is not always byte for byte what they sent.
        """
        return tuple(self.violations(self.views[: turn.sent]) for turn in self.turns)

    def violations(self, views: Sequence[View], body: Any = None) -> Counter[str]:
        """The rules that a request of these messages breaks, and how often."""
        body = self.recording.body(()) if body is None else body
        found = rules.check(transcript(self.recording, body, views))
        return Counter(violation.rule for violation in found)

    @cached_property
    def demands(self) -> tuple[tuple[int, str], ...]:
        """(message, sentence) of everything the user demanded."""
        return tuple((n, text) for n, view in enumerate(self.views) for text in view.demands)
