"""What a conversion lists: ids, renamed tools, losses, notes; and the command that shows them.

Uses the fields of ``Converted`` and the messages of five formats.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from atoms import atoms
from chat_messages import USER, answer, called, chat
from stories import FORMATS

import trimtab
from trimtab.cli import main
from trimtab.conversion import convert


@pytest.mark.row("X6")
def test_reasoning_of_another_provider_is_listed_never_sent():
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    content = [thinking, {"type": "redacted_thinking", "data": "xx"}, {"type": "text", "text": "a"}]
    request = {"messages": [USER, {"role": "assistant", "content": content}, USER]}
    for to in FORMATS:
        converted = convert(request, to, format="anthropic")
        if to != "anthropic":
            assert "hm" not in json.dumps(converted.request).replace("thm", "")
            paths = [loss.path for loss in converted.losses if loss.what == "reasoning"]
            assert paths == [("messages", 1, "content", 0), ("messages", 1, "content", 1)]
    kimi = convert(request, "openai-chat", format="anthropic", model="kimi-k2.5")
    assert kimi.request["messages"][1]["reasoning_content"] == "hm"


def test_the_same_format_gives_the_very_same_request():
    request = chat(USER, called(("a", "run", "{}")), answer("a", "x"))
    assert convert(request, "openai-chat").request is request
    assert convert(request, "openai-chat", model="m").request == {**request, "model": "m"}


def test_ids_that_repeat_are_told_apart_where_they_must_be():
    turn = [called(("a", "run", "{}")), answer("a", "x")]
    converted = convert(chat(USER, *turn, *turn), "bedrock")
    calls = [a[1] for _, a in atoms(converted.request, "bedrock") if a[0] == "call"]
    assert calls == ["a", "a_2"]
    assert converted.original_ids == {"a": "a", "a_2": "a"}
    assert trimtab.check(converted.request) == ()


def test_free_form_tools_stay_so_between_formats_that_have_them():
    form = {"type": "grammar", "grammar": {"definition": "x", "syntax": "lark"}}
    tool = {"type": "custom", "custom": {"name": "sql", "format": form}}
    call = {"id": "a", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    request = chat(USER, message, answer("a", "1"), tools=[tool])
    there = convert(request, "openai-responses")
    assert there.losses == ()
    assert there.request["input"][1]["type"] == "custom_tool_call"
    assert there.request["input"][2]["type"] == "custom_tool_call_output"
    assert convert(there.request, "openai-chat").request == request
    claude = convert(request, "anthropic")
    assert claude.request["messages"][1]["content"][0]["input"] == {"input": "SELECT 1"}
    assert [loss.what for loss in claude.losses] == ["custom call", "custom tool"]


def test_tools_are_renamed_where_the_target_forbids_their_name():
    name = "mcp.files/read"
    request = chat(USER, called(("a", name, "{}")), answer("a", "x"))
    converted = convert(request, "bedrock")
    new = converted.names[name]
    assert converted.request["toolConfig"]["tools"][0]["toolSpec"]["name"] == new
    assert converted.original_names == {new: name}
    assert "tools renamed" in converted.notes


def test_what_no_other_provider_has_is_listed_with_its_place():
    request = {
        "model": "claude-opus-4-6", "max_tokens": 1, "thinking": {"type": "adaptive"},
        "messages": [{"role": "user", "content": [{"type": "container_upload", "file_id": "f"},
                                                  {"type": "text", "text": "a"}]}],
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
    }  # fmt: skip
    converted = convert(request, "openai-chat")
    assert {(loss.path, loss.what) for loss in converted.losses} == {
        (("thinking",), "thinking"),
        (("messages", 0, "content", 0), "container_upload"),
        (("tools", 0), "web_search_20250305"),
        (("model",), "model claude-opus-4-6"),
    }


def test_a_shape_that_is_none_is_an_error_with_a_next_step():
    with pytest.raises(trimtab.InvalidSetting):
        convert(chat(USER), "klingon")
    for broken in ({"messages": ["x"]}, {"messages": [{"role": "user", "content": [3]}]}):
        with pytest.raises(trimtab.InvalidRequest):
            convert(broken, "bedrock", format="openai-chat")


def test_a_respelled_id_never_meets_one_that_is_there_already():
    odd = "a/b"
    taken = convert(chat(USER, called((odd, "f", "{}")), answer(odd, "x")), "bedrock").ids[odd]
    turns = [part for i in (taken, odd) for part in (called((i, "f", "{}")), answer(i, "x"))]
    converted = convert(chat(USER, *turns), "bedrock")
    assert converted.ids[taken] != converted.ids[odd]
    for one in (taken, odd):
        assert converted.original_ids[converted.ids[one]] == one


def test_cache_marks_are_listed_where_the_target_has_none():
    marked = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    tool = {"name": "f", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}
    request = {"max_tokens": 9, "system": [marked], "messages": [USER], "tools": [tool]}
    for to in ("openai-chat", "openai-responses", "gemini"):
        converted = convert(request, to)
        assert [loss.what for loss in converted.losses] == ["cache mark", "cache mark"]
        assert "cache_control" not in json.dumps(converted.request)
    claude = convert(request, "openai-chat", model="anthropic/claude-sonnet-4.5")
    assert claude.losses == ()
    assert json.dumps(claude.request).count("cache_control") == 2


def test_base64_of_the_url_alphabet_is_respelled():
    part = {"inlineData": {"mimeType": "image/png", "data": "_9j_4-AA"}}
    converted = convert({"contents": [{"role": "user", "parts": [part]}]}, "anthropic")
    source = converted.request["messages"][0]["content"][0]["source"]
    assert source == {"type": "base64", "media_type": "image/png", "data": "/9j/4+AA"}


@pytest.mark.parametrize("to", FORMATS[1:])
def test_an_orphan_result_is_taken_out_and_told(to):
    request = chat(USER, called(("a", "f", "{}")), answer("a", "x"), answer("b", "lost"))
    converted = convert(request, to)
    found = [atom for _, atom in atoms(converted.request, to)]
    assert [atom[3] for atom in found if atom[0] == "result"] == [("x",)]
    assert [loss.what for loss in converted.losses] == ["orphan_result"]
    assert any("orphan_result" in note for note in converted.notes)


def test_the_command_writes_the_request_and_tells_what_was_lost(tmp_path, capsys):
    file, out = tmp_path / "chat.json", tmp_path / "converse.json"
    request: Any = chat(USER, called(("a", "f", "{")), answer("a", "x"), logprobs=True)
    file.write_text(json.dumps(request))
    assert main(["convert", str(file), "--to", "bedrock", "-o", str(out)]) == 0
    assert json.loads(out.read_text()) == convert(request, "bedrock").request
    told = capsys.readouterr().err
    assert "openai-chat → bedrock: 2 losses" in told
    assert "messages[1].tool_calls[0].function.arguments" in told
    assert main(["convert", str(file), "--to", "bedrock", "--json"]) == 0
    written = capsys.readouterr()
    assert json.loads(written.err)["losses"][0]["what"] == "logprobs"
    assert json.loads(written.out) == convert(request, "bedrock").request
    assert main(["convert", str(file), "--to", "klingon"]) == 2
