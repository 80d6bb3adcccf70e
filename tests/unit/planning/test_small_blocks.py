"""Many small blocks of one result shrink as one block of the same text would."""

from __future__ import annotations

import json
from typing import Any

import pytest
from shapes import results
from tool_calls import Step, conversation

import trimtab

TEXTS = [f"{n} part_{n * 7919 % 977} holds value_{n * 31 % 613}" for n in range(600)]
LISTED = ("openai-chat", "openai-responses", "anthropic", "bedrock")
"""Formats in which a result may be a list of texts."""


def body_of(format: str, texts: list[str] | str, more: int = 0) -> dict[str, Any]:
    """A question and its result, as a list of texts or as one; ``more`` steps behind it."""
    body = conversation(
        format,
        Step("list_parts", {"of": "a"}, "HERE"),
        *(Step("ask", {"n": n}, f"answer {n} " + "w" * 40) for n in range(more)),
    )
    kind = "input_text" if format == "openai-responses" else "text"
    parts: Any = texts
    if isinstance(texts, list):
        parts = [{"text": t} if format == "bedrock" else {"type": kind, "text": t} for t in texts]
    there = json.dumps([{"text": "HERE"}] if format == "bedrock" else "HERE")
    if format == "bedrock" and isinstance(texts, str):
        parts = [{"text": texts}]
    return json.loads(json.dumps(body).replace(there, json.dumps(parts), 1))


@pytest.mark.parametrize("format", LISTED)
@pytest.mark.parametrize("window", [4_000, 1_500, 600])
def test_six_hundred_small_texts_shrink_as_one_of_the_same_text(format: str, window: int) -> None:
    given = body_of(format, TEXTS)
    many = trimtab.fit(given, window=window, reserve=0, format=format)
    one = trimtab.fit(body_of(format, "\n".join(TEXTS)), window=window, reserve=0, format=format)
    assert trimtab.check(many.request, format=format) == ()
    assert results(format, many.request)[0] == results(format, one.request)[0]
    assert abs(many.report.tokens_after - one.report.tokens_after) <= 4
    assert abs(many.report.minimum - one.report.minimum) <= 4
    (edit,) = many.report.edits
    recalled = json.loads(many.recall(edit.handle))
    assert [part["text"] for part in recalled] == TEXTS


@pytest.mark.parametrize("format", LISTED)
def test_what_is_shown_of_small_texts_stays_over_turns_and_restarts(format: str) -> None:
    session = trimtab.Session(window=3_000, reserve=0, format=format)
    first = session.fit(body_of(format, TEXTS))
    shown = results(format, first.request)[0]
    later = body_of(format, TEXTS, more=3)
    assert results(format, session.fit(later).request)[0] == shown
    again = trimtab.Session(window=3_000, reserve=0, format=format, journal=session.journal)
    assert results(format, again.fit(later).request)[0] == shown
    as_bytes = trimtab.Session(window=3_000, reserve=0, format=format, journal=session.journal)
    assert results(format, json.loads(as_bytes.fit(json.dumps(later).encode()).request))[0] == shown


def test_a_pinned_text_among_many_stays_whole() -> None:
    given = body_of("anthropic", TEXTS)
    plain = trimtab.fit(given, window=4_000, reserve=0)
    ref = plain.report.edits[0].refs[300]
    fitted = trimtab.fit(given, window=5_000, reserve=0, settings=trimtab.Settings(pins=[ref]))
    assert TEXTS[300] in results("anthropic", fitted.request)[0].split("\n")


def test_a_result_may_have_so_many_characters_and_texts_are_cut_as_one() -> None:
    given = body_of("anthropic", TEXTS)
    limits = trimtab.Settings(window=100_000, result_chars=2_000)
    fitted = trimtab.fit(given, format="anthropic", settings=limits)
    shown = results("anthropic", fitted.request)[0]
    assert 1_000 < len(shown) <= 2_000
    assert len(fitted.report.edits) == 1


def rows(count: int, seed: int) -> str:
    return json.dumps({"rows": [{"id": n, "t": f"w{n * seed % 9973} " * 9} for n in range(count)]})


NUMBERS, WORDS = (json.dumps([n * n % 100_003 for n in range(22_000)]), "one two three four ")
ONE_LINERS = {"rows": rows(1_400, 7), "numbers": NUMBERS, "a text": json.dumps(WORDS * 15_000)}


@pytest.mark.parametrize("name", ONE_LINERS)
def test_one_long_line_of_json_uses_the_room_that_ten_would(name: str) -> None:
    body = conversation("anthropic", Step("get", {"of": name}, ONE_LINERS[name]), *[
        Step("ask", {"n": n}, f"answer {n}") for n in range(8)
    ])  # fmt: skip
    fitted = trimtab.fit(body, window=30_000, reserve=0, preset="in-place")
    goal = fitted.report.limits["target_tokens"]
    assert 0.9 * goal <= fitted.report.tokens_after <= goal


GONE = "No such file: it was removed, or the path is wrong."


def parallel_calls(format: str) -> dict[str, Any]:
    """Ten calls of one message, each with a short result of its own, and no step behind them."""
    asked = {"text": "w " * 900}
    if format == "gemini":
        calls = [{"functionCall": {"name": "read", "args": asked}} for _ in range(10)]
        answers = [{"functionResponse": {"name": "read", "response": {"output": GONE}}}] * 10
        return {"contents": [
            {"role": "user", "parts": [{"text": "Read all."}]},
            {"role": "model", "parts": calls},
            {"role": "user", "parts": answers},
        ]}  # fmt: skip
    ids = [f"toolu_{n}" for n in range(10)]
    return {"messages": [
        {"role": "user", "content": "Read all."},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": id, "name": "read", "input": asked} for id in ids]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": GONE}
            for id in ids]},
    ]}  # fmt: skip


@pytest.mark.parametrize("format", ["anthropic", "gemini"])
@pytest.mark.parametrize("window", [6_000, 2_000, 1_200])
def test_short_results_of_parallel_calls_are_not_taken_for_parts_of_one(
    format: str, window: int
) -> None:
    fitted = trimtab.fit(parallel_calls(format), window=window, reserve=0, format=format)
    assert fitted.report.warnings == ()
    assert trimtab.check(fitted.request, format=format) == ()
    assert len(results(format, fitted.request)) == 10
