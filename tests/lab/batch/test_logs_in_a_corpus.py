"""Session logs among the files of a corpus; what failed, and how the command ends."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from session_logs import LOGS, claude_code, gemini_cli, written

from trimtab.cli import main
from trimtab_lab import batch

BODY = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
KIMI = [{"role": "_checkpoint", "id": 0}, {"role": "user", "content": "hi"}]


def fill(folder: Path) -> Path:
    folder.mkdir()
    written(folder / "a.jsonl", [BODY, BODY])
    for name, values, *_ in LOGS.values():
        written(folder / name, values)
    lines = "".join(json.dumps(line) + "\n" for line in claude_code())
    (folder / "z.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    return folder


def parts(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("part-*"))}


def test_logs_stand_beside_other_records_and_are_never_cut(tmp_path):
    corpus = fill(tmp_path / "in")
    done = batch.run(corpus, tmp_path / "out", window="9k", jobs=1, shard_bytes=300)
    conversations = sum(count for *_, count in LOGS.values()) + LOGS["claude-code"][3]
    records = done.manifest["records"]
    assert (records["written"], records["failed"]) == (2 + conversations, 0)
    rows = [
        json.loads(row)
        for data in parts(tmp_path / "out").values()
        for row in data.split(b"\n")
        if row
    ]
    assert rows.count(BODY) == 2
    assert {row["agent"] for row in rows if "agent" in row} == set(LOGS)


def test_any_number_of_processes_writes_the_same_bytes(tmp_path):
    corpus = fill(tmp_path / "in")
    batch.run(corpus, tmp_path / "one", window="9k", jobs=1)
    batch.run(corpus, tmp_path / "two", window="9k", jobs=2)
    assert parts(tmp_path / "one") == parts(tmp_path / "two")


def test_a_conversation_is_fitted_by_its_format_and_keeps_its_last_answer(tmp_path):
    lines = claude_code()
    read = next(line for line in lines if line["uuid"] == "r1")
    read["message"]["content"][0]["content"] = "row of a table, 1234\n" * 4000
    source = written(tmp_path / "0f3a.jsonl", lines)
    done = batch.run(source, tmp_path / "out", window="9k", jobs=1, originals=True)
    assert done.manifest["distinct"]["formats"] == {"anthropic": 2}
    assert done.manifest["distinct"]["changed"] == 2
    row = json.loads(parts(tmp_path / "out")["part-00000.jsonl"].split(b"\n")[0])
    assert row["request"]["messages"][-1]["content"][0]["text"] == "Postgres it is."
    assert list((tmp_path / "out" / "originals").iterdir())


def test_a_conversation_without_tool_calls_is_fitted_by_the_format_of_its_log(tmp_path):
    lines = [line for line in claude_code() if line["uuid"] in ("u0", "a2", "u4", "a4")]
    done = batch.run(written(tmp_path / "s.jsonl", lines), tmp_path / "out", window="9k", jobs=1)
    assert done.manifest["distinct"]["formats"] == {"anthropic": 1}


@pytest.mark.parametrize("allowed", [False, True])
def test_the_command_fails_where_records_failed_unless_that_is_allowed(tmp_path, allowed, capsys):
    corpus = tmp_path / "in"
    corpus.mkdir()
    written(corpus / "a.jsonl", [BODY])
    written(corpus / "kimi.jsonl", KIMI)
    written(corpus / "odd.jsonl", [{"a": 1}, {"b": 1}])
    argv = ["batch", str(corpus), str(tmp_path / "out"), "--window", "9k", "--jobs", "1"]
    assert main([*argv, "--no-config", *(["--allow-failures"] if allowed else [])]) == 1 - allowed
    said = capsys.readouterr().err
    assert "1 of 4 records written" in said
    assert "3 could not be fitted: see " in said
    assert "  1 × InvalidRequest, first kimi.jsonl, conversation 1: a session log of Kimi" in said
    assert "  2 × InvalidRequest: no request, first odd.jsonl, line 1 (byte 0): " in said
    firsts = json.loads((tmp_path / "out" / "manifest.json").read_text())["first_errors"]
    first = firsts["InvalidRequest"]
    assert (first["file"], first["at"]) == ("kimi.jsonl", 0)
    errors = sorted((tmp_path / "out" / "errors").iterdir())
    files = [json.loads(line)["file"] for path in errors for line in path.read_text().splitlines()]
    assert files == ["kimi.jsonl", "odd.jsonl", "odd.jsonl"]


def test_the_first_of_each_kind_is_the_first_of_the_corpus_however_often_it_is_read():
    from trimtab_lab.batch.manifest import _Sums

    first = {"file": "f", "at": 2, "kind": "lines", "message": "m"}
    sums = _Sums()
    for place in (5, 2, 9):
        row = {"digest": "00", "error": "X"} | first | {"at": place}
        sums.add(row, place, again=False)
    assert sums.as_dict()["first_errors"] == {"X": first}


def test_a_session_without_answer_and_a_damaged_line_are_both_told(tmp_path):
    lines = gemini_cli()[:4]
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + "{broken\n")
    done = batch.run(path, tmp_path / "out", window="9k", jobs=1)
    assert done.manifest["records"]["written"] == 1
    assert done.manifest["first_errors"]["InvalidRequest"]["message"].startswith("no JSON")
