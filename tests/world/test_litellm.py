"""LiteLLM and the openai SDK 2 that comes with it: loops that outgrow the window, and the hooks.

Knows what a caller of LiteLLM sees.  World tier: LiteLLM brings an SDK of an older generation, so
``.ci/world`` gives these tests an environment of their own.
"""

from __future__ import annotations

import asyncio
import copy
import runpy
from pathlib import Path

import pytest
import world_needs

import trimtab
from trimtab import clients
from trimtab_lab.testing import Answer, Call, Refuse, StrictProvider

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
pytestmark = pytest.mark.world
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
LINES = "".join(f"src/mod.py:{n}: token {n * 7919} alpha beta\n" for n in range(40))
PATH = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "read", "parameters": PATH}}
TURNS = 30
LOOP = [Answer("", [Call("read", {"path": f"{n}.txt"})]) for n in range(TURNS)] + ["done"]
LONG = [{"role": "user", "content": "What do the files say?"}]
for number in range(20):
    LONG += [
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": f"call_{number}", "type": "function",
             "function": {"name": "read", "arguments": f'{{"path": "{number}"}}'}}]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": f"{number}\n{LINES}"},
    ]  # fmt: skip


@pytest.fixture
def litellm():
    world_needs.module("litellm", "litellm")
    import litellm

    litellm.suppress_debug_info = True
    litellm.callbacks = []
    return litellm


def to(provider, model="openai/gpt-5.1"):
    base = provider.url if model.startswith("anthropic") else f"{provider.url}/v1"
    return {"model": model, "api_base": base, "api_key": "x", "num_retries": 0}


@pytest.mark.row("A12")
@pytest.mark.parametrize("model", ["openai/gpt-5.1", "anthropic/claude-sonnet-4-5"])
@pytest.mark.parametrize("kind", ["sync", "async"])
@STREAMS
def test_a_loop_through_litellm_five_windows_long_completes(litellm, model, kind, stream):
    plain = litellm.completion if kind == "sync" else litellm.acompletion
    completion = trimtab.wrap(plain)
    with StrictProvider(list(LOOP), window=3_000) as provider:
        messages = [{"role": "user", "content": "What do the files say?"}]
        given = {**to(provider, model), "tools": [TOOL], "max_tokens": 200, "stream": stream}
        for turn in range(TURNS + 1):
            message = asked(litellm, completion, kind, messages, given)
            messages.append(message)
            if not message.tool_calls:
                break
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": f"{turn}\n{LINES}"}
                for call in message.tool_calls
            ]
        assert message.content == "done"
        assert turn == TURNS
        assert sum(record.status != 200 for record in provider.requests) <= 2


def asked(litellm, completion, kind, messages, given):
    """The message of one answer, put together where it came in pieces."""
    if kind == "sync":
        answer = completion(messages=messages, **given)
        chunks = list(answer) if given["stream"] else None
    else:
        answer, chunks = asyncio.run(gathered(completion, messages, given))
    if chunks is not None:
        answer = litellm.stream_chunk_builder(chunks)
    return answer.choices[0].message


async def gathered(completion, messages, given):
    answer = await completion(messages=messages, **given)
    return answer, [chunk async for chunk in answer] if given["stream"] else None


@pytest.mark.row("A9")
def test_what_cannot_shrink_is_litellms_own_error(litellm):
    completion = trimtab.wrap(litellm.completion)
    with StrictProvider(window=2_000) as provider:
        said = [{"role": "system", "content": "rule " * 6_000}, {"role": "user", "content": "go"}]
        with pytest.raises(litellm.ContextWindowExceededError):
            completion(messages=said, **to(provider))
        assert len(provider.requests) == 1


@pytest.mark.row("X10")
def test_a_rate_error_passes_through_litellm_after_one_send(litellm):
    completion = trimtab.wrap(litellm.completion)
    with StrictProvider([Refuse("rate", times=9)]) as provider:
        with pytest.raises(litellm.RateLimitError):
            completion(messages=LONG, max_retries=0, **to(provider))
        assert len(provider.requests) == 1


@pytest.mark.row("A13")
def test_the_callers_messages_stay(litellm):
    before = copy.deepcopy(LONG)
    with StrictProvider(window=4_000) as provider:
        answer = trimtab.wrap(litellm.completion)(messages=LONG, **to(provider))
        assert answer.choices[0].message.content == "OK"
        assert "attempt 2 after too_long" in answer._trimtab
    assert before == LONG


def test_a_callback_fits_what_acompletion_and_a_router_send(litellm):
    with StrictProvider(window=4_000) as provider:
        litellm.callbacks = [clients.litellm_callback(window=4_000)]
        answer = asyncio.run(litellm.acompletion(messages=LONG, **to(provider)))
        assert answer.choices[0].message.content == "OK"
        router = litellm.Router([{"model_name": "m", "litellm_params": to(provider)}])
        answer = asyncio.run(router.acompletion(model="m", messages=LONG))
        assert answer.choices[0].message.content == "OK"
        assert [record.status for record in provider.requests] == [200, 200]


def test_a_wrapped_router_recovers(litellm):
    with StrictProvider(window=4_000) as provider:
        router = litellm.Router([{"model_name": "m", "litellm_params": to(provider)}])
        answer = trimtab.wrap(router.completion)(model="m", messages=LONG)
        assert answer.choices[0].message.content == "OK"


def test_a_callback_has_the_next_attempt_ready_when_a_router_sends_again(litellm):
    litellm.callbacks = [clients.litellm_callback()]
    with StrictProvider(window=4_000) as provider:
        router = litellm.Router(
            [{"model_name": "m", "litellm_params": to(provider)}],
            retry_policy={"BadRequestErrorRetries": 2},
        )
        answer = asyncio.run(router.acompletion(model="m", messages=LONG))
        assert answer.choices[0].message.content == "OK"
        assert [record.status for record in provider.requests] == [400, 200]
    litellm.callbacks = []


@pytest.mark.row("A12")
@STREAMS
def test_the_openai_sdk_2_on_httpx(litellm, stream):
    import openai

    if openai.VERSION.startswith("3"):
        world_needs.absent("openai 2 is not installed here: .ci/world has an environment for it")
    with StrictProvider(list(LOOP), window=3_000) as provider:
        client = trimtab.wrap(
            openai.OpenAI(base_url=f"{provider.url}/v1", api_key="x", max_retries=0)
        )
        messages = [{"role": "user", "content": "What do the files say?"}]
        for turn in range(TURNS + 1):
            message = answered(client, messages, stream)
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                break
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": f"{turn}\n{LINES}"}
                for call in message.tool_calls
            ]
        assert (message.content, turn) == ("done", TURNS)
        http = clients.httpx_client(library="httpx", window=3_000)
        plain = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="x", http_client=http)
        assert answered(plain, messages, stream).content == "OK"


def test_the_example_of_litellm_prints_an_answer(litellm, capsys):
    runpy.run_path(str(EXAMPLES / "litellm_calls.py"), run_name="__main__")
    assert "Nothing unusual." in capsys.readouterr().out


def answered(client, messages, stream):
    given = {"model": "gpt-5.1", "messages": messages, "tools": [TOOL]}
    if not stream:
        return client.chat.completions.create(**given).choices[0].message
    with client.chat.completions.stream(**given) as events:
        for _ in events:
            pass
        done = events.get_final_completion().choices[0].message
    for call in done.tool_calls or ():
        call.function.parsed_arguments = None
    return done
