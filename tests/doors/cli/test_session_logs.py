"""Commands that take one request take it out of a coding agent's session log, too."""

from __future__ import annotations

import gzip
import io
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from trimtab.cli import main
from trimtab.cli.command_table import COMMANDS
from trimtab.cli.commands import parser
from trimtab.formats import FORMATS

ROOT = Path(__file__).resolve().parents[3]


def call(number: int) -> list[dict[str, Any]]:
    """A tool call and its result, as Anthropic's messages have them."""
    use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"file{number}.py"}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


def claude_lines(*, closed: bool = False, side: bool = False) -> list[dict[str, Any]]:
    """A session with two calls, a compaction, one call; maybe the last answer, maybe a subagent."""
    messages = [{"role": "user", "content": "list"}, *call(1), *call(2)]
    after = [{"role": "user", "content": "what was done so far"}, *call(3)]
    if closed:
        after.append({"role": "assistant", "content": [{"type": "text", "text": "done"}]})
    lines = [*messages, *after]
    found = [
        {
            "uuid": f"u{n}", "parentUuid": None, "sessionId": "s1", "type": m["role"],
            "message": {**m, "model": "claude-opus-4-5", "id": f"m{n}"},
            **({"isCompactSummary": True} if n == len(messages) else {}),
        }
        for n, m in enumerate(lines)
    ]  # fmt: skip
    if side:
        found += [
            {"uuid": f"side{n}", "parentUuid": None, "sessionId": "s1", "isSidechain": True,
             "agentId": "a1", "type": m["role"], "message": m}
            for n, m in enumerate([{"role": "user", "content": "explore"}, *call(9)])
        ]  # fmt: skip
    return found


CODEX = [
    {"type": "session_meta", "payload": {"id": "c1", "instructions": "Be brief"}},
    {"type": "turn_context", "payload": {"model": "gpt-5"}},
    *(
        {"type": "response_item", "payload": item}
        for item in (
            {"type": "message", "role": "user", "content": "list"},
            {"type": "function_call", "call_id": "t", "name": "ls", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "t", "output": "a.py"},
            {"type": "message", "role": "assistant", "content": "a.py"},
        )
    ),
]
OPENCODE = {
    "info": {"id": "o1"},
    "messages": [
        {"info": {"role": "user"}, "parts": [{"type": "text", "text": "list"}]},
        {"info": {"role": "assistant", "modelID": "big"}, "parts": [
            {"type": "tool", "tool": "ls", "callID": "t",
             "state": {"status": "completed", "input": {}, "output": "a.py"}}]},
    ],
}  # fmt: skip


def written(path: Path, lines: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def fitted(argv: list[str], capsysbinary: Any) -> tuple[int, Any, str]:
    """(exit code, the request on standard output, the first line of standard error)."""
    code = main(["fit", *argv, "--window", "9k", "--no-config"])
    out, err = capsysbinary.readouterr()
    return code, json.loads(out) if out else None, err.decode().partition("\n")[0]


def test_the_last_request_of_a_session_log_is_taken_and_named(tmp_path, capsysbinary):
    name = written(tmp_path / "0f3a.jsonl", claude_lines(closed=True, side=True))
    code, request, line = fitted([name], capsysbinary)
    assert code == 0
    assert request["messages"] == [{"role": "user", "content": "what was done so far"}, *call(3)]
    assert request["model"] == "claude-opus-4-5"
    assert line == (
        f"{name}: request 3 of claude-code, s1#1 (anthropic), whose system prompt and tools are "
        "not in the log; --turn takes another, 0 to 5"
    )


def test_a_request_that_nobody_has_answered_yet_is_the_last(tmp_path, capsysbinary):
    name = written(tmp_path / "0f3a.jsonl", claude_lines())
    assert len(fitted([name], capsysbinary)[1]["messages"]) == 3
    assert len(fitted([name, "--turn", "2"], capsysbinary)[1]["messages"]) == 1


def test_turns_are_counted_over_a_compaction_and_subagents_come_behind(tmp_path, capsysbinary):
    name = written(tmp_path / "0f3a.jsonl", claude_lines(side=True))
    sent = [fitted([name, "--turn", str(n)], capsysbinary)[1]["messages"] for n in range(6)]
    assert [len(messages) for messages in sent] == [1, 3, 1, 3, 1, 3]
    assert sent[5][0]["content"] == "explore"


def test_a_turn_that_is_not_there_names_option_file_and_range(tmp_path, capsys):
    name = written(tmp_path / "0f3a.jsonl", claude_lines(closed=True))
    for number in (-1, 4):
        assert main(["check", name, "--turn", str(number)]) == 2
        error = capsys.readouterr().err
        assert error == f"trimtab: --turn {number}: {name} has the requests 0 to 3: name one\n"


def test_logs_of_codex_and_opencode_are_read(tmp_path, capsysbinary):
    code, request, line = fitted([written(tmp_path / "r.jsonl", CODEX)], capsysbinary)
    assert (code, request["instructions"], len(request["input"])) == (0, "Be brief", 3)
    assert "codex, c1" in line
    exported = tmp_path / "export.json"
    exported.write_text(json.dumps(OPENCODE, indent=1))
    code, request, line = fitted([str(exported)], capsysbinary)
    assert (code, len(request["messages"])) == (0, 3)
    assert "opencode, o1" in line


def test_check_explain_and_convert_read_them_too(tmp_path, capsys):
    name = written(tmp_path / "0f3a.jsonl", claude_lines())
    assert main(["check", name]) == 0
    assert "accepted: anthropic" in capsys.readouterr().out
    assert main(["inspect", name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["by_tool"]["Bash"]["calls"] == 1
    assert main(["convert", name, "--to", "openai-chat"]) == 0
    assert next(m["role"] for m in json.loads(capsys.readouterr().out)["messages"]) == "user"


def test_a_packed_log_and_one_on_standard_input_are_read(tmp_path, capsysbinary, monkeypatch):
    data = Path(written(tmp_path / "0f3a.jsonl", claude_lines())).read_bytes()
    packed = tmp_path / "0f3a.jsonl.gz"
    packed.write_bytes(gzip.compress(data))
    expected = fitted([str(packed)], capsysbinary)[1]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    code, request, line = fitted([], capsysbinary)
    assert (code, request) == (0, expected)
    assert line.startswith("standard input: request 3 of claude-code")


def test_a_log_without_a_model_call_is_named_with_what_reads_what(tmp_path, capsys):
    name = written(tmp_path / "some.jsonl", [{"a": 1}, {"b": 2}])
    assert main(["inspect", name]) == 4
    error = capsys.readouterr().err
    assert error.startswith(f"trimtab: {name}: no model call of a session in it: no request or rec")
    assert "Claude Code, Codex, Copilot CLI" in error
    assert "`trimtab replay` and `trimtab batch` read the same" in error


def test_a_request_body_stays_byte_for_byte_what_it_is(tmp_path, capsysbinary):
    body = b'{"model": "gpt-4.1",  "messages": [{"role": "user", "content": "h\\u00e9llo"}]}\n'
    name = tmp_path / "one.jsonl"
    name.write_bytes(body)
    assert main(["fit", str(name), "--window", "9k"]) == 0
    assert capsysbinary.readouterr().out == body


def test_on_a_terminal_fit_prints_the_report_and_not_the_request(capsysbinary, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    session = str(ROOT / "examples" / "session.anthropic.json")
    assert main(["fit", session, "--window", "32k"]) == 0
    out, err = capsysbinary.readouterr()
    assert out == b""
    assert err.splitlines()[-1].endswith(b" bytes) is not written: -o FILE, or a pipe")
    assert main(["fit", session, "--window", "32k", "-o", "-"]) == 0
    assert json.loads(capsysbinary.readouterr().out)


def test_the_help_of_each_command_has_examples_that_parse_and_names_what_is_read(capsys):
    for name, command in COMMANDS.items():
        with pytest.raises(SystemExit):
            main([name, "--help-all"])
        text = capsys.readouterr().out
        for example in command.examples:
            assert example in text
            words = shlex.split(example.partition(" >")[0])
            assert words[:2] == ["trimtab", name]
            parser().parse_args(words[1:])
        if name in ("fit", "check", "inspect", "convert"):
            assert all(format in text for format in FORMATS)
            assert "Claude Code, Codex, Copilot CLI" in text
