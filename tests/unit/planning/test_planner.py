"""Rows A8 and E1–E4: when compressing begins, where it ends, what it keeps and what it reports."""

from __future__ import annotations

import json
import logging
import random
import re
from typing import Any

import pytest
from blocks import CONFIG, LOG, RECALL, block, offers
from chat_requests import body, call, calls, result, user
from output_facts import NAMES, output
from pairs import orphans, texts, user_texts
from settings_words import as_keywords
from shapes import FORMATS, items_of, parts, session

import trimtab
from trimtab.reducers import Config, text_levels, user_cut


def fit(request: Any, window: int | None, **more: Any) -> Any:
    return trimtab.fit(
        request, **as_keywords(window=window, **{"reserve": 0, "counter": "o200k", **more})
    )


def size(request: Any) -> int:
    return trimtab.measure(request, counter="o200k").total


def encoded(request: Any) -> int:
    return len(json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode())


# --- A8: what is reported as shortened is shorter -------------------------------------------------

SHAPES = {  # of design A's own measurements: an array and a bulk in another key did not shrink
    "JSON array": json.dumps([{"n": n, "text": "x" * 40} for n in range(40)]),
    "JSON object, bulk elsewhere": json.dumps({"stdout": "line of output\n" * 330, "code": 0}),
    "JSON object": json.dumps({"result": "word " * 1_000, "status": "ok"}),
    "JSON string": json.dumps("word " * 1_000),
    "plain text": "a line of text\n" * 120,
    "one line": "word " * 1_000,
    "characters of three bytes": "日本語のテキスト。" * 300,
    "lone surrogates": "\ud83d odd " * 600,
}  # fmt: skip


@pytest.mark.row("A8")
@pytest.mark.parametrize("limit", [512, 200])
@pytest.mark.parametrize("name", SHAPES)
def test_modified_means_that_bytes_really_shrank_and_each_edit_says_from_what_to_what(
    name: str, limit: int, caplog: pytest.LogCaptureFixture
) -> None:
    request = body(user(), calls(call()), result(content=SHAPES[name]), user("And?"))
    with caplog.at_level(logging.DEBUG, logger="trimtab"):
        fitted = fit(request, None, settings=trimtab.Settings(result_chars=limit))
    sent = fitted.request["messages"][2]["content"]
    assert fitted.report.modified
    assert len(sent) <= limit
    assert len(sent.encode("utf-8", "surrogatepass")) < len(
        SHAPES[name].encode("utf-8", "surrogatepass")
    )
    (edit,) = fitted.report.edits
    assert (edit.chars_before, edit.chars_after) == (len(SHAPES[name]), len(sent))
    assert edit.path == ("messages", 2, "content")
    told = [record.getMessage() for record in caplog.records if record.levelname == "DEBUG"]
    said = f"#2 from {len(SHAPES[name])} chars to {len(sent)} chars ({edit.kind}:"
    assert [text[: len(said)] for text in told] == [said]


@pytest.mark.row("A8")
@pytest.mark.parametrize("format", FORMATS)
def test_each_edit_of_each_format_takes_chars_tokens_and_bytes_away(format: str) -> None:
    request = session(format, steps=12, lines=30)
    fitted = fit(request, size(request) // 3)
    assert fitted.report.modified
    assert encoded(fitted.request) < encoded(request)
    for edit in fitted.report.edits:
        assert edit.chars_after < edit.chars_before
        assert edit.tokens_after < edit.tokens_before


@pytest.mark.row("A8")
@pytest.mark.parametrize("format", FORMATS)
def test_where_nothing_shrinks_nothing_is_reported_as_modified(
    format: str, caplog: pytest.LogCaptureFixture
) -> None:
    request = session(format, steps=2, lines=3)
    with caplog.at_level(logging.DEBUG, logger="trimtab"):
        fitted = fit(request, None, settings=trimtab.Settings(result_chars=10_000))
    assert not fitted.report.modified
    assert fitted.request is request
    assert caplog.records == []


# --- E1: only over the limit, and a counter that fails --------------------------------------------


@pytest.mark.row("E1")
@pytest.mark.parametrize("format", FORMATS)
def test_nothing_happens_up_to_the_limit_and_something_above_it(format: str) -> None:
    request = session(format, steps=6, lines=30)
    for window, acts in ((size(request), False), (size(request) - 1, True)):
        fitted = fit(request, window, settings=trimtab.Settings(trigger=1.0))
        assert bool(fitted.report.edits) is acts
        assert (fitted.request is request) is not acts


@pytest.mark.row("E1")
def test_a_counter_that_fails_is_replaced_and_named() -> None:
    request = session("openai-chat", steps=8, lines=30)

    def failing(text: str) -> int:
        raise ConnectionError("the counting service is down")

    fitted = fit(request, size(request) // 2, settings=trimtab.Settings(counter=failing))
    assert fitted.report.edits
    assert any("counter failed" in text for text in fitted.report.warnings)
    assert size(fitted.request) <= size(request) // 2 * 1.1


@pytest.mark.row("E1")
@pytest.mark.parametrize("answer", [-1, None, "12", 2.5, True, float("nan")])
def test_a_counter_that_answers_nonsense_counts_as_failed(answer: Any) -> None:
    request = session("openai-chat", steps=8, lines=30)
    fitted = fit(
        request, size(request) // 2, settings=trimtab.Settings(counter=lambda text: answer)
    )
    assert trimtab.check(fitted.request) == ()


@pytest.mark.row("E1")
def test_the_estimate_by_characters_needs_no_tokenizer_and_stays_on_the_safe_side() -> None:
    request = session("openai-chat", steps=8, lines=30)
    fitted = fit(request, size(request) // 2, settings=trimtab.Settings(counter="estimate"))
    assert size(fitted.request) <= size(request) // 2


# --- E2: what is recent stays ---------------------------------------------------------------------


@pytest.mark.row("E2")
@pytest.mark.parametrize("format", FORMATS)
def test_the_newest_messages_are_the_very_objects_that_came(format: str) -> None:
    request = session(format, steps=120, lines=2)
    fitted = fit(request, size(request) // 2)
    came, sent = items_of(request), items_of(fitted.request)
    same = 0
    for one, other in zip(reversed(came), reversed(sent), strict=False):
        if one is not other:
            break
        same += 1
    whole = came[len(came) - same :]
    tokens = sum(size({**request, **{key: [item] for key in ("messages", "contents", "input")
                                     if key in request}}) for item in whole)  # fmt: skip
    assert tokens >= 0.05 * size(fitted.request)
    assert [kind for kind, _, _ in parts(whole)].count("result") >= 3


@pytest.mark.row("E2")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("steps", [1, 2, 4])
def test_with_fewer_messages_than_that_the_older_ones_give_way_first(
    format: str, steps: int
) -> None:
    request = session(format, steps=steps, lines=90)
    fitted = fit(request, int(size(request) * 0.7))
    assert trimtab.check(fitted.request) == ()
    results = [json.dumps(part) for kind, _, part in parts(fitted.request) if kind == "result"]
    shown = [len(part) for part in results if "earlier step" not in part]  # one note for several
    assert shown == sorted(shown) or steps == 1
    assert f"src/mod_{steps - 1}.py:0: token 0" in " ".join(texts(fitted.request))


@pytest.mark.row("E2")
@pytest.mark.parametrize("format", FORMATS)
def test_a_big_recent_result_is_cut_rather_than_everything_else(format: str) -> None:
    small = list(texts(items_of(session(format, steps=5, lines=4))))
    request = json.loads(
        json.dumps(session(format, steps=5, lines=4)).replace(
            json.dumps(next(t for t in small if t.startswith("src/mod_4.py:0")))[1:-1],
            json.dumps("".join(f"found at offset {n * 7919}\n" for n in range(1_500)))[1:-1],
        )
    )
    window = size(request) // 2
    fitted = fit(request, window)
    assert size(fitted.request) <= window
    assert trimtab.check(fitted.request) == ()
    shown = [t for t in texts(fitted.request) if "found at offset 0\n" in t]
    assert len(shown) == 1
    assert "found at offset 11870581" in shown[0]
    assert orphans(fitted.request) == []


# --- E3: down to a target -------------------------------------------------------------------------


@pytest.mark.row("E3")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("target", [0.6, 0.4])
def test_a_batch_goes_down_to_the_target_and_then_rests(format: str, target: float) -> None:
    request = session(format, steps=40, lines=20)
    window = int(size(request) * 0.95)
    fitted = fit(request, window, target=target)
    goal = fitted.report.limits["target_tokens"]
    assert goal is not None
    assert goal <= window * (target + 0.05)
    assert size(fitted.request) <= goal
    assert fit(fitted.request, window, target=target).request is fitted.request


def random_words(number: int) -> str:
    draw = random.Random(number)
    return " ".join("".join(draw.choices("abcdefghij", k=draw.randint(3, 9))) for _ in range(400))


FOURTEEN = {
    "random words": random_words,
    "one sentence": lambda _: "The quick brown fox jumps over the lazy dog. " * 126,
    "its own words": lambda n: f"page {n} lorem ipsum " * 240,
    "lines": lambda n: "".join(f"{n} {k} The fox jumps over the lazy dog.\n" for k in range(95)),
}
"""What makes a result of some 1,250 tokens."""


@pytest.mark.row("E3")
@pytest.mark.parametrize("name", FOURTEEN)
def test_of_fourteen_results_no_more_goes_than_the_target_asks(name: str) -> None:
    steps = [(calls(call(f"c{n}")), result(f"c{n}", FOURTEEN[name](n))) for n in range(14)]
    request = body(user("Read the pages."), *[message for pair in steps for message in pair])
    assert size(request) > 15_000
    fitted = fit(request, 12_000, target=0.75)
    goal = fitted.report.limits["target_tokens"]
    assert goal is not None
    assert 0.9 * goal <= size(fitted.request) <= goal


@pytest.mark.row("E3")
def test_a_target_that_cannot_be_reached_is_no_error_as_long_as_it_fits() -> None:
    request = body(
        user("word " * 3_000),
        *[m for n in range(6) for m in (calls(call(f"c{n}")), result(f"c{n}", LOG[:900]))],
        user("?"),
    )
    window = int(size(request) * 0.98)
    fitted = fit(request, window, target=0.1)
    assert size(fitted.request) <= window
    assert trimtab.check(fitted.request) == ()


# --- E4: nothing of ours looks like a call or a result --------------------------------------------

CALLISH = re.compile(
    r"<\|?(?:tool|function|invoke|antml)|tool_calls?\b|tool_use|tool_result|toolUse|toolResult"
    r"|functionCall|\[TOOL_|Action(?: Input)?:|Observation:|^\s*Tool:|\bfunctions\.\w"
    r"|\{\s*\"name\"",
    re.MULTILINE,
)


def added(original: str, shown: str) -> list[str]:
    """What is shown and did not stand in the original: notes, and lines around a cut."""
    lines = set(original.split("\n"))
    found = [line for line in shown.split("\n") if line not in lines]
    return [piece for line in found for piece in re.findall(r"\[[^\[\]]*\]", line)]


@pytest.mark.row("E4")
@pytest.mark.parametrize("config", [CONFIG, RECALL], ids=["plain", "recall"])
@pytest.mark.parametrize("name", [*NAMES, "log", "words"])
def test_no_note_looks_like_a_call_or_a_result(name: str, config: Any) -> None:
    text = {"log": LOG, "words": "some words of a page. " * 900}.get(name) or output(name)
    levels = offers(block(text, error=True), config)
    levels += text_levels(block(text, "text"), config)
    assert levels
    for offer in levels:
        for note in added(text, offer.text):
            assert not CALLISH.search(note), note
            assert len(note) < 240
    cut = user_cut(text, config, 200)
    assert cut is not None
    assert not any(CALLISH.search(note) for note in added(text, cut))


def test_what_a_user_wrote_between_two_pastes_stays_when_the_text_is_cut() -> None:
    rules = ("Never push to main.", "Keep the old names, please:\n- left\n- right")
    rows = (f"2026-03-04T10:00:{n % 60:02}Z INFO job {n} must have ended" for n in range(90))
    log = "\n".join(rows)
    text = f"Here is what I got:\n{log}\n\n{rules[0]}\n\n{log}\n\n{rules[1]}"
    config = Config(count=lambda text: len(text) // 4)
    for tokens in (200, 400, 1_000):
        cut = user_cut(text, config, tokens)
        assert cut is not None
        assert 0.8 * tokens < len(cut) // 4 <= tokens
        assert all(cut.count(rule) == 1 for rule in rules)
        assert cut.startswith("Here is what I got:")
    least = user_cut(text, config, 1)
    assert least is not None
    assert len(least) < 300, "where there is no room at all, the ends alone stay"


def test_of_a_long_text_that_was_all_written_the_newest_pieces_stay() -> None:
    said = [f"Sentence {n} tells of the thing with the number {n * 7} in it." for n in range(120)]
    cut = user_cut(" ".join(said), Config(count=lambda text: len(text) // 4), 400)
    assert cut is not None
    assert 320 < len(cut) // 4 <= 400
    kept = [one in cut for one in said[2:]]
    assert kept == sorted(kept)
    assert cut.startswith(said[0])


def test_no_cut_of_a_users_text_is_smaller_than_the_smallest() -> None:
    text = f"Read src/{'x' * 88}/main.py first. {'And then go on with the rest. ' * 40}{'y' * 120}"

    def count(of: str) -> int:  # as in real tokenizers, a word that is cut in two costs more
        return sum(1 if len(word) % 7 else 5 for word in of.split())

    cuts = [user_cut(text, Config(count=count), tokens) for tokens in range(1, 120)]
    sizes = [count(cut) for cut in cuts if cut is not None]
    assert min(sizes) == sizes[0]
    assert sizes[80] > sizes[0], "where most of it may stay, most of it stays"


@pytest.mark.row("E4")
@pytest.mark.parametrize("format", FORMATS)
def test_what_was_a_result_never_comes_back_as_words_of_the_user(format: str) -> None:
    request = session(format, steps=40, lines=10)
    for share in (0.5, 0.2, 0.1):
        fitted = fit(request, int(size(request) * share))
        own = ("Find the bug in the parser.", "And now?")
        for text in user_texts(format, fitted.request):
            said_, _, note = text.partition("\n\n[") if text.startswith(own) else ("", "", text[1:])
            assert said_ in ("", *own)
            assert not note or re.match(r"\d+ earlier steps?\b[^\]]*\]", note), "named"
            assert not CALLISH.search(text)


@pytest.mark.row("E4")
@pytest.mark.parametrize("format", FORMATS)
def test_no_line_of_a_result_stands_in_a_users_message(format: str) -> None:
    request = session(format, steps=40, lines=10)
    for share in (0.5, 0.2, 0.1):
        told = "\n".join(user_texts(format, fit(request, int(size(request) * share)).request))
        assert not re.findall(r"token \d+", told)


@pytest.mark.row("E4")
@pytest.mark.parametrize("format", FORMATS)
def test_long_results_are_cut_in_their_middle_to_3000_chars(format: str) -> None:
    request = session(format, steps=3, lines=400)
    fitted = fit(request, None, settings=trimtab.Settings(result_chars=3_000))
    assert trimtab.check(fitted.request) == ()
    for kind, _, part in parts(fitted.request):
        if kind == "result":
            told = max(texts(part), key=len)
            assert 2_000 < len(told) <= 3_000
            number = re.search(r"mod_(\d)", told)
            assert number
            assert told.startswith(f"src/mod_{number[1]}.py:0: token 0\n")
            assert told.rstrip().endswith(f"src/mod_{number[1]}.py:399: token {399 * 7919}")
            assert re.search(r"^\[\.\.\. \d+ lines, [\d,]+ chars cut.*\]$", told, re.MULTILINE)
