"""JSON results in less detail: what stays of rows and of nested values, and how gaps are told."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from itertools import islice, pairwise
from typing import Any

import pytest
import search_result
from blocks import JSON_VALUE, RECALL, block, offers
from effort import examples, large
from hypothesis import given
from hypothesis import strategies as st

from trimtab.reducers import Config, Offer
from trimtab.reducers.json_digest import rank_items, records
from trimtab.transcript.tokens import counter_for

O200K = Config(counter_for("o200k", model=None, format=""))


def levels_of(value: Any) -> list[Offer]:
    text = value if isinstance(value, str) else json.dumps(value)
    return [offer for offer in offers(block(text), O200K) if offer.kind in ("table", "records")]


# ---------------------------------------------------------------- rows


def checks(failed: tuple[int, ...] = (117, 260), many: int = 400) -> list[dict[str, Any]]:
    """Results of health checks: two of them failed, one took far longer than all others."""
    return [
        {
            "host": f"node-{n * 7919 % 1000:03}.rack{n % 9}",
            "status": "failed: connection refused" if n in failed else "ok",
            "ms": 90_017 if n == 333 else 20 + n * 31 % 57,
            "at": f"2024-05-{1 + n % 28:02}T10:{n % 60:02}:00Z",
        }
        for n in range(many)
    ]


def test_a_long_list_keeps_ends_errors_outliers_and_a_spread_and_counts_the_rest() -> None:
    table, *levels = levels_of(checks())
    rows = table.text.split("\n")[3:]
    assert len(rows) == 400
    assert len(levels) >= 4
    for offer in levels:
        lines = offer.text.split("\n")[3:]
        gaps = [
            int(m[1]) for line in lines if (m := re.fullmatch(r"\[(\d+) rows? left out\]", line))
        ]
        kept = [line for line in lines if not line.startswith("[")]
        assert len(kept) + sum(gaps) == 400
        assert set(kept) <= set(rows), "rows are shown to the letter"
        assert kept == sorted(kept, key=rows.index), "and in their order"
        if len(kept) >= 6:
            must = [rows[n] for n in (0, 399, 117, 260, 333)]
            assert set(must) <= set(kept)
        if len(kept) >= 40:
            assert max(gaps) <= 4 * 400 / len(kept), "no long stretch is without a row"
    assert "run the tool again to see all]" in levels[0].text.split("\n")[0]


def test_with_a_tool_to_fetch_it_the_note_names_that() -> None:
    found = [o for o in offers(block(json.dumps(checks())), RECALL) if o.kind == "records"]
    assert all(re.search(r'recall\("[^"]+"\) has all\]$', o.text.split("\n")[0]) for o in found)


def test_long_cells_are_cut_before_rows_are_left_out() -> None:
    rows = [{"id": n, "path": f"src/mod_{n}.py", "text": f"{n} " + "a long story " * 90}
            for n in range(30)]  # fmt: skip
    _, first, second, *_ = records(block(json.dumps(rows)), O200K)
    for offer in (first, second):
        lines = offer.text.split("\n")[3:]
        assert [line.split("\t")[:2] for line in lines] == [[str(r["id"]), r["path"]] for r in rows]
        assert all(re.search(r"\[\d+ chars cut\]", line) for line in lines)


def test_where_most_rows_speak_of_errors_errors_are_nothing_special() -> None:
    order = list(rank_items(100, set(range(0, 100, 2)), set()))
    assert [row for _, _, row in order[:6]] == [0, 99, 64, 32, 96, 16]
    assert [row for _, _, row in islice(rank_items(100, {41, 42}, {7}), 5)] == [0, 99, 42, 41, 7]


@given(st.integers(1, 300))
def test_every_row_has_one_rank_and_the_first_are_spread(size: int) -> None:
    order = [row for _, _, row in rank_items(size, set(), set())]
    assert sorted(order) == list(range(size))
    for most in (4, 16, 64):
        if most < size:
            kept = sorted(order[:most])
            gaps = [b - a for a, b in pairwise(kept)]
            assert max(gaps) <= 4 * size / most + 1


# ---------------------------------------------------------------- nested

CONFIG_DUMP = {
    "id": "7f3a9c10-aa42-4e0e-9c11-0c0ffee0aced",
    "path": "/srv/app/releases/2024-05-01/config/production/settings.toml",
    "version": 1.10,
    "build": {"number": 48_213, "commit": "9fceb02d0ae598e95dc970b74767f19372d61af8"},
    "notes": "This release changes how sessions are stored. " * 60,
    "steps": [
        {"name": f"step {n}", "seconds": n * 1.5, "log": f"line {n} " * 80} if n else "begin"
        for n in range(90)
    ],
    "last_error": {"code": "E1042", "message": "connection refused by 10.0.0.7:5432 " * 3},
}  # fmt: skip
CONFIG_DUMP["steps"][57]["error"] = "disk full on /dev/sdb1"  # type: ignore[index]


def test_nested_json_keeps_ids_paths_numbers_and_errors_at_every_level() -> None:
    found = [o for o in levels_of({"result": CONFIG_DUMP}) if o.kind == "records"]
    assert len(found) >= 4
    sizes = [O200K.count(offer.text) for offer in found]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0] / 4
    for offer in found[:-1]:
        note, text = offer.text.split("\n", 1)
        assert note == "[JSON in less detail; run the tool again to see all]"
        less = json.loads(text)["result"]
        assert {key: less[key] for key in ("id", "path", "version", "build")} == {
            key: CONFIG_DUMP[key] for key in ("id", "path", "version", "build")
        }
        assert less["last_error"]["code"] == "E1042"
        assert less["last_error"]["message"].startswith("connection refused")
        assert "disk full on /dev/sdb1" in text
        gone = sum(int(number) for number in re.findall(r'"\[(\d+) items left out\]"', text))
        assert gone + sum(str(step)[0] != "[" for step in less["steps"]) == 90


def test_number_spellings_and_equal_keys_stay_in_less_detail() -> None:
    text = '{"a":1.10,"a":2E3,"log":"' + "word " * 400 + '","n":[1.0,NaN,-0]}'
    for offer in levels_of(text)[:-1]:
        assert '"a":1.10,"a":2E3,' in offer.text
        assert '"n":[1.0,NaN,-0]' in offer.text


@examples(1.5)
@given(JSON_VALUE, st.integers(1, 30))
def test_less_detail_is_valid_json_behind_its_note(value: Any, times: int) -> None:
    for offer in levels_of({"a": [value] * times, "b": {"c": value, "d": "x " * 300}}):
        if offer.text.startswith("[JSON in less detail"):
            json.loads(offer.text.split("\n", 1)[1])
        assert offer.loss <= 0.9


GREAT: dict[str, Callable[[], Any]] = {
    "rows": lambda: search_result.rows(large(2_500)),
    "lists": lambda: {"a": [[n, [n, {"b": n}]] for n in range(large(40_000))]},
    "errors": lambda: {f"key {n}": {"error": n} for n in range(large(40_000))},
    "numbers": lambda: list(range(large(150_000))),
}


@pytest.mark.parametrize("name", GREAT)
def test_great_json_is_digested_in_time(name: str) -> None:
    text = json.dumps(GREAT[name]())

    def cheap(text: str) -> int:
        return len(text) // 4

    started = time.process_time()
    found = [o for o in offers(block(text), Config(cheap)) if o.kind == "records"]
    assert found
    assert time.process_time() - started < 3
