"""The proxy never blocks its event loop: parsing, fitting and stores run in worker threads."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest
from proxies import ask, proxied
from proxy_story import WINDOW, answers, turn_by_turn
from settings_words import as_keywords

from trimtab.formats.incremental_json import IncrementalParser
from trimtab.session import Session
from trimtab.sessions.conversation_store import ConversationStore
from trimtab.stores.memory import MemoryStore
from trimtab_lab.testing import StrictProvider

JSON = {"content-type": "application/json", "anthropic-version": "2023-06-01"}


def on_loop() -> bool:
    """Whether this thread runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[bool]]:
    """By function: whether it was called in the thread of an event loop."""
    seen: dict[str, set[bool]] = {}
    watched: list[tuple[type, tuple[str, ...]]] = [
        (Session, ("fit", "observe", "recall", "shown", "undo", "pin")),
        (ConversationStore, ("fact", "facts", "write_fact_now")),
        (IncrementalParser, ("parse",)),
        (MemoryStore, tuple(
            name for name, value in vars(MemoryStore).items()
            if callable(value) and not name.startswith("_")
        )),
    ]  # fmt: skip
    for owner, names in watched:
        for name in names:
            monkeypatch.setattr(owner, name, recorded(getattr(owner, name), name, seen))
    return seen


def recorded(function: Any, name: str, seen: dict[str, set[bool]]) -> Any:
    def call(*given: Any, **keywords: Any) -> Any:
        seen.setdefault(name, set()).add(on_loop())
        return function(*given, **keywords)

    return call


@pytest.mark.parametrize("recall", [False, True], ids=["plain", "recall"])
def test_small_and_long_requests_are_fitted_in_a_worker_thread(
    calls: dict[str, set[bool]], recall: bool
) -> None:
    with (
        StrictProvider(answers, window=WINDOW) as provider,
        proxied(provider.url, window=24_000, recall=recall, store="memory:") as server,
    ):
        turn_by_turn(server.url, 20)
        activity = server.proxy.addons.records.activity
        [session] = activity.sessions.values()
        assert session.edits
        handle = next(iter(session.edits))
        status, _, page = ask(server.url, "GET", f"/_trimtab/s/{session.id}/e/{handle}")
        assert status == 200
        token = page.decode().split('name="token" value="')[1].split('"')[0]
        form = f"token={token}&session={session.id}&handle={handle}"
        assert ask(server.url, "POST", "/_trimtab/undo", form)[0] == 303
    assert {"fit", "observe", "parse", "recall", "undo"} <= set(calls)
    assert {name for name, where in calls.items() if True in where} == set()


def test_other_requests_are_answered_while_one_is_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    fit, began, go_on = Session.fit, threading.Event(), threading.Event()

    def slow(self: Session, *given: Any, **keywords: Any) -> Any:
        began.set()
        go_on.wait(20)
        return fit(self, *given, **as_keywords(**keywords))

    monkeypatch.setattr(Session, "fit", slow)
    request = {
        "model": "claude-opus-5-5", "max_tokens": 100,
        "messages": [{"role": "user", "content": "Hello."}],
    }  # fmt: skip
    with StrictProvider(["Hello."]) as provider, proxied(provider.url, window=WINDOW) as server:
        statuses: list[int] = []

        def send() -> None:
            statuses.append(ask(server.url, "POST", "/v1/messages", json.dumps(request), JSON)[0])

        thread = threading.Thread(target=send)
        thread.start()
        assert began.wait(20)
        since = time.monotonic()
        assert ask(server.url, "GET", "/_trimtab/health")[0] == 200
        assert time.monotonic() - since < 10
        assert not statuses
        go_on.set()
        thread.join(20)
    assert statuses == [200]
