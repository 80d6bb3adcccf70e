"""A fold stays where it is when the client empties old results of its own history."""

from __future__ import annotations

import json
from typing import Any

import pytest
from shapes import MODELS, SIX, request, turn, user

import trimtab

EMPTIED = "[Old tool result content cleared]"
MASKED = "<tool_output_masked>\nsrc/mod_0.py:0\n\nOutput too large. Full output at: /tmp/x.txt\n"
SETTINGS = trimtab.Settings(window=12_000, reserve=0, counter="o200k", trigger=0.9, target=0.5)


def result(number: int) -> str:
    return "".join(f"src/mod_{number}.py:{n}: token {n * 7919}\n" for n in range(60))


def story(format: str, steps: int, **texts: str) -> dict[str, Any]:
    """``texts``: what stands in place of a step's result, as ``s3="…"``."""
    items = user(format, "Find the bug in the parser.")
    for number in range(steps):
        told = texts.get(f"s{number}", result(number))
        items += turn(format, f"call_{number:04}", {"n": number}, told, f"step {number}: there")
    return request(format, items, MODELS[format])


def key_of(body: dict[str, Any]) -> str:
    return next(key for key in ("messages", "input", "contents") if key in body)


def folded(format: str) -> tuple[trimtab.Session, int, list[Any]]:
    """A session that has just folded its first steps, how many there were, and what it sent."""
    session, steps = trimtab.Session(settings=SETTINGS), 0
    while not session.journal["edits"]:
        steps += 1
        sent = session.fit(story(format, steps)).request
    assert [edit["op"] for edit in session.journal["edits"]] == ["fold"]
    return session, steps, sent[key_of(sent)]


@pytest.mark.parametrize("text", [EMPTIED, MASKED])
@pytest.mark.parametrize("format", SIX)
def test_the_prefix_stays_when_the_client_empties_results_that_were_folded(format, text):
    session, steps, before = folded(format)
    original = session.recall(session.journal["edits"][0]["handle"])
    body = story(format, steps + 1, s0=text, s1=text)
    went_on = session.fit(body)
    sent = went_on.request[key_of(body)]
    assert sent[: len(before)] == before
    assert not trimtab.check(went_on.request, format=format)
    assert len(session.journal["edits"]) == 1
    assert session.recall(session.journal["edits"][0]["handle"]) == original
    again = trimtab.Session(journal=json.loads(json.dumps(session.journal)), settings=SETTINGS)
    assert again.fit(body).request == went_on.request


@pytest.mark.parametrize("format", SIX)
def test_a_result_that_the_client_changed_in_another_way_is_folded_anew(format):
    """It may have taken a secret out: a note about the old text must not be sent on."""
    session, steps, before = folded(format)
    body = story(format, steps + 1, s0="[redacted by policy]")
    sent = session.fit(body).request[key_of(body)]
    assert sent[: len(before)] != before
    assert "src/mod_0.py" not in json.dumps(sent)


@pytest.mark.parametrize("format", SIX)
def test_an_undone_fold_stays_undone_when_its_results_are_emptied(format):
    session, steps, _ = folded(format)
    session.undo(session.journal["edits"][0]["handle"])
    body = story(format, steps, s0=EMPTIED)
    assert session.fit(body, window=10**6).request == body


def test_more_results_may_be_emptied_later_and_a_newer_fold_still_wins():
    session, steps, _ = folded("anthropic")
    texts: dict[str, str] = {}
    while len(session.journal["edits"]) < 2:
        steps += 1
        session.fit(story("anthropic", steps, **texts))
    before = session.fit(story("anthropic", steps, **texts)).request["messages"]
    for number in range(4):
        texts[f"s{number}"] = EMPTIED
        steps_now = story("anthropic", steps, **texts)
        assert session.fit(steps_now).request["messages"] == before, number
    assert len(session.journal["edits"]) == 2
