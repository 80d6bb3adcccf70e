"""What a refusal taught is in the store: the next request meets it, whichever replica serves it.

Knows what reaches the provider, refusals included.  Redis and PostgreSQL are those of
store_urls.py.
"""

from __future__ import annotations

import json

import pytest
from proxies import ask, proxied
from proxy_story import listing
from store_urls import store_url

import trimtab
from trimtab.proxy import Proxy, ProxySettings, Server, Upstream
from trimtab.retry.learned_limits import NO_LIMITS, LearnedLimits, ModelLimits
from trimtab.retry.stored_limits import StoredLimits
from trimtab_lab.testing import StrictProvider

JSON = {"content-type": "application/json", "authorization": "Bearer sk-one"}
THOUGHT, REAL = 40_000, 12_000
"""Tokens that the proxy is told the model takes, and that it takes."""
KINDS = pytest.mark.parametrize(
    "kind",
    ["sqlite", *(pytest.param(far, marks=pytest.mark.world) for far in ("redis", "postgresql"))],
)


def body(turns, name="review"):
    messages = [{"role": "user", "content": f"Go through {name}."}]
    for step in range(turns):
        function = {"name": "bash", "arguments": json.dumps({"command": f"ls {step}"})}
        call = {"id": f"call_{step}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": listing(step, 90)},
        ]
    return json.dumps({"model": "gpt-5.1", "stream": False, "messages": messages})


def send(server, turns, name="review", headers=JSON):
    assert ask(server.url, "POST", "/v1/chat/completions", body(turns, name), headers)[0] == 200


def seen(provider):
    """(status, what was sent) of each request since this was asked last."""
    found = [(one.status, json.dumps(one.body["messages"])) for one in provider.requests]
    provider.requests.clear()
    return found


@pytest.mark.world
@pytest.mark.parametrize("kind", ["redis", "postgresql"])
def test_two_replicas_are_refused_as_often_as_one_and_send_the_same_bytes(kind, tmp_path):
    with (
        store_url(kind, tmp_path) as store,
        StrictProvider(window=REAL) as alone,
        StrictProvider(window=REAL) as shared,
        proxied(alone.url, window=THOUGHT) as single,
        proxied(shared.url, window=THOUGHT, store=store) as first,
        proxied(shared.url, window=THOUGHT, store=store) as second,
    ):
        for turns in range(1, 22):
            for server in (single, (first, second)[turns % 2]):
                send(server, turns)
        one, two = seen(alone), seen(shared)
    assert one == two
    assert [status for status, _ in one].count(400) == 1


@KINDS
def test_another_replica_knows_at_its_first_request(kind, tmp_path):
    with (
        store_url(kind, tmp_path) as store,
        StrictProvider(window=REAL) as provider,
        proxied(provider.url, window=THOUGHT, store=store) as first,
        proxied(provider.url, window=THOUGHT, store=store) as second,
    ):
        send(second, 1)  # it has read the store before there was anything to know
        send(first, 12)
        assert [status for status, _ in seen(provider)] == [200, 400, 200]
        if kind == "sqlite":  # within one machine what was learned is written some time soon
            first.proxy.tenants.close()
        send(second, 14)
        assert [status for status, _ in seen(provider)] == [200]
        for name, refusals in (("something else", 1), ("a third", 0)):
            send(second, 14, name)
            assert [status for status, _ in seen(provider)].count(400) == refusals


def test_a_proxy_that_starts_again_on_its_file_is_not_refused_again(tmp_path):
    with StrictProvider(window=REAL) as provider:
        for expected in ([400, 200], [200]):
            settings = ProxySettings(
                listen=":0", store=f"sqlite:///{tmp_path / 'proxy.db'}",
                fit=trimtab.Settings(window=THOUGHT),
                upstreams=(Upstream("provider", provider.url),), drain_seconds=2.0,
            )  # fmt: skip
            with Server(Proxy(settings)) as server:
                send(server, 12)
            assert [status for status, _ in seen(provider)] == expected


def test_limits_are_those_of_a_key_a_tenant_and_an_upstream(tmp_path):
    store = f"sqlite:///{tmp_path / 'proxy.db'}"
    with (
        StrictProvider(window=REAL) as small,
        StrictProvider() as large,
        proxied(
            "", store=store, window=THOUGHT, tenants="key",
            upstreams=(Upstream("small", small.url), Upstream("large", large.url)),
        ) as server,
    ):  # fmt: skip
        send(server, 12)
        send(server, 12, headers={**JSON, "x-trimtab-upstream": "large"})
        send(server, 12, headers={**JSON, "authorization": "Bearer sk-two"})
        assert [status for status, _ in seen(small)] == [400, 200, 400, 200]
        (_, whole), = seen(large)  # fmt: skip
        assert whole == json.dumps(json.loads(body(12))["messages"])


def test_a_request_without_a_refusal_reads_the_learned_limits_once(monkeypatch):
    reads, read = list[str](), StoredLimits.__getitem__

    def counted(self, key):
        reads.append(key)
        return read(self, key)

    monkeypatch.setattr(StoredLimits, "__getitem__", counted)
    with StrictProvider(window=REAL) as provider, proxied(provider.url, window=THOUGHT) as server:
        for turns in (1, 2, 3):
            send(server, turns)
    assert len(reads) == 3


# --- what is kept, and for how long --------------------------------------------------------------


@pytest.fixture(params=["memory:", "sqlite"])
def store(request, tmp_path):
    """A store that two sessions can open."""
    return f"memory:{tmp_path.name}" if request.param == "memory:" else f"sqlite:///{tmp_path}/s.db"


def limits(store, now, window=THOUGHT):
    session = trimtab.Session(window=window, store=store, tenant="one")
    return session, LearnedLimits(StoredLimits(session._conversations), clock=lambda: now[0])


@pytest.mark.parametrize(("exactness", "hours"), [("exact", 168), ("estimate", 24), ("guess", 1)])
def test_a_limit_is_believed_by_all_as_long_as_by_who_learned_it(exactness, hours, store):
    now = [1_000_000.0]
    session, mine = limits(store, now)
    _, other = limits(store, now)
    mine.put("k", ModelLimits(limit=REAL, exactness=exactness))
    session.close()
    now[0] += hours * 3_600 - 1
    assert mine.get("k") == other.get("k") != NO_LIMITS
    assert other.get("k").limit == REAL
    now[0] += 2
    assert mine.get("k") == other.get("k") == NO_LIMITS


def test_what_was_learned_later_counts_also_where_another_had_an_older_answer(store):
    now = [1_000_000.0]
    session, mine = limits(store, now)
    another, other = limits(store, now)
    mine.put("k", ModelLimits(limit=20_000, exactness="exact"))
    session.close()
    now[0] += 60
    other.put("k", ModelLimits(limit=REAL, exactness="exact"))
    another.close()
    assert mine.get("k").limit == other.get("k").limit == REAL


def test_without_an_answer_of_the_store_a_process_knows_what_it_learned_itself():
    session = trimtab.Session(window=THOUGHT, store="redis://127.0.0.1:1/0")
    learned = LearnedLimits(StoredLimits(session._conversations), clock=lambda: 5.0)
    assert learned.get("k") == NO_LIMITS
    learned.put("k", ModelLimits(limit=REAL, exactness="exact"))
    assert learned.get("k").limit == REAL


def test_a_row_that_nobody_can_read_is_as_none(store):
    now = [1_000_000.0]
    session, mine = limits(store, now)
    for row in ("a word", 5, {"limit": 3}, {"at": "noon", "mends": 7}, []):
        session._conversations.write_fact_now("limits/k", row)
        session.close()
        assert mine.get("k") == NO_LIMITS
    mine.put("k", ModelLimits(limit=REAL, exactness="exact"))
    assert mine.get("k").limit == REAL
