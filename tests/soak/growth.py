"""Whether processes grow: what each takes in the sixth minute, and in the last one.

A day of an agent's work must not fill a machine.  Caches may fill, each to its own end; in a soak
they are small, and full by then (``small_caches``).
"""

from __future__ import annotations

import os
import statistics
from collections import defaultdict
from pathlib import Path

EARLY_SECONDS, LATE_SECONDS = 300.0, 60.0
PAGE = os.sysconf("SC_PAGE_SIZE")


def megabytes(process: int) -> float:
    """What a process takes now; 0.0 where there is none."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text("utf-8").split()[1]
    except OSError:
        return 0.0
    return int(pages) * PAGE / 1e6


class Growth:
    """Samples by process, named so that a restarted one is another."""

    def __init__(self) -> None:
        self.samples: dict[str, list[tuple[float, float]]] = defaultdict(list)

    def take(self, name: str, process: int, seconds: float) -> float:
        """One sample, so many seconds after the beginning; its megabytes."""
        size = megabytes(process)
        if size:
            self.samples[f"{name} ({process})"].append((seconds, size))
        return size

    def rows(self, seconds: float) -> dict[str, tuple[float, float]]:
        """Medians in megabytes of the minute from EARLY_SECONDS and of the last one, of each
        process that was there in both."""
        found = {}
        for name, samples in self.samples.items():
            early = [size for at, size in samples if EARLY_SECONDS <= at < EARLY_SECONDS + 60]
            late = [size for at, size in samples if at > seconds - LATE_SECONDS]
            if early and late:
                found[name] = (statistics.median(early), statistics.median(late))
        return found
