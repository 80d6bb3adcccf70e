"""Conversions: every word, id and flag arrives, in an order the target accepts, or is listed.

Knows what each format can say.  The judge (atoms.py) and the stories (stories.py) do not import
the library.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from atoms import atoms
from chat_messages import USER, answer, called, chat

import trimtab
from trimtab.conversion import Converted, convert
from trimtab.formats import FORMATS

# --- E8: OpenAI Chat to Bedrock Converse, exactly -------------------------------------------------


@pytest.mark.row("E8")
def test_text_stands_before_tool_use_and_results_share_one_user_message():
    request = chat(
        {"role": "system", "content": "Be brief."},
        USER,
        called(("a", "read", '{"path": "x", "n": 1.5}'), ("b", "list", ""), content="I look."),
        answer("a", "one"),
        answer("b", [{"type": "text", "text": "two"}, {"type": "text", "text": "three"}]),
        {"role": "user", "content": "And?"},
        tools=[{"type": "function", "function": {"name": "read", "description": "Reads.",
                                                 "parameters": {"type": "object"}}}],
        tool_choice="required", max_tokens=7, temperature=0.5, stop="END",
    )  # fmt: skip
    converted = convert(request, "bedrock")
    assert converted.request == {
        "system": [{"text": "Be brief."}],
        "messages": [
            {"role": "user", "content": [{"text": "Look."}]},
            {"role": "assistant", "content": [
                {"text": "I look."},
                {"toolUse": {"toolUseId": "a", "name": "read", "input": {"path": "x", "n": 1.5}}},
                {"toolUse": {"toolUseId": "b", "name": "list", "input": {}}},
            ]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "a", "content": [{"text": "one"}]}},
                {"toolResult": {"toolUseId": "b", "content": [{"text": "two"}, {"text": "three"}]}},
                {"text": "And?"},
            ]},
        ],
        "toolConfig": {
            "tools": [{"toolSpec": {"name": "read", "description": "Reads.",
                                    "inputSchema": {"json": {"type": "object"}}}}],
            "toolChoice": {"any": {}},
        },
        "inferenceConfig": {"maxTokens": 7, "temperature": 0.5, "stopSequences": ["END"]},
    }  # fmt: skip
    assert converted.losses == ()


@pytest.mark.row("E8")
def test_invalid_arguments_are_kept_as_text_and_listed():
    converted = convert(chat(USER, called(("a", "run", "{broken")), answer("a", "x")), "bedrock")
    use = converted.request["messages"][1]["content"][0]["toolUse"]
    assert use["input"] == {"text": "{broken"}
    path = ("messages", 1, "tool_calls", 0, "function", "arguments")
    assert [(loss.path, loss.what) for loss in converted.losses] == [(path, "arguments")]


@pytest.mark.row("E8")
@pytest.mark.parametrize("text", ["[1]", "3", '"x"', "NaN", '{"a": NaN}', "{} {}"])
def test_arguments_that_are_no_object_are_kept_as_text(text):
    converted = convert(chat(USER, called(("a", "run", text)), answer("a", "x")), "bedrock")
    use = converted.request["messages"][1]["content"][0]["toolUse"]
    assert use["input"] == {"text": text}
    assert len(converted.losses) == 1


@pytest.mark.row("E8")
def test_a_failed_result_has_the_status_error():
    messages = (USER, called(("a", "run", "{}"), ("b", "run", "{}")))
    request = chat(*messages, answer("a", "no such file", is_error=True), answer("b", "fine"))
    results = convert(request, "bedrock").request["messages"][2]["content"]
    assert results[0]["toolResult"]["status"] == "error"
    assert "status" not in results[1]["toolResult"]


@pytest.mark.row("E8")
def test_no_text_block_is_ever_blank():
    request = chat(
        {"role": "system", "content": ""},
        {"role": "user", "content": " \n"},
        called(("a", "run", "{}"), content=""),
        answer("a", ""),
        {"role": "assistant", "content": ""},
        {"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "x"}]},
    )
    converted = convert(request, "bedrock")
    texts = [atom[-1] for _, atom in atoms(converted.request, "bedrock") if atom[1] == "text"]
    assert texts == ["(no content)", "x"]
    assert converted.request["messages"][2]["content"][0] == {
        "toolResult": {"toolUseId": "a", "content": [{"text": "(no output)"}]}
    }
    assert [loss.what for loss in converted.losses] == ["blank text"]


@pytest.mark.row("E8")
def test_long_and_odd_ids_are_mapped_both_ways():
    ids = ["functions.get:0", "é 1", "x" * 40, "", "a/b", "a_b"]
    request: Any = [USER]
    for call_id in ids:
        request += [called((call_id, "run", "{}")), answer(call_id, call_id or "none")]
    converted = convert({"messages": request}, "bedrock")
    sent = [atom for _, atom in atoms(converted.request, "bedrock")]
    calls = [atom[1] for atom in sent if atom[0] == "call"]
    assert len(set(calls)) == len(ids)
    assert all(0 < len(i) <= 64 and i.isascii() and "/" not in i and " " not in i for i in calls)
    assert [converted.original_ids[i] for i in calls] == [i or "call_1" for i in ids]
    assert [converted.ids[i or "call_1"] for i in ids] == calls
    assert calls[0] == "functions.get:0"
    assert calls[2] == "x" * 40
    again = convert({"messages": request[:3]}, "bedrock")
    assert again.ids["functions.get:0"] == calls[0]  # whatever stands around it


@pytest.mark.row("E8")
def test_ids_over_64_chars_are_shortened_and_come_back():
    long = "call_" + "y" * 90
    contents = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"functionCall": {"id": long, "name": "f", "args": {}}}]},
        {"role": "user", "parts": [
            {"functionResponse": {"id": long, "name": "f", "response": {"output": "x"}}}]},
    ]  # fmt: skip
    converted = convert({"contents": contents}, "bedrock", format="gemini")
    assert len(converted.ids[long]) == 64
    assert converted.original_ids[converted.ids[long]] == long


@pytest.mark.row("E8")
def test_images_and_documents_go_along_and_urls_are_named_and_listed():
    content = [
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AAAA"}},
        {"type": "file", "file": {"filename": "a_b.pdf", "file_data":
                                  "data:application/pdf;base64,BBBB"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
    ]  # fmt: skip
    converted = convert(chat({"role": "user", "content": content}), "bedrock")
    image, document, named = converted.request["messages"][0]["content"]
    assert image == {"image": {"format": "jpeg", "source": {"bytes": "AAAA"}}}
    assert document["document"]["source"] == {"bytes": "BBBB"}
    assert document["document"]["name"] == "a-b-pdf"
    assert named == {"text": "[image (image/png): https://example.org/a.png]"}
    assert [loss.what for loss in converted.losses] == ["name", "image"]


@pytest.mark.row("E8")
def test_a_cache_mark_becomes_a_cache_point_behind_its_block():
    marked = {"type": "text", "text": "long", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    request = chat({"role": "system", "content": [marked]}, {"role": "user", "content": [marked]})
    converted = convert(request, "bedrock")
    point = {"cachePoint": {"type": "default", "ttl": "1h"}}
    assert converted.request["system"] == [{"text": "long"}, point]
    assert converted.request["messages"][0]["content"] == [{"text": "long"}, point]
    back = convert(converted.request, "anthropic", format="bedrock")
    assert back.request["system"] == [marked]


@pytest.mark.row("E8")
def test_white_space_in_a_result_is_left_out_and_listed():
    content = [{"type": "text", "text": "a"}, {"type": "text", "text": " \n"}]
    request = chat(USER, called(("a", "run", "{}")), answer("a", content))
    converted = convert(request, "bedrock")
    result = converted.request["messages"][2]["content"][0]["toolResult"]
    assert result["content"] == [{"text": "a"}]
    path = ("messages", 2, "content", 1, "text")
    assert [(loss.path, loss.what) for loss in converted.losses] == [(path, "blank text")]


@pytest.mark.row("E8")
def test_without_declared_tools_the_tools_that_are_called_are_declared():
    messages = [USER, called(("a", "run", "{}"), ("b", "read", "{}"))]
    messages += [answer("a", "x"), answer("b", "y")]
    for request in (messages, {"messages": messages}):
        converted = convert(request, "bedrock")
        specs = converted.request["toolConfig"]["tools"]
        assert [spec["toolSpec"]["name"] for spec in specs] == ["run", "read"]
        assert "tools declared as seen in the calls: run, read" in converted.notes
    assert convert([USER], "bedrock").request == [{"role": "user", "content": [{"text": "Look."}]}]


@pytest.mark.row("E8")
def test_roles_alternate_and_both_ends_are_the_users():
    request = chat(
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "a"},
        {"role": "user", "content": "b"},
        {"role": "system", "content": "c"},
        {"role": "assistant", "content": "d"},
    )
    converted = convert(request, "bedrock")
    roles = [message["role"] for message in converted.request["messages"]]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
    assert [loss.what for loss in converted.losses] == ["system role"]
    assert "a first user message was added" in converted.notes


# --- E9: Bedrock Converse to OpenAI Chat and back -------------------------------------------------

CONVERSE: dict[str, Any] = {
    "system": [{"text": "Be brief."}, {"text": "Be kind."}],
    "messages": [
        {"role": "user", "content": [{"text": "Look."}, {"image": {
            "format": "png", "source": {"bytes": "AAAA"}}}]},
        {"role": "assistant", "content": [
            {"text": "I look."},
            {"toolUse": {"toolUseId": "tooluse_1.a:b", "name": "read", "input": {"p": [1, None]}}},
            {"toolUse": {"toolUseId": "tooluse_2", "name": "list", "input": {}}},
        ]},
        {"role": "user", "content": [
            {"toolResult": {"toolUseId": "tooluse_2", "content": [{"text": "b"}, {"text": "c"}]}},
            {"toolResult": {"toolUseId": "tooluse_1.a:b", "content": [{"text": "gone"}],
                            "status": "error"}},
            {"text": "Well?"},
        ]},
        {"role": "assistant", "content": [{"text": "Done."}]},
        {"role": "user", "content": [{"text": "Thanks."}]},
    ],
    "toolConfig": {
        "tools": [{"toolSpec": {"name": "read", "description": "Reads.", "inputSchema": {
            "json": {"type": "object", "properties": {}}}}}],
        "toolChoice": {"tool": {"name": "read"}},
    },
    "inferenceConfig": {"maxTokens": 9, "temperature": 0.25, "topP": 0.5, "stopSequences": ["."]},
}  # fmt: skip


@pytest.mark.row("E9")
@pytest.mark.parametrize(
    "to", ["openai-chat", "openai-responses", "anthropic:2023-06-01", "gemini"]
)
def test_bedrock_and_back_is_the_same_request(to):
    there = convert(CONVERSE, to)
    back = convert(there.request, "bedrock", format=to)
    if to == "openai-responses":  # it alone has no stop sequences
        assert [loss.what for loss in there.losses] == ["stop"]
        back.request["inferenceConfig"]["stopSequences"] = ["."]
    else:
        assert there.losses == ()
    assert back.losses == ()
    before = json.loads(json.dumps(CONVERSE).replace("tooluse_1.a:b", back_id(there, back)))
    assert back.request == before


def test_the_newest_version_of_anthropics_api_gets_no_sampling_parameters():
    there = convert(CONVERSE, "anthropic")
    assert "temperature" not in there.request
    assert {loss.what for loss in there.losses} == {"sampling_refused"}
    assert trimtab.check(there.request, format="anthropic:2026-10-21") == ()
    assert convert(CONVERSE, "anthropic:2023-06-01").request["temperature"] == 0.25


def back_id(there: Converted, back: Converted) -> str:
    """What became of the one id that not every format takes."""
    return back.ids[there.ids["tooluse_1.a:b"]]


@pytest.mark.row("E9")
def test_the_order_of_results_and_ids_is_kept_in_chat():
    request = convert(CONVERSE, "openai-chat").request
    assert [message["role"] for message in request["messages"]] == [
        "system", "user", "assistant", "tool", "tool", "user", "assistant", "user"
    ]  # fmt: skip
    assert [m["tool_call_id"] for m in request["messages"] if m["role"] == "tool"] == [
        "tooluse_2", "tooluse_1.a:b"
    ]  # fmt: skip
    assert request["messages"][4]["content"] == "[tool error]\ngone"


@pytest.mark.row("E9")
def test_json_results_arrive_as_their_text_and_are_listed():
    request = json.loads(json.dumps(CONVERSE))
    request["messages"][2]["content"][0]["toolResult"]["content"] = [{"json": {"a": [1.5, "ü"]}}]
    converted = convert(request, "openai-chat")
    assert converted.request["messages"][3]["content"] == '{"a":[1.5,"ü"]}'
    assert [loss.what for loss in converted.losses] == ["json"]
    assert convert(convert(request, "gemini").request, "bedrock").request == request


# --- B19: Gemini without ids ----------------------------------------------------------------------


def call_part(name: str, **more: Any) -> dict[str, Any]:
    """A functionCall part."""
    return {"functionCall": {"name": name, "args": {}, **more}}


def response_part(name: str, text: str, **more: Any) -> dict[str, Any]:
    """A functionResponse part."""
    return {"functionResponse": {"name": name, "response": {"output": text}, **more}}


@pytest.mark.row("B19")
def test_calls_without_ids_are_matched_by_name_and_order():
    contents = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [call_part("get"), call_part("put"), call_part("get")]},
        {"role": "user", "parts": [
            response_part("get", "1"), response_part("get", "2"), response_part("put", "3")]},
        {"role": "model", "parts": [call_part("get")]},
        {"role": "user", "parts": [response_part("get", "4")]},
    ]  # fmt: skip
    converted = convert({"contents": contents}, "openai-chat")
    found = [atom for _, atom in atoms(converted.request, "openai-chat")]
    calls = [atom[1] for atom in found if atom[0] == "call"]
    assert calls == ["get:0", "put:0", "get:1", "get:2"]
    results = {atom[1]: atom[3] for atom in found if atom[0] == "result"}
    assert results == {"get:0": ("1",), "get:1": ("2",), "put:0": ("3",), "get:2": ("4",)}
    longer = [*contents, {"role": "user", "parts": [{"text": "more"}]}]
    assert convert({"contents": longer}, "openai-chat").ids == converted.ids


@pytest.mark.row("B19")
def test_ids_that_are_given_win_and_both_spellings_are_read():
    contents = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [
            {"function_call": {"id": "7", "name": "get", "args": {"a_b": {"c_d": 1}}},
             "thought_signature": "c2lnbmVk"}]},
        {"role": "user", "parts": [
            {"function_response": {"id": "7", "name": "get", "response": {"x_y": 1}}}]},
    ]  # fmt: skip
    converted = convert({"contents": contents}, "anthropic")
    call = converted.request["messages"][1]["content"][0]
    assert (call["id"], call["input"]) == ("7", {"a_b": {"c_d": 1}})
    assert converted.request["messages"][2]["content"][0]["content"] == '{"x_y":1}'
    assert [loss.what for loss in converted.losses] == ["signature", "json"]


@pytest.mark.row("B19")
@pytest.mark.parametrize(
    ("model", "signed"), [(None, True), ("gemini-3-pro", True), ("gemini-2.5-flash", False)]
)
def test_the_first_call_of_each_step_asks_for_no_signature_check(model, signed):
    request = chat(
        USER,
        called(("a", "run", "{}"), ("b", "run", "{}")),
        answer("a", "x"),
        answer("b", "y"),
        called(("c", "run", "{}")),
        answer("c", "z"),
    )
    contents = convert(request, "gemini", model=model).request["contents"]
    marks = ["thoughtSignature" in part for c in contents for part in c["parts"]
             if "functionCall" in part]  # fmt: skip
    assert marks == ([True, False, True] if signed else [False] * 3)
    again = convert({"contents": contents}, "openai-chat")
    assert not [loss for loss in again.losses if loss.what == "signature"]


@pytest.mark.parametrize("to", ["gemini", "gemini-interactions"])
def test_a_result_has_the_name_of_the_tool_that_it_answers_where_an_id_repeats(to):
    request = chat(
        USER, called(("a", "run", "{}")), answer("a", "x"), called(("a", "read", "{}")),
        answer("a", "y"),
    )  # fmt: skip
    converted = convert(request, to).request
    parts = [part for turn in converted.get("contents", ()) for part in turn["parts"]]
    results = [p["functionResponse"] for p in parts if "functionResponse" in p]
    results += [s for s in converted.get("input", ()) if s["type"] == "function_result"]
    assert [result["name"] for result in results] == ["run", "read"]


@pytest.mark.parametrize("to", sorted(FORMATS))
def test_every_format_has_its_part_in_conversions(to):
    converted = convert({"messages": [USER]}, to, format="openai-chat")
    assert trimtab.check(converted.request, format=to) == ()
    assert convert(converted.request, "openai-chat", format=to).request["messages"] == [USER]


def test_an_item_of_a_result_that_no_other_format_has_goes_along_as_json():
    steps = [
        {"type": "user_input", "content": "go"},
        {"type": "function_call", "id": "a", "name": "find", "arguments": {}},
        {"type": "function_result", "call_id": "a", "name": "find",
         "result": [{"type": "text", "text": "x"}, {"type": "place", "lat": 1}]},
    ]  # fmt: skip
    converted = convert({"input": steps}, "bedrock", format="gemini-interactions")
    result = converted.request["messages"][2]["content"][0]["toolResult"]
    assert result["content"] == [{"text": "x"}, {"json": {"type": "place", "lat": 1}}]
    assert [(loss.what, loss.why) for loss in converted.losses] == [("place", "carried as JSON")]
