"""When a cut is made and how deep it goes: as the request grows, and where it pays."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import trimtab

HEAD_WORDS = 16_000
"""A system prompt of about 19,000 tokens, as coding agents send it."""


def agent(turns: int, lines: int = 110, head: int = HEAD_WORDS, ttl: str = "5m") -> dict[str, Any]:
    """A coding agent's request after so many calls, each with a result of about 3,400 tokens."""
    mark = {"cache_control": {"type": "ephemeral", "ttl": ttl}}
    system = [{"type": "text", "text": "Follow the rules of this house. " * (head // 6), **mark}]
    messages: list[Any] = [{"role": "user", "content": "Never push. Find the fault in the parser."}]
    for n in range(turns):
        text = "\n".join(
            f"src/mod_{n}/part_{i}.py:{i}: value_{n}_{i} = compute(alpha_{i}, {i * n})"
            for i in range(lines)
        )
        call = {"type": "tool_use", "id": f"c{n}", "name": "grep", "input": {"query": f"v{n}"}}
        result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": text}
        messages.append({"role": "assistant", "content": [call]})
        messages.append({"role": "user", "content": [result]})
    return {"model": "claude-sonnet-4-5", "max_tokens": 1_000, "system": system,
            "messages": messages}  # fmt: skip


def session(window: int, **keywords: Any) -> trimtab.Session:
    return trimtab.Session(
        window=window, reserve=0, settings=trimtab.Settings(counter="o200k"), **keywords
    )


def played(one: trimtab.Session, turns: int, **more: Any) -> list[trimtab.Fitted]:
    return [one.fit(agent(n, **more)) for n in range(1, turns + 1)]


def cuts(fitted: list[trimtab.Fitted]) -> list[int]:
    """The turns that made new edits."""
    return [n for n, one in enumerate(fitted) if any(edit.new for edit in one.report.edits)]


# --- how deep ---


def test_where_a_request_grows_fast_a_cut_lasts_more_calls_than_a_fixed_share_does() -> None:
    fixed, grown = (cuts(played(session(60_000, target=t), 51)) for t in (0.7, None))
    assert len(grown) <= 0.8 * len(fixed)
    assert min(b - a for a, b in pairwise(grown)) >= 4


def test_at_a_hundred_thousand_a_cut_lasts_eight_calls_at_least() -> None:
    made = cuts(played(session(100_000), 60))
    assert len(made) >= 3
    assert min(b - a for a, b in pairwise(made)) >= 8


def test_however_fast_it_grows_a_cut_leaves_a_share_of_the_room() -> None:
    one = session(40_000)
    for fitted in played(one, 30):
        if target := fitted.report.limits["target_tokens"]:
            head = one.fit(agent(0)).tokens_after
            assert target >= head + 0.6 * (38_000 - head) - 50


def test_a_target_that_is_given_is_kept_to() -> None:
    made = [one for one in played(session(60_000, target=0.7), 20) if cuts([one])]
    head = trimtab.measure(agent(0), counter="o200k").total
    for one in made:
        target = one.report.limits["target_tokens"]
        assert target == pytest.approx(head + 0.7 * (57_000 - head), rel=0.05)
    assert made


# --- when it pays ---


def test_economy_cuts_long_before_the_window_is_full_and_costs_less() -> None:
    plain, thrifty = (played(session(200_000, preset=p), 60) for p in ("balanced", "economy"))
    assert len(cuts(thrifty)) >= 2
    assert max(one.tokens_after for one in thrifty) < 0.45 * 200_000
    assert bill(thrifty) < 0.75 * bill(plain)


@pytest.mark.parametrize("ttl", ["5m", "1h"])
def test_it_costs_less_by_the_prices_that_the_breakpoints_say(ttl: str) -> None:
    write = {"5m": 1.25, "1h": 2.0}[ttl]
    every = played(session(10**6), 60, ttl=ttl)
    thrifty = played(session(10**6, preset="economy"), 60, ttl=ttl)
    assert bill(thrifty, write) < 0.85 * bill(every, write)


def test_a_more_expensive_write_makes_a_cut_wait_longer() -> None:
    short, long = (
        cuts(played(session(200_000, preset="economy"), 40, ttl=ttl))[0] for ttl in ("5m", "1h")
    )
    assert long > short


def test_a_cut_is_not_followed_by_another_until_the_calls_since_then_have_paid_for_it() -> None:
    made = cuts(played(session(200_000, preset="economy"), 60))
    assert min(b - a for a, b in pairwise(made)) >= 5


def test_what_was_cut_for_money_is_not_cut_again_when_it_is_fitted_again() -> None:
    for turns in (17, 25, 40):
        words = trimtab.Settings(counter="o200k", preset="economy")
        once = trimtab.fit(agent(turns), window=200_000, reserve=0, settings=words)
        assert once.report.edits
        again = trimtab.fit(once.request, window=200_000, reserve=0, settings=words)
        assert again.request is once.request


def test_the_users_words_stay_whole_where_a_cut_is_made_for_money_alone() -> None:
    body = agent(40)
    for n in range(3, len(body["messages"]), 8):
        said = {"type": "text", "text": f"And keep function value_{n} as it is. " * 30}
        body["messages"][n + 1]["content"].append(said)
    sent = session(200_000, preset="economy").fit(body)
    assert sent.report.edits
    assert [t for t in texts(body) if t not in texts(sent.request)] == []


def test_after_a_restart_the_same_bytes_are_sent(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'kept.db'}"
    one = session(200_000, preset="economy", store=url)
    whole = [json.dumps(fitted.request) for fitted in played(one, 30)]
    one.close()
    for n in (15, 30):
        other = session(200_000, preset="economy", store=url)
        assert json.dumps(other.fit(agent(n)).request) == whole[n - 1]
        other.close()


def bill(fitted: list[trimtab.Fitted], write: float = 1.25) -> float:
    """Plain input tokens for which a cache that never expires bills what was sent; judged by the
    messages alone."""
    cost, before = 0.0, list[str]()
    for one in fitted:
        parts = [json.dumps(one.request["system"])]
        parts += [json.dumps(message) for message in one.request["messages"]]
        same = next((n for n, (a, b) in enumerate(zip(before, parts, strict=False)) if a != b),
                    min(len(before), len(parts)))  # fmt: skip
        read, new = (sum(map(len, part)) / 4 for part in (parts[:same], parts[same:]))
        cost, before = cost + 0.1 * read + write * new, parts
    return cost


def texts(body: dict[str, Any]) -> list[str]:
    """The user's texts."""
    return [
        part["text"] for message in body["messages"] if message["role"] == "user"
        for part in message["content"] if isinstance(part, dict) and part["type"] == "text"
    ]  # fmt: skip


# --- when it was last sent ---


def test_a_replica_knows_that_another_has_just_sent_the_conversation(tmp_path: Path) -> None:
    """A cache that has expired is cut at once; one that a replica keeps warm is not."""
    now, url = [1_000_000.0], f"sqlite:///{tmp_path / 'kept.db'}"
    size = trimtab.measure(agent(10), counter="o200k").total
    window = int(size / 0.88)

    def replica() -> trimtab.Session:
        return session(window, target=0.7, store=url, clock=lambda: now[0])

    one, other = replica(), replica()
    one.fit(agent(7))
    now[0] += 200
    other.fit(agent(8))
    other.close()
    now[0] += 200
    assert not one.fit(agent(9)).report.edits  # 400 seconds after its own last request
    one.close()
    now[0] += 400
    assert replica().fit(agent(10)).report.edits  # a restart knows that it has expired


# --- what the next cut would take ---


def test_a_preview_says_what_a_cut_would_take_and_changes_nothing() -> None:
    one, other = session(60_000), session(60_000)
    played(one, 9)
    seen = one.preview(agent(10))
    assert any(edit.new for edit in seen.report.edits)
    assert "this is what a cut would do now" in seen.report.reason
    assert seen.recall(seen.report.edits[0].handle)
    assert one.history() == []
    sent = [one.fit(agent(n)).request for n in range(10, 20)]
    assert sent == [fitted.request for fitted in played(other, 19)][9:]


def test_a_preview_of_a_stored_conversation_keeps_nothing_either(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'kept.db'}"
    with_store = session(60_000, store=url)
    handle = with_store.preview(agent(10)).report.edits[0].handle
    with pytest.raises(trimtab.UnknownHandle):
        with_store.recall(handle)
    assert with_store.fit(agent(10)).request is not None
    assert with_store.history() == []
    with_store.close()


def test_a_report_says_why_a_cut_was_made_for_money() -> None:
    thrifty = played(session(200_000, preset="economy"), 30)
    reason = thrifty[cuts(thrifty)[0]].report.reason
    assert "calls without a cut pay for the cache" in reason


def test_a_preview_right_behind_a_cut_says_that_there_is_nothing_more_to_take() -> None:
    one = session(60_000)
    made = cuts(played(one, 20))
    again = session(60_000)
    played(again, made[0] + 1)
    reason = again.preview(agent(made[0] + 1)).report.reason
    assert "a cut made now would take nothing more" in reason
