"""Compressing retrieval results just in time, row by row: when, what is counted, what is logged."""

from __future__ import annotations

import json
import logging
import re
from typing import Any

import judge
import pytest
from retrieval_cases import articles, conversation, prose, results_of
from settings_words import as_keywords
from shapes import FORMATS, items_of
from sizes import o200k

import trimtab
from trimtab import ArticleRule, InvalidSetting, Session

WINDOW = 262_144


def searches(format: str, number: int = 3, sentences: int = 30) -> dict[str, Any]:
    results = [
        json.dumps({"articles": articles(7, sentences, seed=n, answer=n)}) for n in range(number)
    ]
    return conversation(format, results)


def size(body: Any, **more: Any) -> int:
    return int(
        trimtab.fit(body, **as_keywords(window=10**8, counter="o200k", **more)).report.tokens_before
    )


# ---------------------------------------------------------------- C1, C2, C10


@pytest.mark.row("C1")
@pytest.mark.parametrize("format", FORMATS)
def test_exactly_at_the_threshold_nothing_happens_and_one_token_above_it_does(
    format: str,
) -> None:
    body = searches(format)
    total = size(body)
    window = next(w for w in range(total, 2 * total) if int(w * 0.85) == total)
    at = trimtab.fit(
        body, window=window, reserve=0, settings=trimtab.Settings(trigger=0.85, counter="o200k")
    )
    assert at.request is body
    above = trimtab.fit(
        body, window=window - 2, reserve=0, settings=trimtab.Settings(trigger=0.85, counter="o200k")
    )
    assert above.report.edits


@pytest.mark.row("C1")
def test_the_threshold_of_the_design_is_85_percent_of_its_window() -> None:
    report = trimtab.fit(
        [], window=WINDOW, reserve=0, format="openai-chat", settings=trimtab.Settings(trigger=0.85)
    ).report
    assert report.limits["trigger_tokens"] == 222_822


@pytest.mark.row("C1")
def test_an_unknown_window_is_named_as_what_is_missing() -> None:
    with pytest.raises(InvalidSetting, match="window"):
        trimtab.fit(searches("openai-chat"))


MORE: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    # what is added to the body, and to the messages before the last user message
    "the system prompt": ({}, [{"role": "system", "content": prose(1, 30)}]),
    "tool schemas": (
        {"tools": [{"type": "function", "function": {
            "name": "read", "description": prose(2, 30), "parameters": {"type": "object"}}}]},
        [],
    ),
    "call arguments": ({}, [
        {"role": "assistant", "content": None, "tool_calls": [{
            "id": "call_more", "type": "function",
            "function": {"name": "read", "arguments": json.dumps({"q": prose(3, 30)})}}]},
        {"role": "tool", "tool_call_id": "call_more", "content": "ok"}]),
    "content as a list": ({}, [
        {"role": "user", "content": [{"type": "text", "text": prose(4, 30)}]}]),
    "an image": ({}, [
        {"role": "user", "content": [
            {"type": "text", "text": "See."},
            {"type": "image_url", "image_url": {"url": "https://ex.org/a.png"}}]}]),
    "reasoning": ({}, [
        {"role": "assistant", "content": "Yes.", "reasoning_content": prose(5, 30)}]),
}  # fmt: skip


@pytest.mark.row("C2")
@pytest.mark.parametrize("name", MORE)
def test_the_total_counts_more_than_the_text_of_messages(name: str) -> None:
    body = searches("openai-chat", 1)
    head, messages = MORE[name]
    grown = {**body, **head, "model": "deepseek-chat"}
    body["model"] = "deepseek-chat"
    grown["messages"] = [*messages, *body["messages"]]
    assert size(grown) >= size(body) + (300 if name != "an image" else 80)


@pytest.mark.row("C2")
@pytest.mark.parametrize("format", FORMATS)
def test_the_total_is_that_of_all_parts_in_every_format(format: str) -> None:
    body = searches(format)
    texts = "".join(results_of(body))
    assert (
        size(body)
        >= trimtab.transcript.tokens.counter_for("o200k", model=None, format="")(texts) + 30
    )
    if format in ("openai-chat", "anthropic"):
        assert size(body) == judge.tokens(body["messages"], format, o200k())


@pytest.mark.row("C2")
@pytest.mark.parametrize("format", FORMATS)
def test_the_output_reserve_counts_against_the_window(format: str) -> None:
    body = searches(format)
    total = size(body)
    limits = trimtab.Settings(window=total + 1_000, reserve=0, trigger=1.0)
    assert trimtab.fit(body, settings=limits | trimtab.Settings(counter="o200k")).request is body
    reserved = trimtab.Settings(window=total + 1_000, reserve=1_001, trigger=1.0)
    fitted = trimtab.fit(body, settings=reserved | trimtab.Settings(counter="o200k"))
    assert fitted.report.tokens_after <= total - 1


@pytest.mark.row("C10")
@pytest.mark.parametrize("format", FORMATS)
def test_a_static_margin_is_a_setting(format: str) -> None:
    body = searches(format)
    window = int(size(body) / 0.75)
    late = trimtab.fit(
        body, window=window, reserve=0, settings=trimtab.Settings(trigger=0.85, counter="o200k")
    )
    early = trimtab.fit(
        body, window=window, reserve=0, settings=trimtab.Settings(trigger=0.70, counter="o200k")
    )
    assert late.request is body
    assert early.report.edits
    assert early.report.tokens_after <= 0.70 * window


# ---------------------------------------------------------------- C9


def number(text: str) -> int:
    return int(text.replace(",", ""))


@pytest.mark.row("C9")
@pytest.mark.parametrize("rule", [ArticleRule(), ArticleRule.just_in_time()])
@pytest.mark.parametrize("format", FORMATS)
def test_the_log_names_each_article_and_its_figures_add_up(
    format: str, rule: ArticleRule, caplog: pytest.LogCaptureFixture
) -> None:
    body = searches(format)
    window = int(size(body) * 0.8)
    caplog.set_level(logging.INFO, "trimtab")
    fitted = trimtab.fit(
        body,
        window=window,
        reserve=0,
        target=0.6,
        settings=trimtab.Settings(trigger=0.85, counter="o200k", articles=rule),
    )
    lines = [(record.levelname, record.getMessage()) for record in caplog.records]
    lines = lines[next(n for n, line in enumerate(lines) if line[1].startswith("Context at")) :]
    report = fitted.report
    share = f"{report.tokens_before / window:.0%}"
    assert lines[0] == (
        "WARNING",
        f"Context at {report.tokens_before:,} tokens ({share} of {window:,} window), "
        "compressing tool results",
    )
    changed = [
        (old["title"], old["content"], new["content"])
        for before, after in zip(results_of(body), results_of(fitted.request), strict=True)
        for old, new in zip(*(json.loads(t)["articles"] for t in (before, after)), strict=True)
        if old["content"] != new["content"]
    ]
    count = trimtab.transcript.tokens.counter_for("o200k", model=None, format="")
    assert [line for line in lines if line[1].startswith("Compressed article")] == [
        ("INFO", f"Compressed article '{title}': {count(old):,} → {count(new):,} tokens "
                 f"(saved {count(old) - count(new):,})")
        for title, old, new in changed
    ]  # fmt: skip
    total = re.fullmatch(
        r"Compression complete: saved ([\d,]+) tokens, new total ([\d,]+) \((\d+%) of window\)",
        lines[-1][1],
    )
    assert total
    assert lines[-1][0] == "INFO"
    saved = [re.search(r"saved (-?[\d,]+)", text) for _, text in lines[1:-1]]
    assert sum(number(match[1]) for match in saved if match) == number(total[1])
    assert report.tokens_before - number(total[1]) == number(total[2]) == report.tokens_after


@pytest.mark.row("C9")
def test_nothing_is_logged_where_nothing_is_compressed_nor_twice_in_a_session(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "trimtab")
    body = searches("openai-chat")
    trimtab.fit(body, window=10**7)
    assert caplog.records == []
    session = Session(
        window=int(size(body) * 0.8), reserve=0, settings=trimtab.Settings(counter="o200k")
    )
    session.fit(body)
    lines = len(caplog.records)
    assert lines > 3
    session.fit(body)
    assert len(caplog.records) == lines


@pytest.mark.row("C9")
def test_no_content_and_no_control_characters_get_into_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "trimtab")
    items = articles(4)
    for item in items:
        item["title"] = "a\nCompression complete: \x1b[31m" + "x" * 500
    body = conversation("openai-chat", [json.dumps({"articles": items})])
    trimtab.fit(body, window=int(size(body) * 0.6), reserve=0)
    for record in caplog.records:
        assert record.getMessage().isprintable()
        assert len(record.getMessage()) < 250
        assert items[0]["content"][:40] not in record.getMessage()


# ---------------------------------------------------------------- C13


@pytest.mark.row("C13")
@pytest.mark.parametrize("format", FORMATS)
def test_what_the_calls_left_will_need_decides_when_to_cut(format: str) -> None:
    body = searches(format)  # three calls, each about a third of the total
    total = size(body)
    limits = trimtab.Settings(
        window=int(total / 0.97), reserve=0
    )  # above the trigger, but within the window

    def fit(calls_left: int | None) -> Any:
        return trimtab.fit(
            body, settings=limits | trimtab.Settings(counter="o200k", calls_left=calls_left)
        )

    assert fit(None).report.edits
    assert fit(0).request is body
    assert fit(1).report.edits
    roomy = trimtab.Settings(window=int(total * 1.05) + total // 3, reserve=0, trigger=0.5)
    kept = trimtab.fit(body, settings=roomy | trimtab.Settings(counter="o200k", calls_left=1))
    assert kept.request is body


@pytest.mark.row("C13")
@pytest.mark.parametrize("format", FORMATS)
def test_no_more_is_cut_than_the_calls_left_will_need(format: str) -> None:
    body = searches(format, 8, 12)
    total = size(body)
    limits = trimtab.Settings(window=int(total / 0.95), reserve=0, trigger=0.9, target=0.4)
    plain = trimtab.fit(
        body, settings=limits | trimtab.Settings(counter="o200k")
    ).report.tokens_after
    few = trimtab.fit(
        body, settings=limits | trimtab.Settings(counter="o200k", calls_left=1)
    ).report.tokens_after
    many = trimtab.fit(
        body, settings=limits | trimtab.Settings(counter="o200k", calls_left=50)
    ).report.tokens_after
    assert many == plain < few
    assert few + total // 8 <= limits.window


@pytest.mark.row("C13")
def test_without_a_call_so_far_the_trigger_stays() -> None:
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": prose(1, 40)}]}
    report = trimtab.fit(body, window=2_000, settings=trimtab.Settings(calls_left=3)).report
    assert report.limits["trigger_tokens"] == 1_900


@pytest.mark.row("C13")
@pytest.mark.parametrize("wrong", [-1, 1.5, "two", True])
def test_calls_left_is_a_count(wrong: Any) -> None:
    with pytest.raises(InvalidSetting, match="calls_left"):
        trimtab.fit([], window=1000, settings=trimtab.Settings(calls_left=wrong))


def test_items_stay_in_place() -> None:
    """Only results change: the same number of items in every format, all else as it was."""
    for format in FORMATS:
        body = searches(format)
        fitted = trimtab.fit(
            body, window=size(body) // 2, reserve=0, settings=trimtab.Settings(counter="o200k")
        )
        assert len(items_of(fitted.request)) == len(items_of(body))
