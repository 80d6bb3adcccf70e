"""Faults planted in the library one by one: the soak's judges catch each.

A fault counts as caught when a history fails that does not fail without it.
"""

from __future__ import annotations

import pytest
from soak.faults import FAULTS, Fault
from soak.trial import Case, case_of, verdict_of

MANY = 400
"""Histories tried for one fault, at the most."""
PLANTED = [(fault, format) for fault in FAULTS for format in fault.formats]


def _case(fault: Fault, format: str, seed: int) -> Case:
    case = case_of(seed, format, fault.mutations[seed % len(fault.mutations)])
    return case if fault.draw is None else {**case, "draw": list(fault.draw)}


MISSED = {"five cache marks are let through"}


@pytest.mark.parametrize(
    ("fault", "format"),
    [
        pytest.param(
            fault, format, id=f"{fault.name}, {format}",
            marks=[pytest.mark.xfail(reason="no history shows it")] * (fault.name in MISSED),
        )
        for fault, format in PLANTED
    ],
)  # fmt: skip
def test_a_planted_fault_is_caught(
    fault: Fault, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(MANY):
        case = _case(fault, format, seed)
        with monkeypatch.context() as patch:
            fault.plant(patch, format)
            found = verdict_of(case, thorough=True)
        assert "rule skipped" not in found.detail, "the fault itself is broken"
        if found.fault and not verdict_of(case, thorough=True).fault:
            return
    pytest.fail(f"{MANY} histories did not catch it")


def test_twenty_faults_and_more_are_planted_and_every_format_gets_some() -> None:
    assert len({fault.name for fault in FAULTS}) >= 20
    assert {format for _, format in PLANTED} == {case_of(seed)["format"] for seed in range(5)}
