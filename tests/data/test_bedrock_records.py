"""Recorded Converse requests that Bedrock answered with 200: nothing in them may be a violation."""

from __future__ import annotations

from typing import Any

import judge_bedrock as judge
import pytest
from records import Record, folder, records
from world_needs import absent

import trimtab


@pytest.fixture(scope="module")
def accepted() -> list[Record]:
    """Those that were answered with 200."""
    if folder() is None:
        absent("no transcripts: set TRIMTAB_DATA to the folder that holds them")
    found = [record for _, record in records("bedrock")]
    return [record for record in found if record["meta"].get("http_status") == 200]


def body(record: Record) -> dict[str, Any]:
    """The request as it went out: system, tools, parameters and model put back."""
    request = {**(record["meta"].get("params") or {}), "modelId": record["model"]}
    if record.get("system"):
        request["system"] = record["system"]
    if record.get("tools"):
        request["toolConfig"] = {"tools": record["tools"]}
    return {**request, "messages": record["messages"]}


def test_there_are_recorded_requests(accepted: list[Record]) -> None:
    assert len(accepted) >= 18


def test_an_accepted_request_has_no_violation_and_stays_as_it_is(accepted: list[Record]) -> None:
    for record in accepted:
        request, name = body(record), record["id"]
        assert judge.problems(request) == [], name
        assert judge.parameter_problems(request) == [], name
        assert trimtab.check(request) == (), name
        bare = trimtab.check(record["messages"], format="bedrock", model=record["model"])
        assert bare == (), name
        fitted = trimtab.fit(
            request, window=10**6, reserve=0, settings=trimtab.Settings(counter="o200k")
        )
        assert fitted.request is request, name
        assert fitted.report.tokens_before == judge.tokens(request), name


def test_an_accepted_request_is_still_acceptable_at_its_minimum(accepted: list[Record]) -> None:
    for record in accepted:
        request, name = body(record), record["id"]
        minimum = trimtab.fit(
            request, window=10**6, reserve=0, settings=trimtab.Settings(counter="o200k")
        ).report.minimum
        fitted = trimtab.fit(
            request, window=minimum, reserve=0, settings=trimtab.Settings(counter="o200k")
        )
        assert judge.problems(fitted.request) == [], name
        assert judge.parameter_problems(fitted.request) == [], name
        assert judge.tokens(fitted.request) <= minimum, name
