"""``wrap(client, recall=True)``: the model calls the recall tool, real SDKs never see it.

Knows what the provider receives and what a caller is told.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import closing

import anthropic
import boto3
import botocore.exceptions
import httpx2
import openai
import pytest
import sdk_clients
from google import genai
from google.genai import errors as genai_errors
from google.genai import types
from mistralai.client import Mistral
from recalled_files import EVERY, file
from sdk_clients import PROMPT, Bedrock

import trimtab
from trimtab.clients.guard import Guard
from trimtab.clients.request_target import RequestTarget
from trimtab_lab.testing import Answer, Call, Refuse, StrictProvider

RAISED = (
    openai.APIError, anthropic.APIError, genai_errors.APIError, botocore.exceptions.ClientError,
)  # fmt: skip


def status_of(error):
    """What an SDK says was the HTTP status."""
    if isinstance(error, botocore.exceptions.ClientError):
        return error.response["ResponseMetadata"].get("HTTPStatusCode")
    return getattr(error, "status_code", None) or getattr(error, "code", None)


STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
WINDOW = 12_000
MARK = re.compile(r'recall\(\\*"(\w+)\\*"')
NO_MORE = "no more recalls in this answer"


def told(record):
    return json.dumps(record.body)


def handles(record):
    """The handles that notes name; the tool's own description names one as an example."""
    return [mark for mark in MARK.findall(told(record)) if mark != "handle"]


def calls_recall(record):
    return '\\"end\\":400' in told(record).replace(" ", "") or '"end": 400' in told(record)


def tools(record):
    body = record.body
    return body.get("tools") or body.get("toolConfig", {}).get("tools") or []


def declared(record):
    return json.dumps(tools(record)).count('"name": "recall"')


class Agent:
    """What the model does: reads files until something was cut, recalls it, goes on.

    ``mixed``: it recalls beside another call.
    """

    def __init__(self, mixed=False):
        self.mixed, self.recalled, self.step = mixed, False, 0

    def __call__(self, record):
        marks = handles(record)
        if marks and not self.recalled:
            self.recalled = True
            call = Call("recall", {"handle": marks[0], "end": 400})
            thought = "I need the original."
            if self.mixed:
                calls = [call, Call("read", {"path": "more.txt"})]
                return Answer("Both at once.", calls, thinking=thought)
            return Answer("Let me look again.", [call], thinking=thought)
        self.step += 1
        if self.step > 9:
            return Answer("All read.", thinking="Done.")
        return Answer(f"Reading {self.step}.", [Call("read", {"path": f"{self.step}.txt"})],
                      thinking=f"File {self.step}.")  # fmt: skip


def history(client):
    own = getattr(client, "messages", None) or getattr(client, "input", None)
    return repr(own if own is not None else client.contents)


@EVERY
@STREAMS
@pytest.mark.parametrize("mixed", [False, True], ids=["alone", "mixed"])
def test_a_recall_is_answered_by_the_wrapped_client_and_never_seen(sdk, stream, mixed):
    agent = Agent(mixed)
    with StrictProvider(agent, window=WINDOW) as provider:
        client = sdk(provider.url)
        sdk_clients.wrap(client, window=WINDOW, recall=True)
        client.ask(PROMPT)
        said, seen, number, texts, prompts = client.send(stream), [], 0, [], []
        while said.calls:
            texts.append(said.text)
            prompts.append(said.prompt)
            seen += [name for _, name, _ in said.calls]
            number += 1
            text = f"short {number}" if agent.recalled else file(number)
            client.give({call_id: text for call_id, _, _ in said.calls})
            said = client.send(stream)
        assert provider.crashes == []
        assert said.text.endswith("All read.")
        assert agent.recalled
        assert set(seen) == {"read"}
        assert "recall" not in history(client)
        joined = [text for text in texts if "Let me look again." in text]
        assert len(joined) == (not mixed)
        assert all(re.fullmatch(r"Let me look again\.\n\nReading \d\.", t) for t in joined)
        assert {record.status for record in provider.requests} == {200}
        assert [declared(record) for record in provider.requests] == [1] * len(provider.requests)
        first = next(i for i, r in enumerate(provider.requests) if calls_recall(r))
        behind = provider.requests[first:]
        # What was recalled stays in every later request, at its place: the prefix is the same.
        assert all(calls_recall(record) for record in behind)
        assert behind[1].cached_tokens > 0.8 * behind[0].tokens
        assert all(record.violations == () for record in provider.requests)
        if not mixed:
            asked = provider.requests[first - 1 : first + 1]
            assert prompts[first - 1] == sum(record.tokens for record in asked), "both are paid"


RECALL = Call("recall", {"handle": "none", "end": 400})
READ = {"type": "object", "properties": {"path": {"type": "string"}}}
"""The parameters of the caller's own tool."""


def openai_client(provider, sync, **more):
    kind = openai.OpenAI if sync else openai.AsyncOpenAI
    return trimtab.wrap(
        kind(base_url=f"{provider.url}/v1", api_key="x", max_retries=0), recall=True, **more
    )


def claude_client(provider, sync, **more):
    kind = anthropic.Anthropic if sync else anthropic.AsyncAnthropic
    return trimtab.wrap(
        kind(base_url=provider.url, api_key="x", max_retries=0), recall=True, **more
    )


def genai_client(provider, **more):
    made = trimtab.wrap(genai.Client, recall=True, **more)
    options = types.HttpOptions(base_url=provider.url)
    return made(api_key="x", vertexai=False, http_options=options)


async def chat(provider, stream, messages, **more):
    client = openai_client(provider, sync=False)
    for_usage = {"stream_options": {"include_usage": True}} if stream else {}
    answer = await client.chat.completions.create(
        model="gpt-5.1", messages=messages, stream=stream, **for_usage, **more
    )
    if not stream:
        return answer.choices[0].message.content, answer.usage.prompt_tokens
    chunks = [chunk async for chunk in answer]
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    return text, chunks[-1].usage.prompt_tokens


async def responses(provider, stream, messages, **more):
    client = openai_client(provider, sync=False)
    given = {"model": "gpt-5.1", "input": messages, "store": False, **more}
    if stream:
        async with client.responses.stream(**given) as events:
            answer = await events.get_final_response()
    else:
        answer = await client.responses.create(**given)
    return answer.output_text, answer.usage.input_tokens


async def claude(provider, stream, messages, **more):
    client = claude_client(provider, sync=False)
    given = {"model": "claude-opus-5-5", "max_tokens": 500, "messages": messages, **more}
    if stream:
        async with client.messages.stream(**given) as events:
            answer = await events.get_final_message()
    else:
        answer = await client.messages.create(**given)
    text = "".join(block.text for block in answer.content if block.type == "text")
    usage = answer.usage
    return text, (usage.input_tokens + (usage.cache_read_input_tokens or 0)
                  + (usage.cache_creation_input_tokens or 0))  # fmt: skip


async def gemini(provider, stream, messages, **more):
    client = genai_client(provider)
    contents = [types.Content(role="user", parts=[types.Part(text=messages[0]["content"])])]
    given = {"model": "gemini-3.5-pro", "contents": contents, **more}
    if stream:
        chunks = [c async for c in await client.aio.models.generate_content_stream(**given)]
    else:
        chunks = [await client.aio.models.generate_content(**given)]
    parts = [p for c in chunks for p in c.candidates[0].content.parts or () if p.text]
    text = "".join(part.text for part in parts if not part.thought)
    return text, chunks[-1].usage_metadata.prompt_token_count


ASYNC = pytest.mark.parametrize("ask", [chat, responses, claude, gemini], ids=lambda f: f.__name__)
HI = [{"role": "user", "content": "Hi."}]


@ASYNC
@STREAMS
def test_an_async_client_answers_the_tool_too_without_any_tool_of_the_caller(ask, stream):
    script = [Answer("Let me look.", [RECALL], thinking="Hm."), Answer("Found.", thinking="Ah.")]
    with StrictProvider(script) as provider:
        text, prompt = asyncio.run(ask(provider, stream, HI))
        first, second = provider.requests
        assert text.replace("\n\n", " ") in ("Let me look. Found.", "Let me look.Found.")
        assert prompt == first.tokens + second.tokens
        assert (declared(first), declared(second)) == (1, 1)
        assert tools(first) == tools(second)
        assert calls_recall(second)


def functions(record):
    return json.dumps(tools(record)).count('"name": "')


FUNCTION = {"type": "function", "function": {"name": "read", "parameters": READ}}
CLAUDE_TOOL = {"name": "read", "input_schema": READ}
GEMINI_TOOL = types.Tool(
    function_declarations=[types.FunctionDeclaration(name="read", parameters_json_schema=READ)]
)


def gemini_mode(mode, *names):
    calling = types.FunctionCallingConfig(mode=mode, allowed_function_names=list(names) or None)
    return {"config": types.GenerateContentConfig(
        tools=[GEMINI_TOOL], tool_config=types.ToolConfig(function_calling_config=calling),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )}  # fmt: skip


NAMED = {"type": "function", "function": {"name": "read"}}
CHOICES = [
    (chat, {"tools": [FUNCTION], "tool_choice": "required"}, 1),
    (chat, {"tools": [FUNCTION], "tool_choice": "none"}, 2),
    (chat, {"tools": [FUNCTION], "tool_choice": NAMED}, 2),
    (chat, {"n": 2}, 0),
    (chat, {"response_format": {"type": "json_object"}}, 1),
    (chat, {"prediction": {"type": "content", "content": "Hi."}}, 0),
    (responses, {"tools": [{"type": "function", "name": "read", "parameters": READ,
                            "strict": False}], "tool_choice": "required"}, 1),
    (claude, {"tools": [CLAUDE_TOOL], "tool_choice": {"type": "any"}}, 1),
    (claude, {"tools": [CLAUDE_TOOL], "tool_choice": {"type": "tool", "name": "read"}}, 2),
    (gemini, gemini_mode("ANY"), 1),
    (gemini, gemini_mode("ANY", "read"), 2),
    (gemini, gemini_mode("AUTO"), 2),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "more", "count"), CHOICES)
def test_a_request_that_demands_a_call_or_several_answers_does_not_get_the_tool(
    ask, more, count, caplog
):
    with StrictProvider() as provider:
        asyncio.run(ask(provider, False, HI, **more))
        (record,) = provider.requests
        assert functions(record) == count
        ours = declared(record)
        assert ours == (count == 2 or "response_format" in more)
        assert caplog.text.count("does not get the recall tool") == (not ours)


def test_why_a_request_gets_no_tool_is_logged_once(caplog):
    with StrictProvider() as provider:
        client = openai_client(provider, sync=True)
        for _ in range(3):
            client.chat.completions.create(
                model="gpt-5.1", messages=HI, tools=[FUNCTION], tool_choice="required"
            )
        client.chat.completions.create(model="gpt-5.1", messages=HI, tools=[FUNCTION])
        assert [declared(record) for record in provider.requests] == [0, 0, 0, 1]
    assert caplog.text.count("tool_choice demands a call") == 1


def test_a_caller_that_reads_raw_bytes_gets_what_the_provider_wrote(caplog):
    with StrictProvider() as provider:
        client = openai_client(provider, sync=True)
        raw = client.chat.completions.with_raw_response.create(model="gpt-5.1", messages=HI)
        assert raw.parse().choices[0].message.content == "OK"
        assert declared(provider.requests[0]) == 0
    assert "read as raw bytes" in caplog.text


def test_a_caller_s_own_recall_tool_stays_the_caller_s():
    own = {"type": "function", "function": {"name": "recall", "parameters": READ}}
    with StrictProvider([Answer("", [RECALL])]) as provider:
        client = openai_client(provider, sync=True)
        answer = client.chat.completions.create(model="gpt-5.1", messages=HI, tools=[own])
        assert answer.choices[0].message.tool_calls[0].function.name == "recall"
        assert len(provider.requests) == 1


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_the_response_says_how_many_rounds_it_took(stream):
    script = [Answer("", [RECALL]), Answer("", [RECALL]), "Found.", "Nothing to look up."]
    seen = []

    class Seen(httpx2.Client):
        def send(self, request, **keywords):
            seen.append(super().send(request, **keywords))
            return seen[-1]

    with StrictProvider(script) as provider:
        http = trimtab.wrap(httpx2.Client(), recall=True)
        http.__class__ = Seen
        client = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="x", http_client=http)
        for rounds in (3, 1):
            answer = client.chat.completions.create(model="gpt-5.1", messages=HI, stream=stream)
            if stream:
                list(answer)
            assert seen[-1].headers["x-trimtab-rounds"] == str(rounds)


class Insatiable:
    """Recalls one part after the other, without a word.  ``hears``: it answers once it is told
    that no recall is left."""

    def __init__(self, hears):
        self.hears, self.told = hears, []

    def __call__(self, record):
        self.told.append(NO_MORE in told(record))
        if self.hears and self.told[-1]:
            return Answer("What I have will do.")
        return Answer("", [Call("recall", {"handle": "none", "start": len(self.told)})])


@EVERY
@STREAMS
@pytest.mark.parametrize("hears", [True, False])
def test_after_six_rounds_the_model_gets_no_more(sdk, stream, hears, caplog):
    model = Insatiable(hears)
    with StrictProvider(model) as provider:
        client = sdk(provider.url)
        sdk_clients.wrap(client, window=50_000, recall=True)
        client.ask(PROMPT)
        said = client.send(stream)
        assert (said.text, said.calls) == ("What I have will do." if hears else "", [])
        assert model.told == [False] * 5 + [True]
        assert trimtab.of(client.client).stats.rounds == 5
        assert said.prompt == sum(record.tokens for record in provider.requests)
    assert ("nothing but recalls" in caplog.text) is not hears


@EVERY
@STREAMS
def test_the_model_finds_what_it_said_in_six_rounds_once_and_its_last_recall_answered(sdk, stream):
    """Its history had the text of each round, and all of them again as its last message."""
    script = [Answer(f"Word {n}.", [Call("recall", {"search": f"last {n}"})]) for n in range(6)]
    with StrictProvider([*script, "And so on."], window=50_000) as provider:
        client = sdk(provider.url)
        sdk_clients.wrap(client, window=50_000, recall=True)
        client.ask(PROMPT)
        said = client.send(stream)
        assert [f"Word {n}." for n in range(6)] == said.text.split("\n\n")
        client.ask("And now?")
        assert client.send(stream).text == "And so on."
        last = provider.requests[-1]
        assert (last.refusal, last.violations, len(provider.requests)) == ("", (), 7)
        assert [told(last).count(f"Word {n}.") for n in range(6)] == [1] * 6
        assert "last 5" in told(last)


def test_a_chain_by_id_goes_on_behind_six_rounds_of_recalls():
    """The provider refused it: the last call, which it keeps, had no result."""
    calls = [Answer(f"Word {n}.", [Call("recall", {"search": f"last {n}"})]) for n in range(6)]
    with StrictProvider([*calls, "And so on."], window=50_000) as provider:
        client = openai_client(provider, sync=True, window=50_000)
        first = client.responses.create(model="gpt-5.1", input="Hi.")
        second = client.responses.create(
            model="gpt-5.1", input="And now?", previous_response_id=first.id
        )
        assert second.output_text == "And so on."
        assert provider.requests[-1].violations == ()


@EVERY
@STREAMS
def test_a_refusal_of_the_second_round_reaches_the_caller_as_it_came(sdk, stream):
    refusal = Refuse("rate", status=429, retry_after=0)
    with StrictProvider([Answer("", [RECALL]), refusal, "and here I am"]) as provider:
        client = sdk(provider.url)
        sdk_clients.wrap(client, window=50_000, recall=True)
        client.ask(PROMPT)
        with pytest.raises(RAISED) as raised:
            client.send(stream)
        assert status_of(raised.value) == 429
        assert len(provider.requests) == 2
        assert client.send(stream).text == "and here I am", "its own retry goes through"


@EVERY
def test_behind_the_first_words_of_a_stream_a_refusal_is_an_error_in_it(sdk):
    burns = "the barn burns"
    barn = {"error": {"message": burns, "type": "x", "status": "UNAVAILABLE"}, "message": burns}
    script = [Answer("Let me look.", [RECALL]), Refuse("opaque", status=503, body=barn)]
    with StrictProvider(script) as provider:
        client = sdk(provider.url)
        sdk_clients.wrap(client, window=50_000, recall=True)
        client.ask(PROMPT)
        with pytest.raises(Exception) as raised:  # noqa: PT011 (the SDKs share no class)
            client.send(True)
        assert "the barn burns" in str(raised.value)


@EVERY
def test_what_was_hidden_outlasts_the_process_in_the_session_s_store(sdk, tmp_path):
    store = f"sqlite:///{tmp_path / 's.db'}"
    script = [Answer("Looked.", [RECALL], thinking="Hm."), Answer("Found.", thinking="Ah."), "Yes."]
    with StrictProvider(script) as provider:
        client = sdk(provider.url)
        plain = client.client
        with closing(trimtab.Session(window=50_000, recall=True, store=store)) as session:
            sdk_clients.wrap(client, session=session)
            client.ask(PROMPT)
            client.send(False)
        if sdk is Bedrock:
            client.client = Bedrock(provider.url).client
        else:
            client.client = plain
        with closing(trimtab.Session(window=50_000, recall=True, store=store)) as session:
            sdk_clients.wrap(client, session=session)
            client.ask("Sure?")
            assert client.send(False).text == "Yes."
        assert '"none"' in told(provider.requests[2]).replace('\\"', '"')
        assert provider.requests[2].violations == ()
        assert provider.requests[2].status == 200


def test_an_answer_that_the_caller_changed_loses_what_was_hidden_and_the_log_says_so(caplog):
    with StrictProvider([Answer("Looked.", [RECALL]), "Found.", "Yes.", "Yes."]) as provider:
        client = openai_client(provider, sync=True)
        client.chat.completions.create(model="gpt-5.1", messages=HI)
        edited = [*HI, {"role": "assistant", "content": "Other words."}, *HI]
        for _ in range(2):
            client.chat.completions.create(model="gpt-5.1", messages=edited)
        assert '"none"' not in told(provider.requests[2]).replace('\\"', '"')
    assert caplog.text.count("is not put back") == 1


@STREAMS
def test_an_answer_that_the_provider_keeps_is_continued_behind_its_hidden_rounds(stream):
    with StrictProvider([Answer("Looked.", [RECALL]), "Found.", "Yes."]) as provider:
        client = openai_client(provider, sync=True)

        def ask(**more):
            if not stream:
                return client.responses.create(model="gpt-5.1", **more)
            with client.responses.stream(model="gpt-5.1", **more) as events:
                return events.get_final_response()

        first = ask(input="Hi.")
        assert ask(input="Sure?", previous_response_id=first.id).output_text == "Yes."
        assert {record.status for record in provider.requests} == {200}
        assert provider.requests[2].tokens > provider.requests[1].tokens


def bedrock_of_anthropic(provider, sync, **more):
    kind = anthropic.AnthropicBedrock if sync else anthropic.AsyncAnthropicBedrock
    made = kind(base_url=provider.url, aws_region="us-east-1", aws_access_key="x",
                aws_secret_key="x", max_retries=0)  # fmt: skip
    return trimtab.wrap(made, recall=True, **more)


GIVEN = {"model": "anthropic.claude-opus-5-5-v1:0", "max_tokens": 500, "messages": HI}


@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
def test_anthropic_s_client_that_signs_answers_the_tool_in_whole_answers(sync, caplog):
    with StrictProvider([Answer("Let me look.", [RECALL]), "Found.", "OK"]) as provider:
        client = bedrock_of_anthropic(provider, sync)
        if sync:
            answer = client.messages.create(**GIVEN)
            list(client.messages.create(**GIVEN, stream=True))
        else:

            async def both():
                answer = await client.messages.create(**GIVEN)
                async for _ in await client.messages.create(**GIVEN, stream=True):
                    pass
                return answer

            answer = asyncio.run(both())
        assert [block.text for block in answer.content] == ["Let me look.", "\n\nFound."]
        assert [declared(record) for record in provider.requests] == [1, 1, 0]
        prompt = sum(record.tokens for record in provider.requests[:2])
        assert answer.usage.input_tokens == prompt
    assert "streams of anthropic are not rewritten here" in caplog.text


def test_a_refusal_of_a_later_round_is_raised_by_the_client_that_signs_too():
    refusal = Refuse("rate", status=429, retry_after=0)
    with StrictProvider([Answer("Let me look.", [RECALL]), refusal]) as provider:
        with pytest.raises(anthropic.RateLimitError):
            bedrock_of_anthropic(provider, sync=True).messages.create(**GIVEN)
        assert len(provider.requests) == 2


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
def test_mistral_s_client_answers_the_tool(sync, stream):
    given = {"model": "mistral-large", "messages": HI}
    with StrictProvider([Answer("Let me look.", [RECALL]), "Found."]) as provider:
        client = trimtab.wrap(Mistral(api_key="x", server_url=provider.url), recall=True)
        chat = client.chat

        async def text():
            if not stream:
                answer = await chat.complete_async(**given)
                return answer.choices[0].message.content
            events = await chat.stream_async(**given)
            return "".join([e.data.choices[0].delta.content or "" async for e in events])

        if not sync:
            said = asyncio.run(text())
        elif stream:
            said = "".join(e.data.choices[0].delta.content or "" for e in chat.stream(**given))
        else:
            said = chat.complete(**given).choices[0].message.content
        assert said == "Let me look.\n\nFound."
        assert len(provider.requests) == 2


def test_a_door_that_cannot_answer_the_tool_names_it_nowhere():
    """LiteLLM's functions: notes would name a tool that nobody offers."""
    long = [{"role": "user", "content": "Read."}]
    for number in range(8):
        function = {"name": "read", "arguments": "{}"}
        call = {"id": f"c{number}", "type": "function", "function": function}
        long += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": file(number)},
        ]
    guard = Guard(window=WINDOW, recall=True)
    target = RequestTarget("openai-chat", "k")
    for tool, names in ((NAMED["function"], False), ({"name": "recall"}, True)):
        tools = [{"type": "function", "function": {**tool, "parameters": READ}}]
        body = {"model": "gpt-5.1", "messages": long, "tools": tools}
        sent = next(guard.flow(body, target)).request
        assert sent != body
        assert bool(MARK.findall(json.dumps(sent))) is names
        guard = Guard(window=WINDOW, recall=True)


async def sent_by_boto3(provider, stream, messages, **more):
    """boto3 has no async client."""
    client = Bedrock(provider.url)
    sdk_clients.wrap(client, recall=True)
    return plainly_asked(client.client, stream)


def plainly_asked(client, stream):
    given = {"modelId": "us.anthropic.claude-opus-5-5-v1:0",
             "messages": [{"role": "user", "content": [{"text": "Hi."}]}]}  # fmt: skip
    if stream:
        return [e for e in client.converse_stream(**given)["stream"] if "contentBlockDelta" in e]
    return client.converse(**given)["output"]["message"]["content"][0]["text"]


NO_TOOLS = {
    "error": {"message": "gemma does not support tools", "code": 400},
    "message": "no tools",
}


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("ask", [chat, claude, sent_by_boto3], ids=lambda f: f.__name__)
def test_a_model_that_takes_no_tools_is_asked_without_ours(ask, stream, caplog):
    refusal = Refuse("opaque", status=400, body=NO_TOOLS)
    with StrictProvider([refusal]) as provider:
        asyncio.run(ask(provider, stream, HI))
        assert [record.status for record in provider.requests] == [400, 200]
        assert [declared(record) for record in provider.requests] == [1, 0]
        assert "tools" not in provider.requests[1].body
        assert "toolConfig" not in provider.requests[1].body
    assert caplog.text.count("has refused such a request for a tool") == 1


def test_what_takes_no_tools_is_not_asked_with_ours_again():
    refusal = Refuse("opaque", status=400, body=NO_TOOLS)
    with StrictProvider([refusal]) as provider:
        client = openai_client(provider, sync=True)
        for more in ({}, {}, {"tools": [FUNCTION]}):
            client.chat.completions.create(model="gpt-5.1", messages=HI, **more)
        assert [declared(record) for record in provider.requests] == [1, 0, 0, 1]


def test_a_refusal_that_comes_without_our_tool_too_takes_it_from_nobody():
    refusal = Refuse("opaque", status=400, body=NO_TOOLS, times=2)
    with StrictProvider([refusal]) as provider:
        client = openai_client(provider, sync=True)
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(model="gpt-5.1", messages=HI)
        client.chat.completions.create(model="gpt-5.1", messages=HI)
        assert [declared(record) for record in provider.requests] == [1, 0, 1]


def test_anthropic_s_client_that_signs_asks_again_without_the_tool_too():
    refusal = Refuse("opaque", status=400, body=NO_TOOLS)
    with StrictProvider([refusal]) as provider:
        answer = bedrock_of_anthropic(provider, sync=True).messages.create(**GIVEN)
        assert answer.content[0].text == "OK"
        assert [declared(record) for record in provider.requests] == [1, 0]


def test_a_tool_s_own_word_of_a_stream_does_not_let_a_call_through():
    """Nothing in the request asks for a stream, but the arguments of a call look as if."""
    call = {"type": "tool_use", "id": "t0", "name": "get", "input": {"stream": True}}
    messages = [*HI, {"role": "assistant", "content": [call]}, {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t0", "content": "ok"}]}]  # fmt: skip
    get = {"name": "get", "input_schema": {"type": "object"}}
    with StrictProvider([Answer("", [RECALL]), "Done."]) as provider:
        answer = claude_client(provider, sync=True).messages.create(
            model="claude-opus-5-5", max_tokens=50, messages=messages, tools=[get]
        )
        assert [block.text for block in answer.content] == ["Done."]


JSON = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
STRUCTURED = [
    (chat, {"response_format": JSON}),
    (responses, {"text": {"format": {"type": "json_object"}}}),
    (claude, {"extra_body": {"output_format": {"type": "json_schema", "schema": {}}}}),
    (gemini, {"config": types.GenerateContentConfig(response_mime_type="application/json")}),
]


@pytest.mark.parametrize(("ask", "more"), STRUCTURED)
@STREAMS
def test_a_structured_answer_is_the_last_round_s_alone(ask, more, stream):
    script = [Answer("Let me look.", [RECALL]), '{"a": 1}']
    with StrictProvider(script) as provider:
        text, prompt = asyncio.run(ask(provider, stream, HI, **more))
        assert json.loads(text) == {"a": 1}
        assert prompt == sum(record.tokens for record in provider.requests)


@STREAMS
def test_a_structured_answer_of_converse_is_the_last_round_s_alone(stream):
    script = [Answer("Let me look.", [RECALL]), '{"a": 1}', "OK"]
    with StrictProvider(script) as provider:
        client = Bedrock(provider.url)
        sdk_clients.wrap(client, recall=True)
        wanted = {"type": "json_schema", "structure": {"jsonSchema": {"schema": "{}"}}}
        given = {
            "modelId": client.model,
            "messages": [{"role": "user", "content": [{"text": "Hi."}]}],
            "outputConfig": {"textFormat": wanted},
        }
        if stream:
            events = list(client.client.converse_stream(**given)["stream"])
            deltas = [e["contentBlockDelta"] for e in events if "contentBlockDelta" in e]
            said = "".join(delta["delta"]["text"] for delta in deltas)
        else:
            answer = client.client.converse(**given)
            said = answer["output"]["message"]["content"][0]["text"]
            prompt = sum(record.tokens for record in provider.requests)
            assert answer["usage"]["inputTokens"] == prompt
        assert json.loads(said) == {"a": 1}


@STREAMS
def test_a_later_turn_has_what_was_hidden_of_a_structured_answer(stream):
    script = [Answer("Let me look.", [RECALL]), '{"a": 1}', "OK"]
    with StrictProvider(script) as provider:
        client = openai_client(provider, sync=True)
        answer = client.chat.completions.create(
            model="gpt-5.1", messages=HI, response_format=JSON, stream=stream
        )
        said = '{"a": 1}'
        if stream:
            assert "".join(c.choices[0].delta.content or "" for c in answer) == said
        more = [*HI, {"role": "assistant", "content": said}, *HI]
        client.chat.completions.create(model="gpt-5.1", messages=more, response_format=JSON)
        assert calls_recall(provider.requests[2])


def test_an_interaction_gets_the_tool_where_its_provider_does_not_keep_it(caplog):
    with StrictProvider(["OK", Answer("", [RECALL]), "Found."]) as provider:
        client = genai_client(provider)
        answer = client.interactions.create(model="gemini-3.5-pro", input="Hi.")
        assert answer.output_text == "OK"
        assert declared(provider.requests[0]) == 0
        answer = client.interactions.create(model="gemini-3.5-pro", input="Hi.", store=False)
        assert answer.output_text == "Found."
        assert [declared(record) for record in provider.requests] == [0, 1, 1]
    assert "its provider keeps the conversation" in caplog.text


def test_a_session_of_boto3_gives_the_tool_in_whole_answers_only(caplog):
    made = boto3.Session(aws_access_key_id="x", aws_secret_access_key="x", region_name="us-east-1")
    session = trimtab.clients.boto3(made, recall=True)
    with StrictProvider([Answer("", [RECALL]), "Found.", "OK"]) as provider:
        client = session.client("bedrock-runtime", endpoint_url=provider.url)
        assert plainly_asked(client, stream=False) == "Found."
        plainly_asked(client, stream=True)
        assert [declared(record) for record in provider.requests] == [1, 1, 0]
    assert "streams of bedrock are not rewritten here" in caplog.text
