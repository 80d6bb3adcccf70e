"""Collects pairs of our count and the billed count from answers, by model, as facts for a store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trimtab.pricing.calibration import Calibration, UsageSample
from trimtab.pricing.reported_usage import read_usage

PREFIX = "calibration/"
"""Names of the facts that hold calibrations."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Our count of a request that was sent: tokens of visible parts, and of thinking behind
    signatures.  ``key`` names model, format and counter."""

    key: str
    visible: int
    signed: int
    managed: bool = False
    """Whether the provider was asked to clear or compact the request: then only an answer that
    reports what was cleared is comparable with our count."""
    server_state: bool = False
    """Whether the provider's server adds a history to the request: its bill is then of more than we
    counted, and nothing is learned from it."""


@dataclass
class Observed:
    """Calibrations by key.  ``last``: the request sent last, for an answer that comes without
    one."""

    calibrations: Mapping[str, Calibration] = field(default_factory=dict)
    last: Counted | None = None

    def answer(self, answer: Any, counted: Counted | None = None) -> tuple[str, bytes] | None:
        """Learn from an answer, an event of a stream with a usage, or a usage by itself.

        ``counted``: the request that was answered; None: the one sent last.  Returns the fact
        to keep as (name, data); None if there was nothing to learn.
        """
        sent, usage = counted or self.last, read_usage(answer)
        if sent is None or usage is None or usage.sent is None or sent.server_state:
            return None
        if sent.managed and not usage.managed:
            return None
        before = self.calibrations.get(sent.key, Calibration())
        after = before.add(UsageSample(sent.visible, sent.signed, usage.sent))
        if after is before:
            return None
        self.calibrations = {**self.calibrations, sent.key: after}
        return PREFIX + sent.key, json.dumps(after.as_list()).encode()

    def take(self, facts: Iterable[tuple[str, bytes]]) -> None:
        """Load calibrations from a store's facts; unreadable ones are skipped."""
        changed = dict(self.calibrations)
        for name, data in facts:
            if name.startswith(PREFIX):
                try:
                    rows = json.loads(data)
                except ValueError:
                    continue
                changed[name.removeprefix(PREFIX)] = Calibration.from_list(rows)
        self.calibrations = changed
