"""The providers' own SDKs against the strict provider: tool loops, streams, their exceptions.

Knows what a caller of an SDK sees.  The SDKs stand in sdk_clients.py.
"""

from __future__ import annotations

import pytest
from sdk_clients import CLIENTS, PROMPT, Bedrock, Chat, Claude, Gemini, Responses

import trimtab
from trimtab_lab.testing import Answer, Call, Refuse, StrictProvider

FILES = {"a.txt": "alpha " * 900, "b.txt": "beta", "c.txt": "gamma"}
SCRIPT = (
    Answer("Let me look.", [Call("read", {"path": "a.txt"})], thinking="The first file, then."),
    Answer(
        "", [Call("read", {"path": "b.txt"}), Call("read", {"path": "c.txt"})], thinking="Go on."
    ),
    Answer("alpha, beta and gamma", thinking="That is all."),
)
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
EVERY = pytest.mark.parametrize("sdk", CLIENTS, ids=lambda sdk: sdk.format)


@EVERY
@STREAMS
def test_an_sdk_completes_a_loop_of_two_tool_turns_and_parallel_calls(sdk, stream):
    with StrictProvider(SCRIPT, window=20_000) as provider:
        client = sdk(provider.url)
        client.ask(PROMPT)
        paths = []
        said = client.send(stream)
        while said.calls:
            paths.append([arguments["path"] for _, _, arguments in said.calls])
            client.give({call_id: FILES[a["path"]] for call_id, _, a in said.calls})
            said = client.send(stream)
        assert provider.crashes == []
        assert (paths, said.text) == ([["a.txt"], ["b.txt", "c.txt"]], "alpha, beta and gamma")
        assert [record.status for record in provider.requests] == [200, 200, 200]
        assert {record.format for record in provider.requests} == {sdk.format}
        assert all(record.stream is stream for record in provider.requests)
        assert all(
            trimtab.check(r.body, format=r.format, model=r.model) == () for r in provider.requests
        )


@EVERY
@STREAMS
def test_the_usage_an_sdk_reports_is_what_was_counted_and_cached(sdk, stream):
    long = "a long prompt " * 2_000
    with StrictProvider(["one", "two"]) as provider:
        client = sdk(provider.url)
        client.ask(long)
        first = client.send(stream)
        client.ask("And now?")
        second = client.send(stream)
        sent = provider.requests
        assert [first.prompt, second.prompt] == [record.tokens for record in sent]
        assert (first.cached, second.cached) == (0, sent[1].cached_tokens)
        assert first.prompt - 128 < second.cached <= first.prompt


OVERFLOW = {
    Chat: ("openai.BadRequestError", "maximum context length is 2000 tokens"),
    Responses: ("openai.BadRequestError", "Your input exceeds the context window"),
    Claude: ("anthropic.BadRequestError", "prompt is too long: "),
    Gemini: (
        "google.genai.errors.ClientError",
        "exceeds the maximum number of tokens allowed (2000)",
    ),
    Bedrock: ("ValidationException", "Input is too long for requested model"),
}


@EVERY
@STREAMS
def test_an_overflow_is_the_sdk_s_own_exception(sdk, stream):
    with StrictProvider(window=2_000) as provider:
        client = sdk(provider.url)
        client.ask("too long " * 3_000)
        if (sdk, stream) == (Responses, True):  # HTTP 200, told by an event; the SDK does not raise
            assert failed_event(client) == "context_length_exceeded"
            return
        with pytest.raises(Exception, match=r".") as caught:
            client.send(stream)
        name, words = OVERFLOW[sdk]
        kinds = [f"{kind.__module__}.{kind.__qualname__}" for kind in type(caught.value).__mro__]
        assert any(same_kind(name, kind) for kind in kinds), kinds
        assert words in str(caught.value)
        assert provider.requests[0].refusal == "overflow"


def same_kind(name: str, kind: str) -> bool:
    """boto3 makes its exceptions when asked; the others live somewhere in their package."""
    package, _, own = name.rpartition(".")
    return kind.rpartition(".")[2] == own and kind.startswith(package.partition(".")[0])


def failed_event(client: Responses) -> str:
    for event in client.client.responses.create(model="m", input=client.input, stream=True):
        if event.type == "response.failed":
            return str(event.response.error.code)
    return ""


def test_an_error_in_the_middle_of_a_chat_stream_raises_in_the_sdk():
    import openai

    with StrictProvider(window=2_000, style="openrouter", overflow_as="in-stream") as provider:
        client = Chat(provider.url)
        client.ask("too long " * 3_000)
        with pytest.raises(openai.APIError, match="maximum context length is 2000"):
            client.send(True)
        assert provider.requests[0].status == 200


def test_an_exception_event_of_bedrock_raises_while_the_stream_is_read():
    from botocore.exceptions import EventStreamError

    with StrictProvider(window=2_000, overflow_as="in-stream") as provider:
        client = Bedrock(provider.url)
        client.ask("too long " * 3_000)
        with pytest.raises(EventStreamError, match="Input is too long for requested model"):
            client.send(True)


def test_an_sdk_retries_a_rate_limit_as_it_is_told():
    with StrictProvider([Refuse("rate", retry_after=0.01), "after all"]) as provider:
        client = Chat(provider.url)
        client.client = client.client.with_options(max_retries=1)
        client.ask(PROMPT)
        assert client.send(False).text == "after all"
        assert [record.status for record in provider.requests] == [429, 200]


@pytest.mark.parametrize("sdk", [Claude, Bedrock], ids=lambda sdk: sdk.format)
def test_thinking_behind_an_edit_is_refused_and_the_api_may_be_asked_to_drop_it(sdk):
    with StrictProvider(SCRIPT) as provider:
        client = sdk(provider.url)
        client.ask(PROMPT)
        said = client.send(False)
        client.give({call_id: "a result" for call_id, _, _ in said.calls})
        client.messages[0]["content"][0]["text"] = "Something else was asked."
        with pytest.raises(Exception, match="The block is bound to a different conversation"):
            client.send(False)
        assert provider.requests[-1].refusal == "thinking_binding"
        behaviour = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
        option = {"thinking": {"type": "adaptive", **behaviour}}
        if sdk is Claude:
            send = client.client.messages.create
            done = send(
                model=client.model, max_tokens=9, messages=client.messages, extra_body=option,
                tools=[{"name": "read", "input_schema": {"type": "object"}}],
                system="Read files.",
            )  # fmt: skip
            assert done.stop_reason == "tool_use"
        else:
            tool = {"name": "read", "inputSchema": {"json": {"type": "object"}}}
            client.client.converse(
                modelId=client.model, messages=client.messages,
                toolConfig={"tools": [{"toolSpec": tool}]}, additionalModelRequestFields=option,
            )  # fmt: skip
        assert provider.requests[-1].dropped == ("messages.1.content.0",)
