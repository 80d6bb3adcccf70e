"""The replay over recorded transcripts: it counts every call, finds the same sessions in raw logs,
and is cheap enough to be run for every change.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from records import folder
from world_needs import absent

from trimtab.logs import log_files
from trimtab_lab.replay import job_runner, summary
from trimtab_lab.replay.policies import find
from trimtab_lab.replay.policy_run import replay
from trimtab_lab.replay.recording_index import RecordingIndex

pytestmark = pytest.mark.data


def recorded(name: str) -> log_files.LoadedLogs:
    where = folder()
    if where is None:
        absent("no transcripts: set TRIMTAB_DATA to the folder that holds them")
    return log_files.read([str(Path(where) / f"{name}.jsonl.gz")])


def test_every_call_of_the_coding_sessions_is_replayed() -> None:
    found = recorded("context-evaluator")
    assert found.problems == []
    assert len(found.recordings) == 50
    assert sum(len(recording.turns) for recording in found.recordings) == 1_414


ORACLE = f"{Path(__file__).resolve().parents[2]}/bench/oracle.py:Oracle"


def test_raw_session_files_give_the_segments_that_were_published() -> None:
    found = recorded("agentv")
    assert found.duplicates >= 5
    # The raw one is kept where both are there: it knows the times.
    assert sum(bool(recording.times) for recording in found.recordings) >= found.duplicates


def test_policies_differ_as_they_should_on_real_sessions() -> None:
    found = recorded("context-evaluator")
    chosen = sorted(found.recordings, key=lambda r: len(r.turns))[-12:]
    names = ["none", "trimtab", "drop-oldest-safe", "mask-old-observations", ORACLE]
    results = job_runner.replay(chosen, policies=names, windows=[32_000])
    figures = {
        line.policy: line.figures for line in summary.summarize(results, by=lambda result: "all")
    }
    everything, ours, bound = (figures[n] for n in ("none", "trimtab", "oracle"))
    assert everything["g1"] < 100 > everything["answered"]  # a refused request keeps nothing
    assert everything["cost"] < 1
    assert everything["over"] > 0
    assert (ours["over"], ours["invalid"], ours["failed"]) == (0, 0, 0)
    assert ours["handle"] == 100
    for name in names[1:4]:
        assert figures[name]["g1"] < bound["g1"]  # type: ignore[operator]
        assert figures[name]["invalid"] == figures[name]["failed"] == 0


def test_a_million_tokens_of_transcripts_take_less_than_a_minute() -> None:
    tokens = requests = 0
    began = time.process_time()
    for recording in recorded("entire-cli").recordings:
        index = RecordingIndex(recording)
        done = replay(index, find("none"), 32_000)
        tokens += index.tokens(index.turns[-1])
        requests += sum(row.full for row in done.rows)
        if tokens >= 1_000_000:
            break
    seconds = time.process_time() - began
    assert tokens >= 1_000_000
    assert requests >= 10_000_000
    assert seconds < 60
    print(f"{tokens:,} tokens, {requests:,} request tokens in {seconds:.1f} s")
