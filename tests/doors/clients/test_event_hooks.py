"""An event hook of the client that is wrapped sees what is sent, and may read what comes back."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import openai
import pytest

import trimtab
from trimtab_lab.testing import StrictProvider

ASKED = [{"role": "user", "content": "word " * 3_000}, {"role": "assistant", "content": "Read."},
         {"role": "user", "content": "And now?"}]  # fmt: skip


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_hook_may_read_the_answer_before_the_wrapped_client_does(stream: bool) -> None:
    seen: list[tuple[bytes, bytes]] = []

    def record(response: httpx.Response) -> None:
        seen.append((response.request.content, response.read()))

    with StrictProvider() as provider:
        http = httpx.Client(event_hooks={"response": [record]})
        plain = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="k", http_client=http)
        client = trimtab.wrap(plain, window=2_000, reserve=100)
        answer = client.chat.completions.create(model="gpt-5.1", messages=ASKED, stream=stream)
        if stream:
            said = "".join(chunk.choices[0].delta.content or "" for chunk in answer)
        else:
            said = answer.choices[0].message.content
    assert said
    ((sent, read),) = seen
    assert len(sent) < 10_000 < len(json.dumps(ASKED))  # the request as it was sent
    assert said.split()[0].encode() in read


def test_an_async_hook_may_too() -> None:
    seen: list[bytes] = []

    async def record(response: httpx.Response) -> None:
        seen.append(await response.aread())

    async def ask(url: str) -> Any:
        http = httpx.AsyncClient(event_hooks={"response": [record]})
        plain = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", http_client=http)
        client = trimtab.wrap(plain, window=2_000, reserve=100)
        return await client.chat.completions.create(model="gpt-5.1", messages=ASKED)

    with StrictProvider() as provider:
        answer = asyncio.run(ask(provider.url))
    assert answer.choices[0].message.content.encode() in seen[0]
