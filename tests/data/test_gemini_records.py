"""Recorded Gemini requests: what the provider took with 200 is no violation and comes back as is.

Knows how a record becomes a generateContent body.
"""

from __future__ import annotations

import copy
from typing import Any

import judge_gemini
import pytest
from records import Record, folder, records
from world_needs import absent

import trimtab


def body(record: Record) -> dict[str, Any]:
    """The request as it went out; the model stands in the URL."""
    request: dict[str, Any] = dict(record["meta"].get("params") or {})
    if record.get("system") is not None:
        request["systemInstruction"] = record["system"]
    if record.get("tools") is not None:
        request["tools"] = record["tools"]
    return {**request, "contents": record["messages"]}


@pytest.fixture(scope="module")
def recorded() -> list[Record]:
    if folder() is None:
        absent("no transcripts: set TRIMTAB_DATA to the folder that holds them")
    return [record for _, record in records("gemini")]


def test_a_request_the_provider_accepted_has_no_violation(recorded: list[Record]) -> None:
    accepted = [r for r in recorded if r["meta"].get("http_status") == 200]
    assert len(accepted) >= 33
    for record in accepted:
        request, model = body(record), record["model"]
        assert trimtab.check(request, model=model) == (), record["id"]
        assert judge_gemini.problems(request, model) == [], record["id"]
        fitted = trimtab.fit(
            request, window=10**6, model=model, settings=trimtab.Settings(counter="o200k")
        )
        assert fitted.report.format == "gemini"
        assert fitted.request is request
        assert fitted.report.tokens_before == judge_gemini.tokens(request), record["id"]


def test_a_recorded_request_is_cut_to_its_minimum_and_stays_valid(recorded: list[Record]) -> None:
    for record in recorded:
        request, model = body(record), record["model"]
        before = copy.deepcopy(request)
        minimum = trimtab.fit(
            request, window=10**6, model=model, settings=trimtab.Settings(counter="o200k")
        ).report.minimum
        fitted = trimtab.fit(
            request, window=minimum, model=model, settings=trimtab.Settings(counter="o200k")
        )
        assert judge_gemini.problems(fitted.request, model) == [], record["id"]
        assert trimtab.check(fitted.request, model=model) == ()
        reserve = fitted.report.limits["reserve"] or 0
        assert judge_gemini.tokens(fitted.request) + reserve <= minimum
        assert request == before
