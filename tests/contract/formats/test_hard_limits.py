"""Rows A4–A7, A15, X2 and E14 in every format: results to a size, nothing grows, no call is lost.

The rows are named in the tests; sizes are characters unless said.
"""

from __future__ import annotations

import copy
import json
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from blocks import lone_surrogates
from shapes import FORMATS, MODELS, items_of, request, session, turn, user

import trimtab
from trimtab import InvalidRequest
from trimtab.journal.journal import Journal
from trimtab.planning.make_room import make_room
from trimtab.request.applied import apply
from trimtab.request.pipeline import prepare
from trimtab.request.planned import planner_for, reduce
from trimtab.request.received import TurnInputs

WIDE = 10**9
LISTS = ("anthropic", "bedrock", "openai-chat", "openai-responses")
"""Formats in which a result can be a list of texts."""


def conversation(format: str, results: list[Any]) -> dict[str, Any]:
    """One call for each result; the user's own words around them are long."""
    items = user(format, "Find the bug. " + "Please be thorough. " * 60)
    for number, result in enumerate(results):
        items += turn(format, f"call_{number:05}", {"path": f"{number}.py"}, "", "I look there.")
        put(format, items[-1], result)
    last = user(format, "And now?")
    if format == "bedrock":
        items[-1]["content"] += last.pop()["content"]
    return request(format, items + last, MODELS[format])


def put(format: str, item: dict[str, Any], result: Any) -> None:
    """Set the result of one item: a string, or a list of texts where the format has such."""
    texts = result if isinstance(result, list) else None
    if format == "openai-chat":
        item["content"] = [{"type": "text", "text": t} for t in texts] if texts else result
    elif format == "openai-responses":
        item["output"] = [{"type": "input_text", "text": t} for t in texts] if texts else result
    elif format == "anthropic":
        part = item["content"][0]
        part["content"] = [{"type": "text", "text": t} for t in texts] if texts else result
    elif format == "bedrock":
        item["content"][0]["toolResult"]["content"] = [{"text": t} for t in texts or [result]]
    else:
        item["parts"][0]["functionResponse"]["response"] = {"output": result}


def results_of(format: str, body: dict[str, Any]) -> Iterator[list[str]]:
    """The texts of each tool result."""
    for item in items_of(body):
        if format == "openai-chat" and item["role"] == "tool":
            yield texts_in(item["content"])
        elif item.get("type") == "function_call_output":
            yield texts_in(item["output"])
        parts = item.get("content") if format in ("anthropic", "bedrock") else item.get("parts")
        for part in parts if isinstance(parts, list) else ():
            if part.get("type") == "tool_result":
                yield texts_in(part["content"])
            elif "toolResult" in part:
                yield texts_in(part["toolResult"]["content"])
            elif "functionResponse" in part:
                yield [*part["functionResponse"]["response"].values()]


def texts_in(content: Any) -> list[str]:
    return [content] if isinstance(content, str) else [part["text"] for part in content]


def fitted(body: Any, format: str, **limits: Any) -> Any:
    done = trimtab.fit(
        body, format=format, window=WIDE, reserve=0, settings=trimtab.Settings(**limits)
    )
    assert trimtab.check(done.request, format=format) == ()
    return done


def only(format: str, body: Any) -> list[str]:
    (texts,) = results_of(format, body)
    return texts


# ---------------------------------------------------------------- A4


@pytest.mark.row("A4")
@pytest.mark.parametrize("format", FORMATS)
def test_only_tool_results_above_the_limit_are_cut(format: str) -> None:
    body = conversation(format, ["a" * 512, "b" * 513, "c" * 4_000, "short"])
    done = fitted(body, format, result_chars=512)
    same, least, large, short = (texts[0] for texts in results_of(format, done.request))
    assert (same, short) == ("a" * 512, "short")
    assert len(least) <= 512
    assert 300 < len(large) <= 512
    before, after = json.dumps(body), json.dumps(done.request)
    assert after.count("Please be thorough. " * 60) == before.count("Please be thorough. " * 60)
    assert len(done.report.edits) == 2
    assert [done.recall(edit.handle) for edit in done.report.edits] == ["b" * 513, "c" * 4_000]


@pytest.mark.row("A4")
@pytest.mark.parametrize("format", FORMATS)
def test_512_everywhere_is_the_same_object(format: str) -> None:
    body = conversation(format, ["a" * 512, "é" * 512, "\n" + "x" * 511])
    assert fitted(body, format, result_chars=512).request is body


@pytest.mark.row("A4")
@pytest.mark.parametrize("format", LISTS)
def test_a_list_of_texts_counts_together_and_stays_a_list(format: str) -> None:
    body = conversation(format, [["first " * 10, "second " * 90, "third"]])
    texts = only(format, fitted(body, format, result_chars=512).request)
    assert len(texts) == 3
    assert sum(map(len, texts)) <= 512
    assert (texts[0], texts[2]) == ("first " * 10, "third")


# ---------------------------------------------------------------- A5

BIG = "x" * 3_000
JSON_RESULTS = {
    "result key": {"id": 7, "result": BIG, "ok": True},
    "another key": {"id": 7, "stdout": BIG, "ok": True},
    "nested": {"id": 7, "data": {"rows": [{"text": BIG}], "n": 1.5}, "ok": True},
    "array": [BIG, BIG],
    "many items": [*range(2_000)],
    "many members": {f"key {n}": n for n in range(900)},
    "string": BIG,
    "a small result, another big": {"result": "fine", "log": BIG},
}


@pytest.mark.row("A5")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", JSON_RESULTS)
def test_json_stays_json_within_the_limit_and_keeps_its_other_fields(
    format: str, name: str
) -> None:
    value = JSON_RESULTS[name]
    text = json.dumps(value)
    (new,) = only(format, fitted(conversation(format, [text]), format, result_chars=512).request)
    assert len(new) <= 512
    less = json.loads(new)
    assert type(less) is type(value)
    if isinstance(value, dict) and len(value) < 9:
        assert list(less)[: len(value)] == list(value)
        assert (less["truncated"], less["originalLength"]) == (True, len(text))
        for key, one in value.items():
            if len(json.dumps(one)) < 50:
                assert less[key] == one


@pytest.mark.row("A5")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "text",
    [
        '{"a":1.10,"a":NaN,"result":"' + BIG + '","z":-0}',
        '{"z":1e400,"log":"' + BIG + '","big":123456789012345678901234567890}',
    ],
)
def test_duplicate_keys_nan_and_number_spellings_stay(format: str, text: str) -> None:
    (new,) = only(format, fitted(conversation(format, [text]), format, result_chars=512).request)
    assert len(new) <= 512
    json.loads(new)
    assert new.startswith(text[: text.index('":"') + 3])
    assert text[text.index('",') : -1] in new


# ---------------------------------------------------------------- A6


@pytest.mark.row("A6")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("limit", [1, 2, 5, 17, 40, 100, 512, 2_000])
@pytest.mark.parametrize("unit", ["word ", "👩‍👩‍👧‍👦", "e\u0301", "🇩🇪", "line\r\n", "日本語"])
def test_the_total_with_the_note_is_within_the_limit(format: str, limit: int, unit: str) -> None:
    text = unit * (2_400 // len(unit))
    done = fitted(conversation(format, [text]), format, result_chars=limit)
    (new,) = only(format, done.request)
    assert 0 < len(new) <= limit
    assert lone_surrogates(new) == 0
    head, note, tail = new.partition("[... ")
    if note:
        assert text.startswith(head.rstrip("\n"))
        gone = int(tail.split(" chars cut")[0].split(" ")[-1].replace(",", ""))
        assert 0 < gone < len(text)
    (edit,) = done.report.edits
    assert done.recall(edit.handle) == text


# ---------------------------------------------------------------- A7


@pytest.mark.row("A7")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("code", [0xD83D, 0xDE00, 0, 0x1B, 0x7F, 0x85, 0x2028, 0xFFFE])
def test_odd_characters_come_out_as_valid_utf8_and_json(format: str, code: int) -> None:
    odd = chr(code)
    text = f"start {odd} " + f"middle {odd} " * 300 + f"{odd} end"
    raw = json.dumps(conversation(format, [text])).encode("ascii")
    out = fitted(raw, format, result_chars=512).request
    body = json.loads(out.decode("utf-8"))
    (new,) = only(format, body)
    assert len(new) <= 512
    assert lone_surrogates(new) <= lone_surrogates(text)
    assert trimtab.check(body, format=format) == ()


LONE = [0xD83D, 0xDE00]


@pytest.mark.row("A7")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("code", LONE)
@pytest.mark.parametrize("limit", [512, None], ids=["cut", "whole"])
def test_no_half_of_a_character_is_sent(format: str, code: int, limit: int | None) -> None:
    text = f"start {chr(code)} " + "middle " * 300
    raw = json.dumps(conversation(format, [text])).encode("ascii")
    (new,) = only(format, json.loads(fitted(raw, format, result_chars=limit).request))
    assert lone_surrogates(new) == 0


@pytest.mark.row("A7")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("code", LONE)
def test_half_a_character_is_a_violation(format: str, code: int) -> None:
    assert trimtab.check(conversation(format, [f"start {chr(code)} end"]), format=format)


@pytest.mark.row("A7")
@pytest.mark.parametrize("format", FORMATS)
def test_a_pair_of_surrogates_is_never_split(format: str) -> None:
    text = "\ud83d\ude00" * 900  # as some clients hand a character over: two halves
    for limit in (100, 101, 511, 512):
        body = conversation(format, [text])
        (new,) = only(format, fitted(body, format, result_chars=limit).request)
        assert lone_surrogates(new) == 0
        assert len(new) <= limit


@pytest.mark.row("A7")
def test_bytes_that_are_not_utf8_are_refused_in_one_line() -> None:
    raw = json.dumps(session("anthropic")).encode() + b"\xff"
    with pytest.raises(InvalidRequest, match=r"^not UTF-8: byte 0xff at offset [\d,]+"):
        fitted(raw, "anthropic", result_chars=512)


# ---------------------------------------------------------------- A15


@pytest.mark.row("A15")
@pytest.mark.parametrize("format", FORMATS)
def test_thousands_of_results_take_seconds(format: str) -> None:
    many = 5_000 if format == "openai-chat" else 500
    text = "a line of output that is repeated\n" * 18
    body = conversation(format, [f"{n} {text}" for n in range(many)])
    started = time.process_time()
    done = trimtab.fit(
        body, format=format, window=WIDE, reserve=0, settings=trimtab.Settings(result_chars=512)
    )
    assert time.process_time() - started < 60 * many / 10_000 + 5
    assert len(done.report.edits) == many
    assert all(len(texts[0]) <= 512 for texts in results_of(format, done.request))


def rows(count: int) -> str:
    return json.dumps([{"id": n, "text": f"row {n} " * 100} for n in range(count)])


CUT = trimtab.Settings(window=WIDE, reserve=0, result_chars=512, counter=len)


@pytest.mark.row("A15")
def test_a_result_of_50_mb_is_cut_in_seconds() -> None:
    text = rows(45_000)
    assert len(text) > 45_000_000
    body = conversation("anthropic", [text])
    started = time.process_time()
    done = trimtab.fit(body, format="anthropic", settings=CUT)
    assert time.process_time() - started < 30
    assert len(only("anthropic", done.request)[0]) <= 512


@pytest.mark.row("A15")
def test_a_great_result_is_cut_in_little_memory() -> None:
    """A tenth of the other: to trace memory takes most of the time."""
    text = rows(4_500)
    body = conversation("anthropic", [text])
    tracemalloc.start()
    try:
        trimtab.fit(body, format="anthropic", settings=CUT)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 25 * len(text)


# ---------------------------------------------------------------- X2

TINY = ["", "x", "ok\n", "{}", "[]", "null", "[image left out to fit]", '{"a": 1}', "a  \n\n", "é"]


@pytest.mark.row("X2")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("share", [0.02, 0.2, 0.5, 0.9, 1.0])
def test_no_part_and_no_request_ever_grows(format: str, share: float) -> None:
    results = [text or " " for text in TINY] + ["middling output " * 12, "long output " * 400]
    body = conversation(format, results)
    before = trimtab.measure(body, format=format, counter="o200k").total
    window = max(int(before * share), 1)
    try:
        done = trimtab.fit(
            body,
            format=format,
            window=window,
            reserve=0,
            settings=trimtab.Settings(counter="o200k"),
        )
    except trimtab.CannotFit as error:
        window = error.minimum
        done = trimtab.fit(
            body,
            format=format,
            window=window,
            reserve=0,
            settings=trimtab.Settings(counter="o200k"),
        )
    assert done.report.tokens_after <= before
    assert len(json.dumps(done.request)) <= len(json.dumps(body))
    for edit in done.report.edits:
        assert edit.tokens_after < edit.tokens_before


@pytest.mark.row("X2")
@pytest.mark.parametrize("format", FORMATS)
def test_results_shorter_than_a_marker_stay_to_the_letter(format: str) -> None:
    tiny = [text or "." for text in TINY]
    body = conversation(format, [*tiny, "long output that is of no use\n" * 600])
    total = trimtab.measure(body, format=format, counter="o200k").total
    limits = trimtab.Settings(window=total - 400, reserve=0, trigger=1.0)
    done = trimtab.fit(body, format=format, settings=limits | trimtab.Settings(counter="o200k"))
    shown = [texts[0] for texts in results_of(format, done.request)]
    assert shown[: len(tiny)] == tiny
    assert len(shown[-1]) < 600 * 30


# ---------------------------------------------------------------- E14

AS_TEXT = ['{"path": "a.py"', "not json at all", '["a.py"]', "{'path': 'a.py'}", '{"a": 1}}']
AS_VALUE = ["not json at all", ["a.py", {"b": 1}], 7, '{"path": "a.py"}', True]
GIVEN = [
    (format, given)
    for format in FORMATS
    for given in (AS_TEXT if format.startswith("openai") else AS_VALUE)
]


def call_of(format: str, body: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The first call, and the key under which its arguments stand."""
    for item in items_of(body):
        if item.get("type") == "function_call":
            return item, "arguments"
        if item.get("tool_calls"):
            return item["tool_calls"][0]["function"], "arguments"
        for part in item.get("parts") or item.get("content") or ():
            if isinstance(part, dict) and part.get("type") == "tool_use":
                return part, "input"
            if isinstance(part, dict) and "toolUse" in part:
                return part["toolUse"], "input"
            if isinstance(part, dict) and "functionCall" in part:
                return part["functionCall"], "args"
    raise AssertionError("no call")


def leaves(value: Any) -> list[Any]:
    if isinstance(value, (dict, list)):
        inner = value.values() if isinstance(value, dict) else value
        return [leaf for one in inner for leaf in leaves(one)]
    return [value]


@pytest.mark.row("E14")
@pytest.mark.parametrize(("format", "given"), GIVEN, ids=str)
@pytest.mark.parametrize("window", [WIDE, 900])
def test_a_call_with_invalid_arguments_is_mended_or_kept_never_deleted(
    format: str, given: Any, window: int
) -> None:
    body = session(format, steps=1, lines=120)  # one step, the newest: it is never folded
    call, key = call_of(format, body)
    call[key] = given
    whole, calls = copy.deepcopy(body), sum(1 for _ in results_of(format, body))
    limits = trimtab.Settings(window=window, reserve=0)
    done = trimtab.fit(body, format=format, settings=limits | trimtab.Settings(counter="o200k"))
    assert body == whole, "nothing of the caller's is changed"
    assert trimtab.check(done.request, format=format) == ()
    found, _ = call_of(format, done.request)
    assert found["name"] == call["name"]
    assert sum(1 for _ in results_of(format, done.request)) == calls == 1
    assert done.report.tokens_after <= window
    if isinstance(given, str) and isinstance(found[key], str):
        assert found[key] == given, "kept as the text it was"
    else:
        assert isinstance(found[key], dict)
        parsed = json.loads(given) if isinstance(given, str) and given[0] == "{" else given
        assert leaves(found[key]) == leaves(parsed)


@pytest.mark.parametrize("format", FORMATS)
def test_a_plan_never_counts_more_bytes_as_saved_than_a_fold_saves(format: str) -> None:
    text = "\n".join(f"line {n} of file_{n}.py says {n * 7}" for n in range(60))
    whole = conversation(format, [f"{n}: {text}" for n in range(30)])
    most = len(json.dumps(whole).encode())
    window = trimtab.measure(whole, counter="o200k").total // 3
    settings = trimtab.Settings(window=window, reserve=0, request_bytes=most, counter="o200k")
    measured = prepare(whole, TurnInputs(settings))
    plan = planner_for(measured, reduce(measured))
    make_room(plan)
    assert any(run.fold and run.fold.anchor for run in plan.state.runs)
    new = plan.edits()
    sent = apply(measured, (*plan.kept(), *new)).body
    counted = plan.body_bytes - plan.state.bytes_saved
    assert sent.body_bytes <= counted < most / 2
    after = measured.with_journal(Journal(tuple(new)))
    later = planner_for(after, reduce(after))
    counted = later.body_bytes - later.state.bytes_saved
    assert sent.body_bytes <= counted < most / 2, "the same on a later turn"


@pytest.mark.parametrize("format", ["openai-chat", "anthropic"])
def test_a_limit_of_bytes_that_nothing_sent_comes_near_changes_no_turn(format: str) -> None:
    most = trimtab.Settings(request_bytes=24_000)
    free = trimtab.Session(window=8_000, reserve=0, format=format)
    limited = trimtab.Session(window=8_000, reserve=0, format=format, settings=most)
    for steps in range(8, 24):
        body = session(format, steps=steps, lines=60)
        sent = limited.fit(body).request
        assert len(json.dumps(sent).encode()) < 24_000
        assert sent == free.fit(body).request
    assert len(json.dumps(body).encode()) > 2 * 24_000


@pytest.mark.parametrize("limit", [1, 2, 5, 9])
def test_the_oldest_images_give_way_first_and_no_more_than_are_too_many(limit: int) -> None:
    def said(number: int) -> dict[str, Any]:
        url = {"url": f"data:image/png;base64,{f'AAA{number}' * 400}"}
        text = {"type": "text", "text": f"Look at {number}."}
        return {"role": "user", "content": [{"type": "image_url", "image_url": url}, text]}

    yes = {"role": "assistant", "content": "Yes."}
    messages = [message for number in range(9) for message in (said(number), yes)][:-1]
    settings = trimtab.Settings(images=limit)
    fitted = trimtab.fit({"model": "gpt-5", "messages": messages}, settings=settings)
    users = fitted.request["messages"][::2]
    assert users[9 - limit :] == messages[::2][9 - limit :]
    for message in users[: 9 - limit]:
        assert [part["type"] for part in message["content"]] == ["text", "text"]


@pytest.mark.row("A4", "A6")
@pytest.mark.parametrize("limit", [512, 2_000])
@pytest.mark.parametrize("format", LISTS)
def test_a_result_of_several_long_texts_leaves_no_crumbs(format: str, limit: int) -> None:
    texts = [f"{n} " + f"word{n} " * 9_000 for n in range(6)]
    body = conversation(format, [texts])
    fitted = trimtab.fit(
        body, format=format, settings=trimtab.Settings(result_chars=limit, counter="o200k")
    )
    (shown,) = results_of(format, fitted.request)
    assert 0.9 * limit < sum(map(len, shown)) <= limit
    for text in shown:
        assert text == "[...]" or ("[" in text and len(text) > 100), text
    assert shown[0].startswith("0 word0")
    assert shown[-1].rstrip().endswith("word5")


def test_a_text_that_is_too_long_for_one_string_leaves_no_crumbs_either() -> None:
    body = conversation("openai-chat", ["alpha beta gamma " * 830_000])
    fitted = trimtab.fit(
        body, format="openai-chat", settings=trimtab.Settings(result_chars=512, counter="o200k")
    )
    (shown,) = results_of("openai-chat", fitted.request)
    assert len(shown) == 6
    assert min(map(len, shown)) == len("[...]")
