"""``trimtab check --session``: notes that are true, and notes that lie.

Knows the command, and puts a liar between what is fitted and who judges it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from noted_sessions import NOTE_WINDOW, noted_log, with_lies

from trimtab.cli import main
from trimtab.cli.exit_codes import DONE, MISSING, UNREADABLE, USAGE, VIOLATIONS
from trimtab_lab.replay.trimtab_policy import Trimtab


@pytest.fixture
def lies(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent names other files than were read."""
    honest = Trimtab.start

    def start(self: Trimtab, *rest: Any) -> Callable[[dict[str, Any]], Any]:
        step = honest(self, *rest)

        def lying(body: dict[str, Any]) -> Any:
            made = step(body)
            return replace(made, request=with_lies(made.request))

        return lying

    monkeypatch.setattr(Trimtab, "start", start)


def check(*argv: object) -> int:
    return main(["check", "--session", *map(str, argv)])


def test_a_session_whose_notes_are_true_is_said_to_be_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(noted_log(tmp_path), "--window", NOTE_WINDOW) == DONE
    told = capsys.readouterr().out
    assert "15 model calls at 3,000 tokens; " in told
    assert " quoted lines; new lines are shown of 6 of 6 edits in them" in told
    assert "true: each line is under the step and file it came from" in told
    assert "untrue" not in told


def test_one_shortened_result_beside_dropped_steps_is_no_note(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """At 4k a ``git diff`` is cut, whose rows are new text of an edit that was dropped."""
    example = Path(__file__).resolve().parents[3] / "examples" / "session.openai.json"
    assert check(example, "--window", 4_000) == DONE
    assert "untrue" not in capsys.readouterr().out


@pytest.mark.usefixtures("lies")
def test_each_line_that_is_not_true_is_told_and_the_exit_code_is_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(noted_log(tmp_path), "--window", NOTE_WINDOW) == VIOLATIONS
    told = capsys.readouterr().out
    assert "is under a step that it did not come from" in told
    assert '(it is under "1 Read src/part1.py' in told
    assert "more that are untrue; --json has all" in told
    assert "true: each line" not in told
    lines = [line for line in told.splitlines() if "untrue, from message" in line]
    assert len(lines) == len(set(lines)) == 20


@pytest.mark.usefixtures("lies")
def test_json_has_every_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(noted_log(tmp_path), "--window", NOTE_WINDOW, "--json") == VIOLATIONS
    (session,) = json.loads(capsys.readouterr().out)["sessions"]
    assert session["calls"] == 15
    found = [(one["kind"], one["line"], one["head"]) for one in session["untrue"]]
    assert len(found) == len(set(found)) > 20
    assert {found["kind"] for found in session["untrue"]} == {
        "under another step", "under another file",
    }  # fmt: skip


def test_a_session_that_fits_has_no_note_to_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(noted_log(tmp_path)) == DONE
    told, said = capsys.readouterr()
    assert "no note was made, so there is nothing to check" in told
    assert "no --window given: 100,000 tokens" in said


def test_what_cannot_be_played_is_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = noted_log(tmp_path)
    assert check("-") == USAGE
    assert check(log, "--turn", "3") == USAGE
    assert check(tmp_path / "nowhere.jsonl", "--window", "8k") == MISSING
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 3
    assert all(line.startswith("trimtab: ") for line in said)
    (tmp_path / "empty.jsonl").write_text("")
    assert check(tmp_path / "empty.jsonl", "--window", "8k") == UNREADABLE


def test_calls_that_cannot_fit_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(noted_log(tmp_path), "--window", "50") == DONE
    assert "of them do not fit" in capsys.readouterr().out
