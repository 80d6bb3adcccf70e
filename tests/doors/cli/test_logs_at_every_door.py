"""Every command that reads logs takes the session log of every agent.

The readers themselves are tested in ``tests/unit/logs``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from session_logs import ASKED, LOGS, WITHDRAWN, claude_code, written

from trimtab.cli import main


@pytest.fixture(params=sorted(LOGS))
def log(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str, str]:
    """(agent, file, format)."""
    name, values, format, _ = LOGS[request.param]
    return request.param, written(tmp_path / name, values), format


def test_check_judges_the_last_request_by_the_format_of_the_log(log, capsys):
    agent, name, format = log
    assert main(["check", name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == format
    assert main(["check", name]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"accepted: {format}")
    assert f" of {agent}, " in err


def test_fit_takes_the_last_request_without_what_was_taken_back(log, capsysbinary):
    _, name, _ = log
    assert main(["fit", name, "--window", "9k", "--no-config"]) == 0
    out = capsysbinary.readouterr().out.decode()
    assert ASKED in out
    assert WITHDRAWN not in out
    assert "nterrupted" not in out


def test_turns_of_what_was_taken_back_come_behind_those_of_the_conversation(tmp_path, capsysbinary):
    name = written(tmp_path / "0f3a.jsonl", claude_code())
    assert main(["fit", name, "--turn", "3", "--window", "9k", "--no-config"]) == 0
    out, err = capsysbinary.readouterr()
    assert b"--turn takes another, 0 to 5" in err
    assert ASKED.encode() not in out
    assert main(["fit", name, "--turn", "5", "--window", "9k", "--no-config"]) == 0
    assert WITHDRAWN.encode() in capsysbinary.readouterr().out


def test_inspect_and_convert_read_it(log, capsys):
    _, name, format = log
    assert main(["inspect", name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == format
    assert main(["convert", name, "--to", "anthropic", "--model", "claude-opus-4-5"]) == 0
    assert ASKED in capsys.readouterr().out


def test_replay_and_its_closer_look_read_it(log, tmp_path, capsys):
    _, name, _ = log
    argv = ["replay", name, "--no-outgrown", "--window", "9k", "--policy", "trimtab"]
    assert main([*argv, "--workers", "1"]) == 0
    assert "0 not readable" in capsys.readouterr().err
    assert main([*argv, "--turn", "0", "--show"]) == 0


@pytest.mark.parametrize(
    ("agent", "calls"),
    [("claude-code", 3), ("qwen-code", 4), ("gemini-cli", 4), ("pi", 4), ("openclaw", 4)],
)
def test_bill_counts_each_call_once_where_the_agent_logs_usage(agent, calls, tmp_path, capsys):
    name, values, *_ = LOGS[agent]
    assert main(["bill", written(tmp_path / name, values), "--paid-only", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["paid"]["calls"] == calls


def test_batch_writes_a_record_for_each_conversation(log, tmp_path, capsys):
    agent, name, _ = log
    out = tmp_path / "out"
    argv = ["batch", name, str(out), "--window", "9k", "--no-config", "--jobs", "1"]
    assert main(argv) == 0
    count = LOGS[agent][3]
    assert f"{count} of {count} records written" in capsys.readouterr().err
    (part,) = out.glob("part-*.jsonl")
    rows = [json.loads(line) for line in part.read_text().splitlines()]
    assert [row["agent"] for row in rows] == [agent] * count
    assert sum(ASKED in json.dumps(row["request"]) for row in rows) == 1


TEXT_ONLY = [
    line for line in claude_code() if line["uuid"] in ("u0", "a2", "u4", "a4")
]  # fmt: skip


def test_a_session_without_tool_calls_is_judged_by_its_own_format(tmp_path, capsys):
    """Its messages look like chat completions."""
    name = written(tmp_path / "0f3a.jsonl", TEXT_ONLY)
    assert main(["check", name]) == 0
    assert capsys.readouterr().out.startswith("accepted: anthropic")
    assert main(["check", name, "--format", "openai-chat"]) == 0
    assert capsys.readouterr().out.startswith("accepted: openai-chat")
    assert main(["fit", name, "--window", "9k", "--no-config", "--json"]) == 0
    assert json.loads(capsys.readouterr().err)["format"] == "anthropic"


def _request(words: str, **body: Any) -> dict[str, Any]:
    return {
        "request": {"model": "gpt-4o", "messages": [{"role": "user", "content": words}], **body}
    }


@pytest.mark.parametrize("name", ["log.jsonl", "log.json"])
def test_a_log_of_one_request_that_nobody_answered_is_a_request(tmp_path, name, capsysbinary):
    path = written(tmp_path / name, [_request("x " * 30_000)])
    assert main(["check", path]) == 0
    assert main(["check", path, "--window", "8k"]) == 1
    capsysbinary.readouterr()
    assert main(["fit", path, "--window", "8k", "--no-config"]) == 0
    assert json.loads(capsysbinary.readouterr().out)["model"] == "gpt-4o"


def test_of_several_unanswered_requests_the_last_is_taken_and_turn_takes_another(tmp_path, capsys):
    path = written(tmp_path / "log.jsonl", [_request("one"), _request("two")])
    for argv, wanted in (([], "two"), (["--turn", "0"], "one")):
        assert main(["convert", path, "--to", "anthropic", *argv]) == 0
        assert wanted in json.dumps(json.loads(capsys.readouterr().out)["messages"])


def test_a_session_that_waits_for_its_first_answer_is_a_request(tmp_path, capsys):
    assert main(["check", written(tmp_path / "0f3a.jsonl", TEXT_ONLY[:1])]) == 0
    assert capsys.readouterr().out.startswith("accepted: anthropic")


@pytest.mark.parametrize("agent", ["claude-code", "qwen-code", "copilot-cli", "pi"])
def test_the_newest_prompt_is_the_last_request_though_only_older_ones_were_answered(
    agent, tmp_path, capsysbinary
):
    name, values, *_ = LOGS[agent]
    asked = max(n for n, value in enumerate(values) if ASKED in json.dumps(value))
    path = written(tmp_path / name, values[: asked + 1])
    assert main(["fit", path, "--window", "9k", "--no-config"]) == 0
    out = capsysbinary.readouterr().out.decode()
    assert ASKED in out
    assert WITHDRAWN not in out


def test_behind_a_compaction_the_last_request_is_the_one_that_waits(tmp_path, capsysbinary):
    lines = claude_code()
    for uuid, parent, words, more in (
        ("k", "a4", "So far: Postgres.", {"isCompactSummary": True}),
        ("u5", "k", "And the schema?", {}),
    ):
        message = {"role": "user", "content": words}
        time = {"timestamp": "2026-09-01T11:00:00.000Z"}
        about = {**lines[0], **time, **more, "uuid": uuid, "parentUuid": parent}
        lines.append({**about, "message": message})
    path = written(tmp_path / "0f3a.jsonl", lines)
    assert main(["fit", path, "--window", "9k", "--no-config"]) == 0
    messages = json.loads(capsysbinary.readouterr().out)["messages"]
    assert [message["content"] for message in messages] == ["So far: Postgres.", "And the schema?"]


@pytest.mark.parametrize("command", ["check", "fit", "inspect"])
def test_a_log_of_an_agent_that_is_not_read_gets_one_clear_line(tmp_path, command, capsys):
    path = written(tmp_path / "context.jsonl", [{"role": "_checkpoint", "id": 0}])
    assert main([command, path]) == 4
    assert capsys.readouterr().err == (
        f"trimtab: {path}: a session log of Kimi, which is not read: give its requests, one body "
        "as JSON on each line, or run it behind `trimtab proxy`\n"
    )


def test_a_database_is_named_with_what_to_do(tmp_path, capsys):
    path = tmp_path / "sessions.db"
    path.write_bytes(b"SQLite format 3\0" + bytes(90))
    assert main(["check", str(path)]) == 3
    assert "`goose session export --format json`" in capsys.readouterr().err
    assert main(["bill", str(path)]) == 3
    assert "`goose session export --format json`" in capsys.readouterr().err
