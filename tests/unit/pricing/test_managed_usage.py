"""Usage of requests that the provider cleared or compacted: the bill, calibration, limits.

Knows how Anthropic tells it: ``applied_edits`` and ``usage.iterations``.
"""

from __future__ import annotations

import json

import pytest

import trimtab
from trimtab.pricing.reported_usage import read_usage
from trimtab.proxy.http.answer_usage import TokenUsage
from trimtab.retry.flow import Accepted, Refused, flow
from trimtab.retry.learned_limits import LearnedLimits

FILE = "".join(f"src/mod.py:{n}: token {n * 7919} alpha beta\n" for n in range(300))
CLEARS = {"edits": [{"type": "clear_tool_uses_20250919"}]}


def request(steps=8, **more):
    messages = [{"role": "user", "content": "Read."}]
    for n in range(steps):
        call = {"type": "tool_use", "id": f"toolu_{n}", "name": "read", "input": {"path": f"{n}"}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": f"{n}\n{FILE}"}
        messages += [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]
    return {"model": "claude-opus-4-6", "max_tokens": 500, "messages": messages, **more}


def cleared(tokens, input):
    edit = {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 4,
            "cleared_input_tokens": tokens}  # fmt: skip
    return {"usage": {"input_tokens": input, "output_tokens": 5},
            "context_management": {"applied_edits": [edit]}}  # fmt: skip


STEP = {"input_tokens": 170_000, "output_tokens": 900, "cache_read_input_tokens": 10_000,
        "cache_creation_input_tokens": 0}  # fmt: skip
COMPACTED = {
    "usage": {
        "input_tokens": 17_000,
        "output_tokens": 40,
        "cache_read_input_tokens": 0,
        "iterations": [
            {"type": "compaction", **STEP},
            {"type": "message", "input_tokens": 17_000, "output_tokens": 40},
        ],
    }
}
TOOLS = {
    "usage": {
        "input_tokens": 9_000,
        "output_tokens": 40,
        "iterations": [
            {"type": "message", "input_tokens": 8_000, "output_tokens": 30},
            {"type": "message", "input_tokens": 9_000, "output_tokens": 40},
        ],
    }
}


def test_the_bill_is_the_sum_of_all_steps():
    found = read_usage(COMPACTED)
    assert (found.input_tokens, found.output_tokens, found.read) == (197_000, 940, 10_000)
    assert found.sent is None
    found = read_usage(TOOLS)
    assert (found.input_tokens, found.output_tokens, found.sent) == (17_000, 70, 8_000)


def test_what_was_cleared_was_sent_and_is_not_billed():
    found = read_usage(cleared(60_000, 20_000))
    assert (found.input_tokens, found.sent) == (20_000, 80_000)


@pytest.mark.parametrize("answer", [cleared(12_000, 4_000), COMPACTED, TOOLS, cleared(0, 4_000)])
def test_the_proxy_tells_the_library_what_was_sent(answer):
    usage = TokenUsage()
    usage.take(answer)
    told, plain = read_usage(usage.counts), read_usage(answer)
    assert (told and told.sent) == plain.sent
    assert usage.prompt == plain.input_tokens


def test_in_a_stream_what_was_cleared_may_come_after_the_count():
    usage = TokenUsage()
    usage.take({"type": "message_start", "message": {"usage": {"input_tokens": 4_000}}})
    usage.take({**cleared(12_000, 0), "type": "message_delta", "usage": {"output_tokens": 9}})
    assert read_usage(usage.counts).sent == 16_000


def test_calibration_compares_what_was_sent():
    """Our count is the provider's: clearing half of it must not teach that it counts half."""
    session = trimtab.Session(window=200_000)
    for _ in range(6):
        fitted = session.fit(request(context_management=CLEARS))
        session.observe(cleared(fitted.tokens_after // 2, fitted.tokens_after // 2), fitted)
    after = session.fit(request(context_management=CLEARS))
    assert 0.95 < after.report.calibration["mean"] < 1.05


@pytest.mark.parametrize("answer", [COMPACTED, {"usage": {"input_tokens": 900}}])
def test_what_does_not_tell_what_was_sent_teaches_nothing(answer):
    session = trimtab.Session(window=200_000)
    for _ in range(3):
        session.observe(answer, session.fit(request(context_management=CLEARS)))
    report = session.fit(request(context_management=CLEARS)).report
    assert not report.calibration or not report.calibration.get("answers")


def test_keeping_all_thinking_clears_nothing_so_any_answer_teaches():
    """Claude Code asks for it in each request; a gateway may leave out ``applied_edits``."""
    kept = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    session = trimtab.Session(window=200_000)
    for _ in range(6):
        fitted = session.fit(request(context_management=kept))
        session.observe({"usage": {"input_tokens": fitted.tokens_after // 2}}, fitted)
    assert session.fit(request(context_management=kept)).report.calibration["answers"] == 6


def test_an_acceptance_after_clearing_teaches_no_larger_window():
    learned = LearnedLimits()
    session = trimtab.Session(window=10**6)
    refusal = {"error": {"message": "prompt is too long: 31000 tokens > 20000 maximum"}}
    run = flow(json.dumps(request(12)).encode(), session.fit, key="k", learned=learned)
    next(run)
    run.send(Refused(400, refusal))
    known = learned.get("k")
    body = json.dumps(request(12, context_management=CLEARS)).encode()
    run = flow(body, lambda sent, **_: trimtab.fit(sent, window=10**6), key="k", learned=learned)
    next(run)
    with pytest.raises(StopIteration):
        run.send(Accepted())
    assert learned.get("k") == known


def test_a_refusal_that_counts_what_is_left_teaches_no_larger_window():
    learned = LearnedLimits()
    session = trimtab.Session(window=10**6)
    body = json.dumps(request(30, context_management=CLEARS)).encode()
    run = flow(body, session.fit, key="k", learned=learned)
    sent = next(run).fitted.tokens_after
    limit = sent // 2
    run.send(Refused(400, {"error": {"message": f"prompt is too long: {limit + 900} tokens > "
                                                f"{limit} maximum"}}))  # fmt: skip
    assert learned.get("k").prompt_tokens(0) <= limit * 1.02
