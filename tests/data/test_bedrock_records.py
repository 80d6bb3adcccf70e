"""Recorded Converse requests that Bedrock answered with 200: nothing in them may be a violation."""

from __future__ import annotations

from typing import Any

import judge_bedrock as judge
import pytest
from records import Record, records

import trimtab

ACCEPTED = [record for _, record in records("bedrock") if record["meta"].get("http_status") == 200]


def body(record: Record) -> dict[str, Any]:
    """The request as it went out: system, tools, parameters and model put back."""
    request = {**(record["meta"].get("params") or {}), "modelId": record["model"]}
    if record.get("system"):
        request["system"] = record["system"]
    if record.get("tools"):
        request["toolConfig"] = {"tools": record["tools"]}
    return {**request, "messages": record["messages"]}


def test_there_are_recorded_requests() -> None:
    assert len(ACCEPTED) >= 18


@pytest.mark.parametrize("record", ACCEPTED, ids=lambda record: record["id"][-60:])
def test_an_accepted_request_has_no_violation_and_stays_as_it_is(record: Record) -> None:
    request = body(record)
    assert judge.problems(request) == []
    assert judge.parameter_problems(request) == []
    assert trimtab.check(request) == ()
    assert trimtab.check(record["messages"], format="bedrock", model=record["model"]) == ()
    fitted = trimtab.fit(
        request, window=10**6, reserve=0, settings=trimtab.Settings(counter="o200k")
    )
    assert fitted.request is request
    assert fitted.report.tokens_before == judge.tokens(request)


@pytest.mark.parametrize("record", ACCEPTED, ids=lambda record: record["id"][-60:])
def test_an_accepted_request_is_still_acceptable_at_its_floor(record: Record) -> None:
    request = body(record)
    floor = trimtab.fit(
        request, window=10**6, reserve=0, settings=trimtab.Settings(counter="o200k")
    ).report.minimum
    fitted = trimtab.fit(
        request, window=floor, reserve=0, settings=trimtab.Settings(counter="o200k")
    )
    assert judge.problems(fitted.request) == []
    assert judge.parameter_problems(fitted.request) == []
    assert judge.tokens(fitted.request) <= floor
