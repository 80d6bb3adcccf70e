"""Prints what no policy can beat: tokens read from the cache, and how often it is lost.

    python bench/cache_bounds.py LOGS … [--window 32k 100k] [--above 1.3] [--arrival 0.25]

For policies that show what is new whole (``--arrival``: a new result cut at once to that share of
the window), keep head, system messages and the user's words, and stay under the window.  The one
played here counts exactly, cuts only when the next request would not fit, and then leaves out what
stands right before the newest turn, so that nothing but that turn is written again.  Columns: the
share of the room it cuts down to; at 0 % nothing is left but what must stay.  Recordings that
outgrow ``--above`` windows; o200k tokens.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src")]

from trimtab.cli.options import amount  # noqa: E402
from trimtab.logs import log_files  # noqa: E402
from trimtab_lab.replay.recording_index import RecordingIndex  # noqa: E402

KEEPS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9)


class Growth(NamedTuple):
    """Tokens of each request of a recording in full, and of what in it has to stay."""

    full: Sequence[int]
    fixed: Sequence[int]


class Sums(NamedTuple):
    """Tokens sent, those of them that the request before began with, breaks, requests."""

    sent: int = 0
    hit: int = 0
    breaks: int = 0
    calls: int = 0

    def __add__(self, other: object) -> Sums:
        assert isinstance(other, Sums)
        return Sums(*map(sum, zip(self, other, strict=True)))


def growth(index: RecordingIndex, most: float = inf) -> Growth:
    """The sizes of one recording, request by request; no results take more than ``most`` tokens."""
    full, fixed = list[int](), list[int]()
    size = done = sum(unit.tokens for unit in index.head)
    seen = 0
    for turn in index.turns:
        for view in index.views[seen : turn.sent]:
            results = bool(view.message.results)
            if view.message.role in ("user", "system") and not results:
                done += view.tokens
            size += int(min(view.tokens, most)) if results else view.tokens
        seen = turn.sent
        full.append(size)
        fixed.append(done)
    return Growth(full, fixed)


def play(grown: Growth, window: int, keep: float) -> Sums:
    """The best cache that a policy can have which cuts down to this share of the room."""
    sent = hit = breaks = size = before = 0
    for full, fixed in zip(*grown, strict=True):
        new, before = full - before, full
        if size + new <= window:
            hit, size = hit + size, size + new
        else:
            least = fixed + (new if size else 0)
            room = int(keep * max(0, window - fixed))
            low = min(window, max(least, fixed + room))
            if size:
                hit, breaks = hit + max(0, low - new), breaks + 1
            size = low
        sent += size
    return Sums(sent, hit, breaks, len(grown.full))


def printed(logs: Sequence[str], window: float, above: float, arrival: float) -> None:
    """One line a source, and one for all."""
    sources: dict[str, list[Growth]] = defaultdict(list)
    for recording in log_files.read(logs).recordings:
        if recording.turns:
            index = RecordingIndex(recording)
            if index.tokens(recording.turns[-1]) > above * window:
                sources[recording.source].append(growth(index, arrival * window))
    sources["all"] = [grown for some in sources.values() for grown in some]
    print("hits in % of the tokens sent / breaks in 20 calls, where a batch keeps of the room")
    shares = (f"{keep:>11.0%}" for keep in KEEPS)
    print(f"{f'{window / 1000:.0f}k tokens':26}{'new/call':>9}", *shares)
    for source, some in sources.items():
        cells = []
        for keep in KEEPS:
            total = sum((play(one, window, keep) for one in some), Sums())
            share, often = 100 * total.hit / total.sent, 20 * total.breaks / total.calls
            cells.append(f"{share:>5.1f} /{often:5.2f}")
        new = sum(one.full[-1] for one in some) / sum(len(one.full) for one in some)
        print(f"{f'{source} ({len(some)})':26}{new:9,.0f}", *cells)


def main() -> None:
    """A table for each window."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="+")
    parser.add_argument("--window", type=amount, nargs="+", default=[32_000, 100_000])
    parser.add_argument("--above", type=float, default=1.3)
    parser.add_argument("--arrival", type=float, default=inf)
    args = parser.parse_args()
    for window in args.window:
        printed(args.logs, window, args.above, args.arrival)


if __name__ == "__main__":
    main()
