"""Pings that keep an idle conversation's cache warm, before a provider whose cache expires by a
clock of the test's."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from typing import Any
from urllib.parse import urlsplit

import pytest
from proxies import ask, proxied, settled

import trimtab
from trimtab.pricing.conversation_usage import WARMER
from trimtab.proxy import Server
from trimtab.proxy.addons import keep_warm
from trimtab.proxy.addons.keep_warm import ping_body
from trimtab.proxy.http.answer_usage import TokenUsage
from trimtab_lab.testing import Refuse, Slow, StrictProvider

BEGAN = 1_790_000_000.0
SYSTEM = "You mend parsers. " + "Read every file before you change it. " * 400


class World:
    """A provider, a proxy, and the time that both go by."""

    def __init__(self, provider: StrictProvider, server: Server, now: list[float]) -> None:
        self.provider, self.server, self._now = provider, server, now
        self.warmer = server.proxy.addons.keep_warm
        self.messages: list[dict[str, Any]] = []

    def ask(self, text: str, **more: Any) -> int:
        """The conversation's next request."""
        part = {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}
        self.messages.append({"role": "user", "content": [part]})
        body = {
            "model": "claude-sonnet-4-5", "max_tokens": 500, "messages": self.messages,
            "system": [{"type": "text", "text": SYSTEM}], **more,
        }  # fmt: skip
        headers = {"user-agent": "claude-cli/2.1", "x-api-key": "the user's own"}
        url = self.server.url
        status, _, data = ask(url, "POST", "/v1/messages", json.dumps(body), headers)
        settled(self.server)
        if status == 200:
            content = json.loads(data)["content"]
            self.messages.append({"role": "assistant", "content": content})
        return status

    def later(self, seconds: float, until: Callable[[], bool] | None = None) -> None:
        """Time passes; then wait for what should happen, or long enough for nothing to happen."""
        self._now[0] += seconds
        for _ in range(60 if until else 8):
            if until is not None and until():
                return
            time.sleep(0.02)
        assert until is None, "nothing happened"

    @property
    def asked(self) -> int:
        return len(self.provider.requests)


@contextmanager
def world(
    monkeypatch: pytest.MonkeyPatch, *, gaps: list[float] | None = None, script: Any = (),
    **settings: Any,
) -> Iterator[World]:  # fmt: skip
    monkeypatch.setattr(keep_warm, "SECONDS", 0.01)
    now = [BEGAN]
    with (
        StrictProvider(script, clock=lambda: now[0], answer="Done.") as provider,
        proxied(provider.url, window=200_000, **{"keep_warm": "auto", **settings}) as server,
    ):
        server.proxy.addons.records.clock = lambda: now[0]
        for gap in [400.0] * 40 if gaps is None else gaps:
            server.proxy.addons.keep_warm.gaps.add("claude-cli", BEGAN, gap)
        yield World(provider, server, now)


def test_after_a_ping_the_prefix_is_read_though_it_would_have_expired(monkeypatch) -> None:
    with world(monkeypatch) as w:
        assert w.ask("First.") == 200
        written = w.provider.requests[0].written_tokens
        assert written > 1_024
        w.later(275, lambda: w.asked >= 2 and w.warmer._idle and _pinged(w))
        ping = next(r for r in w.provider.requests[1:] if r.status == 200)
        assert ping.cached_tokens == written
        assert ping.body["max_tokens"] in (0, 1)
        assert "stream" not in ping.body
        w.later(150)  # 425 seconds after the request: without the ping all had expired
        w.ask("Second.")
        assert w.provider.requests[-1].cached_tokens == written
        warm = w.server.proxy.addons.records.activity.warm
        assert (warm.pings, warm.hits) == (1, 1)
        assert warm.saved > warm.spent > 0
        page = ask(w.server.url, "GET", "/metrics")[2].decode()
        assert 'trimtab_pings_total{outcome="read"} 1.0' in page
        home = ask(w.server.url, "GET", "/_trimtab/?q=")[2].decode()
        assert "Kept warm" in home
        spend = ask(w.server.url, "GET", "/_trimtab/spend")[2].decode()
        assert "since the proxy was started they saved about" in spend
        agents = [one.agent for one in w.server.proxy.addons.records.ledger._conversations.values()]
        assert WARMER in agents


def test_the_cache_of_gpt_5_6_is_kept_warm_by_a_request_without_output(monkeypatch) -> None:
    with world(monkeypatch, gaps=[2_500.0] * 40) as w:
        body = {"model": "gpt-5.6-terra", "stream": True, "instructions": SYSTEM, "input": "First.",
                "prompt_cache_options": {"comparison_response_id": "resp_0"}}  # fmt: skip
        headers = {"user-agent": "claude-cli/2.1", "authorization": "Bearer the-user-s"}
        assert ask(w.server.url, "POST", "/v1/responses", json.dumps(body), headers)[0] == 200
        settled(w.server)
        written = w.provider.requests[0].written_tokens
        assert written > 1_024
        w.later(1_500)
        assert w.asked == 1
        w.later(275, lambda: w.asked >= 2 and _pinged(w))
        ping = w.provider.requests[1]
        assert (ping.status, ping.cached_tokens, ping.stream) == (200, written, False)
        assert ping.body["prompt_cache_options"] == {"prewarm": True}
        assert ping.body["store"] is False
        w.later(725)  # 2,500 seconds after the request: without the ping all had expired
        ask(w.server.url, "POST", "/v1/responses", json.dumps(body), headers)
        settled(w.server)
        assert w.provider.requests[-1].cached_tokens == written
        warm = w.server.proxy.addons.records.activity.warm
        assert (warm.pings, warm.hits) == (1, 1)


def test_a_conversation_that_its_provider_keeps_gets_no_ping() -> None:
    body = {"model": "gpt-5.6-terra", "input": "Hello.", "background": True}
    sent = json.loads(ping_body(json.dumps(body).encode(), 0, "openai-responses") or b"")
    assert sent == {"model": "gpt-5.6-terra", "input": "Hello.", "max_output_tokens": 16,
                    "store": False, "prompt_cache_options": {"prewarm": True}}  # fmt: skip
    for own in ({"conversation": "conv_1"}, {"prompt_cache_options": {"ttl": "12h"}}):
        data = json.dumps({**body, **own}).encode()
        assert ping_body(data, 0, "openai-responses") is None


def _pinged(w: World) -> bool:
    return next(iter(w.warmer._idle.values())).pings == 1


LONG = "Mend the parser of the log, line by line. " * 3_600
"""About 38,000 tokens."""


@pytest.mark.parametrize(("trigger", "pings"), [(0.9, 1), (0.5, 0)])
def test_a_prefix_that_a_batch_is_about_to_rewrite_is_not_kept_warm(monkeypatch, trigger, pings):
    """At half of the window the next request, if it brings as much as the last, makes a batch: of
    what a ping would keep it reads the head alone."""
    fit = trimtab.Settings(trigger=trigger, target=0.2, reserve=0)
    with world(monkeypatch, fit=fit) as w:
        assert w.ask("First.") == 200
        assert w.ask(LONG) == 200
        before = w.asked
        w.later(275, (lambda: w.asked > before) if pings else None)
        w.later(0)
        assert next(iter(w.warmer._idle.values())).pings == pings


def test_without_the_setting_nothing_is_sent_and_the_cache_expires(monkeypatch) -> None:
    with world(monkeypatch, keep_warm="off") as w:
        w.ask("First.")
        w.later(275)
        w.later(150)
        w.ask("Second.")
        assert w.asked == 2
        assert w.provider.requests[-1].cached_tokens == 0


def test_nothing_is_sent_where_conversations_are_not_known_to_come_back(monkeypatch) -> None:
    for gaps in ([], [inf] * 40, [400.0] * 5, [50.0] * 100):
        with world(monkeypatch, gaps=gaps) as w:
            w.ask("First.")
            w.later(275)
            assert w.asked == 1


def test_the_cap_in_money_holds(monkeypatch) -> None:
    with world(monkeypatch, keep_warm_dollars=0.0001) as w:
        w.ask("First.")
        w.later(275)
        assert w.asked == 1


def test_workers_share_the_caps_out(monkeypatch) -> None:
    with world(monkeypatch) as w:
        w.ask("First.")
        (idle,) = w.warmer._idle.values()
        cost = idle.prices.ping(idle.tokens)
        for workers, dollars, pings, pays in (
            (1, 1.1, 1, True), (4, 1.1, 4, False), (4, 4.4, 3, False), (4, 4.4, 4, True),
        ):  # fmt: skip
            w.server.proxy.settings = replace(
                w.server.proxy.settings, workers=workers, keep_warm_dollars=dollars * cost,
                keep_warm_pings=pings,
            )  # fmt: skip
            assert w.warmer._pays(idle, "claude-cli", BEGAN + 270) is pays


def test_a_ping_without_usage_counts_against_the_cap(monkeypatch) -> None:
    with world(monkeypatch) as w:
        w.ask("First.")
        (idle,) = w.warmer._idle.values()
        w.warmer._account(idle, TokenUsage(), BEGAN)
        assert w.warmer._spent[1] == pytest.approx(idle.prices.ping(idle.tokens))
        assert w.server.proxy.addons.records.activity.warm.spent == 0  # nothing was measured


def test_what_a_day_has_cost_counts_after_a_restart(monkeypatch, tmp_path) -> None:
    store = f"sqlite:///{tmp_path / 'a.db'}"
    with world(monkeypatch, store=store) as w:
        w.ask("First.")
        w.later(275, lambda: w.asked >= 2 and _pinged(w))
        spent = w.server.proxy.addons.records.activity.warm.spent
        w.server.proxy.addons.records.write()
        w.warmer.write()
    with world(monkeypatch, store=store) as again:
        again.warmer.load()  # by the test's clock
        assert again.warmer._spent == (int(BEGAN // 86_400), pytest.approx(spent))


def test_the_cap_in_pings_holds(monkeypatch) -> None:
    with world(monkeypatch, gaps=[2_000.0] * 40, keep_warm_pings=2) as w:
        w.ask("First.")
        for _ in range(6):
            w.later(271)
        answered = [record for record in w.provider.requests[1:] if record.status == 200]
        assert len(answered) <= 2


def test_after_the_client_broke_off_nothing_is_sent(monkeypatch) -> None:
    with world(monkeypatch) as w:
        w.ask("First.")
        (session,) = w.server.proxy.addons.records.activity.sessions.values()
        w.warmer._broken_off(session)
        w.later(275)
        assert w.asked == 1


def test_after_a_refused_ping_no_more_are_sent(monkeypatch) -> None:
    def script(record: Any) -> Any:
        return "Hello." if record.number == 1 else Refuse("auth", status=401)

    with world(monkeypatch, gaps=[3_000.0] * 40, script=script) as w:
        w.ask("First.")
        w.later(275, lambda: w.asked > 1)
        asked = w.asked
        w.later(271)
        w.later(271)
        assert w.asked == asked <= 3


def test_what_was_learned_outlasts_a_restart(monkeypatch, tmp_path) -> None:
    store = f"sqlite:///{tmp_path / 'a.db'}"
    with world(monkeypatch, gaps=[], store=store) as w:
        for number in range(4):
            w.ask(f"Question {number}.")
            w.later(40)
        w.server.proxy.addons.records.write()
        w.warmer.write()
    with world(monkeypatch, gaps=[], store=store) as again:
        assert again.warmer.gaps.by_agent == {"claude-cli": [40.0, 40.0, 40.0]}


def test_a_request_with_a_thinking_budget_is_not_sent_for_no_output() -> None:
    body = {"model": "m", "max_tokens": 9_000, "stream": True, "messages": []}
    sent = json.loads(ping_body(json.dumps(body).encode(), 0, "anthropic") or b"")
    assert sent == {"model": "m", "max_tokens": 0, "messages": []}
    budget = {**body, "thinking": {"type": "enabled", "budget_tokens": 4_000}}
    assert ping_body(json.dumps(budget).encode(), 0, "anthropic") is None


def test_a_client_that_hangs_up_before_the_end_of_an_answer_has_ended_its_session(
    monkeypatch,
) -> None:
    with world(monkeypatch, script=["Hello.", Slow(0.0, 0.3, answer="Late.")]) as w:
        w.ask("First.")
        assert len(w.warmer._idle) == 1
        body = {"model": "claude-sonnet-4-5", "max_tokens": 500, "stream": True,
                "messages": [*w.messages, {"role": "user", "content": "Go on."}],
                "system": [{"type": "text", "text": SYSTEM}]}  # fmt: skip
        parts = urlsplit(w.server.url)
        client = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        headers = {"user-agent": "claude-cli/2.1", "x-api-key": "the user's own"}
        client.request("POST", "/v1/messages", json.dumps(body), headers)
        answer = client.getresponse()
        answer.read(10)
        answer.close()
        client.close()
        settled(w.server)
        assert not w.warmer._idle
        w.later(275)
        assert w.asked == 2
