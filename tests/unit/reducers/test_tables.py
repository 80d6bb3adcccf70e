"""Lists of records as tables: every value comes back from the text alone (table_reader.py)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import search_result
from blocks import CONFIG, block, count, offers
from effort import examples, large
from hypothesis import given
from hypothesis import strategies as st
from table_reader import decoded, spelled

from trimtab.reducers import Config
from trimtab.reducers.tables import as_tables
from trimtab.transcript.tokens import counter_for

DATA = Path(__file__).resolve().parents[2] / "support" / "data_files" / "json_results"
O200K = counter_for("o200k", model=None, format="")


def table_of(text: str) -> str:
    """The table that is offered for a result; it must be one."""
    (offer,) = [o for o in offers(block(text), CONFIG) if o.kind == "table"]
    assert offer.loss == 0
    assert decoded(offer.text) == spelled(text)
    return offer.text


# Shares of the tokens of the same rows as json.dumps writes them, indented, and without any space.
AS_DUMPED, INDENTED, COMPACT = 0.645, 0.57, 0.75


def test_a_search_result_of_200_rows_is_two_thirds_and_every_value_is_told() -> None:
    rows = search_result.rows()
    dumped, compact = json.dumps(rows), json.dumps(rows, separators=(",", ":"))
    text = table_of(dumped)
    size = O200K(text)
    assert size <= AS_DUMPED * O200K(dumped)
    assert size <= INDENTED * O200K(json.dumps(rows, indent=2))
    assert size <= COMPACT * O200K(compact)
    values = [str(cell) for row in rows for cell in row.values() if isinstance(cell, str)]
    whole = sum(map(O200K, values))
    assert size <= 1.25 * whole, "not much more than the values alone"
    assert table_of(json.dumps(rows, indent=2)) == text == table_of(compact)


RECORDED = [("npm_view", 0.24), ("pip_inspect", 0.78)]  # (output, share of its tokens as printed)


@pytest.mark.parametrize(("name", "share"), RECORDED, ids=[name for name, _ in RECORDED])
def test_recorded_outputs_come_back_whole_from_fewer_tokens(name: str, share: float) -> None:
    text = (DATA / f"{name}.json").read_text(encoding="utf-8")
    new = table_of(text)
    assert O200K(new) <= share * O200K(text)
    assert O200K(new) < O200K(json.dumps(json.loads(text), separators=(",", ":")))


EXACT = json.loads((DATA.parent / "table_cases.json").read_text(encoding="utf-8"))
"""Name of the case → the JSON text of records that are hard to write as a table."""


@pytest.mark.parametrize("name", EXACT)
def test_a_table_tells_every_value_exactly(name: str) -> None:
    whole = EXACT[name]
    text = as_tables(whole, min_gain=-10_000)
    assert text is not None
    assert decoded(text) == spelled(whole)
    assert as_tables(text) is None


WORD = st.sampled_from(
    ["x", "", "1", "true", "a b", "tab\t", "é", "\ud83d", '"', "https://a.example/b/c", "{", "a,b",
     "2024-05-01", "2024-06-01", "<table 1>", " ", "\n"]
)  # fmt: skip
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 12) | st.floats() | WORD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORD, inner, max_size=3),
    max_leaves=5,
)
KEY = st.sampled_from(["id", "name", "url", "a.b", "", "é", "owner", "tags"])
ROW = st.lists(st.tuples(KEY, VALUE), min_size=1, max_size=6)


def as_json(pairs: list[tuple[str, Any]]) -> str:
    return "{" + ",".join(f"{json.dumps(k)}:{json.dumps(v)}" for k, v in pairs) + "}"


@examples(2)
@given(st.lists(ROW, min_size=1, max_size=5), st.integers(3, 9), st.booleans())
def test_any_records_come_back_whole(
    shapes: list[list[tuple[str, Any]]], times: int, inside: bool
) -> None:
    objects = [as_json(shapes[n % len(shapes)]) for n in range(times)]
    whole = f"[{','.join(objects)}]"
    whole = f'{{"n":1.0,"hits":{whole},"x":"<table 1>"}}' if inside else whole
    text = as_tables(whole, min_gain=-10_000)
    if text is not None:
        assert decoded(text) == spelled(whole)
        assert all(line == line.rstrip() for line in text.split("\n"))


@examples(1)
@given(st.lists(st.tuples(*[VALUE] * 4), min_size=3, max_size=8), st.booleans())
def test_any_columns_come_back_whole(rows: list[tuple[Any, ...]], deep: bool) -> None:
    keys = ("id", "title", "a.b", "o")
    found = [dict(zip(keys, row, strict=True)) for row in rows]
    whole = json.dumps([{"n": n, "row": row} for n, row in enumerate(found)] if deep else found)
    text = as_tables(whole, min_gain=-10_000)
    assert text is not None
    assert decoded(text) == spelled(whole)


def test_json_lines_become_a_table_too() -> None:
    rows = search_result.rows(20)
    lines = "\n".join(map(json.dumps, rows)) + "\n"
    (offer,) = [o for o in offers(block(lines), CONFIG) if o.kind == "table"]
    assert offer.text.startswith("[JSON lines as table: ")
    assert decoded(offer.text) == [spelled(line) for line in lines.splitlines()]


def test_a_list_that_saves_nothing_as_a_table_stays_json() -> None:
    assert as_tables('[{"a":1},{"a":2},{"a":3}]') is None
    assert as_tables("[" + ",".join(f'{{"k{n}":{n}}}' for n in range(40)) + "]") is None
    assert as_tables('{"a":[1,2,3]}') is None
    assert as_tables('[{"a":1},{"a":2},{"a":3},[{}],{}]', min_gain=-10_000) is None
    assert as_tables("[" * 100 + '{"a":1},' * 20 + '{"a":1}' + "]" * 100) is None
    assert as_tables("[{" * 50_000) is None


def test_only_results_become_tables() -> None:
    whole = json.dumps(search_result.rows(9))
    for kind in ("call", "text", "system", "reasoning"):
        assert all(offer.kind != "table" for offer in offers(block(whole, kind), CONFIG))


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(search_result.rows(large(2_500))),
        json.dumps([{f"k{n % 90}": n} for n in range(large(70_000))]),
        json.dumps([{f"k{n}": n, "same": 1} for n in range(large(40_000))]),
        json.dumps([{"a": {"b": {"c": n}}} for n in range(large(40_000))]),
        json.dumps([{f"c{c}": f"{n}-{c}" for c in range(90)} for n in range(large(700))]),
        "[" + "{" * large(500_000),
        '{"a":1}\n' * large(120_000),
    ],
    ids=["search", "ragged", "all different", "nested", "wide", "broken", "lines"],
)
def test_many_records_are_read_in_time(text: str) -> None:
    started = time.process_time()
    as_tables(text)
    assert time.process_time() - started < 10  # what grows with the square takes minutes


def test_counting_is_left_to_the_caller() -> None:
    rows = json.dumps(search_result.rows(30))
    (small,) = [o for o in offers(block(rows), Config(O200K)) if o.kind == "table"]
    assert small.text == table_of(rows)
    assert count(small.text) < count(rows)
