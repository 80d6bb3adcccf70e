"""The recall tool: what a model gets back, in five formats."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from shapes import FORMATS

import trimtab
from trimtab.errors import InvalidSetting, UnknownHandle
from trimtab.journal.excerpts import (
    LINE_CHARS,
    MAX_CHARS,
    RecallAnswer,
    answer,
    is_handle,
    part,
)
from trimtab.journal.passages import MAX_HITS, hits

TEXT = "".join(f"line {n}: value {n * n}\n" for n in range(2_000))
LONG = "x" * 5_000 + "NEEDLE" + "y" * 5_000
LONGER = "z" * 30_000


class Kept:
    """Originals under handles."""

    def recall(self, handle: str) -> str:
        try:
            return {"aaaaaaaaaaa": TEXT, "bbbbbbbbbbb": LONG, "ccccccccccc": LONGER}[handle]
        except KeyError:
            raise UnknownHandle(
                f"no original is kept under {handle!r}: run the tool again"
            ) from None


def asked(**arguments: Any) -> RecallAnswer:
    return answer(Kept(), {"handle": "aaaaaaaaaaa", **arguments})


# --- what is said --------------------------------------------------------------------------------


def test_a_part_is_exactly_the_characters_between_two_positions() -> None:
    assert asked(start=0, end=20).text == TEXT[:20]
    assert asked(start=1_000, end=5_000).text == TEXT[1_000:5_000]
    assert asked(start=len(TEXT) - 5).text == TEXT[-5:]
    assert asked(start=len(TEXT) - 5, end=10**9).text == TEXT[-5:]
    assert (part("abc"), part("abc", 1), part("abc", None, 2), part("abc", 9)) == (
        "abc", "bc", "ab", "",
    )  # fmt: skip


def test_a_long_original_comes_in_parts_that_join_to_the_whole() -> None:
    found, start = "", 0
    while True:
        said = asked(start=start).text
        cut = re.search(r"\n\[chars .*; the rest: start=(\d+), or search", said)
        found += said[: cut.start()] if cut else said
        if cut is None:
            break
        start = int(cut[1])
    assert found == TEXT
    assert len(asked().text) <= MAX_CHARS + 200


def test_lines_are_counted_from_1_and_the_rest_of_many_is_named() -> None:
    rows = TEXT.splitlines()
    assert asked(lines="13").text == rows[12]
    assert asked(lines="1-3").text == "\n".join(rows[:3])
    assert asked(lines="1999-9999").text == "\n".join(rows[1998:])
    found, first = list[str](), 1
    while True:
        said = asked(lines=f"{first}-2000").text
        *own, last = said.split("\n")
        if (rest := re.fullmatch(r'\[the rest: lines="(\d+)-2000"\]', last)) is None:
            break
        assert len(said) < MAX_CHARS + 60
        found, first = [*found, *own], int(rest[1])
    assert [*found, *own, last] == rows
    (part, more) = answer(Kept(), {"handle": "ccccccccccc", "lines": "1"}).text.split("\n")
    assert part == "z" * MAX_CHARS
    assert "start and end give its characters" in more


def test_a_search_gives_numbers_positions_and_text_of_the_lines() -> None:
    said = asked(search="VALUE 144")
    first = said.text.splitlines()[0]
    number, start, end = (int(n) for n in re.findall(r"line (\d+) \(chars (\d+)-(\d+)\)", first)[0])
    assert number == 13
    assert TEXT[start:end] == "line 12: value 144"
    assert first.endswith(": line 12: value 144")
    assert asked(start=start, end=end).text == "line 12: value 144"


def test_words_apart_are_found_where_the_phrase_is_not() -> None:
    assert asked(search="144 line").text.startswith("line 13 (")


def test_many_hits_are_said_to_be_the_first_and_a_long_line_shows_the_match() -> None:
    many = asked(search="value").text.splitlines()
    assert len(many) == MAX_HITS + 1
    assert "first 40 lines" in many[-1]
    one = answer(Kept(), {"handle": "bbbbbbbbbbb", "search": "needle"}).text
    assert "NEEDLE" in one
    assert len(one) < LINE_CHARS + 60


ODD = [  # (arguments, words of the answer)
    ({}, "give the handle"),
    ({"handle": 7}, "give the handle"),
    ({"handle": " "}, "give the handle"),
    ({"handle": "nope"}, "no original is kept under 'nope'"),
    ({"handle": "aaaaaaaaaaa", "start": -1}, "start is a number"),
    ({"handle": "aaaaaaaaaaa", "end": "all"}, "end is a number"),
    ({"handle": "aaaaaaaaaaa", "start": True}, "start is a number"),
    ({"handle": "aaaaaaaaaaa", "start": 10**9}, "there is nothing: the original has"),
    ({"handle": "aaaaaaaaaaa", "start": 5, "end": 5}, "there is nothing"),
    ({"handle": "aaaaaaaaaaa", "lines": "9000"}, "no line 9000: it has 2,000 lines"),
    ({"handle": "aaaaaaaaaaa", "lines": "9000-9001"}, "no line 9000 to 9001: it has 2,000 lines"),
    ({"handle": "aaaaaaaaaaa", "lines": "some"}, "lines is a number"),
    ({"search": "value"}, "give the handle"),
    ({"file": "a.py"}, "give the handle"),
    ({"handle": "aaaaaaaaaaa", "search": "sought in vain"}, "no line of what was left out holds"),
    ({"handle": "x" * 10**6}, "no original"),
]


@pytest.mark.parametrize(("arguments", "words"), ODD)
def test_odd_arguments_are_answered_and_marked_as_failed(
    arguments: dict[str, Any], words: str
) -> None:
    said = answer(Kept(), arguments)
    assert said.failed
    assert words in said.text
    assert len(said.text) < 400


def test_what_models_write_for_a_number_or_a_handle_is_understood() -> None:
    assert asked(start="3", end=8.0).text == TEXT[3:8]
    assert asked(start=None, end="").text == asked().text
    assert asked(start=0, end=0, steps="0", lines="", search="", file="").text == asked().text
    assert asked(lines="3").text == asked(lines=3).text == asked(lines=[3]).text
    assert answer(Kept(), {"handle": ' "aaaaaaaaaaa"', "end": 4}).text == TEXT[:4]


def test_dropped_messages_are_searched_line_by_line_within_their_strings() -> None:
    text = json.dumps([{"role": "tool", "content": TEXT}])
    found = hits(text, "value 144")
    assert found[0].text == "line 12: value 144"
    assert [text[hit.start : hit.end] for hit in found] == [hit.text for hit in found]


def test_a_search_for_nothing_finds_nothing() -> None:
    assert hits(TEXT, "") == hits(TEXT, "   ") == hits("", "x") == []


@pytest.mark.parametrize(
    ("name", "may_be"),
    [("r" * 64, True), ("r" * 65, False), ("r\n", False), ("rn5ee4xezey", True), ("", True)],
)
def test_a_handle_is_a_short_printable_name(name: str, may_be: bool) -> None:
    assert is_handle(name) == may_be


@pytest.mark.parametrize("wanted", [None, 7, b"value"])
def test_a_search_for_what_is_no_text_is_an_error_that_says_so(wanted: Any) -> None:
    with pytest.raises(InvalidSetting, match="text="):
        hits(TEXT, wanted)


# --- the five formats ----------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_the_definition_is_the_same_bytes_each_time_and_nobody_can_change_it(format: str) -> None:
    tool = trimtab.recall_tool(format)
    before = json.dumps(tool.definition)
    tool.definition.clear()
    next(iter(v for v in tool.definition.values() if isinstance(v, (dict, list)))).clear()
    assert (
        json.dumps(tool.definition) == json.dumps(trimtab.recall_tool(format).definition) == before
    )


def test_a_format_nobody_has_is_an_error_that_names_the_six() -> None:
    assert trimtab.recall_tool("openai-chat:deepseek").format == "openai-chat"
    with pytest.raises(InvalidSetting, match=r"choose one of .*anthropic, gemini, openai-chat"):
        trimtab.recall_tool("cobol")


@pytest.mark.parametrize("format", FORMATS)
def test_a_handle_that_is_not_kept_is_a_result_that_says_so(format: str) -> None:
    calls = {
        "openai-chat": {"id": "c", "type": "function",
                        "function": {"name": "recall", "arguments": '{"handle": "gone"}'}},
        "openai-responses": {"type": "function_call", "call_id": "c", "name": "recall",
                             "arguments": '{"handle": "gone"}'},
        "anthropic": {"type": "tool_use", "id": "c", "name": "recall", "input": {"handle": "gone"}},
        "bedrock": {"toolUse": {"toolUseId": "c", "name": "recall", "input": {"handle": "gone"}}},
        "gemini": {"functionCall": {"name": "recall", "args": {"handle": "gone"}}},
    }  # fmt: skip
    tool, other = (
        trimtab.recall_tool(format),
        json.loads(json.dumps(calls[format]).replace("recall", "read")),
    )
    assert tool.is_call(calls[format])
    assert not tool.is_call(other)
    result = tool.result(Kept(), calls[format])
    assert "no original is kept under 'gone'" in json.dumps(result)
    flags = {"anthropic": '"is_error": true', "bedrock": '"status": "error"', "gemini": '"error":'}
    assert flags.get(format, "") in json.dumps(result)


@pytest.mark.parametrize(
    "arguments", ["", "{", "[]", "null", '"aaaaaaaaaaa"', "aaaaaaaaaaa", None, 7]
)
def test_broken_arguments_never_raise(arguments: Any) -> None:
    call = {"id": "c", "function": {"name": "recall", "arguments": arguments}}
    result = trimtab.recall_tool("openai-chat").result(Kept(), call)
    found = isinstance(arguments, str) and "aaa" in arguments
    assert result["content"].startswith("line 0" if found else "give the")
    assert trimtab.recall_tool("bedrock").result(Kept(), None)["toolResult"]["status"] == "error"
