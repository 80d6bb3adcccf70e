"""What answers taught a session: pairs of our count and the bill, by model; as facts for a store.

Knows how a pair is made and under which name it is kept.  Does not know where it is kept, nor what
is done with it (see calibration.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trimtab.money.billed import billed
from trimtab.money.calibration import Calibration, Sample

PREFIX = "calibration/"
"""Names of the facts that hold calibrations."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What we counted of a request that was sent: our tokens of visible parts, and of thinking
    behind signatures.  ``key``: for which model, in which format, by which counter."""

    key: str
    visible: int
    signed: int


@dataclass
class Observed:
    """Calibrations by key; the request that was sent last waits for its answer."""

    calibrations: Mapping[str, Calibration] = field(default_factory=dict)
    last: Counted | None = None

    def answer(self, answer: Any, counted: Counted | None = None) -> tuple[str, bytes] | None:
        """Learn from an answer, an event of a stream with a usage, or a usage by itself.

        ``counted``: the request it answers; None: the one that was sent last.  Returns the fact
        to keep as (name, data); None where there was nothing to learn.
        """
        sent, usage = counted or self.last, billed(answer)
        if sent is None or usage is None:
            return None
        before = self.calibrations.get(sent.key, Calibration())
        after = before.add(Sample(sent.visible, sent.signed, usage.input_tokens))
        if after is before:
            return None
        self.calibrations = {**self.calibrations, sent.key: after}
        return PREFIX + sent.key, json.dumps(after.as_list()).encode()

    def take(self, facts: Iterable[tuple[str, bytes]]) -> None:
        """Take up facts that a store kept; what cannot be read is learned anew."""
        found = dict(self.calibrations)
        for name, data in facts:
            if name.startswith(PREFIX):
                try:
                    rows = json.loads(data)
                except ValueError:
                    continue
                found[name.removeprefix(PREFIX)] = Calibration.from_list(rows)
        self.calibrations = found
