"""The session log of each agent becomes the conversation that was had.

``session_log_judge`` reads the same lines again, with code of its own.  Does not know commands.
"""

from __future__ import annotations

import json

import pytest
from session_log_judge import codex_items, differences, said, steps
from session_logs import (
    ASKED,
    LOGS,
    WITHDRAWN,
    claude_code,
    codex,
    gemini_cli_document,
    goose_lines,
    pi,
    written,
)

import trimtab
from trimtab.logs import log_files
from trimtab.logs.unread import unread_agent


def read(tmp_path, name, values):
    found = log_files.read([written(tmp_path / name, values)])
    assert found.problems == []
    return found.recordings


def main_of(recordings):
    return [recording for recording in recordings if recording.task in ("", "main")]


@pytest.mark.parametrize("agent", sorted(LOGS))
def test_a_log_is_read_with_its_agent_format_and_project(tmp_path, agent):
    name, values, format, count = LOGS[agent]
    recordings = read(tmp_path, name, values)
    assert [(r.agent, r.format, r.source) for r in recordings] == [
        (agent, format, "workspace" if agent == "openclaw" else "app")
    ] * count
    assert all(recording.model for recording in recordings)


@pytest.mark.parametrize("agent", sorted(set(LOGS) - {"codex"}))
def test_the_conversation_is_that_of_the_newest_branch(tmp_path, agent):
    name, values, format, _ = LOGS[agent]
    found = main_of(read(tmp_path, name, values))
    wanted = said(agent, values)
    assert len(found) == len(wanted)
    for recording, conversation in zip(found, wanted, strict=True):
        assert not list(differences(conversation, steps(format, recording.messages)))


@pytest.mark.parametrize("agent", sorted(LOGS))
def test_what_was_taken_back_is_in_no_request_of_the_conversation(tmp_path, agent):
    name, values, *_ = LOGS[agent]
    recordings = read(tmp_path, name, values)
    words = json.dumps([recording.messages for recording in main_of(recordings)])
    assert ASKED in words
    assert WITHDRAWN not in words
    others = [r for r in recordings if r.task == "branch"]
    if agent != "goose":  # its log has no branches
        (other,) = others
        assert WITHDRAWN in json.dumps(other.messages)
        assert ASKED not in json.dumps(other.messages)


@pytest.mark.parametrize("agent", sorted(LOGS))
def test_every_request_of_a_log_breaks_no_rule_and_no_result_is_made_up(tmp_path, agent):
    name, values, *_ = LOGS[agent]
    for recording in read(tmp_path, name, values):
        for turn in recording.turns:
            body = recording.request(turn)
            found = trimtab.check(body, format=recording.format, model=recording.model)
            assert {one.rule for one in found} <= {"missing_key"}, "no log has output limits"
            fitted = trimtab.fit(body, window=100_000, settings=recording.facts)
            assert not fitted.changed


def test_codex_items_are_those_of_the_thread_after_a_rollback(tmp_path):
    values = codex()
    main, other = read(tmp_path, "rollout-1.jsonl", values)
    assert [list(main.messages)] == codex_items(values)
    assert (other.id, other.task) == ("s~1", "branch")


def test_results_before_their_calls_stand_behind_all_pieces_of_the_answer(tmp_path):
    main, _ = read(tmp_path, "s.jsonl", claude_code())
    answer, first, second = main.messages[1:4]
    assert [block["type"] for block in answer["content"]] == ["text", "tool_use", "tool_use"]
    assert first["content"][0]["content"] == "one"
    assert second["content"][0]["content"] == "two"


def test_two_branches_bill_their_common_calls_once(tmp_path):
    from trimtab_lab.replay.bill.conversations import conversations

    billed = conversations(read(tmp_path, "s.jsonl", claude_code()))
    assert sum(len(conversation.counted) for conversation in billed) == 3


def test_the_older_files_of_gemini_cli_and_goose_say_the_same(tmp_path):
    (old,) = read(tmp_path, "session-1.json", gemini_cli_document())
    new, _ = read(tmp_path, "session-1.jsonl", LOGS["gemini-cli"][1])
    assert old.messages == new.messages
    (lines,) = read(tmp_path, "goose.jsonl", goose_lines())
    (export,) = read(tmp_path, "goose.json", LOGS["goose"][1])
    assert lines.messages == export.messages


def test_pis_first_version_without_ids_is_read_in_the_order_of_the_file(tmp_path):
    values = [{k: v for k, v in e.items() if k not in ("parentId", "version")} for e in pi()]
    values[1:] = [{k: v for k, v in e.items() if k != "id"} for e in values[1:]]
    values[8] = {**values[8], "firstKeptEntryId": None, "firstKeptEntryIndex": 7}
    first, second = read(tmp_path, "old.jsonl", values)
    assert [m["role"] for m in first.messages] == ["user", "assistant", "user", "assistant"]
    assert WITHDRAWN in json.dumps(second.messages)
    assert second.carried == 2


def test_reasoning_goes_back_to_the_api_that_it_came_from(tmp_path):
    def with_thought(signature, **message):
        values = pi()
        thought = {"type": "thinking", "thinking": "hm", "thinkingSignature": signature}
        answer = values[3]["message"]
        values[3]["message"] = {**answer, **message, "content": [thought, *answer["content"]]}
        return values

    first, *_ = read(tmp_path, "a.jsonl", with_thought("sig"))
    assert first.messages[1]["content"][0] == {
        "type": "thinking", "thinking": "hm", "signature": "sig",
    }  # fmt: skip
    values = with_thought("reasoning_content", api="openai-completions")
    for entry in values:
        if entry.get("message", {}).get("model"):
            entry["message"]["model"] = "deepseek-chat"
    first, *_ = read(tmp_path, "b.jsonl", values)
    assert first.messages[1]["reasoning_content"] == "hm"


def test_usage_is_what_the_provider_billed(tmp_path):
    wanted = {"qwen-code": (40, 60), "gemini-cli": (40, 60), "pi": (10, 80)}
    for agent, (uncached, cached) in wanted.items():
        name, values, *_ = LOGS[agent]
        recording = read(tmp_path, name, values)[0]
        usage = recording.usage(recording.turns[0])
        assert (usage.uncached, usage.read) == (uncached, cached)


UNREAD = [
    ("Kimi", [{"role": "_checkpoint", "id": 0}, {"role": "user", "content": "hi"}]),
    ("Kimi", [{"type": "metadata", "protocol_version": "1.4"}, {"type": "config.update"}]),
    ("droid", [{"type": "session_start", "id": "x", "cwd": "/w"}, {"type": "message"}]),
    ("Cursor", [{"role": "user", "message": {"content": [{"type": "text", "text": "hi"}]}}]),
    ("Amp", [{"v": 3, "id": "T-1f", "created": 1, "messages": [{"role": "user", "content": []}]}]),
    ("Antigravity", [{"step_index": 0, "source": "user", "created_at": 1}]),
    ("VS Code's chat", [{"version": 3, "requesterUsername": "me", "requests": [{}]}]),
]


@pytest.mark.parametrize(("agent", "values"), UNREAD)
def test_a_log_that_is_not_read_is_named_with_its_agent_and_what_to_do(tmp_path, agent, values):
    found = log_files.read([written(tmp_path / "log.jsonl", values)])
    (problem,) = found.problems
    assert (found.recordings, problem.agent) == ([], agent)
    assert problem.message.startswith(f"a session log of {agent}, which is not read: give ")


@pytest.mark.parametrize("agent", sorted(LOGS))
def test_no_log_that_is_read_is_taken_for_one_that_is_not(agent):
    assert unread_agent(LOGS[agent][1]) is None


@pytest.mark.parametrize("agent", sorted(LOGS))
def test_a_damaged_log_is_a_problem_and_never_an_exception(tmp_path, agent):
    name, values, *_ = LOGS[agent]
    for number, value in enumerate(values):
        for key in value:
            for odd in (None, 7, [None], {"content": 5}):
                damaged = [*values[:number], {**value, key: odd}, *values[number + 1 :]]
                log_files.read([written(tmp_path / name, damaged)])
