"""A soak in small: made-up histories with twelve mutations over five formats, none comes out bad.

The same that ``python tests/soak/run.py`` tries by the million.  500; ``SOAK_COUNT`` says
otherwise.  A fault is written as JSON into ``SOAK_OUT`` if given.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from soak.mutations import NAMES
from soak.run import RANGE, Tally, replay, soak
from soak.story import FORMATS, INTERACTIONS, Message, Part
from soak.trial import case_of, kept_of, verdict_of

COUNT = int(os.environ.get("SOAK_COUNT") or 500)


@pytest.fixture(scope="module")
def tally(tmp_path_factory: pytest.TempPathFactory) -> Tally:
    """All histories tried, in as many processes as there are cores."""
    out = Path(os.environ.get("SOAK_OUT") or tmp_path_factory.mktemp("soak"))
    found = soak(COUNT, os.cpu_count() or 1, 1, out, 0)
    print("\n".join(found.lines()))
    return found


@pytest.mark.parametrize("format", FORMATS)
def test_no_history_comes_out_invalid_too_large_or_not_at_all(tally: Tally, format: str) -> None:
    assert {sort: n for sort, n in tally.faults.items() if sort.startswith(f"{format}/")} == {}
    assert (
        sum(n for kind, n in tally.kinds.items() if kind.startswith(f"{format}/")) * 5
        == tally.count
    )


def test_no_window_at_or_above_the_declared_minimum_is_refused(tally: Tally) -> None:
    assert tally.facts["asked"] > 0.3 * COUNT
    assert [kind for kind in tally.kinds if "refused above" in kind] == []


def test_the_histories_are_long_above_the_window_and_each_mutation_is_common(tally: Tally) -> None:
    assert tally.count >= COUNT
    assert tally.shortcomings() == []
    assert all(tally.share(name) >= 0.05 for name in NAMES)


def test_a_case_comes_of_its_seed_alone_and_is_fitted_the_same_again(tmp_path: Path) -> None:
    for seed in range(40):
        case = case_of(seed)
        assert case == case_of(seed)
        assert verdict_of(case) == verdict_of(case)
    assert {case_of(seed)["format"] for seed in range(5)} == set(FORMATS)


@pytest.mark.parametrize("seed", range(40))
def test_no_history_of_interactions_comes_out_bad(seed: int) -> None:
    verdict = verdict_of(case_of(seed, INTERACTIONS), thorough=True)
    assert not verdict.fault, verdict


def test_of_items_those_merged_into_the_models_message_answer_its_calls() -> None:
    call, first, second = (
        Part(kind, 0, text, id="c")
        for kind, text in (("call", ""), ("result", "1st"), ("result", "2nd"))
    )
    told = [Message("assistant", [call, first]), Message("user", [second])]
    assert kept_of(told, True, True) == []
    assert kept_of(told, True, False) == ["2nd"]


def test_a_written_case_is_tried_again_and_a_fault_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = next(c for c in map(case_of, range(100)) if not verdict_of(c, True).fault)
    file = tmp_path / "case.json"
    file.write_text(json.dumps(case), encoding="utf-8")
    assert replay(file) == 0
    broken = {**case, "draw": ["minimum", 1.0], "format": "semaphore"}
    file.write_text(json.dumps(broken), encoding="utf-8")
    assert replay(file) == 1
    assert "crash" in capsys.readouterr().out


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    part = soak(RANGE, 1, 700_001, tmp_path, 0)
    whole = soak(2 * RANGE, 1, 700_001, tmp_path, 0)
    assert (part.count, whole.count) == (RANGE, 2 * RANGE)
    assert len((tmp_path / "ranges-700001.jsonl").read_text().splitlines()) == 2


ONCE_BAD = (
    160, 186, 203, 463, 614, 831, 951, 50_931, 51_989, 438_862, 541_192, 3_001_488,
    40_005_760, 40_009_580, 40_011_740, 50_018_252, 80_022_140, 80_030_780,
    90_000_176, 100_031_676, 100_056_536, 100_076_464, 200_069_631,
)  # fmt: skip


@pytest.mark.parametrize("seed", ONCE_BAD)
def test_a_history_that_once_came_out_bad_does_no_more(seed: int) -> None:
    verdict = verdict_of(case_of(seed), thorough=True)
    assert verdict.kind == "ok", verdict.detail


def test_a_step_reaches_back_to_the_calls_that_its_results_answer() -> None:
    """The judge took reasoning between them for an older step's, which might go."""
    assert verdict_of(case_of(200_079_896)).kind == "refused"
