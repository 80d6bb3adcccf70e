"""JSON that is cut stays JSON: results within a limit, arguments with their keys."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from blocks import (
    ARGUMENTS,
    CONFIG,
    JSON_VALUE,
    LOG,
    call,
    offers,
)
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from trimtab.reducers import HANDLE, cut_to_chars, cut_to_tokens, levels

BIG = "y" * 5000
JSON_CUTS = [
    ("bulk in result", json.dumps({"status": "ok", "result": BIG, "code": 0})),
    ("bulk in another key", json.dumps({"stdout": BIG, "exit": 1})),
    ("nested bulk", json.dumps({"a": {"b": [{"c": BIG}]}, "d": 1})),
    ("no bulk but many members", json.dumps({f"key{i}": i for i in range(2000)})),
    ("array of objects", json.dumps([{"id": i, "name": f"item {i}"} for i in range(300)])),
    ("array of numbers", json.dumps(list(range(5000)))),
    ("a string", json.dumps(BIG)),
    ("escapes", json.dumps({"result": '"\\\n' * 900})),
    ("lone surrogate", json.dumps({"result": "\ud83d" * 900})),
    ("long keys", json.dumps({"k" * 3000: 1, "l" * 3000: 2})),
    ("deep", '{"a":[' * 90 + "1" + "]}" * 90 + " " * 600),
    ("long number", "[" + "1" * 5000 + "]"),
    ("not a number", '{"a": NaN, "r": "' + BIG + '"}'),
    ("duplicate keys", '{"a": 1.10, "a": 2, "r": "' + BIG + '"}'),
]


@pytest.mark.row("A5")
@pytest.mark.parametrize("text", [row[1] for row in JSON_CUTS], ids=[row[0] for row in JSON_CUTS])
@pytest.mark.parametrize("chars", [2, 20, 64, 200, 512])
def test_json_stays_json_of_its_type_within_the_limit(text: str, chars: int) -> None:
    new = cut_to_chars(text, chars)
    assert len(new) <= chars
    assert type(json.loads(new)) is type(json.loads(text, parse_int=str))
    new.encode()
    assert cut_to_chars(new, chars) is new


@pytest.mark.row("A5")
def test_other_fields_key_order_and_number_spellings_stay() -> None:
    text = '{"id": 7.10, "result": "' + BIG + '", "list": [1, 2.50], "end": null, "id": 1e2}'
    new = cut_to_chars(text, 512)
    pairs = json.loads(new, parse_float=str, parse_int=str, object_pairs_hook=list)
    assert [pairs[0], *pairs[2:]] == [
        ("id", "7.10"),
        ("list", ["1", "2.50"]),
        ("end", None),
        ("id", "1e2"),
        ("truncated", True),
        ("originalLength", str(len(text))),
    ]
    assert pairs[1][0] == "result"
    assert re.fullmatch(r"y+ \[\d,\d+ chars cut\] y+", pairs[1][1])
    assert len(new) > 400, "the room is used"


@pytest.mark.row("A5")
def test_the_note_of_the_caller_stands_in_objects_and_arrays() -> None:
    note = f'recall("{HANDLE}") has all'
    assert json.loads(cut_to_chars(JSON_CUTS[0][1], 600, note))["_cut"] == note
    assert json.loads(cut_to_chars(JSON_CUTS[5][1], 600, note))[-1].endswith(f" chars; {note}]")


@examples(0.6)
@given(JSON_VALUE, st.integers(2, 300))
def test_valid_json_stays_valid_json(value: Any, chars: int) -> None:
    new = cut_to_chars(json.dumps(value, indent=1), chars)
    assert len(new) <= max(chars, len(json.dumps(value, indent=1)))
    json.loads(new)


# ---------------------------------------------------------------- call arguments


def test_arguments_keep_keys_and_types_and_get_shorter_strings() -> None:
    edits = [{"old": "o" * 3000, "new": "n" * 900}]
    old = {"file_path": "/src/a.py", "replace_all": False, "n": 3, "edits": edits}
    found = offers(call(json.dumps(old)), CONFIG)
    for offer in found:
        new = json.loads(offer.text)
        assert list(new) == list(old)
        assert {**new, "edits": 0} == {**old, "edits": 0}
        assert [list(edit) for edit in new["edits"]] == [["old", "new"]]
    longest = [len(json.loads(o.text)["edits"][0]["old"]) for o in found]
    assert longest == [2000, 1000, 500, 250, 125, 17]
    assert found[-1].text.endswith('"edits":[{"old":"[3,000 chars cut]","new":"[900 chars cut]"}]}')


def test_arguments_spell_numbers_and_duplicate_keys_as_they_came() -> None:
    text = (
        '{"a": 1.10, "a": 1E400, "b": -0, "c": [123456789012345678901234567890], "t": "'
        + BIG
        + '"}'
    )
    for offer in levels(call(text), CONFIG):
        assert offer.text.startswith(
            '{"a":1.10,"a":1E400,"b":-0,"c":[123456789012345678901234567890],"t":"'
        )


def test_long_arrays_lose_items_after_their_strings() -> None:
    numbers, words = [*range(3000)], [f"w{i}" for i in range(3000)]
    last = json.loads(offers(call(json.dumps({"n": numbers, "w": words})), CONFIG)[-1].text)
    assert last == {"n": [0, 1, 2, 3, 4], "w": ["w0", "w1", "w2", "w3", "[2,996 more items cut]"]}


@pytest.mark.row("E14")
@pytest.mark.parametrize(
    "text", ["{'a': " + BIG, '{"a": "' + BIG, "[" + "1," * 900 + "1]", "[" * 5000]
)
def test_arguments_that_are_no_json_object_become_one_that_quotes_them(text: str) -> None:
    (offer,) = offers(call(text), CONFIG)
    said = json.loads(offer.text)["_cut"]
    assert said == f"{len(text):,} chars that were not a valid JSON object, first part: {text[:80]}"


def test_free_text_arguments_are_cut_as_text() -> None:
    found = offers(call(LOG, spelling="string"), CONFIG)
    assert {offer.kind for offer in found} == {"head-and-tail"}
    assert offers(call(LOG, spelling="json-string"), CONFIG)[0].kind == "arguments"


@examples(0.8)
@given(ARGUMENTS)
def test_arguments_stay_json_objects_with_the_same_keys(text: str) -> None:
    for offer in levels(call(text), CONFIG):
        new = json.loads(offer.text)
        assert list(new) == list(json.loads(text))
        offer.text.encode()


NUMBERS = "".join(
    f"LIMIT_{n} = {n * 7919 + 10_000} # v{n}.{n * 31}.{n * 977} of 2027-11-{n % 28 + 1:02}, 1,{n}\n"
    for n in range(200)
)
WORD = re.compile(r"[A-Za-z0-9_]+(?:[.,:/-][A-Za-z0-9_]+)*")


@pytest.mark.parametrize("line_ends", [True, False])
def test_no_number_and_no_name_is_cut_in_two(line_ends: bool) -> None:
    """Half a number reads as another number: LIMIT = 895 of LIMIT = 89595."""
    text = NUMBERS if line_ends else NUMBERS.replace("\n", " ")
    known = set(WORD.findall(text))
    made = [cut_to_chars(text, chars) for chars in range(150, 700, 7)]
    made += [cut_to_tokens(text, tokens, CONFIG.count) or "" for tokens in range(60, 600, 13)]
    for new in made:
        head, _, rest = new.partition("[... ")
        tail = rest.partition("]")[2]
        assert head or tail
        assert set(WORD.findall(head)) | set(WORD.findall(tail)) <= known
