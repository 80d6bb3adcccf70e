"""Logs of every kind become the conversation that was had; what cannot be read is named.

Knows the lines that clients and gateways write.  Does not know what is measured.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from replay_story import MESSAGES

from trimtab.logs import log_files
from trimtab.logs.recording import RecordedTurn, Recording


def write(path: Path, *values: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(json.dumps(value) + "\n" for value in values).encode()
    path.write_bytes(gzip.compress(data) if path.name.endswith(".gz") else data)
    return str(path)


def only(name: str) -> Recording:
    found = log_files.read([name])
    assert found.problems == []
    (recording,) = found.recordings
    return recording


def record(**changes: Any) -> dict[str, Any]:
    return {"id": "r1", "format": "openai-chat", "messages": MESSAGES, "tools": None, **changes}


ANTHROPIC = [
    {"role": "user", "content": "list"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "ls", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "a.py"}]},
]
RESPONSES = [
    {"type": "message", "role": "user", "content": "list"},
    {"type": "function_call", "call_id": "t", "name": "ls", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "t", "output": "a.py"},
]
BEDROCK = [
    {"role": "user", "content": [{"text": "list"}]},
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "ls", "input": {}}}]},
    {"role": "user", "content": [
        {"toolResult": {"toolUseId": "t", "content": [{"text": "a.py"}]}}]},
]  # fmt: skip
GEMINI = [
    {"role": "user", "parts": [{"text": "list"}]},
    {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {}}}]},
    {"role": "user", "parts": [
        {"functionResponse": {"name": "ls", "response": {"output": "a.py"}}}]},
]  # fmt: skip


@pytest.mark.parametrize(
    ("format", "messages", "key"),
    [
        ("anthropic", ANTHROPIC, "messages"),
        ("openai-responses", RESPONSES, "input"),
        ("bedrock", BEDROCK, "messages"),
        ("gemini", GEMINI, "contents"),
    ],
)
def test_records_of_every_format_put_system_and_tools_back(tmp_path, format, messages, key):
    tools = [{"name": "ls"}]
    made = {"id": "x", "format": format, "messages": messages, "system": "Be brief", "tools": tools}
    recording = only(write(tmp_path / "some.jsonl.gz", {**made, "model": "m"}))
    body = recording.request(recording.turns[0])
    assert (recording.source, recording.id, recording.format) == ("some", "x", format)
    assert body[key] == messages[:1]
    assert "Be brief" in body.values()
    assert body.get("tools", body.get("toolConfig")) in (tools, {"tools": tools})
    assert recording.turns == (RecordedTurn(1, 2),)


def test_a_chat_record_has_its_system_text_as_first_message(tmp_path):
    recording = only(write(tmp_path / "a.jsonl", record(system="Be brief")))
    assert recording.messages[0] == {"role": "system", "content": "Be brief"}
    assert recording.turns[0] == RecordedTurn(2, 3)


def test_a_body_alone_in_a_file_is_one_conversation(tmp_path):
    path = tmp_path / "body.json"
    path.write_text(json.dumps({"model": "m", "messages": MESSAGES, "max_tokens": 9}, indent=1))
    recording = only(str(path))
    assert (recording.format, len(recording.turns), recording.model) == ("openai-chat", 4, "m")
    assert recording.params == {"max_tokens": 9}


def test_requests_that_repeat_each_other_are_one_conversation_with_the_last_answer(tmp_path):
    other = [{"role": "user", "content": "something else"}, MESSAGES[1], MESSAGES[2]]
    log = [
        {"request": {"model": "m", "messages": MESSAGES[:1]}, "response": {"choices": []}},
        {"request": {"model": "m", "messages": MESSAGES[:3]}},
        {"request": {"model": "m", "messages": other}},
        {
            "request": {"model": "m", "messages": MESSAGES[:7]},
            "response": {"choices": [{"message": {"content": "the end", "role": "assistant"}}]},
        },
    ]
    first, second = log_files.read([write(tmp_path / "log.jsonl", *log)]).recordings
    assert [*first.messages[:7]] == MESSAGES[:7]
    assert first.messages[7]["content"] == "the end"
    assert list(second.messages) == other


def test_a_log_of_anthropic_bodies_as_text_is_read_too(tmp_path):
    answer = {"role": "assistant", "content": [{"type": "text", "text": "a.py is there"}]}
    body = {"model": "claude", "messages": ANTHROPIC, "system": "s", "max_tokens": 5}
    line = {"request_body": json.dumps(body), "response_body": json.dumps(answer)}
    recording = only(write(tmp_path / "log.jsonl", line))
    assert (recording.format, recording.system, len(recording.turns)) == ("anthropic", "s", 2)


def line(kind: str, role: str, content: Any, second: int, **more: Any) -> dict[str, Any]:
    message = {"role": role, "content": content, **more.pop("message", {})}
    return {
        "type": kind, "uuid": f"u{second}{role}", "parentUuid": None, "sessionId": "s1",
        "cwd": "/home/me/proj", "timestamp": f"2026-01-28T22:26:{second:02}.000Z",
        "message": message, **more,
    }  # fmt: skip


def test_a_claude_code_session_joins_the_pieces_of_an_answer_and_keeps_times(tmp_path):
    use = ANTHROPIC[1]["content"]
    said = [{"type": "text", "text": "looking"}]
    about = {"id": "m1", "model": "claude-x"}
    done = {"role": "assistant", "content": [{"type": "text", "text": "done"}]}
    lines = [
        {"type": "summary", "summary": "old"},
        line("user", "user", "list", 1),
        line("assistant", "assistant", said, 2, message=about),
        line("assistant", "assistant", use, 3, message=about),
        line("user", "user", ANTHROPIC[2]["content"], 4),
        line("assistant", "assistant", done["content"], 5, message={"id": "m2"}),
        line("user", "user", "side", 6, isSidechain=True, agentId="a"),
        line("assistant", "assistant", done["content"], 7, isSidechain=True, agentId="a"),
        line("user", "user", "Summary of it all", 8, isCompactSummary=True),
        line("assistant", "assistant", done["content"], 9, message={"id": "m3"}),
    ]
    found = log_files.read([write(tmp_path / "s1.jsonl", *lines)])
    assert [r.id for r in found.recordings] == ["s1#0", "s1#1", "s1/a"]
    main = found.recordings[0]
    assert (main.source, main.model, main.format) == ("proj", "claude-x", "anthropic")
    assert main.messages[1]["content"] == [*said, *use]
    assert [later - main.times[0] for later in main.times] == [0, 1, 3, 4]
    assert found.recordings[1].messages[0]["content"] == "Summary of it all"


def test_a_codex_rollout_starts_anew_where_it_was_compacted(tmp_path):
    stamp = {"timestamp": "2026-06-18T07:41:33.518Z"}
    meta = {"id": "c1", "cwd": "/w/agent", "base_instructions": {"text": "You are Codex"}}
    lines = [
        {**stamp, "type": "session_meta", "payload": meta},
        {**stamp, "type": "turn_context", "payload": {"model": "gpt-5.5"}},
        *({**stamp, "type": "response_item", "payload": item} for item in RESPONSES),
        {**stamp, "type": "event_msg", "payload": {"type": "token_count"}},
        {**stamp, "type": "compacted", "payload": {"message": "So far: listed."}},
        {**stamp, "type": "response_item", "payload": {
            "type": "message", "role": "assistant", "content": "done"}},
    ]  # fmt: skip
    first, second = log_files.read([write(tmp_path / "rollout-1.jsonl", *lines)]).recordings
    assert (first.source, first.model, first.system) == ("agent", "gpt-5.5", "You are Codex")
    assert list(first.messages) == RESPONSES
    assert second.messages[0]["content"] == "So far: listed."


def test_an_opencode_export_becomes_calls_and_results(tmp_path):
    parts = [
        {"type": "step-start"},
        {"type": "text", "text": "looking"},
        {"type": "tool", "callID": "t1", "tool": "read",
         "state": {"status": "completed", "input": {"path": "a.py"}, "output": "x = 1"}},
        {"type": "step-start"},
        {"type": "tool", "callID": "t2", "tool": "read",
         "state": {"status": "error", "input": {}, "error": "no such file"}},
    ]  # fmt: skip
    user = {"info": {"role": "user", "time": {"created": 1_700_000_000_000}},
            "parts": [{"type": "text", "text": "go"}]}  # fmt: skip
    model = {"info": {"role": "assistant", "modelID": "m", "time": {}}, "parts": parts}
    export = {"info": {"id": "ses_1", "directory": "/w/p"}, "messages": [user, model]}
    path = tmp_path / "export.json"
    path.write_text(json.dumps(export))
    recording = only(str(path))
    assert (recording.source, recording.id, recording.model) == ("p", "ses_1", "m")
    assert [m["role"] for m in recording.messages] == [
        "user", "assistant", "user", "assistant", "user",
    ]  # fmt: skip
    assert recording.messages[4]["content"][0]["is_error"] is True
    assert recording.times[0] == 1_700_000_000


def test_a_folder_is_walked_and_what_cannot_be_read_is_named(tmp_path):
    write(tmp_path / "deep" / "good.jsonl.gz", record())
    (tmp_path / "bad.jsonl").write_text('{"id": \nnot json\n{"a": 1}\n[]\n')
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b"{}" * 99)[:20])
    (tmp_path / "notes.txt").write_text("not a log")
    (tmp_path / "empty.jsonl").write_text("")
    write(tmp_path / "odd.jsonl", record(format="morse"), {"messages": [3]})
    found = log_files.read([str(tmp_path)])
    assert [r.id for r in found.recordings] == ["r1"]
    told = sorted((Path(p.file).name, p.line) for p in found.problems)
    assert told == [
        ("bad.jsonl", 1), ("bad.jsonl", 2), ("bad.jsonl", 3), ("bad.jsonl", 4),
        ("cut.jsonl.gz", 0), ("odd.jsonl", 1), ("odd.jsonl", 2),
    ]  # fmt: skip
    assert all(problem.message for problem in found.problems)


def test_a_conversation_logged_twice_is_replayed_once_with_its_times(tmp_path):
    timed = record(id="r2", meta={"times": [float(n) for n in range(8)]})
    found = log_files.read([write(tmp_path / "a.jsonl", record(), timed)])
    assert found.duplicates == 1
    assert [(r.id, len(r.times)) for r in found.recordings] == [("r1", 8)]


def test_calls_answered_only_later_belong_to_one_turn():
    items = [
        RESPONSES[0],
        {**RESPONSES[1], "call_id": "a"},
        {**RESPONSES[1], "call_id": "b"},
        {**RESPONSES[2], "call_id": "a"},
        {"type": "message", "role": "assistant", "content": "still waiting"},
        {**RESPONSES[2], "call_id": "b"},
        {"type": "message", "role": "assistant", "content": "done"},
    ]
    recording = Recording("s", "i", "openai-responses", items)
    assert recording.turns == (RecordedTurn(1, 5), RecordedTurn(6, 7))


def test_a_call_that_is_never_answered_does_not_swallow_later_turns():
    messages = [*ANTHROPIC[:2], {"role": "user", "content": "go on"}, *ANTHROPIC[1:]]
    recording = Recording("s", "i", "anthropic", messages)
    assert len(recording.turns) == 2
