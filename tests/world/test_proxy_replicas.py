"""Two proxies that share a store: any of them serves any request of a conversation.

Knows what reaches the provider.  Redis and PostgreSQL are those of store_urls.py.
"""

from __future__ import annotations

import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from own_servers import own_postgresql, own_redis
from proxies import ask, proxied, settled
from proxy_story import answers, listing, turn_by_turn
from store_urls import store_url

from trimtab.proxy.dashboard.archive import SessionArchive
from trimtab_lab.testing import StrictProvider

pytestmark = pytest.mark.world
WINDOW = 20_000
JSON = {"content-type": "application/json"}
FAR = pytest.mark.parametrize("kind", ["redis", "postgresql"])
OWN = pytest.mark.parametrize("own", [own_redis, own_postgresql], ids=["redis", "postgresql"])


def requests(turns, name="review", asked=None):
    """The bodies of one conversation, turn by turn; the model's words are known beforehand.

    ``asked``: whether the answer is a stream, and whether it tells what it cost.
    """
    messages = [{"role": "user", "content": f"Go through {name}."}]
    for step in range(turns):
        yield json.dumps({"model": "gpt-5.1", **(asked or {"stream": True}), "messages": messages})
        function = {"name": "bash", "arguments": json.dumps({"command": f"ls part_{step}"})}
        call = {"id": f"call_{step}", "type": "function", "function": function}
        messages = [*messages, {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": call["id"],
                     "content": listing(step, 90)}]  # fmt: skip


def sent(provider):
    return [json.dumps(record.body["messages"]) for record in provider.requests]


ASKED = {
    "a stream without usage": {"stream": True},
    "a stream with usage": {"stream": True, "stream_options": {"include_usage": True}},
    "a whole answer": {"stream": False},
}


def above_tier(text):
    """How a provider counts that bills more than we think: there is something to learn."""
    return len(text) // 2


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED.keys())
@FAR
def test_requests_one_after_the_other_are_the_same_bytes_with_two_replicas_as_with_one(
    kind, asked, tmp_path
):
    with (
        store_url(kind, tmp_path) as store,
        StrictProvider(window=2 * WINDOW, counter=above_tier) as alone,
        StrictProvider(window=2 * WINDOW, counter=above_tier) as shared,
        proxied(alone.url, window=WINDOW) as single,
        proxied(shared.url, window=WINDOW, store=store) as first,
        proxied(shared.url, window=WINDOW, store=store) as second,
    ):
        for number, body in enumerate(requests(24, asked=asked)):
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


def recalled(server, named=""):
    """How many of the edits known to the proxy can be brought back, and how many there are."""
    records, tenants = settled(server).proxy.addons.records, server.proxy.tenants
    sessions = [one for one in records.activity.sessions.values() if one.hint.startswith(named)]
    pairs = [(one, edit) for one in sessions for edit in one.edits.values()]
    return sum(
        SessionArchive(tenants, one).texts(edit.handle)[0] is not None for one, edit in pairs
    ), len(pairs)


def await_requests(provider, more):
    """Until the provider got so many more."""
    wanted = len(provider.requests) + more
    for _ in range(3_000):
        if len(provider.requests) >= wanted:
            return
        time.sleep(0.01)
    raise RuntimeError("no requests arrive any more")


@pytest.mark.parametrize("recall", [False, True])
@OWN
def test_a_store_that_hangs_holds_up_only_who_waits_for_it(own, recall):
    body = json.dumps({"model": "gpt-5.1", "messages": [{"role": "user", "content": "Hi."}],
                       "tools": [{"type": "function", "function": {"name": "ls"}}]})  # fmt: skip
    with (
        own() as database,
        StrictProvider() as provider,
        proxied(provider.url, store=database.url, recall=recall) as server,
        ThreadPoolExecutor(1) as pool,
    ):
        assert ask(server.url, "POST", "/v1/chat/completions", body, JSON)[0] == 200
        database.send(signal.SIGSTOP)
        try:
            other = body.replace("Hi.", "Another conversation.")
            waiting = pool.submit(ask, server.url, "POST", "/v1/chat/completions", other, JSON)
            time.sleep(0.2)
            for _ in range(5):
                assert ask(server.url, "GET", "/_trimtab/health")[0] == 200
            assert not waiting.done()
            assert waiting.result(timeout=60)[0] == 200
        finally:
            database.send(signal.SIGCONT)


@OWN
def test_a_store_that_hangs_costs_few_requests_its_timeout(own):
    """Each of another tenant, which would find out for itself."""
    with (
        own() as database,
        StrictProvider() as provider,
        proxied(provider.url, store=database.url, tenants="key") as server,
    ):

        def timed(number):
            words = {"role": "user", "content": f"conversation {number}"}
            body = json.dumps({"model": "gpt-5.1", "messages": [words]})
            began, keyed = time.monotonic(), {**JSON, "authorization": f"Bearer {number}"}
            assert ask(server.url, "POST", "/v1/chat/completions", body, keyed)[0] == 200
            return time.monotonic() - began

        timed(0)
        database.send(signal.SIGSTOP)
        try:
            began = time.monotonic()
            slow = sum(timed(number) > 1.5 for number in range(1, 40))
            rounds = (time.monotonic() - began) / 5 + 1
        finally:
            database.send(signal.SIGCONT)
        assert slow <= 2 * rounds  # one that reads and one that writes, every five seconds


@pytest.mark.parametrize("keeps", [True, False], ids=["comes back full", "comes back empty"])
def test_a_store_that_is_killed_and_restarted_costs_no_request_and_recall_comes_back(
    keeps, tmp_path
):
    with (
        own_redis(tmp_path if keeps else None) as redis,
        StrictProvider(answers, window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW, store=redis.url) as server,
        ThreadPoolExecutor(4) as pool,
    ):
        running = [
            pool.submit(turn_by_turn, server.url, 60, name=f"review {number}", lines=90)
            for number in range(4)
        ]
        for _ in range(2):
            await_requests(provider, 20)
            redis.kill()
            await_requests(provider, 20)
            redis.start()
        for each in running:
            each.result(timeout=120)
        assert {record.status for record in provider.requests} == {200}
        assert all(record.violations == () for record in provider.requests)
        turn_by_turn(server.url, 30, name="afterwards", lines=90)
        found, known = recalled(server, "" if keeps else "afterwards")
        assert known > 0
        assert found == known


@OWN
def test_a_store_that_is_full_costs_no_request_and_keeps_it_all_when_there_is_room(own):
    with (
        own() as database,
        StrictProvider(answers, window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW, store=database.url) as server,
        ThreadPoolExecutor(4) as pool,
    ):
        running = [
            pool.submit(turn_by_turn, server.url, 60, name=f"review {number}", lines=90)
            for number in range(4)
        ]
        for _ in range(2):
            await_requests(provider, 20)
            with database.full():
                await_requests(provider, 20)
        for each in running:
            each.result(timeout=120)
        assert {record.status for record in provider.requests} == {200}
        assert all(record.violations == () for record in provider.requests)
        turn_by_turn(server.url, 30, name="afterwards", lines=90)
        found, known = recalled(server)
        assert known > 0
        assert found == known
