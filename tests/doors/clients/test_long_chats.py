"""A chat that outgrows its window many times, sent by a real client through ``wrap``."""

from __future__ import annotations

import os

import chats
import pytest
import spoken

import trimtab
from trimtab.testing import StrictProvider

if not os.environ.get("CI"):
    pytest.importorskip("openai", reason="pip install 'trimtab[sdks]'")

import openai


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
    for turn, demand in chats.CONSTRAINTS.items():
        assert demand in sent or turn >= 230
