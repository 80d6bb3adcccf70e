"""What answers teach: usage in five formats, slopes, and limits that follow them."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import Any

import pytest
from settings_words import as_keywords

import trimtab
from trimtab.pricing.calibration import KEPT, Calibration, UsageSample
from trimtab.pricing.observed_usage import Counted, Observed
from trimtab.pricing.reported_usage import ReportedUsage as Usage
from trimtab.pricing.reported_usage import read_usage
from trimtab.reporting.measured import measure

CHAT = {
    "prompt_tokens": 900, "completion_tokens": 30, "total_tokens": 930,
    "prompt_tokens_details": {"cached_tokens": 640},
}  # fmt: skip
RESPONSES = {
    "input_tokens": 900, "output_tokens": 30, "total_tokens": 930,
    "input_tokens_details": {"cached_tokens": 640, "cache_write_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 5},
}  # fmt: skip
ANTHROPIC = {
    "input_tokens": 60, "output_tokens": 30,
    "cache_read_input_tokens": 640, "cache_creation_input_tokens": 200,
}  # fmt: skip
BEDROCK = {
    "inputTokens": 60, "outputTokens": 30, "totalTokens": 90,
    "cacheReadInputTokens": 640, "cacheWriteInputTokens": 200,
}  # fmt: skip
GEMINI = {
    "promptTokenCount": 900, "candidatesTokenCount": 20, "thoughtsTokenCount": 10,
    "cachedContentTokenCount": 640, "totalTokenCount": 930,
}  # fmt: skip

ANSWERS: list[tuple[str, Any, Usage]] = [
    ("chat body", {"choices": [], "usage": CHAT}, Usage(900, 30, 640)),
    ("chat without details", {"usage": {"prompt_tokens": 9, "completion_tokens": 2}}, Usage(9, 2)),
    ("deepseek", {"usage": {"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}}, Usage(9, 0, 4)),
    ("responses event", {"type": "response.completed", "response": {"usage": RESPONSES}},
     Usage(900, 30, 640)),
    ("anthropic bytes", json.dumps({"usage": ANTHROPIC}).encode(), Usage(900, 30, 640, 200)),
    ("anthropic uncached", {"usage": {"input_tokens": 9, "output_tokens": 2}}, Usage(9, 2)),
    ("anthropic event", {"type": "message_start", "message": {"usage": ANTHROPIC}},
     Usage(900, 30, 640, 200)),
    ("bedrock body", {"output": {}, "usage": BEDROCK}, Usage(900, 30, 640, 200)),
    ("bedrock event", {"metadata": {"usage": BEDROCK}}, Usage(900, 30, 640, 200)),
    ("gemini body", {"usageMetadata": GEMINI}, Usage(900, 30, 640)),
    ("langchain", {"usage_metadata": {"input_tokens": 900, "output_tokens": 30,
                                      "input_token_details": {"cache_read": 640}}},
     Usage(900, 30, 640)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "expected"), [row[1:] for row in ANSWERS], ids=[row[0] for row in ANSWERS]
)
def test_the_whole_prompt_is_read_from_every_formats_usage(answer: Any, expected: Usage) -> None:
    assert read_usage(answer) == expected


@pytest.mark.parametrize(
    "answer",
    [None, "", b"{", "[]", 7, [], {}, {"usage": None}, {"usage": {"input_tokens": "9"}},
     {"usage": {"input_tokens": -1}}, {"usage": {"input_tokens": True}}, "data: [DONE]"],
)  # fmt: skip
def test_an_answer_without_a_usage_teaches_nothing(answer: Any) -> None:
    assert read_usage(answer) is None


# --- slopes --------------------------------------------------------------------------------------


def learned(*samples: tuple[int, int, int]) -> Calibration:
    done = Calibration()
    for sample in samples:
        done = done.add(UsageSample(*sample))
    return done


def test_the_factor_is_that_of_the_bills_and_the_worst_lies_above_the_mean() -> None:
    found = learned((10_000, 0, 8_000), (20_000, 0, 17_000)).factors(20_000, 0, 40_000)
    assert found is not None
    assert 0.8 <= found.mean <= 0.85
    assert 0.85 < found.worst < 0.9
    assert found.answers == 2


def test_hidden_thinking_has_a_slope_of_its_own() -> None:
    """Text billed at 0.9 of our count, thinking behind signatures at twice our count."""
    chance, done = random.Random(1), Calibration()
    for turn in range(1, 25):
        text, thought = turn * 4_000, chance.randint(0, turn * 1_500)
        noise = chance.uniform(0.99, 1.01)
        done = done.add(UsageSample(text, thought, round((0.9 * text + 2 * thought) * noise)))
    plain, mixed = done.factors(100_000, 0, 200_000), done.factors(50_000, 50_000, 200_000)
    assert plain is not None
    assert mixed is not None
    assert plain.mean == pytest.approx(0.9, abs=0.02)
    assert mixed.mean == pytest.approx(1.45, abs=0.06)


def test_where_text_and_thinking_grew_together_one_factor_holds_for_both() -> None:
    found = learned(*((n * 1_000, n * 100, n * 990) for n in range(2, 9))).factors(9_000, 0, 9_000)
    assert found is not None
    assert found.mean == pytest.approx(0.9, abs=0.001)


def test_small_requests_do_not_make_a_window_larger() -> None:
    """A lower bill than our count is believed from a quarter of the capacity on."""
    small = learned((2_000, 0, 1_400))
    near, far = small.factors(7_000, 0, 8_000), small.factors(90_000, 0, 100_000)
    assert near is not None
    assert far is not None
    assert near.worst < 0.8
    assert (far.mean, far.worst) == (1.0, 1.0)
    assert learned((999, 0, 2_000)).factors(1, 0, 1) is None


def test_only_the_newest_answers_are_kept_and_they_survive_as_json() -> None:
    done = learned(*((10_000 + n, n, 9_000) for n in range(100)))
    assert len(done.samples) == KEPT
    assert done.samples[-1] == UsageSample(10_099, 99, 9_000)
    assert Calibration.from_list(json.loads(json.dumps(done.as_list()))) == done


@pytest.mark.parametrize("rows", [None, 7, "x", [[1, 2]], [["a", 1, 2]], [[0, 0, 5], [-1, 9, 9]]])
def test_facts_that_make_no_sense_are_learned_anew(rows: Any) -> None:
    assert Calibration.from_list(rows) == Calibration()


def test_observed_facts_go_into_a_store_and_back() -> None:
    one, other = Observed(), Observed()
    counted = Counted("openai-chat gpt-5 o200k/1×1.0", 9_000, 0)
    fact = one.answer({"usage": {"prompt_tokens": 8_000}}, counted)
    assert fact is not None
    other.take([fact, ("limits/x", b"1"), ("calibration/y", b"{")])
    assert other.calibrations == one.calibrations


# --- limits follow -------------------------------------------------------------------------------


def request(steps: int, model: str = "claude-sonnet-4-5") -> dict[str, Any]:
    """An Anthropic conversation of so many tool calls."""
    chance = random.Random(7)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Find the fault."}]
    for n in range(steps):
        text = "\n".join(f"src/mod_{chance.randint(0, 99)}.py:{i} value" for i in range(100))
        use = {"type": "tool_use", "id": f"t{n}", "name": "grep", "input": {"q": str(n)}}
        messages.append({"role": "assistant", "content": [use]})
        result = {"type": "tool_result", "tool_use_id": f"t{n}", "content": text}
        messages.append({"role": "user", "content": [result]})
    return {"model": model, "max_tokens": 1_000, "messages": messages}


def bill(tokens: int) -> dict[str, Any]:
    return {"type": "message", "usage": {"input_tokens": tokens, "output_tokens": 5}}


def test_a_session_that_saw_smaller_bills_cuts_later() -> None:
    session = trimtab.Session(window=30_000)
    first = session.fit(request(15))
    assert not first.report.edits
    session.observe(bill(first.report.tokens_after * 8 // 10))
    blind, taught = trimtab.Session(window=30_000).fit(request(24)), session.fit(request(24))
    assert blind.report.edits
    assert not taught.report.edits
    assert taught.report.calibration["mean"] == pytest.approx(0.8, abs=0.001)
    assert "1 answer was billed at 0.8 of our count on average" in str(taught.report)


def test_a_batch_begins_later_where_counts_are_the_models_own_or_were_observed() -> None:
    def trigger(**keywords: Any) -> int | None:
        return trimtab.fit(
            [], **as_keywords(window=10_000, format="openai-chat", **keywords)
        ).report.limits["trigger_tokens"]

    assert trigger(counter="o200k") == trigger(model="gpt-4o") == trigger(counter=len) == 9_500
    assert trigger(model="claude-sonnet-4-5") == trigger(counter="estimate") == 9_000
    assert trigger(counter="o200k", trigger=0.8) == 8_000
    session = trimtab.Session(window=10_000, reserve=0)
    before = session.fit(request(20)).report
    session.observe(bill(before.tokens_after))
    after = session.fit(request(20)).report
    assert after.limits["trigger_tokens"] == int(9_500 / after.calibration["mean"])


def test_a_batch_begins_where_it_began_also_after_a_function_failed_to_count() -> None:
    def count(text: str) -> int:
        return len(text) // 4 if len(text) < 40 else -1

    session = trimtab.Session(window=30_000, settings=trimtab.Settings(counter=count))
    triggers = [session.fit(request(2)).report.limits["trigger_tokens"] for _ in range(2)]
    triggers.append(
        trimtab.Session(window=30_000, settings=trimtab.Settings(counter=count))
        .fit(request(2))
        .report.limits["trigger_tokens"]
    )
    assert len(set(triggers)) == 1, triggers


def test_a_batch_begins_early_on_the_first_count_too_where_the_vocabulary_is_missing() -> None:
    code = (
        "import sys; sys.modules['splintr'] = None\n"
        "import trimtab\n"
        "body = {'model': 'gpt-5.5', 'messages': [{'role': 'user', 'content': 'Hello.'}]}\n"
        "fits = [trimtab.fit(body, window=10_000, reserve=0) for _ in range(2)]\n"
        "print(*(fitted.report.limits['trigger_tokens'] for fitted in fits))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["9000", "9000"]


def test_what_must_fit_fits_by_the_providers_count() -> None:
    """Bills 20 % above our count: what is sent stays below the window as the provider counts."""
    session = trimtab.Session(window=30_000)
    for steps in range(2, 40):
        sent = session.fit(request(steps)).report.tokens_after
        assert steps == 2 or 1.2 * sent <= 29_000
        session.observe(bill(round(1.2 * sent)))


@pytest.mark.parametrize("factor", [0.8, 1.37])
def test_what_cannot_fit_is_told_in_the_tokens_that_the_window_is_given_in(factor: float) -> None:
    session = trimtab.Session(window=30_000)
    sent = session.fit(request(15)).report.tokens_after
    session.observe(bill(round(factor * sent)))
    stubborn = {**request(4), "system": "word " * 9_000}
    with pytest.raises(trimtab.CannotFit) as raised:
        session.fit(stubborn, window=3_000, reserve=500)
    said = raised.value
    ours = trimtab.fit(stubborn, window=100_000).report
    worst = session.fit(request(15)).report.calibration["worst"]
    assert said.allowed == 3_000
    assert "allows 3,000 tokens" in str(said)
    assert said.projected == pytest.approx(worst * ours.tokens_before + 500, abs=3)
    assert said.needed == said.minimum - 3_000 > 0
    system = max(row.tokens for row in measure(stubborn).rows)
    assert said.largest[0][1] == pytest.approx(worst * system, abs=1)
    assert f"{worst:.3g} for one of our count" in str(said)
    # what it names as the smallest window is one
    assert session.fit(stubborn, window=said.minimum, reserve=500)


@pytest.mark.parametrize("factor", [0.9, 1.0, 1.37, 2.113])
def test_the_minimum_of_a_report_is_a_window_that_works_and_one_less_is_none(factor: float) -> None:
    session = trimtab.Session(window=30_000, reserve=0)
    session.observe(bill(round(factor * session.fit(request(15)).report.tokens_after)))
    minimum = session.fit(request(15)).report.minimum
    assert session.fit(request(15), window=minimum).report.tokens_after
    with pytest.raises(trimtab.CannotFit):
        session.fit(request(15), window=minimum - 2)


def test_a_report_names_the_window_that_was_given() -> None:
    session = trimtab.Session(window=30_000)
    session.observe(bill(round(1.2 * session.fit(request(15)).report.tokens_after)))
    assert "the window allows 29,000 of the provider's tokens, " in str(
        session.fit(request(30)).report
    )


def test_edits_of_earlier_turns_stay_where_the_calibration_moves() -> None:
    session = trimtab.Session(window=30_000)
    before: list[Any] = []
    breaks = 0
    for steps in range(1, 60):
        done = session.fit(request(steps))
        sent = done.request["messages"]
        new = any(edit.new for edit in done.report.edits)
        assert new or sent[: len(before)] == before
        breaks += new
        session.observe(bill(round((0.7 + 0.3 * (steps % 3) / 2) * done.report.tokens_after)))
        before = sent
    assert 0 < breaks < 12


def test_another_model_in_the_session_is_not_judged_by_the_first() -> None:
    session = trimtab.Session(window=30_000)
    session.observe(bill(9_000), session.fit(request(9)))
    assert session.fit(request(9)).report.calibration
    assert session.fit(
        request(9, "us.anthropic.claude-sonnet-4-5-20250929-v1:0")
    ).report.calibration
    assert not session.fit(request(9, "claude-opus-4-7")).report.calibration


def test_an_answer_counts_for_the_request_it_is_given_with() -> None:
    session = trimtab.Session(window=100_000)
    first, second = session.fit(request(10)), session.fit(request(30))
    session.observe(bill(first.report.tokens_after), first)
    session.observe(bill(second.report.tokens_after))
    assert session.fit(request(31)).report.calibration["mean"] == pytest.approx(1.0, abs=0.001)


def test_observing_before_anything_was_sent_or_without_a_model_is_no_error() -> None:
    session = trimtab.Session(window=30_000)
    session.observe(bill(100))
    session.fit({"messages": [{"role": "user", "content": "word " * 2_000}]})
    session.observe(bill(2_000))
    assert not session.fit(request(3)).report.calibration


def test_one_false_count_among_others_moves_nothing_and_the_same_twice_is_believed():
    usual = [UsageSample(10_000 + 500 * n, 0, 10_300 + 515 * n) for n in range(6)]
    before = Calibration(tuple(usual)).factors(12_000, 0, 30_000)
    for billed in (30_000, 60_000):
        false = UsageSample(12_000, 0, billed)
        assert Calibration((*usual, false)).factors(12_000, 0, 30_000).worst == before.worst
        twice = Calibration((*usual, false, false)).factors(12_000, 0, 30_000)
        assert twice.worst > 2


def test_the_only_answer_is_not_believed_where_it_bills_half_as_much_again():
    assert Calibration((UsageSample(10_000, 0, 15_100),)).factors(10_000, 0, 30_000) is None
    assert Calibration((UsageSample(10_000, 0, 14_900),)).factors(10_000, 0, 30_000) is not None
    agreed = Calibration((UsageSample(10_000, 0, 17_700), UsageSample(11_000, 0, 19_400)))
    assert agreed.factors(10_000, 0, 30_000).mean > 1.7


def test_one_count_far_below_the_others_moves_nothing():
    usual = [UsageSample(10_000 + 500 * n, 0, 10_300 + 515 * n) for n in range(6)]
    before = Calibration(tuple(usual)).factors(12_000, 0, 30_000)
    after = Calibration((*usual, UsageSample(12_000, 0, 6_000))).factors(12_000, 0, 30_000)
    assert (after.mean, after.worst) == (before.mean, before.worst)
