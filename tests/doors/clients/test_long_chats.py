"""A chat that outgrows its window many times, sent by real clients through ``wrap``."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import chats
import openai
import pytest
import sdk_clients
import spoken
from chats import CONSTRAINTS

import trimtab
from trimtab_lab.testing import Answer, Call, StrictProvider

BEFORE, TURNS = 72, 24
SDKS = pytest.mark.parametrize("sdk", sdk_clients.CLIENTS, ids=lambda sdk: sdk.format)


def before(sdk: Any, turns: int) -> list[Any]:
    """The history that a client comes with, as it goes over the wire."""
    request = spoken.written(sdk.format, chats.script(turns)[:-1]) if turns else {}
    return list(request.get("messages") or request.get("input") or request.get("contents") or ())


def unmarked(value: Any) -> Any:
    """Without cache breakpoints, which move on with each request."""
    if isinstance(value, dict):
        return {key: unmarked(item) for key, item in value.items() if key != "cache_control"}
    if isinstance(value, list):
        return [unmarked(item) for item in value if "cachePoint" not in item]
    return value


@dataclass
class Played:
    """What a provider saw of a chat, and how long the client's own history became (messages)."""

    refused: list[Any] = field(default_factory=list)
    breaks: int = 0
    """Requests that do not begin with the request before them."""
    sent: list[Any] = field(default_factory=list)
    """The messages of the newest request."""
    arrived: int = 0


def played(sdk: Any, turns: int, *, behind: int = 0, tools: bool = True) -> Played:
    """So many turns through ``wrap``, in every third with a call, after a history of ``behind``."""
    whole, answers, found = chats.script(behind + turns), list[Answer](), Played()
    with StrictProvider(lambda record: answers.pop(), window=8_000) as provider:
        client = sdk(provider.url)
        sdk_clients.wrap(client, window=8_000, reserve=1_000)
        history = {"gemini": "contents", "openai-responses": "input"}.get(sdk.format, "messages")
        getattr(client, history).extend(before(sdk, behind))
        for number in range(behind, behind + turns):
            client.ask(whole[2 * number])
            if tools and number % 3 == 0:
                answers.append(Answer("", [Call("read", {"path": f"{number}.txt"})]))
                (call,) = client.send(False).calls
                client.give({call[0]: f"value {number}: {chats.words(random.Random(number), 30)}"})
            answers.append(Answer(whole[2 * number + 1].words))
            client.send(False)
            _take(provider.requests, history, found)
        found.arrived = len(getattr(client, history))
    return found


def _take(requests: list[Any], history: str, found: Played) -> None:
    """Judge the requests of a turn, and forget all but the newest: a thousand are too many."""
    found.refused += [record.refusal for record in requests if record.status != 200]
    seen = [found.sent, *(unmarked(record.body[history]) for record in requests)]
    found.breaks += sum(now[: len(last)] != last for last, now in pairwise(seen))
    found.sent = seen[-1]
    requests.clear()


def assert_sound(found: Played, turns: int, whole: int) -> None:
    """Nothing was refused, one break in eight turns at most, and every demand is still there."""
    assert found.refused == []
    assert found.breaks <= turns / 8
    assert len(found.sent) < 0.9 * found.arrived
    assert all(demand in str(found.sent) for n, demand in CONSTRAINTS.items() if n < whole)


@SDKS
def test_law_10_through_wrap_a_long_chat_breaks_its_cache_once_in_eight_turns_at_most(
    sdk: Any,
) -> None:
    """A tool is called in every third turn."""
    assert_sound(played(sdk, TURNS, behind=BEFORE), TURNS, BEFORE)


@pytest.mark.world  # from half a minute to ten minutes each
@pytest.mark.parametrize("tools", [False, True], ids=["chat", "tools"])
@SDKS
def test_law_10_through_wrap_a_thousand_turns(sdk: Any, tools: bool) -> None:
    found = played(sdk, 1_000, tools=tools)
    print(f"{sdk.format}: {found.breaks} breaks, {found.arrived} messages, {len(found.sent)} sent")
    assert_sound(found, 1_000, 1_000)


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
