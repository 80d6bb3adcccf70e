"""Whether recorded conversations keep everyone's words when they are cut, in every format.

``judge_speakers`` says whose text is whose; it shares no code with the library.  As a test it takes
one conversation a source; as a program it prints what came of as many as it is given:
``python tests/data/test_provenance_data.py --each 6``.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import spoken
from judge_speakers import Arrived
from records import folder

import trimtab
from trimtab import CannotFit
from trimtab.logs import log_files
from trimtab.logs.recording import Recording
from trimtab.planning.presets import PRESETS
from trimtab_lab.replay.job_runner import sample_each
from trimtab_lab.replay.policy_run import converted
from trimtab_lab.replay.recording_index import RecordingIndex

pytestmark = pytest.mark.data

WINDOWS = (8_000, 16_000, 32_000)
SETTINGS = trimtab.Settings(counter="o200k")


@dataclass
class Tally:
    """What was judged, and the faults."""

    recordings: Counter[str] = field(default_factory=Counter)
    fits: Counter[str] = field(default_factory=Counter)
    batches: Counter[str] = field(default_factory=Counter)
    sessions: int = 0
    untouched: int = 0
    cannot: int = 0
    unconverted: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        rows = [
            f"{self.recordings.total()} recordings: {_listed(self.recordings)}",
            f"{self.fits.total():,} cut requests of single fits: {_listed(self.fits)}",
            f"{self.batches.total():,} batches of {self.sessions} sessions: "
            f"{_listed(self.batches)}",
            f"{self.untouched:,} requests were small enough as they came, {self.cannot} could not "
            f"fit; not convertible: {_listed(self.unconverted) or 'none'}",
            f"{len(self.faults)} with a text in another's name",
        ]
        return "\n".join([*rows, *self.faults[:20]])


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))


def sample(each: int, seed: int) -> list[Recording]:
    """So many conversations of each source that outgrow the smallest window."""
    found = log_files.read([str(folder())]).recordings
    large = [r for r in found if r.turns and RecordingIndex(r).tokens(r.turns[-1]) > WINDOWS[0]]
    return sample_each(large, each, seed)


def in_all_formats(recording: Recording, tally: Tally) -> Iterator[Recording]:
    """The recording as it is, and in the other formats where it can be converted."""
    for format in spoken.FORMATS:
        try:
            yield converted(recording, format)
        except trimtab.TrimtabError as error:
            tally.unconverted[f"{recording.source} to {format} ({type(error).__name__})"] += 1


def judge(recording: Recording, tally: Tally, seed: int) -> None:
    """Every preset at every window once; and one session of a preset and window drawn by lot."""
    tally.recordings[recording.source] += 1
    for one in in_all_formats(recording, tally):
        request = one.request(one.turns[-1])
        arrived = Arrived(request)
        for window, preset in product(WINDOWS, PRESETS):
            name = f"{recording.id} {one.format} {preset} {window}"
            try:
                fitted = trimtab.fit(
                    request, window=window, reserve=0, preset=preset, format=one.format,
                    settings=SETTINGS,
                )  # fmt: skip
            except CannotFit:
                tally.cannot += 1
                continue
            if not fitted.report.edits:
                tally.untouched += 1
                continue
            tally.fits[one.format] += 1
            tally.faults += _faults(name, arrived, fitted)
        lot = random.Random(f"{seed} {recording.id} {one.format}")
        walk(one, arrived, lot.choice(WINDOWS), lot.choice(sorted(PRESETS)), tally)


def walk(one: Recording, arrived: Arrived, window: int, preset: Any, tally: Tally) -> None:
    """A session over every model call of a recording; each batch is judged by the whole recording,
    or, where the client changed what it had said before, by the call's own request."""
    session = trimtab.Session(
        window=window, reserve=0, preset=preset, format=one.format, settings=SETTINGS
    )
    tally.sessions += 1
    for number, turn in enumerate(one.turns):
        try:
            request = one.request(turn)
            fitted = session.fit(request)
        except CannotFit:
            tally.cannot += 1
            return
        if any(edit.new for edit in fitted.report.edits):
            tally.batches[one.format] += 1
            name = f"{one.id} {one.format} {preset} {window} call {number} of a session"
            if _faults(name, arrived, fitted):
                tally.faults += _faults(name, Arrived(request), fitted)


def _faults(name: str, arrived: Arrived, fitted: Any) -> list[str]:
    found = arrived.foreign(fitted.request)
    return [f"{name}: {who} {piece!r}" for who, piece in found[:1]]


def run(each: int, seed: int = 0) -> Tally:
    """Judge so many conversations of each source."""
    tally = Tally()
    for recording in sample(each, seed):
        judge(recording, tally, seed)
        if __name__ == "__main__":
            print(recording.source, recording.id, len(tally.faults), file=sys.stderr, flush=True)
    return tally


@pytest.fixture(scope="module")
def judged() -> Tally:
    """Of three sources that none of the formats is alike in, one conversation each."""
    tally = Tally()
    named = ("agentv", "pydantic-ai-cassettes", "livemcpbench")
    for recording in sample(1, 0):
        if recording.source in named:
            judge(recording, tally, 0)
    return tally


@pytest.mark.row("E4")
def test_recorded_conversations_keep_everyones_words(judged: Tally) -> None:
    print(judged)
    assert judged.faults == []
    assert set(judged.fits) == set(spoken.FORMATS)


def main() -> int:
    """Print what came out; 1 where a text stands in another's name."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--each", type=int, default=6, help="conversations of each source")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    tally = run(given.each, given.seed)
    print(tally)
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
