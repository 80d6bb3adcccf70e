"""Two proxies that share a store: any of them serves any request of a conversation.

Knows what reaches the provider.  Redis and PostgreSQL are those of store_urls.py.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from proxies import ask, proxied
from proxy_story import listing
from store_urls import store_url

from trimtab.testing import StrictProvider

pytestmark = pytest.mark.world
WINDOW = 20_000
JSON = {"content-type": "application/json"}
FAR = pytest.mark.parametrize("kind", ["redis", "postgresql"])


def requests(turns, name="review"):
    """The bodies of one conversation, turn by turn; the model's words are known beforehand.

    Streams of the chat format say no usage where none is asked for: what one replica learns from
    usage the others take up when they start, and until then they may choose another size.
    """
    messages = [{"role": "user", "content": f"Go through {name}."}]
    for step in range(turns):
        yield json.dumps({"model": "gpt-5.1", "stream": True, "messages": messages})
        function = {"name": "bash", "arguments": json.dumps({"command": f"ls part_{step}"})}
        call = {"id": f"call_{step}", "type": "function", "function": function}
        messages = [*messages, {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": call["id"],
                     "content": listing(step, 90)}]  # fmt: skip


def sent(provider):
    return [json.dumps(record.body["messages"]) for record in provider.requests]


@FAR
def test_requests_one_after_the_other_are_the_same_bytes_with_two_replicas_as_with_one(
    kind, tmp_path
):
    with (
        store_url(kind, tmp_path) as store,
        StrictProvider(window=WINDOW) as alone,
        StrictProvider(window=WINDOW) as shared,
        proxied(alone.url, window=WINDOW) as single,
        proxied(shared.url, window=WINDOW, store=store) as first,
        proxied(shared.url, window=WINDOW, store=store) as second,
    ):
        for number, body in enumerate(requests(24)):
            replica = (first, second)[number % 2]
            for server in (single, replica):
                assert ask(server.url, "POST", "/v1/chat/completions", body, JSON)[0] == 200
        assert sent(alone) == sent(shared)
        assert any("earlier steps" in text for text in sent(alone))


@FAR
def test_requests_at_the_same_time_are_all_legal_and_cost_one_cache_break_at_most(kind, tmp_path):
    with (
        store_url(kind, tmp_path) as store,
        StrictProvider(window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW, store=store) as first,
        proxied(provider.url, window=WINDOW, store=store) as second,
        ThreadPoolExecutor(2) as pool,
    ):
        for body in requests(24):
            answers = pool.map(
                lambda server, body=body: ask(
                    server.url, "POST", "/v1/chat/completions", body, JSON
                )[0],
                (first, second),
            )
            assert list(answers) == [200, 200]
        assert provider.crashes == []
        assert all(record.violations == () for record in provider.requests)
        # Both decide at once at a batch; from the next turn on they send the same again.
        pairs = [sorted(sent(provider)[n : n + 2]) for n in range(0, 48, 2)]
        apart = sum(one != other for one, other in pairs)
        batches = sum("earlier steps" in text for text in {first for first, _ in pairs})
        assert apart <= max(1, batches // 2)
