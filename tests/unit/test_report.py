"""The report of a fit says why each edit was made, what went with it and what can be done."""

from __future__ import annotations

import logging

import pytest
from shapes import FORMATS
from tool_calls import Step, conversation

import trimtab

STEPS = [
    Step("read", {"path": f"src/{n}.py"}, "".join(f"value_{n}_{k} is kept\n" for k in range(150)))
    for n in range(8)
]


def fitted(format: str) -> trimtab.Fitted:
    return trimtab.fit(
        conversation(format, *STEPS), window=6_000, reserve=0,
        settings=trimtab.Settings(counter="o200k"),
    )  # fmt: skip


@pytest.mark.parametrize("format", FORMATS)
def test_each_new_edit_tells_the_lines_and_identifiers_that_went_and_the_remedy(
    format: str,
) -> None:
    done = fitted(format)
    losses = {loss.handle: loss for loss in done.report.losses}
    assert losses.keys() == {edit.handle for edit in done.report.edits}
    gone = {name for loss in losses.values() for name in loss.identifiers}
    sent = str(done.request)
    for step in range(8):
        for k in range(150):
            assert (f"value_{step}_{k}" in gone) != (f"value_{step}_{k} " in sent)
    for loss in losses.values():
        assert loss.lines > 0
        assert f'recall("{loss.handle}")' in loss.remedy
        assert done.recall(loss.handle)
    assert done.report.as_dict()["losses"][0]["identifiers"]


def test_the_printed_report_and_the_log_tell_why_and_what_went(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG, "trimtab"):
        done = fitted("anthropic")
    said = str(done.report)
    for edit in done.report.edits:
        assert edit.why in said
        assert any(edit.why in record.getMessage() for record in caplog.records)
    assert " identifier(s) found nowhere else" in said
    assert 'recall("' in said
    assert "value_" not in "".join(record.getMessage() for record in caplog.records)
