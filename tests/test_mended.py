"""A repair that holds for what goes on: made once, the same as if each turn were mended anew."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from soak.trial import Case, case_of, messages_of

import trimtab
from trimtab import rules
from trimtab.errors import TrimtabError
from trimtab.reading.mended import Mended


def turn(number: int, *, answered: bool = True) -> list[dict[str, Any]]:
    use = {
        "type": "tool_use",
        "id": f"c{number}",
        "name": "read",
        "input": {"path": f"{number}.py"},
    }
    back = {"type": "tool_result", "tool_use_id": f"c{number}", "content": f"line {number} of it"}
    said = {"type": "text", "text": "Stop. Go on with the next one."}
    return [
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [back if answered else said]},
    ]


def conversation(turns: int, **more: Any) -> dict[str, Any]:
    """One whose second call was interrupted."""
    messages: list[Any] = [{"role": "user", "content": "Read all the files."}]
    for number in range(turns):
        messages += turn(number, answered=number != 1)
    return {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages, **more}


def part(request: Any, end: int) -> Any:
    """Its first messages."""
    if isinstance(request, list):
        return request[:end]
    key = next(key for key in ("messages", "input", "contents") if key in request)
    return {**request, key: request[key][:end]}


def sent(session: trimtab.Session, request: Any) -> str:
    try:
        return json.dumps(session.fit(request).request)
    except TrimtabError as error:
        return f"{type(error).__name__} {error}"


@pytest.mark.parametrize("as_bytes", [False, True], ids=["objects", "bytes"])
def test_an_interrupted_call_is_looked_for_once_and_not_in_every_turn(
    monkeypatch: pytest.MonkeyPatch, as_bytes: bool
) -> None:
    repairs: list[int] = []

    def counted(*given: Any, **named: Any) -> Any:
        repairs.append(1)
        return whole(*given, **named)

    whole = rules.repair
    monkeypatch.setattr(rules, "repair", counted)
    session, body = trimtab.Session(window=10**6, reserve=0, counter="o200k"), conversation(60)
    for end in range(1, len(body["messages"]) + 1, 2):
        request: Any = part(body, end)
        done = session.fit(json.dumps(request).encode() if as_bytes else request)
        assert not trimtab.check(done.request)
        assert done.report.tokens_after == trimtab.measure(done.request, counter="o200k").total
    assert "interrupted" in json.dumps(done.report.as_dict()["repairs"])
    assert 1 <= len(repairs) <= 3


def played(case: Case, window: int, open_tail: bool, taken: list[bool]) -> int:
    """How often a repair was taken up where a session that knows nothing else agrees."""
    given: dict[str, Any] = {
        "window": window, "reserve": 0, "counter": "o200k", "format": case["format"],
        "model": case["model"], "open_tail": open_tail,
    }  # fmt: skip
    session, taken_up = trimtab.Session(**given), 0
    for end in range(1, len(messages_of(case["request"])) + 1):
        request, journal = part(case["request"], end), session.journal
        taken.clear()
        now = sent(session, request)
        if any(taken):
            taken_up += 1
            assert sent(trimtab.Session(journal=journal, **given), request) == now, end
    return taken_up


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_a_repair_that_is_taken_up_is_the_one_that_would_be_made(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    again, taken = Mended.again, list[bool]()

    def told(*given: Any, **named: Any) -> Any:
        found = again(*given, **named)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(Mended, "again", told)
    seeds = range(first, first + 20)
    assert sum(played(case_of(seed), 10**7, seed % 3 == 0, taken) for seed in seeds) > 5


def test_a_result_that_comes_late_after_all_is_told_as_if_all_were_read_anew() -> None:
    body = conversation(9)
    late = {"type": "tool_result", "tool_use_id": "c1", "content": "here after all"}
    session = trimtab.Session(window=10**6, reserve=0)
    for end in range(1, 16, 2):
        session.fit(part(body, end))
    body["messages"][16]["content"].append(late)
    alone = trimtab.Session(window=10**6, reserve=0, journal=session.journal)
    assert session.fit(part(body, 17)).request == alone.fit(part(body, 17)).request


def test_what_a_caller_changes_in_a_mended_request_does_not_come_again() -> None:
    session, body = trimtab.Session(window=10**6, reserve=0), conversation(12)
    untouched = deepcopy(body)
    for end in range(1, len(body["messages"]) + 1, 2):
        got = session.fit(part(body, end)).request
        assert got == trimtab.fit(part(untouched, end), window=10**6, reserve=0).request
        made = [p for m in got["messages"] for p in m["content"] if "interrupted" in str(p)]
        for found in made:
            if isinstance(found, dict) and found.get("type") == "tool_result":
                found["content"] = "changed by the caller"


def test_thinking_that_comes_first_after_a_batch_is_told_to_be_dropped_where_it_must() -> None:
    """The option is asked for in the turn that brings the first thinking, not in a later batch."""
    body = conversation(40, thinking={"type": "adaptive"})
    body["model"] = "claude-opus-5-5"
    thought = {"type": "thinking", "thinking": "Now the next.", "signature": "c2lnbmVk" * 8}
    given: dict[str, Any] = {"window": 1_500, "reserve": 0, "thinking": "drop_block"}
    session = trimtab.Session(**given)
    for end in range(1, len(body["messages"]) - 3, 2):
        session.fit(part(body, end))
    body["messages"][-4]["content"].insert(0, thought)
    journal = session.journal
    request = part(body, len(body["messages"]) - 2)
    now = sent(session, request)
    assert "drop_block" in now
    assert now == sent(trimtab.Session(journal=journal, **given), request)


def test_only_what_is_over_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A repair in the model's last turn may come out otherwise when more arrives."""
    kept: list[bool] = []
    keep = Mended.keep

    def told(*given: Any, **named: Any) -> bool:
        kept.append(keep(*given, **named))
        return kept[-1]

    monkeypatch.setattr(Mended, "keep", told)
    session, body = trimtab.Session(window=10**6, reserve=0), conversation(4)
    for end in (5, 7):
        session.fit(part(body, end))
    assert kept == [False, True]
