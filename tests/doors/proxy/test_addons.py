"""What an addon sees of a request, and what it cannot break."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from long_requests import JSON, long_session
from proxies import ask, proxied, settled

from trimtab.proxy import Upstream
from trimtab.proxy.addons import Addons
from trimtab.proxy.addons.base import Addon
from trimtab.proxy.exchange.exchange import Exchange
from trimtab_lab.testing import StrictProvider

PATH = "/v1/messages"


class Watcher(Addon):
    """Notes what it sees; ``fails``: and raises."""

    def __init__(self, fails: bool = False) -> None:
        self.fails, self.seen = fails, list[str]()
        self.ended: list[Exchange] = []

    def request(self, exchange: Exchange) -> None:
        assert exchange.received is None
        assert not exchange.calls
        self._note("request")

    def response(self, exchange: Exchange) -> None:
        self.ended.append(exchange)
        self._note("response")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.seen.append("begin")
        yield
        self.seen.append("end")

    def _note(self, hook: str) -> None:
        self.seen.append(hook)
        if self.fails:
            raise RuntimeError


@pytest.fixture(params=[False, True], ids=["", "raises"])
def watcher(request: Any, monkeypatch: pytest.MonkeyPatch) -> Watcher:
    """The first addon of every proxy."""
    mine, others = Watcher(request.param), Addons.__iter__

    def all_of_them(self: Addons) -> Iterator[Addon]:
        yield mine
        yield from others(self)

    monkeypatch.setattr(Addons, "__iter__", all_of_them)
    return mine


def test_an_addon_sees_each_request_twice_and_the_proxy_s_own_life(watcher):
    with StrictProvider() as provider, proxied(provider.url, window=40_000) as server:
        assert ask(server.url, "POST", PATH, long_session(4, most=500), JSON)[0] == 200
        assert ask(server.url, "GET", "/v1/models")[0]
        settled(server)
        server.__exit__()
    assert watcher.seen == ["begin", *["request", "response"] * 2, "end"]


def test_it_sees_what_was_sent_and_what_came_of_it(watcher):
    with StrictProvider(window=24_000) as provider, proxied(provider.url, window=60_000) as server:
        body = long_session(40)
        assert ask(server.url, "POST", PATH, body, JSON)[0] == 200
        settled(server)
        bodies = [record.body for record in provider.requests]
    (exchange,) = watcher.ended
    (call,) = exchange.calls
    assert exchange.received == body
    assert json.loads(call.body) == bodies[-1] != bodies[0]
    assert [refusal.kind for refusal in call.refusals] == ["too_long"]
    assert call.sends == len(call.fits) == len(bodies) == 2
    assert call.usage.prompt > 0


def test_who_gets_no_recall_tool_is_told_once_in_the_log(caplog):
    """boto3 signs its requests: that names a key, and proves nothing to us."""
    caplog.set_level("WARNING", "trimtab.proxy")
    headers = {**JSON, "authorization": "AWS4-HMAC-SHA256 Credential=AKIA/20261128/x, Signature=0"}
    with StrictProvider() as provider, proxied(
        provider.url, window=40_000, tenants="key", recall=True,
        upstreams=(Upstream("provider", provider.url),),
    ) as server:  # fmt: skip
        for _ in range(2):
            assert ask(server.url, "POST", PATH, long_session(4, most=500), headers)[0] == 200
        settled(server)
        assert all("recall" not in str(record.body) for record in provider.requests)
    told = [record.getMessage() for record in caplog.records]
    assert len([line for line in told if "gets no recall tool" in line]) == 1
