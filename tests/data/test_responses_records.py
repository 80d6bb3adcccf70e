"""Recorded OpenAI Responses requests: accepted ones have no violation, long ones are made to fit.

Knows how a record becomes a request body.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import judge_responses as judge
import pytest
from records import Record, folder, records
from world_needs import absent

import trimtab
from trimtab import CannotFit

LONG = ("agentv", "entire-skills", "broken-entire-skills")
MAX_TOO_MANY = 4
WINDOWS = (4_000, 16_000, 64_000, 200_000)


def body(record: Record) -> dict[str, Any]:
    """The request as it went out."""
    request: dict[str, Any] = dict(record["meta"].get("params") or {})
    request.setdefault("model", record["model"])
    for key, name in (("tools", "tools"), ("system", "instructions")):
        if record.get(key) is not None:
            request[name] = record[key]
    return {**request, "input": record["messages"]}


def variants(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """As it stands, and before the last turn of the model."""
    yield request
    items = request["input"]
    end = len(items)
    while end and not by_model(items[end - 1]):
        end -= 1
    while end and by_model(items[end - 1]):
        end -= 1
    if end:
        yield {**request, "input": items[:end]}


def by_model(item: dict[str, Any]) -> bool:
    kind = item.get("type", "message")
    return item.get("role") == "assistant" or kind == "reasoning" or kind.endswith("_call")


@pytest.fixture(scope="module")
def recorded() -> list[tuple[str, Record]]:
    if folder() is None:
        absent("no transcripts: set TRIMTAB_DATA to the folder that holds them")
    return list(records("openai-responses"))


def test_a_request_the_provider_accepted_has_no_violation(
    recorded: list[tuple[str, Record]],
) -> None:
    accepted = [r for _, r in recorded if r["meta"].get("http_status") == 200]
    assert len(accepted) >= 36
    for record in accepted:
        request = body(record)
        assert trimtab.check(request) == (), record["id"]
        assert judge.problems(request) == [], record["id"]
        fitted = trimtab.fit(
            request, window=10**6, reserve=0, settings=trimtab.Settings(counter="o200k")
        )
        assert fitted.request is request
        assert fitted.report.tokens_before == judge.tokens(request), record["id"]


def test_the_recorded_refusal_is_calls_interleaved_and_repair_mends_it(
    recorded: list[tuple[str, Record]],
) -> None:
    refused = [body(r) for _, r in recorded if r["meta"].get("http_status") == 400]
    assert len(refused) == 1
    for request in refused:
        assert {found.rule for found in trimtab.check(request)} == {"calls_interleaved"}
        sent = trimtab.repair(request).request
        assert judge.problems(sent) == []
        assert [item.get("call_id") for item in sent["input"]] == [
            *(None, "call-a", "call-a", None, "call-b", "call-b", None)
        ]
        assert trimtab.check({**request, "model": "gpt-5.5"}) == ()


def test_long_sessions_fit_and_stay_valid_and_only_the_head_stands_against_4k(
    recorded: list[tuple[str, Record]],
) -> None:
    for file, record in recorded:
        for request in variants(body(record)) if file in LONG else ():
            for window in WINDOWS:
                if head(request) > window:
                    assert window == 4_000, record["id"]
                    with pytest.raises(CannotFit):
                        trimtab.fit(
                            request,
                            window=window,
                            reserve=0,
                            settings=trimtab.Settings(counter="o200k"),
                        )
                    continue
                fitted = trimtab.fit(
                    request, window=window, reserve=0, settings=trimtab.Settings(counter="o200k")
                )
                assert judge.problems(fitted.request) == [], record["id"]
                assert judge.thought_problems(request, fitted.request) == [], record["id"]
                counted = fitted.report.tokens_after
                # Texts above 250,000 chars are counted in parts: a token too many for some.
                assert 0 <= counted - judge.tokens(fitted.request) <= MAX_TOO_MANY
                assert counted <= window
                assert fitted.report.warnings == ()


def head(request: dict[str, Any]) -> int:
    """Tokens of what can't be cut: instructions, tools and what the developer said."""
    said = [item for item in request["input"] if item.get("role") in ("developer", "system")]
    return judge.tokens({**request, "input": said})
