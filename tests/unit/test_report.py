"""The report of a fit says why each edit was made, what went with it and what can be done."""

from __future__ import annotations

import logging
from typing import Any

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
def test_each_new_edit_tells_the_lines_and_identifiers_that_went(
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
    assert "  no longer sent: " in said
    assert f'recall("{done.report.edits[0].handle}") returns the original' in said
    assert 'recall("' not in "\n".join(done.report.lines())
    assert "value_" not in "".join(record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(
    ("fields", "title"),
    [
        ({"kind": "fold", "op": "fold", "steps": 12}, "12 steps folded into a note"),
        ({"kind": "fold", "op": "fold", "steps": 1}, "1 step folded into a note"),
        ({"kind": "fold", "op": "fold"}, "steps folded into a note"),
        ({"kind": "drop", "op": "drop", "steps": 2}, "2 steps taken out"),
        ({"kind": "marker", "tool": "read"}, "result of read replaced by one line"),
        ({"kind": "head-and-tail", "tool": "bash"}, "result of bash shortened"),
        ({"kind": "arguments", "tool": "edit"}, "arguments of edit shortened"),
        ({"kind": "reasoning", "op": "remove"}, "thinking block taken out"),
        ({"kind": "user-text", "role": "user"}, "text of the user shortened"),
        ({"kind": "head-and-tail", "role": "assistant"}, "text of the model shortened"),
        ({"kind": "smaller-image", "role": "user"}, "image made smaller"),
    ],
)
def test_an_edit_says_in_words_what_it_did(fields: dict[str, Any], title: str) -> None:
    fields = {"op": "replace", "handle": "r1", "why": "too long", **fields}
    edit = trimtab.report.ReportEdit(tokens_before=90, tokens_after=9, **fields)
    assert edit.title == title
    assert str(edit) == f"r1: {title}, 90 → 9 tokens: too long"
    assert edit.as_dict()["title"] == title
