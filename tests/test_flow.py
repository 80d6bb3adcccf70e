"""One request sent, refused, made smaller and sent again: every shape of an overflow.

Knows the strict provider's styles and what a caller may see.  The driver is flow_driver.py.
"""

from __future__ import annotations

import itertools
import json
import logging

import pytest
from five_formats import FORMATS, session
from flow_driver import drive

import trimtab
from trimtab.flow import Accepted, Refused, Totals, flow
from trimtab.sending.learned import LearnedLimits, key_for
from trimtab.testing import Refuse, StrictProvider, styles

EVERY = pytest.mark.parametrize("format", FORMATS)
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
PAIRS = [(name, format) for name, style in styles().items() for format in style.formats]


def big(format, steps=10, lines=60):
    """About 1,000 tokens a step."""
    return session(format, steps=steps, lines=lines)


def reactive():
    """A session that knows no window: what a caller has who has configured nothing."""
    return trimtab.Session(window=10_000_000)


def shrinking(got):
    """Whether what answers a refusal about size is smaller than what was refused."""
    pairs = zip(itertools.pairwise(got.sent), got.done.refusals, strict=False)
    return all(len(after) < len(before) for (before, after), why in pairs if why.about_size)


@EVERY
@STREAMS
@pytest.mark.parametrize("shape", ["status", "in-stream", "empty-stream", "finish"])
def test_X9_an_overflow_is_survived_however_it_shows(format, stream, shape):
    if shape == "finish" and format in ("openai-responses", "gemini"):
        return  # they have no such reason to stop
    with_provider = StrictProvider(window=8_000, overflow_as=shape)
    learned = LearnedLimits()
    got = drive(
        with_provider, format, big(format, 14), reactive().fit, stream=stream, learned=learned
    )
    assert got.done.accepted, got.done
    assert 2 <= got.done.attempts <= 3
    assert shrinking(got)
    assert with_provider.requests[-1].refusal == ""
    assert got.status == 200


@pytest.mark.parametrize(("style", "format"), PAIRS, ids=lambda x: str(x))
@STREAMS
def test_A3_an_overflow_is_survived_in_every_providers_words(style, format, stream):
    provider = StrictProvider(window=9_000, style=style)
    got = drive(provider, format, big(format, 16), reactive().fit, stream=stream)
    if stream and provider.requests[0].truncated:  # told only by the usage of what was passed on
        assert got.done.attempts == 1
        return
    assert got.done.accepted, got.done
    assert 2 <= got.done.attempts <= 3
    assert shrinking(got)


@EVERY
def test_A13_a_learned_limit_is_met_at_the_first_send_from_then_on(format):
    learned, fitter = LearnedLimits(), reactive()
    provider = StrictProvider(window=8_000)
    first = drive(provider, format, big(format, 14), fitter.fit, learned=learned, key="k")
    second = drive(provider, format, big(format, 15), fitter.fit, learned=learned, key="k")
    assert (first.done.attempts > 1, second.done.attempts) == (True, 1)
    other = drive(provider, format, big(format, 14), reactive().fit, learned=learned, key="other")
    assert other.done.attempts > 1  # another credential, model or endpoint


def test_a_learned_limit_is_forgotten_after_its_time():
    now = [0.0]
    learned = LearnedLimits(clock=lambda: now[0])
    provider = StrictProvider(window=8_000)
    body = big("openai-chat", 14)
    drive(provider, "openai-chat", body, reactive().fit, learned=learned, key="k")
    now[0] += 30 * 24 * 3_600
    again = drive(provider, "openai-chat", body, reactive().fit, learned=learned, key="k")
    assert again.done.attempts > 1


@EVERY
@STREAMS
@pytest.mark.parametrize("when", ["rate", "server_error", "overloaded"])
def test_X10_rate_and_server_errors_pass_through_after_one_send(format, stream, when):
    provider = StrictProvider([Refuse(when, times=9, retry_after=1)])
    got = drive(provider, format, big(format), reactive().fit, stream=stream)
    assert (got.done.accepted, got.done.attempts, len(got.sent)) == (False, 1, 1)


def test_X10_a_rate_error_that_is_really_size_is_answered_by_shrinking():
    provider = StrictProvider([Refuse("rate_size", limit=6_000)])
    got = drive(provider, "openai-chat", big("openai-chat", 14), reactive().fit)
    assert (got.done.accepted, got.done.attempts) == (True, 2)
    assert provider.requests[1].tokens < 6_000


OPAQUE = {
    "error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "ERROR"}}
}


def opaque(times):
    return Refuse("opaque", times=times, status=400, body=OPAQUE)


def test_A1_A9_a_bare_ERROR_is_answered_once_by_shorter_tool_results(caplog):
    caplog.set_level(logging.DEBUG, "trimtab")
    provider = StrictProvider([opaque(1)])
    body = big("openai-chat", 3, lines=100)
    got = drive(provider, "openai-chat", body, reactive().fit, retry_result_chars=512)
    assert (got.done.accepted, got.done.attempts) == (True, 2)
    results = [m["content"] for m in json.loads(got.sent[1])["messages"] if m["role"] == "tool"]
    assert results
    assert all(len(text) <= 512 for text in results)


def test_A9_a_second_ERROR_surfaces_and_there_is_no_third_send():
    provider = StrictProvider([opaque(9)])
    undone = []
    got = drive(
        provider, "openai-chat", big("openai-chat", 3, lines=100), reactive().fit,
        retry_result_chars=512, undo=undone.append,
    )  # fmt: skip
    assert (got.done.accepted, got.done.attempts, len(provider.requests)) == (False, 2, 2)
    assert json.loads(got.body)["error"]["metadata"]["raw"] == "ERROR"
    assert len(undone) == 1


def test_A9_where_no_result_is_longer_the_first_error_surfaces():
    provider = StrictProvider([opaque(9)])
    body = big("openai-chat", 3, lines=2)
    got = drive(provider, "openai-chat", body, reactive().fit, retry_result_chars=512)
    assert (got.done.attempts, len(provider.requests)) == (1, 1)


def test_A9_without_that_switch_a_small_request_is_not_touched_a_large_one_once():
    small = drive(StrictProvider([opaque(9)]), "openai-chat", big("openai-chat", 2), reactive().fit)
    assert small.done.attempts == 1
    large = drive(
        StrictProvider([opaque(9)]), "openai-chat", big("openai-chat", 14), reactive().fit
    )
    assert large.done.attempts == 2


def told(caplog, *, stream: bool) -> list[tuple[str, str]]:
    """(level, line) of what is logged where "ERROR" is answered by one smaller request."""
    caplog.set_level(logging.DEBUG, "trimtab")
    body = big("openai-chat", 3, lines=100)
    drive(
        StrictProvider([opaque(1)]), "openai-chat", body, reactive().fit,
        retry_result_chars=512, stream=stream,
    )  # fmt: skip
    assert "token 7919" not in caplog.text, "nothing of what a message says"
    return [(record.levelname, record.getMessage()) for record in caplog.records]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_A2_detection_is_logged_at_debug(caplog, stream):
    lines = told(caplog, stream=stream)
    assert [level for level, text in lines if "400 with raw metadata" in text] == ["DEBUG"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_A10_the_retry_is_logged_as_a_warning_and_a_stream_by_its_own_words(caplog, stream):
    lines = told(caplog, stream=stream)
    (line,) = [text for level, text in lines if level == "WARNING" and "retrying" in text]
    request = "streaming request" if stream else "request"
    assert line.startswith(f"retrying {request} after compressing tool responses due to a provider")


def test_A14_totals_events_and_the_summary_say_what_was_done():
    events, totals = [], Totals()
    got = drive(
        StrictProvider(window=8_000), "openai-chat", big("openai-chat", 14), reactive().fit,
        on_event=events.append, totals=totals,
    )  # fmt: skip
    names = [event.name for event in events]
    assert (names.count("refusal"), names[-1]) == (1, "retry")
    retry = events[-1]
    assert retry.outcome == "accepted"
    assert retry.tokens_after < 8_000 < retry.tokens_before
    counted = (totals.requests, totals.changed, totals.refusals, totals.retries, totals.recovered)
    assert counted == (1, 1, 1, 1, 1)
    assert totals.tokens_saved == retry.tokens_before - retry.tokens_after
    assert totals.seconds >= 0
    assert "attempt 2 after too_long" in got.done.summary


def test_A16_bytes_refused_by_the_edge_are_answered_by_a_smaller_body():
    provider = StrictProvider(request_bytes=20_000)
    got = drive(provider, "anthropic", big("anthropic", 14), reactive().fit)
    assert got.done.accepted
    assert len(got.sent[-1]) <= 20_000


def test_A16_a_repeated_413_ends_with_the_providers_own_answer():
    provider = StrictProvider([Refuse("request_bytes", times=9)])
    got = drive(provider, "anthropic", big("anthropic", 30), reactive().fit)
    assert (got.done.accepted, got.done.attempts, got.status) == (False, 3, 413)
    assert shrinking(got)


def test_A18_what_cannot_shrink_ends_with_the_providers_error_and_says_what_is_missing(caplog):
    provider = StrictProvider(window=3_000)
    body = {"model": "gpt-5.1", "messages": [{"role": "system", "content": "rule " * 6_000},
                                             {"role": "user", "content": "go"}]}  # fmt: skip
    got = drive(provider, "openai-chat", body, reactive().fit)
    assert (got.done.accepted, got.done.attempts, got.status) == (False, 1, 400)
    lost = got.done.cannot_fit
    assert (lost.limit, lost.needed > 0, lost.projected > 3_000) == ("window", True, True)
    assert "cannot fit: window" in got.done.summary


def test_A17_as_last_resort_the_largest_result_goes_first_and_calls_keep_their_results():
    """Nine small results and a huge one, in a window that holds the small ones."""
    body = big("openai-chat", 9, lines=8)
    huge = "".join(f"row {n}: {n * 7919} and more\n" for n in range(3_000))
    body["messages"][8]["content"] = huge
    provider = StrictProvider(window=6_000)
    session = trimtab.Session(window=10_000_000, preset="in-place")
    got = drive(provider, "openai-chat", body, session.fit)
    assert got.done.accepted
    sent = json.loads(got.sent[-1])["messages"]
    calls = [call["id"] for m in sent for call in m.get("tool_calls") or ()]
    assert calls == [m["tool_call_id"] for m in sent if m["role"] == "tool"]
    kept = {m["tool_call_id"]: m["content"] for m in sent if m["role"] == "tool"}
    before = {m["tool_call_id"]: m["content"] for m in body["messages"] if m["role"] == "tool"}
    touched = [call_id for call_id, text in kept.items() if text != before[call_id]]
    assert touched == [body["messages"][8]["tool_call_id"]]


def test_A18_a_cannot_fit_names_its_numbers_and_hints_at_the_output(caplog):
    said = [{"role": "system", "content": "rule " * 6_000}, {"role": "user", "content": "go"}]
    run = flow({"model": "m", "max_tokens": 9_000, "messages": said}, trimtab.Session(
        window=10_000).fit)  # fmt: skip
    assert next(run).fitted is None  # sent as it came: the provider has the last word
    with pytest.raises(StopIteration) as stop:
        run.send(Refused(400, "context length exceeded"))
    lost = stop.value.value.cannot_fit
    assert (lost.limit, lost.allowed) == ("window", 10_000)
    assert lost.needed == lost.floor - 10_000 > 0
    assert lost.projected >= lost.floor
    assert "9,000 of 10,000" in lost.hint
    assert [r.levelname for r in caplog.records][:1] == ["ERROR"]


def test_X11_what_the_server_holds_is_neither_repaired_nor_sent_again():
    provider = StrictProvider([Refuse("rule:orphan_result", times=9)])
    result = {"type": "function_call_output", "call_id": "call_9", "output": "x"}
    body = {"model": "gpt-5.1", "conversation": "conv_1", "input": [result]}
    data = json.dumps(body).encode()
    run = flow(data, reactive().fit)
    assert next(run).request == data
    with pytest.raises(StopIteration) as stop:
        run.send(Refused(400, {"error": {"message": "No tool call found for function call output "
                                                    "with call_id call_9."}}))  # fmt: skip
    assert stop.value.value.attempts == 1
    assert provider.requests == []


def test_a_rule_we_held_to_be_somebody_elses_is_mended_and_remembered():
    learned = LearnedLimits()
    body = {"model": "my-alias", "messages": [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "done"},
        {"role": "user", "content": "and now?"}]}  # fmt: skip
    provider = StrictProvider(style="mistral")
    first = drive(provider, "openai-chat", body, reactive().fit, learned=learned, key="k")
    assert first.done.accepted, (first.done, first.body)
    assert first.done.attempts > 1
    again = drive(provider, "openai-chat", body, reactive().fit, learned=learned, key="k")
    assert (again.done.accepted, again.done.attempts) == (True, 1)


def test_a_binding_refusal_is_answered_without_the_thinking():
    body = session("anthropic", model="claude-sonnet-4-5")
    run = flow(json.dumps(body).encode(), reactive().fit)
    next(run)
    said = "messages.1.content.0: Invalid `signature` in `thinking` block"
    again = run.send(Refused(400, {"type": "error", "error": {"message": said}}))
    assert again.attempt == 2
    assert b'"thinking"' not in again.request
    with pytest.raises(StopIteration):
        run.send(Refused(400, {"type": "error", "error": {"message": said}}))


def test_what_is_no_request_of_ours_is_sent_as_it_came():
    for odd in (b"\x89PNG", b"{}", b'{"model": "x"}', b"[1, 2]"):
        run = flow(odd, reactive().fit)
        assert next(run).request is odd
        with pytest.raises(StopIteration) as stop:
            run.send(Refused(400, "context length exceeded"))
        assert stop.value.value.attempts == 1


def test_an_error_of_ours_sends_what_came():
    def broken(request, **keywords):
        raise RuntimeError("a bug")

    run = flow(b"{}", broken)
    assert next(run).request == b"{}"
    with pytest.raises(StopIteration) as stop:
        run.send(Accepted())
    assert stop.value.value.accepted
    with pytest.raises(RuntimeError):
        next(flow(b"{}", broken, strict=True))


def test_an_error_of_ours_after_the_answer_is_a_warning_and_the_answer_stands(caplog):
    class Broken(LearnedLimits):
        def accepted(self, key, tokens, output):
            raise OSError("the disk is gone")

    body = big("openai-chat", 2)
    got = drive(StrictProvider(), "openai-chat", body, reactive().fit, learned=Broken())
    assert (got.done.accepted, got.status) == (True, 200)
    assert "the disk is gone" in caplog.text


@EVERY
@STREAMS
@pytest.mark.parametrize("status", [401, 403, 404, 422, 500])
def test_A11_what_nobody_recognises_passes_through_after_one_send(format, stream, status):
    body = {"error": {"message": "Something is wrong.", "type": "error"}}
    provider = StrictProvider([Refuse("rate", times=9, status=status, body=body)])
    got = drive(provider, format, big(format), reactive().fit, stream=stream)
    assert (got.done.accepted, len(got.sent), json.loads(got.body)) == (False, 1, body)


@EVERY
def test_a_request_that_nothing_is_wrong_with_leaves_as_the_very_same_bytes(format):
    got = drive(StrictProvider(), format, big(format, 2), reactive().fit)
    assert (got.done.attempts, got.done.summary) == (1, "unchanged")
    assert json.loads(got.sent[0])


def test_silent_truncation_is_noticed_by_the_usage_and_sent_again():
    provider = StrictProvider(window=3_000, overflow_as="truncate")
    got = drive(provider, "openai-chat", big("openai-chat", 14), reactive().fit)
    assert got.done.accepted
    assert got.done.attempts == 2
    assert provider.requests[-1].truncated == 0


def test_silent_truncation_of_a_stream_is_learned_for_the_next_request():
    learned = LearnedLimits()
    run = flow(
        json.dumps(big("openai-chat", 14)).encode(), reactive().fit, learned=learned, key="k"
    )
    next(run)
    with pytest.raises(StopIteration) as stop:
        run.send(Accepted(prompt_tokens=3_000, final=True))
    assert stop.value.value.accepted
    run = flow(
        json.dumps(big("openai-chat", 14)).encode(), reactive().fit, learned=learned, key="k"
    )
    assert next(run).fitted.tokens_after <= 3_000


def test_a_key_holds_no_credential():
    key = key_for("api.openai.com", "gpt-5.1", "Bearer sk-secret")
    assert key.startswith("api.openai.com|gpt-5.1|")
    assert "secret" not in key
    assert key != key_for("api.openai.com", "gpt-5.1", "Bearer sk-other")
