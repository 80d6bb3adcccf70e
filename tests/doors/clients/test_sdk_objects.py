"""Requests with the objects of providers' SDKs in them: read as the JSON that is sent, given back
as they came.  The loops are those of the SDKs' own READMEs, against the strict provider."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from settings_words import as_keywords

import trimtab
from trimtab.errors import InvalidRequest
from trimtab.formats.engine.sdk_objects import as_json, restored
from trimtab_lab.testing import Answer, Call, StrictProvider

BIG = "\n".join(f"line {number}: value {number * 7}" for number in range(300))
TURNS = 20
WINDOW = 12_000
Fit = Callable[..., Any]


def provider() -> StrictProvider:
    script = [
        Answer("Looking.", calls=[Call("read_file", {"path": f"/{n}"})]) for n in range(TURNS)
    ]
    return StrictProvider(script, window=WINDOW, answer="done")


def chat_loop(client: openai.OpenAI, fit: Fit) -> Iterator[Any]:
    messages: list[Any] = [{"role": "user", "content": "Read them all."}]
    function = {"name": "read_file", "parameters": {"type": "object"}}
    tools = [{"type": "function", "function": function}]
    while True:
        sent = fit({"model": "gpt-5.1", "messages": messages, "tools": tools})
        message = client.chat.completions.create(**sent).choices[0].message
        yield sent["messages"]
        messages.append(message)
        if not message.tool_calls:
            return
        for call in message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": BIG})


def responses_loop(client: openai.OpenAI, fit: Fit) -> Iterator[Any]:
    items: list[Any] = [{"role": "user", "content": "Read them all."}]
    tool = {"type": "function", "name": "read_file", "parameters": {"type": "object"}}
    while True:
        sent = fit({"model": "gpt-5.1", "input": items, "tools": [tool], "store": False})
        response = client.responses.create(**sent)
        yield sent["input"]
        items += response.output
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return
        for call in calls:
            output = {"type": "function_call_output", "call_id": call.call_id, "output": BIG}
            items.append(output)


def claude_loop(client: anthropic.Anthropic, fit: Fit) -> Iterator[Any]:
    messages: list[Any] = [{"role": "user", "content": "Read them all."}]
    tools = [{"name": "read_file", "input_schema": {"type": "object"}}]
    while True:
        body = {"model": "claude-sonnet-5", "max_tokens": 200}
        sent = fit({**body, "messages": messages, "tools": tools})
        response = client.messages.create(**sent)
        yield [
            block for m in sent["messages"] if m["role"] == "assistant" for block in m["content"]
        ]
        messages.append({"role": "assistant", "content": response.content})
        calls = [block for block in response.content if block.type == "tool_use"]
        if not calls:
            return
        results = [{"type": "tool_result", "tool_use_id": c.id, "content": BIG} for c in calls]
        messages.append({"role": "user", "content": results})


def gemini_loop(client: genai.Client, fit: Fit) -> Iterator[Any]:
    contents = [types.Content(role="user", parts=[types.Part(text="Read them all.")])]
    schema = {"type": "object"}
    function = types.FunctionDeclaration(name="read_file", parameters_json_schema=schema)
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[function])])
    while True:
        sent = fit(contents, model="gemini-2.5-pro")
        response = client.models.generate_content(
            model="gemini-2.5-pro", contents=sent, config=config
        )
        yield sent
        contents.append(response.candidates[0].content)
        if not response.function_calls:
            return
        results = [
            types.Part.from_function_response(name=call.name, response={"result": BIG})
            for call in response.function_calls
        ]
        contents.append(types.Content(role="user", parts=results))


def openai_client(url: str) -> openai.OpenAI:
    return openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0)


def genai_client(url: str, made: Callable[..., Any] = genai.Client) -> genai.Client:
    return made(api_key="k", http_options=types.HttpOptions(base_url=url))


LOOPS: dict[str, tuple[Callable[[str], Any], Callable[[Any, Fit], Iterator[Any]], set[str]]] = {
    "chat": (openai_client, chat_loop, {"dict", "ChatCompletionMessage"}),
    "responses": (
        openai_client, responses_loop,
        {"dict", "ResponseOutputMessage", "ResponseFunctionToolCall"},
    ),
    "claude": (
        lambda url: anthropic.Anthropic(api_key="k", base_url=url, max_retries=0), claude_loop,
        {"TextBlock", "ToolUseBlock"},
    ),
    "gemini": (
        genai_client,
        gemini_loop, {"Content"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_the_tool_loop_of_a_readme_runs_with_a_session_through_three_windows(name):
    make, loop, kinds = LOOPS[name]
    with provider() as server:
        session = trimtab.Session(window=WINDOW)
        edits = []

        def fit(request: Any, **more: Any) -> Any:
            before = copy.deepcopy(as_json(request))
            fitted = session.fit(request, **as_keywords(**more))
            assert as_json(request) == before
            edits.extend(fitted.report.edits)
            return fitted.request

        sent = list(loop(make(server.url), fit))
        assert len(sent) == TURNS + 1
        assert {type(item).__name__ for item in sent[-1]} == kinds
        assert edits
        assert {record.status for record in server.requests} == {200}


@pytest.mark.parametrize("name", LOOPS)
def test_the_tool_loop_of_a_readme_runs_unchanged_with_a_wrapped_client(name):
    make, loop, _ = LOOPS[name]
    with provider() as server:
        if name == "gemini":  # a client that is made shows its HTTP client to nobody
            client = genai_client(server.url, trimtab.wrap(genai.Client, window=WINDOW))
        else:
            client = trimtab.wrap(make(server.url), window=WINDOW)
        assert len(list(loop(client, lambda request, **_: request))) == TURNS + 1
        assert {record.status for record in server.requests} == {200}


def langchain_messages(steps: int = 20) -> list[Any]:
    messages: list[Any] = [SystemMessage("Be brief."), HumanMessage("Read them all.")]
    for number in range(steps):
        call = {"name": "read", "args": {"path": f"/{number}"}, "id": f"c{number}"}
        messages.append(AIMessage("Looking.", tool_calls=[call], id=f"m{number}"))
        messages.append(ToolMessage(f"{number}\n{BIG}", tool_call_id=f"c{number}"))
    return [*messages, HumanMessage("And?")]


def test_langchain_messages_come_back_as_langchain_messages():
    messages = langchain_messages()
    fitted = trimtab.fit(messages, window=WINDOW)
    assert fitted.report.edits
    assert {type(message) for message in fitted.request} <= {
        SystemMessage, HumanMessage, AIMessage, ToolMessage,
    }  # fmt: skip
    assert fitted.request[0] is messages[0]
    assert fitted.request[-1] is messages[-1]
    assert trimtab.check(fitted.request) == ()


def test_what_needs_no_change_is_the_very_object_that_was_given():
    messages = langchain_messages(2)
    assert trimtab.fit(messages, window=50_000).request is messages


class Odd:
    """An object of nobody's SDK."""


@pytest.mark.parametrize(
    ("request_", "place"),
    [
        (Odd(), "the request"),
        ([{"role": "user", "content": "hi"}, Odd()], "message 1"),
        ({"messages": [{"role": "user", "content": [Odd()]}]}, "message 0 (messages.0.content.0)"),
    ],
)
@pytest.mark.parametrize("call", [lambda r: trimtab.fit(r, window=100), trimtab.check])
def test_an_object_that_is_none_of_an_sdk_is_named_with_its_place(call, request_, place):
    with pytest.raises(InvalidRequest, match=r"Odd|not Odd") as raised:
        call(request_)
    assert place in str(raised.value) or isinstance(request_, Odd)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner,
                                                                max_size=3),
)  # fmt: skip


@given(PLAIN)
def test_plain_json_is_the_very_object_and_comes_back_as_whatever_it_became(value):
    assert as_json(value) is value
    assert restored(value, value, value) is value
    changed = json.loads(json.dumps({"a": value}))
    assert restored(changed, {"a": value}, {"a": value}) == changed


@pytest.mark.parametrize("first", [types.Content, types.UserContent])
def test_new_contents_among_those_of_several_classes_are_objects_too(first):
    role = {} if first is types.UserContent else {"role": "user"}
    contents = [first(parts=[types.Part(text="Read them all.")], **role)]
    for n in range(40):
        call = types.Part.from_function_call(name="read", args={"path": f"/file_{n}"})
        lines = "\n".join(f"line {row}: value {row * 7919 + n}" for row in range(200))
        result = types.Part.from_function_response(name="read", response={"result": lines})
        contents += [types.ModelContent([call]), first(parts=[result], **role)]
    sent = trimtab.fit(contents, window=7_000, format="gemini").request
    assert len(sent) < len(contents)
    assert all(isinstance(content, types.Content) for content in sent)
    assert sent[0] is contents[0]
