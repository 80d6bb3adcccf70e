"""Row B24: ``trimtab sweep`` takes the newest results out of a conversation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shapes import results
from tool_calls import Step, conversation

import trimtab
from trimtab.cli import main

STEPS = [Step("read", {"path": f"{n}.py"}, f"file {n}\n" + f"line of {n}\n" * 400)
         for n in range(5)]  # fmt: skip


def sweep(tmp_path: Path, *options: str) -> list[str]:
    """What is left of each result."""
    given, out = tmp_path / "in.json", tmp_path / "out.json"
    given.write_text(json.dumps(conversation("anthropic", *STEPS)))
    assert main(["sweep", str(given), "-o", str(out), *options]) == 0
    body = json.loads(out.read_text())
    assert trimtab.check(body) == ()
    return results("anthropic", body)


def whole(texts: list[str]) -> list[bool]:
    return [text == step.result for text, step in zip(texts, STEPS, strict=True)]


@pytest.mark.row("B24")
def test_the_newest_results_are_taken_out_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert whole(sweep(tmp_path, "--newest", "2")) == [True, True, True, False, False]
    said = capsys.readouterr().err
    assert "2 results taken out:" in said
    assert "read: file 4" in said
    assert "the originals are not kept: --journal FILE or --store URL would keep them" in said
    assert whole(sweep(tmp_path)) == [False] * 5
    assert whole(sweep(tmp_path, "--newest", "0")) == [True] * 5
    assert whole(sweep(tmp_path, "--protected-tools", "re*")) == [True] * 5


@pytest.mark.row("B24")
def test_with_a_journal_or_a_store_the_originals_come_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for where in (["--journal", f"{tmp_path}/journal"], ["--store", f"sqlite:///{tmp_path}/s.db"]):
        last = sweep(tmp_path, "--newest", "1", *where)[-1]
        assert "not kept" not in capsys.readouterr().err
        handle = last.split('recall("')[1].split('"')[0]
        assert main(["recall", handle, *where]) == 0
        assert capsys.readouterr().out == STEPS[-1].result


@pytest.mark.row("B24")
def test_what_was_swept_in_a_store_is_sent_no_more_by_who_uses_it(tmp_path: Path) -> None:
    sweep(tmp_path, "--newest", "1", "--store", f"sqlite:///{tmp_path}/s.db")
    session = trimtab.Session(window=100_000, store=f"sqlite:///{tmp_path}/s.db")
    fitted = session.fit(json.dumps(conversation("anthropic", *STEPS)).encode())
    session.close()
    left = results("anthropic", json.loads(fitted.request))
    assert whole(left) == [True, True, True, True, False]
