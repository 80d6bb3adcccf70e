"""The loops of the SDKs' own READMEs and guides as they write them, with more than two windows of
history at the end: the tool loop and the stream, with ``Session`` and with ``wrap``, against the
strict provider.  Only the client's address, the tool and the ``fit`` around a request are ours.

``test_sdk_objects`` has the tool loops of OpenAI, Anthropic and google-genai.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, NamedTuple

import anthropic
import boto3
import openai
import pytest
from anthropic import beta_tool
from google import genai
from google.genai import types
from mistralai.client import Mistral

import trimtab
from trimtab_lab.testing import Answer, Call, StrictProvider

Fit = Callable[[Any], Any]
WINDOW = 4_000
TURNS = 7
FILE = "\n".join(f"line {number}: value {number * 7}" for number in range(180))
STORY = " ".join(f"Then unicorn {number} met river {number * 13}." for number in range(180))
QUESTION = "Tell me a story in 300 words."
WEATHER = {"type": "object", "properties": {"location": {"type": "string"}}}


def get_current_weather(location: str) -> str:
    """Returns the current weather.

    Args:
        location: The city and state, e.g. San Francisco, CA
    """
    return f"{location}\n{FILE}"


# --- streams ---


def chat_stream(client: openai.OpenAI, fit: Fit) -> Iterator[str]:
    messages: list[Any] = []
    for _ in range(TURNS):
        messages.append({"role": "user", "content": QUESTION})
        stream = client.chat.completions.create(
            **fit({"model": "gpt-5.1", "messages": messages}), stream=True
        )
        text = ""
        for chunk in stream:
            text += chunk.choices[0].delta.content or ""
        messages.append({"role": "assistant", "content": text})
        yield text


def responses_stream(client: openai.OpenAI, fit: Fit) -> Iterator[str]:
    items: list[Any] = []
    for _ in range(TURNS):
        items.append({"role": "user", "content": QUESTION})
        stream = client.responses.create(
            **fit({"model": "gpt-5.1", "input": items, "store": False}), stream=True
        )
        for event in stream:
            if event.type == "response.completed":
                items += event.response.output
                yield event.response.output_text


def claude_stream(client: anthropic.Anthropic, fit: Fit) -> Iterator[str]:
    messages: list[Any] = []
    for _ in range(TURNS):
        messages.append({"role": "user", "content": QUESTION})
        sent = fit({"max_tokens": 1024, "messages": messages, "model": "claude-opus-5-5"})
        with client.messages.stream(**sent) as stream:
            told = "".join(stream.text_stream)
            message = stream.get_final_message()
        messages.append({"role": message.role, "content": message.content})
        yield told


def claude_events(client: anthropic.Anthropic, fit: Fit) -> Iterator[str]:
    messages: list[Any] = []
    for _ in range(TURNS):
        messages.append({"role": "user", "content": QUESTION})
        sent = fit({"max_tokens": 1024, "messages": messages, "model": "claude-opus-5-5"})
        text = ""
        for event in client.messages.create(**sent, stream=True):
            if event.type == "content_block_delta":
                text += event.delta.text
        messages.append({"role": "assistant", "content": text})
        yield text


def gemini_stream(client: genai.Client, fit: Fit) -> Iterator[str]:
    contents: list[Any] = []
    for _ in range(TURNS):
        contents.append(types.Content(role="user", parts=[types.Part.from_text(text=QUESTION)]))
        text = ""
        for chunk in client.models.generate_content_stream(
            model="gemini-3.5-pro", contents=fit(contents)
        ):
            text += chunk.text or ""
        contents.append(types.Content(role="model", parts=[types.Part.from_text(text=text)]))
        yield text


def mistral_stream(mistral: Mistral, fit: Fit) -> Iterator[str]:
    messages: list[Any] = []
    for _ in range(TURNS):
        messages.append({"role": "user", "content": QUESTION})
        res = mistral.chat.stream(**fit({"model": "mistral-large-latest", "messages": messages}))
        text = ""
        with res as event_stream:
            for event in event_stream:
                text += event.data.choices[0].delta.content or ""
        messages.append({"role": "assistant", "content": text})
        yield text


def bedrock_stream(client: Any, fit: Fit) -> Iterator[str]:
    messages: list[Any] = []
    for _ in range(TURNS):
        messages.append({"role": "user", "content": [{"text": QUESTION}]})
        inference = {"maxTokens": 512}
        response = client.converse_stream(
            modelId=BEDROCK, **fit({"messages": messages, "inferenceConfig": inference})
        )
        text = ""
        stream = response.get("stream")
        for event in stream:
            if "contentBlockDelta" in event:
                text += event["contentBlockDelta"]["delta"]["text"]
        messages.append({"role": "assistant", "content": [{"text": text}]})
        yield text


# --- tool loops ---


def mistral_tools(client: Mistral, fit: Fit) -> Iterator[str]:
    function = {"name": "get_current_weather", "parameters": WEATHER}
    tools = [{"type": "function", "function": function}]
    messages: list[Any] = [{"role": "user", "content": "What is the weather like?"}]
    while True:
        sent = fit({"model": "mistral-large-latest", "messages": messages, "tools": tools})
        response = client.chat.complete(**sent)
        messages.append(response.choices[0].message)
        yield response.choices[0].message.content
        if not response.choices[0].message.tool_calls:
            return
        for tool_call in response.choices[0].message.tool_calls:
            function_params = json.loads(tool_call.function.arguments)
            function_result = get_current_weather(**function_params)
            messages.append(
                {
                    "role": "tool",
                    "name": tool_call.function.name,
                    "content": function_result,
                    "tool_call_id": tool_call.id,
                }
            )


def bedrock_tools(bedrock_client: Any, fit: Fit) -> Iterator[str]:
    spec = {"name": "get_current_weather", "inputSchema": {"json": WEATHER}}
    tool_config = {"tools": [{"toolSpec": spec}]}
    messages: list[Any] = [{"role": "user", "content": [{"text": "What is the weather like?"}]}]
    stop_reason = "tool_use"
    while stop_reason == "tool_use":
        response = bedrock_client.converse(
            modelId=BEDROCK, **fit({"messages": messages, "toolConfig": tool_config})
        )
        output_message = response["output"]["message"]
        messages.append(output_message)
        yield "".join(block.get("text", "") for block in output_message["content"])
        stop_reason = response["stopReason"]
        for tool_request in output_message["content"]:
            if "toolUse" in tool_request:
                tool = tool_request["toolUse"]
                tool_result = {
                    "toolUseId": tool["toolUseId"],
                    "content": [{"text": get_current_weather(**tool["input"])}],
                }
                tool_result_message = {"role": "user", "content": [{"toolResult": tool_result}]}
                messages.append(tool_result_message)


def gemini_tools(client: genai.Client, fit: Fit) -> Iterator[str]:
    function = types.FunctionDeclaration(name="get_current_weather", parameters_json_schema=WEATHER)
    tool = types.Tool(function_declarations=[function])
    contents: list[Any] = [
        types.Content(role="user", parts=[types.Part.from_text(text="What is the weather like?")])
    ]
    while True:
        response = client.models.generate_content(
            model="gemini-3.5-pro",
            contents=fit(contents),
            config=types.GenerateContentConfig(tools=[tool]),
        )
        yield response.candidates[0].content.parts[0].text
        contents.append(response.candidates[0].content)
        if not response.function_calls:
            return
        function_call_part = response.function_calls[0]
        function_response_part = types.Part.from_function_response(
            name=function_call_part.name,
            response={"result": get_current_weather(**function_call_part.args)},
        )
        contents.append(types.Content(role="tool", parts=[function_response_part]))


# --- loops that the SDK runs itself: there is no request to fit before it is sent ---


def claude_tool_runner(client: anthropic.Anthropic, _: Fit) -> Iterator[str]:
    runner = client.beta.messages.tool_runner(
        max_tokens=1024,
        model="claude-opus-5-5",
        tools=[beta_tool(get_current_weather)],
        messages=[{"role": "user", "content": "What is the weather like?"}],
    )
    for message in runner:
        yield message.content[0].text


def gemini_function(client: genai.Client, _: Fit) -> Iterator[str]:
    response = client.models.generate_content(
        model="gemini-3.5-pro",
        contents="What is the weather like in Boston?",
        config=types.GenerateContentConfig(tools=[get_current_weather]),
    )
    yield from ("Looking.",) * (len(response.automatic_function_calling_history) // 2)
    yield response.text


# --- the clients, as their READMEs make them, at another address ---

BEDROCK = "us.anthropic.claude-opus-5-5-v1:0"


def openai_client(url: str) -> openai.OpenAI:
    return openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0)


def claude_client(url: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="k", base_url=url, max_retries=0)


def bedrock_client(url: str) -> Any:
    keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
    return boto3.client(
        service_name="bedrock-runtime", region_name="us-east-1", endpoint_url=url, **keys
    )


def gemini_client(url: str, made: Callable[..., Any] = genai.Client) -> Any:
    return made(api_key="k", http_options=types.HttpOptions(base_url=url))


def mistral_client(url: str) -> Mistral:
    return Mistral(api_key="k", server_url=url)


class Loop(NamedTuple):
    make: Callable[[str], Any]
    run: Callable[[Any, Fit], Iterator[str]]


LOOPS = {
    "chat stream": Loop(openai_client, chat_stream),
    "responses stream": Loop(openai_client, responses_stream),
    "claude stream": Loop(claude_client, claude_stream),
    "claude events": Loop(claude_client, claude_events),
    "gemini stream": Loop(gemini_client, gemini_stream),
    "mistral stream": Loop(mistral_client, mistral_stream),
    "bedrock stream": Loop(bedrock_client, bedrock_stream),
    "mistral tools": Loop(mistral_client, mistral_tools),
    "bedrock tools": Loop(bedrock_client, bedrock_tools),
    "gemini tools": Loop(gemini_client, gemini_tools),
}
OWN_LOOPS = {
    "claude tool_runner": Loop(claude_client, claude_tool_runner),
    "gemini function": Loop(gemini_client, gemini_function),
}


def provider(name: str) -> StrictProvider:
    if name.endswith(("stream", "events")):
        return StrictProvider([STORY] * TURNS, window=WINDOW)
    call = Call("get_current_weather", {"location": "Boston"})
    answers = [Answer("Looking.", calls=[call]) for _ in range(TURNS)]
    return StrictProvider(answers, window=WINDOW, answer="done")


def expected(name: str) -> list[str]:
    if name.endswith(("stream", "events")):
        return [STORY] * TURNS
    return ["Looking."] * TURNS + ["done"]


@pytest.mark.parametrize("name", LOOPS)
def test_a_readme_loop_with_a_session_outgrows_the_window_and_is_never_refused(name):
    make, loop = LOOPS[name]
    session = trimtab.Session(window=WINDOW, reserve=1_024)
    before = 0

    def fit(request: Any) -> Any:
        nonlocal before
        fitted = session.fit(request, model="claude-opus-5-5" if "bedrock" in name else None)
        before = fitted.tokens_before
        return fitted.request

    with provider(name) as server, closing(loop(make(server.url), fit)) as turns:
        assert list(turns) == expected(name)
        assert {record.status for record in server.requests} == {200}
    assert before > 2 * WINDOW


@pytest.mark.parametrize("name", [*LOOPS, *OWN_LOOPS])
def test_a_readme_loop_runs_unchanged_with_a_wrapped_client(name):
    make, loop = {**LOOPS, **OWN_LOOPS}[name]
    with provider(name) as server:
        if make is gemini_client:  # a client that is made shows its HTTP client to nobody
            client = gemini_client(server.url, trimtab.wrap(genai.Client, window=WINDOW))
        else:
            client = trimtab.wrap(make(server.url), window=WINDOW)
        with closing(loop(client, lambda request: request)) as turns:
            assert list(turns) == expected(name)
        refused = [record for record in server.requests if record.status != 200]
        assert len(refused) <= 1
