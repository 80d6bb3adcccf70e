"""Faults planted in the library one by one: the soak's judges catch each.

A fault counts as caught when a history fails that does not fail without it.
"""

from __future__ import annotations

import pytest
from soak.faults import FAULTS, Fault
from soak.story import SIX
from soak.trial import Case, case_of, verdict_of

MANY, FEW = 400, 10
"""Histories tried for one fault, at the most; for one that none shows."""
SHOWN_BY = {
    ("second results are never reported", "openai-chat"): 88,
    ("second results are never reported", "gemini-interactions"): 75,
    ("equal call ids are never reported", "openai-chat"): 24,
    ("equal call ids are never reported", "anthropic"): 89,
    ("equal call ids are never reported", "bedrock"): 89,
    ("results are left where they strayed", "anthropic"): 22,
    ("missing signatures are let through", "gemini"): 17,
    ("ids may be spelled anyhow", "openai-chat"): 17,
    ("ids may be spelled anyhow", "openai-responses"): 21,
    ("ids may be spelled anyhow", "anthropic"): 10,
    ("ids may be spelled anyhow", "bedrock"): 11,
    ("blank texts are never reported", "gemini"): 57,
    ("a history may begin with the model", "anthropic"): 94,
    ("a history may begin with the model", "bedrock"): 94,
    ("a history may begin with the model", "gemini"): 30,
    ("a history may end with the model", "bedrock"): 71,
    ("unsigned thoughts are let through", "bedrock"): 47,
    ("tools need not be declared", "bedrock"): 34,
    ("arguments may be anything", "gemini"): 96,
    ("reasoning may stand alone", "openai-responses"): 159,
    ("thoughts go without what demands them", "openai-responses"): 27,
    ("second results are never reported", "anthropic"): 8,
    ("second results are never reported", "bedrock"): 8,
    ("late results are never reported", "anthropic"): 11,
    ("ids are respelled on one side", "bedrock"): 16,
    ("ids are respelled on one side", "openai-chat"): 17,
    ("equal ids are told apart on one side", "openai-chat"): 17,
    ("equal ids are told apart on one side", "anthropic"): 14,
    ("equal ids are told apart on one side", "bedrock"): 14,
    ("notes are the model's before its thinking", "anthropic"): 10,
    ("messages without content are never reported", "openai-chat"): 13,
    ("messages without content are never reported", "gemini"): 11,
    ("a history may end with the model", "anthropic"): 11,
    ("items may stand twice", "openai-responses"): 8,
    ("any other thought may go", "anthropic"): 161,
}
"""The history to try first, where it takes many to find one that shows the fault."""
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
    tries = range(FEW if fault.name in MISSED else MANY)
    first = SHOWN_BY.get((fault.name, format), 0)
    for seed in (first, *tries):
        case = _case(fault, format, seed)
        with monkeypatch.context() as patch:
            fault.plant(patch, format)
            found = verdict_of(case, thorough=True)
        assert "rule skipped" not in found.detail, "the fault itself is broken"
        if found.fault and not verdict_of(case, thorough=True).fault:
            return
    pytest.fail(f"{len(tries)} histories did not catch it")


def test_twenty_faults_and_more_are_planted_and_every_format_gets_some() -> None:
    assert len({fault.name for fault in FAULTS}) >= 20
    assert {format for _, format in PLANTED} == set(SIX)
