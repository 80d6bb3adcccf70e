"""Sessions that are restarted at every turn, through forks, rewinds and changed results.

    python tests/soak/restarts.py --count 20000 --jobs 2 --seed 1

At each turn three sessions get the same request: the one that has lived through all of them, one
that continues the journal of the turn before, and the first once more.  All have to send the same
bytes, or to refuse alike.  Knows the public API alone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path[:0] = [str(HERE.parent), str(HERE.parent / "support"), str(HERE.parents[1] / "src")]

from smallest import enough_tokens  # noqa: E402

import trimtab  # noqa: E402
from soak.sessions import FITS, TURNS, Trial, _Play, main  # noqa: E402
from soak.writers_more import WRITERS  # noqa: E402

MOVES = ("on",) * 6 + (
    "rewind", "fork", "fork", "regenerate", "behead", "edit", "edit", "empty", "empty", "back",
)  # fmt: skip


class _Restarts(_Play):
    """One session under way, in memory."""

    moves = MOVES

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.requests: list[Any] = []

    def opened(self, journal: Any = None) -> trimtab.Session:
        """A session that continues a journal."""
        return trimtab.Session(
            window=1,
            journal=journal,
            format=self.format,
            model=self.frame.model,
            reserve=0,
            recall=self.recall,
            settings=trimtab.Settings(counter="o200k"),
        )

    def _back(self) -> None:
        """To the history of an earlier request, whatever happened since."""
        self.told = [message.copy() for message in self.draw.pick(self.requests)]

    def _empty(self) -> None:
        """The client takes the oldest results out of its history, as coding agents do."""
        parts = [part for message in self.told for part in message.parts if part.kind == "result"]
        for part in parts[: self.draw.pick((1, 2, 4, 8))]:
            twin = part.copy()
            twin.text = "[Old tool result content cleared]"
            for message in self.told:
                message.parts = [twin if p is part else p for p in message.parts]

    def turn(self) -> None:
        """One request, through all three."""
        request = WRITERS[self.format](self.told, self.frame)
        self.requests.append([message.copy() for message in self.told])
        if not self.window or self.draw.one_in(12):
            tokens = trimtab.measure(request, counter="o200k").total
            self.window = max(600, int(tokens * self.draw.pick(FITS)) + 400)
        restarted = self.opened(self.session.journal)
        sent = self._sent(self.session, request)
        self.counts["turns"] += 1
        self.counts["with edits"] += bool(self.session.history())
        if self._sent(restarted, request) != sent:
            self.faults.append(f"turn {self.counts['turns']}: a restarted session sends another")
        before = len(self.session.journal["edits"])
        if self._sent(self.session, request) != sent:
            self.faults.append(f"turn {self.counts['turns']}: the same request is sent as another")
        if len(self.session.journal["edits"]) != before:
            self.faults.append(f"turn {self.counts['turns']}: the same request adds an entry")

    def _sent(self, session: trimtab.Session, request: Any) -> str:
        try:
            return json.dumps(session.fit(request, window=self.window).request)
        except trimtab.CannotFit as refusal:
            self.counts["cannot fit"] += 1
            if refusal.minimum > enough_tokens(request, self.format):
                self.faults.append(f"turn {self.counts['turns']}: a refusal that was not due")
            return "CannotFit"


def restarts(seed: int) -> Trial:
    """One session of some turns."""
    play = _Restarts(seed)
    for number in range(TURNS):
        if number:
            play.move()
        play.turn()
    return Trial(seed, play.format, play.faults, play.counts)


if __name__ == "__main__":
    sys.exit(main(restarts))
