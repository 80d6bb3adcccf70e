"""A chat that outgrows its window many times, sent by real clients through ``wrap``."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import chats
import openai
import pytest
import sdk_clients
import spoken
from chats import CONSTRAINTS

import trimtab
from trimtab.testing import Answer, Call, StrictProvider

BEFORE, TURNS = 60, 24


def before(sdk: Any) -> list[Any]:
    """The history that a client comes with, as it goes over the wire."""
    request = spoken.written(sdk.format, chats.script(BEFORE)[:-1])
    return list(request.get("messages") or request.get("input") or request["contents"])


def unmarked(value: Any) -> Any:
    """Without cache breakpoints, which move on with each request."""
    if isinstance(value, dict):
        return {key: unmarked(item) for key, item in value.items() if key != "cache_control"}
    if isinstance(value, list):
        return [unmarked(item) for item in value if "cachePoint" not in item]
    return value


@pytest.mark.parametrize("sdk", sdk_clients.CLIENTS, ids=lambda sdk: sdk.format)
def test_law_10_through_wrap_a_long_chat_breaks_its_cache_once_in_eight_turns_at_most(
    sdk: Any,
) -> None:
    """A tool is called in every third turn."""
    whole, answers = chats.script(BEFORE + TURNS), list[Answer]()
    with StrictProvider(lambda record: answers.pop(), window=8_000) as provider:
        client = sdk(provider.url)
        sdk_clients.wrap(client, window=8_000, reserve=1_000)
        history = {"gemini": "contents", "openai-responses": "input"}.get(sdk.format, "messages")
        getattr(client, history).extend(before(sdk))
        for number in range(BEFORE, BEFORE + TURNS):
            client.ask(whole[2 * number])
            if number % 3 == 0:
                answers.append(Answer("", [Call("read", {"path": f"{number}.txt"})]))
                (call,) = client.send(False).calls
                client.give({call[0]: f"value {number}: {chats.words(random.Random(number), 30)}"})
            answers.append(Answer(whole[2 * number + 1].words))
            client.send(False)
        refused = [record.refusal for record in provider.requests if record.status != 200]
        sent = [unmarked(record.body[history]) for record in provider.requests]
    assert refused == []
    breaks = sum(now[: len(last)] != last for last, now in pairwise(sent))
    assert breaks <= TURNS / 8
    assert len(sent[-1]) < 0.9 * len(getattr(client, history))
    assert all(demand in str(sent[-1]) for n, demand in CONSTRAINTS.items() if n < BEFORE)


@pytest.mark.parametrize("tools", [False, True], ids=["chat", "tools"])
def test_law_10_through_wrap_no_turn_of_a_long_chat_is_refused(tools: bool) -> None:
    whole = chats.script(230, tools=tools)
    with StrictProvider(window=8_000) as provider:
        plain = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="x", max_retries=0)
        client = trimtab.wrap(plain, window=8_000, reserve=1_000)
        for number, body in enumerate(chats.requests("openai-chat", whole)):
            if number > 30 and number % 7:
                continue
            client.chat.completions.create(**body, max_completion_tokens=900)
        refused = [record for record in provider.requests if record.status != 200]
        assert refused == []
        sent = str(provider.requests[-1].body)
    assert len(str(spoken.written("openai-chat", whole))) > 3 * len(sent)
    for turn, demand in CONSTRAINTS.items():
        assert demand in sent or turn >= 230
