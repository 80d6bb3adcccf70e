"""The window that the user names holds, whatever an agent asks for; where not, it is said."""

from __future__ import annotations

import json
import logging
import re

import pytest
from long_requests import JSON, long_session
from proxies import ask, proxied, settled

from trimtab import Settings
from trimtab.proxy.dashboard.archive import SessionArchive
from trimtab_lab.testing import StrictProvider


@pytest.mark.parametrize(("window", "kept"), [(40_000, 8_000), (64_000, 12_800)])
def test_a_window_holds_though_as_many_output_tokens_are_asked_for(window, kept, caplog):
    """Before: no edit at all, 60,000 tokens sent, and not a word."""
    with (
        StrictProvider() as provider,
        proxied(provider.url, window=window) as server,
        caplog.at_level(logging.WARNING, "trimtab.proxy"),
    ):
        for _ in range(2):
            assert ask(server.url, "POST", "/v1/messages", long_session(), JSON)[0] == 200
        activity = settled(server).proxy.addons.records.activity
        assert max(record.tokens for record in provider.requests) <= window - kept
        said = (
            f"claude-opus-4-8: 128,000 output tokens are asked for, and trimtab keeps {kept:,} "
            "free for them (reserve_share)"
        )
        assert dict(activity.warnings) == {said: 2}
        assert [r.getMessage() for r in caplog.records].count(said) == 1, "logged once"


def test_a_reserve_that_the_user_gave_is_taken_at_its_word():
    with (
        StrictProvider() as provider,
        proxied(provider.url, window=64_000, fit=Settings(reserve=30_000)) as server,
    ):
        assert ask(server.url, "POST", "/v1/messages", long_session(), JSON)[0] == 200
        assert provider.requests[0].tokens <= 34_000
        assert not settled(server).proxy.addons.records.activity.warnings


def test_a_model_whose_window_nobody_knows_is_said():
    with StrictProvider() as provider, proxied(provider.url) as server:
        body = long_session(2, "house-model")
        assert ask(server.url, "POST", "/v1/messages", body, JSON)[0] == 200
        (said,) = settled(server).proxy.addons.records.activity.warnings
        assert said.startswith("house-model: its window is not known")
        page = ask(server.url, "GET", "/_trimtab/")[2].decode()
        assert "house-model: its window is not known" in page
        assert "(1 request)" in page


def test_what_cannot_be_made_to_fit_is_said_with_its_numbers():
    body = {"model": "claude-opus-4-8", "max_tokens": 100, "system": "so many words " * 9_000,
            "messages": [{"role": "user", "content": "Hi."}]}  # fmt: skip
    with StrictProvider() as provider, proxied(provider.url, window=9_000) as server:
        assert ask(server.url, "POST", "/v1/messages", json.dumps(body), JSON)[0] == 200
        (said,) = settled(server).proxy.addons.records.activity.warnings
        assert "sent without a new cut, since what cannot be reduced takes 4" in said
        assert said.endswith("of 9,000 (window)")


def test_an_undo_that_does_not_fit_gives_way_and_says_so():
    """Before: the next request left at its full size, and the 400 reached the client."""
    with (
        StrictProvider(window=30_000) as provider,
        proxied(provider.url, window=30_000) as server,
    ):
        assert ask(server.url, "POST", "/v1/messages", long_session(30, most=500), JSON)[0] == 200
        (record,) = settled(server).proxy.addons.records.activity.sessions.values()
        fold = max(record.edits.values(), key=lambda edit: edit.tokens_before)
        assert fold.tokens_before > 30_000
        SessionArchive(server.proxy.tenants, record).act("undo", fold)
        for steps in (31, 32):
            body = long_session(steps, most=500)
            assert ask(server.url, "POST", "/v1/messages", body, JSON)[0] == 200
        assert [r.status for r in provider.requests] == [200] * 3
        assert max(r.tokens for r in provider.requests) <= 30_000
        activity = settled(server).proxy.addons.records.activity
        assert list(activity.warnings) == [
            "pins gave way to the window: what was undone or pinned did not fit"
        ]
        assert [turn.note for turn in record.turns][1] == "pins gave way to the window"


def test_what_a_refusal_taught_is_said_with_its_end():
    with StrictProvider(window=8_000) as provider, proxied(provider.url, window=60_000) as server:
        for steps in (30, 31):
            assert ask(server.url, "POST", "/v1/messages", long_session(steps), JSON)[0] == 200
        said = [
            text
            for text in settled(server).proxy.addons.records.activity.warnings
            if "the provider refused" in text
        ]
        assert len(said) == 1
        assert "so trimtab keeps to window 8,000, output tokens 1,024 until 20" in said[0]
        assert re.search(
            r"; trimtab doctor --forget '127\.0\.0\.1\S*\|claude-\S+' ends it$", said[0]
        )
        assert "keeps to window 8,000" in ask(server.url, "GET", "/_trimtab/")[2].decode()
