"""Calls and outputs as items of their own: ids that two calls share."""

from __future__ import annotations

import time
from typing import Any

import pytest
from responses_cases import call, output, user

import trimtab


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["c1", "c1"], ["c1", "c1_2"]),
        (["c1", "c1", "c1"], ["c1", "c1_2", "c1_3"]),
        (["c1_2", "c1", "c1"], ["c1_2", "c1", "c1_3"]),
    ],
    ids=str,
)
def test_a_second_call_of_an_id_gets_a_free_one_and_its_output_with_it(
    given: list[str], expected: list[str]
) -> None:
    items: list[Any] = [user("go")]
    for id in given:
        items += [call(id), output(id)]
    sent = trimtab.repair({"model": "gpt-5.5", "input": items}).request["input"]
    assert [item["call_id"] for item in sent[1:]] == [id for id in expected for _ in range(2)]


@pytest.mark.parametrize("name", ["rs_{}", "rs_1"])
def test_thousands_of_reasoning_items_in_a_row_take_less_than_three_seconds(name: str) -> None:
    items = [{"type": "reasoning", "id": name.format(n), "summary": []} for n in range(8_000)]
    request = {"model": "gpt-5.5", "input": [{"role": "user", "content": "Go."}, *items]}
    started = time.process_time()
    assert len(trimtab.check(request)) >= 8_000
    assert time.process_time() - started < 3
