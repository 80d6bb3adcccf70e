"""Tries made-up histories by the million and prints what came out.

    python tests/soak/run.py --count 1000000 --jobs 2 --seed 1
    SOAK_FORMAT=gemini-interactions python tests/soak/run.py --count 10000
    python tests/soak/run.py --replay soak-faults/gemini-invalid-117.json

Seeds go from --seed on.  Each finished range of seeds is noted in --out, so that a run that was
stopped goes on where it was.  Each fault is written there as JSON with its seed and, for the first
of a sort, in a small form.  Ends with 1 on any fault, or where the histories were not what they
should be.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "support"), str(HERE.parents[1] / "src")]

from soak.mutations import NAMES  # noqa: E402
from soak.remembered import remember  # noqa: E402
from soak.shrink import shrunk  # noqa: E402
from soak.story import SIX  # noqa: E402
from soak.trial import Case, Verdict, case_of, verdict_of  # noqa: E402

RANGE = 50
"""Seeds a worker takes at once."""
THOROUGH = int(os.environ.get("SOAK_THOROUGH") or 4)
"""One in so many is fitted twice, and its signed thoughts are judged."""
FORMAT = os.environ.get("SOAK_FORMAT") or ""
"""All histories in this format; without it the five take turns."""
PLAIN = 16
"""One in so many is tried without anything remembered of other histories."""
KEPT = 5
"""Faults of one sort that are written down."""


@dataclass
class Tally:
    """What was tried and what came out; two of them add up."""

    kinds: Counter[str] = field(default_factory=Counter)  # format/kind
    faults: Counter[str] = field(default_factory=Counter)  # format/sort
    mutations: Counter[str] = field(default_factory=Counter)
    lengths: Counter[str] = field(default_factory=Counter)  # messages
    facts: Counter[str] = field(default_factory=Counter)  # count, above, asked, thorough
    slowest: tuple[float, int] = (0.0, 0)

    def add(self, case: Case, verdict: Verdict, seconds: float, thorough: bool) -> None:
        """Count one trial."""
        self.kinds[f"{case['format']}/{verdict.kind}"] += 1
        if verdict.fault:
            self.faults[f"{case['format']}/{verdict.sort}"] += 1
        self.mutations.update(set(case["mutations"]))
        self.lengths[str(verdict.messages)] += 1
        at_minimum = case["draw"][0] == "minimum"
        self.facts.update(count=1, above=verdict.above, asked=at_minimum, thorough=thorough)
        self.slowest = max(self.slowest, (round(seconds, 3), case["seed"]))

    def join(self, other: dict[str, Any]) -> None:
        """Add what another counted."""
        for name in ("kinds", "faults", "mutations", "lengths", "facts"):
            getattr(self, name).update(other[name])
        self.slowest = max(self.slowest, tuple(other["slowest"]))

    @property
    def count(self) -> int:
        """Histories tried."""
        return self.facts["count"]

    @property
    def median(self) -> float:
        """Messages of the middle history."""
        return statistics.median(int(n) for n in self.lengths.elements()) if self.count else 0

    def share(self, name: str) -> float:
        """Share of the histories that came to this mutation."""
        return self.mutations[name] / max(self.count, 1)

    def shortcomings(self) -> list[str]:
        """How the histories are not what they should be."""
        found = [f"{n} in {self.share(n):.1%}, < 5 %" for n in NAMES if self.share(n) < 0.05]
        if self.median < 25:
            found.append(f"median of {self.median} messages, < 25")
        if self.facts["above"] < 0.4 * self.count:
            found.append(f"{self.facts['above']} of {self.count} above the window, < 40 %")
        return found

    def lines(self) -> Iterator[str]:
        """A readable table."""
        asked, count = self.facts["asked"], max(self.count, 1)
        kinds = sorted({key.split("/")[1] for key in self.kinds})
        yield f"{self.count:,} histories, median {self.median:g} messages, " + (
            f"{self.facts['above'] / count:.1%} above the window, "
            f"{self.facts['thorough']:,} fitted twice; slowest {self.slowest[0]} s, "
            f"seed {self.slowest[1]}"
        )
        for format in SIX:
            cells = [f"{kind} {self.kinds[f'{format}/{kind}']:,}" for kind in kinds]
            yield f"  {format:<18}" + "  ".join(cells)
        refused = sum(n for key, n in self.kinds.items() if "refused above" in key)
        yield f"  windows drawn at or above the declared minimum: {asked:,}, refused: {refused:,}"
        yield "  " + "  ".join(f"{name} {self.share(name):.1%}" for name in NAMES)
        for sort, many in self.faults.most_common():
            yield f"  FAULT {many:>6} {sort}"


# --- the work -------------------------------------------------------------------------------------


def tried(first: int) -> tuple[int, Tally, list[tuple[Case, str]]]:
    """The tally and the faults of the range of seeds that begins here."""
    tally, faults = Tally(), list[tuple[Case, str]]()
    gc.collect()
    gc.freeze()  # what is remembered grows, and to look through it took a third of the time
    for seed in range(first, first + RANGE):
        thorough = seed % THOROUGH == 0
        remember(seed % PLAIN != 0)
        started = time.perf_counter()
        case = case_of(seed, FORMAT)
        verdict = verdict_of(case, thorough)
        tally.add(case, verdict, time.perf_counter() - started, thorough)
        if verdict.fault and tally.faults[f"{case['format']}/{verdict.sort}"] <= KEPT:
            case |= {"outcome": verdict.kind, "detail": verdict.detail, "thorough": thorough}
            faults.append((case, verdict.sort))
    return first, tally, faults


def replay(path: Path) -> int:
    """Try one written case again; 1 where it still fails."""
    case = json.loads(path.read_text(encoding="utf-8"))
    verdict = verdict_of(case, case.get("thorough", True))
    print(f"{verdict.kind}: {verdict.detail}" if verdict.detail else verdict.kind)
    return int(verdict.fault)


def soak(count: int, jobs: int, seed: int, out: Path, seconds: float) -> Tally:
    """Try so many histories in so many processes, or as many as the time allows."""
    out.mkdir(parents=True, exist_ok=True)
    log = out / f"ranges-{seed}.jsonl"
    tally, done = _resumed(log)
    wanted = [n for n in range(seed, seed + count, RANGE) if n not in done]
    started, kept, bar = time.monotonic(), Counter[str](), _Bar(count, tally.count)
    # A tenth of the time went into collections that found nothing.
    patient = multiprocessing.Pool(jobs, initializer=gc.set_threshold, initargs=(100_000,))
    with patient as pool, log.open("a", encoding="utf-8") as notes:
        for first, part, faults in pool.imap_unordered(tried, wanted):
            counted = vars(part)
            tally.join(counted)
            print(json.dumps({"first": first, "tally": counted}), file=notes, flush=True)
            for case, sort in faults:
                kept[f"{case['format']}/{sort}"] += 1
                if kept[f"{case['format']}/{sort}"] <= KEPT:
                    _write(out, case, sort, kept[f"{case['format']}/{sort}"] == 1)
            bar.show(tally)
            if seconds and time.monotonic() - started > seconds:
                pool.terminate()
                break
    print(file=sys.stderr)
    return tally


def _resumed(log: Path) -> tuple[Tally, set[int]]:
    """What an earlier run of these seeds has tried."""
    tally, done = Tally(), set[int]()
    for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else ():
        note = json.loads(line)
        done.add(note["first"])
        tally.join(note["tally"])
    return tally, done


def _write(out: Path, case: Case, sort: str, small: bool) -> None:
    """The failing case; for the first of a sort also in a small form."""
    kind = re.sub(r"\W+", "-", case["outcome"])
    name = f"{case['format']}-{kind}-{case['seed']}"
    texts = {f"{name}.json": case}
    if small and case["outcome"] != "lost":  # of a part of the history it can't be told
        thorough = case["thorough"]
        texts[f"{name}.small.json"] = shrunk(
            case, lambda trial: verdict_of(trial, thorough).sort == sort
        )
    for file, value in texts.items():
        text = json.dumps(value, ensure_ascii=True, indent=1)
        (out / file).write_text(text + "\n", encoding="utf-8")


class _Bar:
    """One line on stderr that says how far it is."""

    def __init__(self, count: int, before: int) -> None:
        self.count, self.before, self.started = count, before, time.monotonic()

    def show(self, tally: Tally) -> None:
        """Write the line anew."""
        rate = (tally.count - self.before) / max(time.monotonic() - self.started, 0.001)
        left = (self.count - tally.count) / max(rate, 0.001)
        full = min(30, 30 * tally.count // max(self.count, 1))
        line = f"\r[{'█' * full}{'·' * (30 - full)}] {tally.count:,}/{self.count:,}  {rate:.0f}/s"
        faults = sum(tally.faults.values())
        print(f"{line}  {left / 60:.0f} min left  {faults} faults   ", end="", file=sys.stderr)


def main() -> int:
    """The command line."""
    arguments = argparse.ArgumentParser(description="tries made-up histories by the million")
    arguments.add_argument("--count", type=int, default=20_000, help="histories")
    arguments.add_argument("--jobs", type=int, default=1, help="processes")
    arguments.add_argument("--seed", type=int, default=1, help="the first seed")
    arguments.add_argument("--seconds", type=float, default=0, help="stop after so long; 0: never")
    arguments.add_argument("--out", type=Path, default=Path("soak-faults"), help="a directory")
    arguments.add_argument("--replay", type=Path, help="try a written case again")
    asked = arguments.parse_args()
    if asked.replay:
        return replay(asked.replay)
    tally = soak(asked.count, asked.jobs, asked.seed, asked.out, asked.seconds)
    wrong = tally.shortcomings()
    print("\n".join([*tally.lines(), *(f"  SHORT OF: {text}" for text in wrong)]))
    return int(bool(tally.faults or wrong))


if __name__ == "__main__":
    sys.exit(main())
