"""One request sent, refused, made smaller and sent again: every shape of an overflow.

Knows the strict provider's styles and what a caller may see.  The driver is flow_driver.py.
"""

from __future__ import annotations

import itertools
import json
import logging
from functools import partial
from math import ceil

import pytest
from flow_driver import drive, played
from shapes import FORMATS, KEYS, SIX, session

import trimtab
from trimtab.reducers.base import markers
from trimtab.retry.flow import Accepted, Refused, SendStats, flow
from trimtab.retry.learned_limits import LearnedLimits, ModelLimits, key_for
from trimtab.sessions.edit_history import take_back
from trimtab.transcript.families import VOCABULARIES
from trimtab_lab.testing import Refuse, StrictProvider, styles

EVERY = pytest.mark.parametrize("format", FORMATS)
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
PAIRS = [(n, format) for n, s in styles().items() for format in s.formats if format in FORMATS]


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


@pytest.mark.row("X9")
@EVERY
@STREAMS
@pytest.mark.parametrize("shape", ["status", "in-stream", "empty-stream", "finish"])
def test_an_overflow_is_survived_however_it_shows(format, stream, shape):
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


@pytest.mark.row("A3")
@pytest.mark.parametrize(("style", "format"), PAIRS, ids=lambda x: str(x))
@STREAMS
def test_an_overflow_is_survived_in_every_providers_words(style, format, stream):
    provider = StrictProvider(window=9_000, style=style)
    got = drive(provider, format, big(format, 16), reactive().fit, stream=stream)
    assert got.done.accepted, got.done
    if provider.requests[0].truncated:  # an answer is an answer: only its count tells
        assert got.done.attempts == 1
        return
    assert 1 <= sum(why.about_size for why in got.done.refusals) <= 2
    assert sum(not why.about_size for why in got.done.refusals) <= 2  # ids and order, at Mistral
    assert shrinking(got)


@pytest.mark.row("A13")
@EVERY
def test_a_learned_limit_is_met_at_the_first_send_from_then_on(format):
    learned = LearnedLimits()
    provider = StrictProvider(window=8_000)
    first = drive(provider, format, big(format, 14), reactive().fit, learned=learned, key="k")
    second = drive(provider, format, big(format, 15), reactive().fit, learned=learned, key="k")
    # Responses' refusal names no limit: it is found between what fitted and what did not.
    assert first.done.attempts > 1
    assert second.done.attempts <= (2 if format == "openai-responses" else 1)
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


@pytest.mark.parametrize(("counter", "sent_whole"), [("o200k/1×1.0", False), ("old/1×1.0", True)])
def test_a_ratio_learned_under_other_counts_makes_nothing_smaller(counter, sent_whole):
    """The limit is the provider's and holds; what we counted then is compared with nothing."""
    body = {"model": "gpt-5", **big("openai-chat", 14)}
    tokens = trimtab.measure(body).total
    learned = LearnedLimits()
    known = ModelLimits(int(1.5 * tokens), 2.0, exactness="exact", refused=tokens, counter=counter)
    learned.put("k", known)
    provider = StrictProvider(window=int(1.5 * tokens))
    got = drive(provider, "openai-chat", body, reactive().fit, learned=learned, key="k")
    assert got.done.attempts == 1
    assert (json.loads(got.sent[0]) == body) is sent_whole


@pytest.mark.row("X10")
@EVERY
@STREAMS
@pytest.mark.parametrize("when", ["rate", "server_error", "overloaded"])
def test_rate_and_server_errors_pass_through_after_one_send(format, stream, when):
    provider = StrictProvider([Refuse(when, times=9, retry_after=1)])
    got = drive(provider, format, big(format), reactive().fit, stream=stream)
    assert (got.done.accepted, got.done.attempts, len(got.sent)) == (False, 1, 1)


@pytest.mark.row("X10")
def test_a_rate_error_that_is_really_size_is_answered_by_shrinking():
    provider = StrictProvider([Refuse("rate_size", limit=6_000)])
    got = drive(provider, "openai-chat", big("openai-chat", 14), reactive().fit)
    assert (got.done.accepted, got.done.attempts) == (True, 2)
    assert provider.requests[1].tokens < 6_000


OPAQUE = {
    "error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "ERROR"}}
}


def opaque(times):
    return Refuse("opaque", times=times, status=400, body=OPAQUE)


@pytest.mark.row("A1", "A9")
def test_a_bare_error_is_answered_once_by_shorter_tool_results(caplog):
    caplog.set_level(logging.DEBUG, "trimtab")
    provider = StrictProvider([opaque(1)])
    body = big("openai-chat", 3, lines=100)
    got = drive(provider, "openai-chat", body, reactive().fit, retry_result_chars=512)
    assert (got.done.accepted, got.done.attempts) == (True, 2)
    results = [m["content"] for m in json.loads(got.sent[1])["messages"] if m["role"] == "tool"]
    assert results
    assert all(len(text) <= 512 for text in results)


def longest(sent):
    """Characters of the longest result in a request of the chat format."""
    return max(len(m["content"]) for m in json.loads(sent)["messages"] if m["role"] == "tool")


@pytest.mark.row("A9")
def test_a_third_error_surfaces_and_there_is_no_fourth_send():
    provider = StrictProvider([opaque(9)])
    undone = []
    got = drive(
        provider, "openai-chat", big("openai-chat", 3, lines=100), reactive().fit,
        retry_result_chars=512, undo=undone.append,
    )  # fmt: skip
    assert (got.done.accepted, got.done.attempts, len(provider.requests)) == (False, 3, 3)
    assert [longest(sent) <= most for sent, most in zip(got.sent[1:], (512, 96), strict=True)]
    assert json.loads(got.body)["error"]["metadata"]["raw"] == "ERROR"
    assert len(undone) == 1


def test_a_size_refusal_behind_a_bare_error_is_read_and_remembered():
    body, learned, session = big("openai-chat", 8), LearnedLimits(), reactive()

    def provider(request):
        tokens = len(json.dumps(request)) // 4
        if tokens > 4_000:
            return Refused(400, OPAQUE)
        words = f"This model's maximum context length is 2000 tokens, you have {tokens} tokens."
        return Refused(400, {"error": {"message": words}}) if tokens > 2_000 else Accepted()

    for sends in (3, 1):
        done, sent = played(flow(body, session.fit, key="k", learned=learned), provider)
        assert (done.accepted, len(sent)) == (True, sends)


@pytest.mark.parametrize("times", [2, 3], ids=["the second send", "the third too"])
def test_what_was_cut_for_a_bare_error_is_whole_again_if_a_later_send_is_refused_for_another_reason(
    times,
):
    body, session = big("openai-chat", 8), reactive()
    answers = iter(
        [
            OPAQUE,
            *[
                {"error": {"message": "too many images: at most 5 are allowed"}}
                if times == 2
                else {"error": {"message": "Prompt is too long"}}
            ]
            * 2,
        ]
    )
    run = flow(
        body, session.fit, key="k", learned=LearnedLimits(), undo=partial(take_back, session)
    )
    done, sent = played(run, lambda _: Refused(400, next(answers)))
    assert (done.accepted, len(sent)) == (False, times)
    results = [one["content"] for one in body["messages"] if one["role"] == "tool"]
    again = [one["content"] for one in session.fit(body).request["messages"]
             if one["role"] == "tool"]  # fmt: skip
    assert again[-1] == results[-1]


@pytest.mark.row("A9")
def test_where_no_result_is_longer_the_first_error_surfaces():
    provider = StrictProvider([opaque(9)])
    body = big("openai-chat", 3, lines=2)
    got = drive(provider, "openai-chat", body, reactive().fit, retry_result_chars=512)
    assert (got.done.attempts, len(provider.requests)) == (1, 1)


@pytest.mark.row("A9")
@pytest.mark.parametrize("refusal", [OPAQUE, ""], ids=["ERROR", "no body"])
def test_a_refusal_without_a_reason_is_answered_twice_and_with_0_stands(refusal):
    def attempts(steps, lines, **given):
        provider = StrictProvider([Refuse("opaque", times=9, status=400, body=refusal)])
        body = big("openai-chat", steps, lines)
        return drive(provider, "openai-chat", body, reactive().fit, **given).done.attempts

    assert attempts(2, 10) == 1, "no long result, and a small request"
    assert attempts(2, 60) == 3
    assert attempts(60, 10) == 3, "no long result, but it may be too large as a whole"
    assert attempts(14, 60, retry_result_chars=0) == 1


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


@pytest.mark.row("A2")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_detection_is_logged_at_debug(caplog, stream):
    lines = told(caplog, stream=stream)
    assert [level for level, text in lines if "400 with raw metadata" in text] == ["DEBUG"]


@pytest.mark.row("A10")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_the_retry_is_logged_as_a_warning_and_a_stream_by_its_own_words(caplog, stream):
    lines = told(caplog, stream=stream)
    (line,) = [text for level, text in lines if level == "WARNING" and "retrying" in text]
    request = "streaming request" if stream else "request"
    assert line.startswith(f"retrying {request} after compressing tool responses due to a provider")


def test_a_retry_with_a_lower_output_limit_alone_is_logged_with_both(caplog):
    message = "max_tokens is too large: 64000. This model supports at most 25000 tokens"
    refusal = Refuse("opaque", status=400, body={"error": {"message": message}})
    body = {**big("openai-chat", 3), "max_tokens": 64_000}
    caplog.set_level(logging.WARNING, "trimtab")
    drive(StrictProvider([refusal]), "openai-chat", body, reactive().fit)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("sent again with 25,000 output tokens instead of 64,000, due to a ")


@pytest.mark.row("A14")
def test_totals_events_and_the_summary_say_what_was_done():
    events, stats = [], SendStats()
    got = drive(
        StrictProvider(window=8_000), "openai-chat", big("openai-chat", 14), reactive().fit,
        on_event=events.append, stats=stats,
    )  # fmt: skip
    names = [event.name for event in events]
    assert (names.count("refusal"), names[-1]) == (1, "retry")
    retry = events[-1]
    assert retry.outcome == "accepted"
    assert retry.tokens_after < 8_000 < retry.tokens_before
    counted = (stats.requests, stats.changed, stats.refusals, stats.retries, stats.recovered)
    assert counted == (1, 1, 1, 1, 1)
    assert stats.tokens_saved == retry.tokens_before - retry.tokens_after
    assert stats.seconds >= 0
    assert "attempt 2 after too_long" in got.done.summary


@pytest.mark.row("A16")
def test_bytes_refused_by_the_edge_are_answered_by_a_smaller_body():
    provider = StrictProvider(request_bytes=20_000)
    got = drive(provider, "anthropic", big("anthropic", 14), reactive().fit)
    assert got.done.accepted
    assert len(got.sent[-1]) <= 20_000


@pytest.mark.row("A16")
@EVERY
@pytest.mark.parametrize("body", ["", "<html><h1>413</h1></html>", {"error": "try later"}],
                         ids=["empty", "a page", "other words"])  # fmt: skip
def test_a_413_is_answered_by_a_smaller_body_whatever_stands_in_it(format, body):
    provider = StrictProvider([Refuse("request_bytes", status=413, body=body)])
    got = drive(provider, format, big(format, 14), reactive().fit)
    assert (got.done.accepted, got.done.attempts) == (True, 2)
    assert len(got.sent[1]) < 0.8 * len(got.sent[0])


@pytest.mark.row("A16")
def test_a_repeated_413_ends_with_the_providers_own_answer():
    provider = StrictProvider([Refuse("request_bytes", times=9)])
    got = drive(provider, "anthropic", big("anthropic", 30), reactive().fit)
    assert (got.done.accepted, got.done.attempts, got.status) == (False, 3, 413)
    assert shrinking(got)


@pytest.mark.row("A18")
def test_what_cannot_shrink_ends_with_the_providers_error_and_says_what_is_missing(caplog):
    provider = StrictProvider(window=3_000)
    body = {"model": "gpt-5.1", "messages": [{"role": "system", "content": "rule " * 6_000},
                                             {"role": "user", "content": "go"}]}  # fmt: skip
    got = drive(provider, "openai-chat", body, reactive().fit)
    assert (got.done.accepted, got.done.attempts, got.status) == (False, 1, 400)
    lost = got.done.cannot_fit
    assert (lost.limit, lost.needed > 0, lost.projected > 3_000) == ("window", True, True)
    assert "cannot fit: window" in got.done.summary


@pytest.mark.row("A17")
def test_as_last_resort_the_largest_result_goes_first_and_calls_keep_their_results():
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


@pytest.mark.row("A17")
@pytest.mark.parametrize("format", FORMATS)
def test_a_stub_names_the_tool_how_it_ended_and_the_tokens_of_what_stood_there(format):
    from shapes import results
    from tool_calls import Step, conversation

    texts = ["".join(f"row {n} of {k}: {n * 7919}\n" for n in range(500)) for k in range(4)]
    steps = [Step("query", {"n": n}, text, n < 2) for n, text in enumerate(texts)]
    body = conversation(format, *steps)
    fitted = trimtab.fit(
        body,
        window=9_500,
        reserve=0,
        recall=True,
        settings=trimtab.Settings(counter="o200k", reducers=[markers]),
    )
    told = [t for t in results(format, fitted.request) if "left out to fit" in t]
    assert len(told) == 3, "as soon as it fits no more are stubbed"
    count = trimtab.transcript.tokens.counter_for("o200k", model=None, format="")
    ends = {"query result", "query error"} if format != "openai-chat" else {"query result"}
    assert {t[1:].split(",")[0] for t in told} == ends
    for text in told:
        handle = text.split('recall("')[1].split('"')[0]
        assert f", {count(fitted.recall(handle)):,} tokens, " in text


# --- advice -------------------------------------------------------------------------------------

PICTURE = "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAA" * 4_000


def said(*parts, tools=0):
    offered = [{"type": "function", "function": {
        "name": f"tool_{n}", "description": "what it does " * 200,
        "parameters": {"type": "object", "properties": {}}}} for n in range(tools)]  # fmt: skip
    user = {"role": "user", "content": list(parts) or "go"}
    return {"model": "gpt-5.1", "messages": [user], **({"tools": offered} if offered else {})}


WORDS = {"type": "text", "text": "see the picture"}
IMAGE = {"type": "image_url", "image_url": {"url": PICTURE}}


@pytest.mark.row("A16")
@pytest.mark.parametrize(
    ("body", "hint"),
    [
        (said(tools=30), "The definitions of 30 tools take"),
        ({"model": "m", "messages": [{"role": "system", "content": "rule " * 9_000},
                                     {"role": "user", "content": "go"}]},
         "The system prompt takes"),
    ],
    ids=["tools", "system"],
)  # fmt: skip
def test_what_cannot_fit_is_answered_with_advice_on_what_fills_it(body, hint):
    with pytest.raises(trimtab.CannotFit) as caught:
        trimtab.fit(body, window=3_000, reserve=0)
    assert caught.value.hint.startswith(hint)


@pytest.mark.row("A16")
def test_advice_on_tools_or_media_stands_beside_a_413_that_nothing_helps(caplog):
    for body, hint in (
        (said(WORDS, IMAGE), "Images and documents take"),
        (big("openai-chat", 30), "Tool results, most of them of "),
    ):
        caplog.clear()
        got = drive(StrictProvider([Refuse("request_bytes", times=9)]), "openai-chat", body,
                    reactive().fit)  # fmt: skip
        assert (got.done.accepted, got.status) == (False, 413)
        assert got.done.advice.startswith(hint)
        assert hint in caplog.records[-1].getMessage()


@pytest.mark.row("A18")
def test_a_cannot_fit_names_its_numbers_and_hints_at_the_output(caplog):
    said = [{"role": "system", "content": "rule " * 6_000}, {"role": "user", "content": "go"}]
    run = flow({"model": "m", "max_tokens": 9_000, "messages": said}, trimtab.Session(
        window=10_000).fit)  # fmt: skip
    assert not next(run).fitted.changed  # the provider has the last word
    with pytest.raises(StopIteration) as stop:
        run.send(Refused(400, "context length exceeded"))
    lost = stop.value.value.cannot_fit
    assert (lost.limit, lost.allowed) == ("window", 10_000)
    assert lost.needed == lost.minimum - 10_000 > 0
    assert lost.projected >= lost.minimum
    assert "9,000 of 10,000" in lost.hint
    assert [r.levelname for r in caplog.records][:1] == ["ERROR"]


HEADS = {
    "openai-chat": lambda text: {"messages": [{"role": "system", "content": text}]},
    "openai-responses": lambda text: {"instructions": text},
    "anthropic": lambda text: {"system": text},
    "bedrock": lambda text: {"system": [{"text": text}]},
    "gemini": lambda text: {"systemInstruction": {"parts": [{"text": text}]}},
    "gemini-interactions": lambda text: {"system_instruction": text},
}
"""Format → the fields of a system prompt."""
O200K = VOCABULARIES["o200k"]


def above_its_window(format, steps):
    """A request and a session in whose window, 9,000, by its count not even the head fits."""
    body, key = big(format, steps, lines=30), KEYS[format]
    head = HEADS[format]("rule " * 6_000)
    body |= {**head, key: [*head.get(key, ()), *body[key]]}

    def count(text):
        return ceil(1.55 * O200K(text))

    settings = trimtab.Settings(counter=count)
    return body, trimtab.Session(window=9_000, reserve=0, settings=settings, store="memory:")


@pytest.mark.row("A18")
@pytest.mark.parametrize("format", SIX)
def test_answers_to_what_by_our_count_cannot_fit_teach_the_count_before_any_is_refused(format):
    """Before: they taught nothing, and requests left uncut until the provider refused one."""
    _, session = above_its_window(format, 1)
    provider = StrictProvider(window=9_000)
    for steps in range(1, 14):
        got = drive(provider, format, above_its_window(format, steps)[0], session.fit)
        assert got.done.accepted, (steps, got.done, got.body)
        session.observe(json.loads(got.body), got.done.fitted)
    assert {record.status for record in provider.requests} == {200}
    assert got.done.fitted.changed


@pytest.mark.row("A18")
@pytest.mark.parametrize("format", SIX)
def test_what_by_our_count_cannot_fit_is_sent_again_smaller_once_refused(format):
    """Before: the refusal was the caller's, and a gateway that retried got the same request."""
    body, session = above_its_window(format, 14)
    learned = LearnedLimits()
    first = drive(StrictProvider(window=9_000), format, body, session.fit, learned=learned, key="k")
    assert first.done.accepted, (first.done, first.body)
    assert shrinking(first)
    later = drive(StrictProvider(window=9_000), format, body, session.fit, learned=learned, key="k")
    assert (later.done.accepted, later.done.attempts) == (True, 1)


@pytest.mark.row("X11")
def test_what_the_server_holds_is_neither_repaired_nor_sent_again():
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
    learned, session = LearnedLimits(), reactive()
    body = {"model": "my-alias", "messages": [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "done"},
        {"role": "user", "content": "and now?"}]}  # fmt: skip
    provider = StrictProvider(style="mistral")
    first = drive(provider, "openai-chat", body, session.fit, learned=learned, key="k")
    assert first.done.accepted, (first.done, first.body)
    assert first.done.attempts > 1
    again = drive(provider, "openai-chat", body, session.fit, learned=learned, key="k")
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
        def accepted(self, *told):
            raise trimtab.errors.StoreError("the disk is gone")

    learned, body = Broken(), big("openai-chat", 2)
    learned.put("k", ModelLimits(limit=900_000, exactness="exact"))
    got = drive(StrictProvider(), "openai-chat", body, reactive().fit, learned=learned, key="k")
    assert (got.done.accepted, got.status) == (True, 200)
    assert "the disk is gone" in caplog.text


@pytest.mark.row("A11")
@EVERY
@STREAMS
@pytest.mark.parametrize("status", [401, 403, 404, 422, 500])
def test_what_nobody_recognises_passes_through_after_one_send(format, stream, status):
    body = {"error": {"message": "Something is wrong.", "type": "error"}}
    provider = StrictProvider([Refuse("rate", times=9, status=status, body=body)])
    got = drive(provider, format, big(format), reactive().fit, stream=stream)
    assert (got.done.accepted, len(got.sent), json.loads(got.body)) == (False, 1, body)


@EVERY
def test_a_request_that_nothing_is_wrong_with_leaves_as_the_very_same_bytes(format):
    got = drive(StrictProvider(), format, big(format, 2), reactive().fit)
    assert (got.done.attempts, got.done.summary) == (1, "unchanged")
    assert json.loads(got.sent[0])


def test_silent_truncation_is_noticed_by_counts_that_stay_and_met_from_the_next_request_on():
    provider = StrictProvider(window=3_000, overflow_as="truncate")
    learned, session, sizes = LearnedLimits(), reactive(), []
    for steps in range(8, 20):
        got = drive(
            provider, "openai-chat", big("openai-chat", steps), session.fit, learned=learned,
            key="k",
        )  # fmt: skip
        assert (got.done.accepted, got.done.attempts) == (True, 1), "an answer is an answer"
        sizes.append(provider.requests[-1].truncated)
    assert sizes[0]
    assert not sizes[-1]


def test_a_key_holds_no_credential():
    key = key_for("api.openai.com", "gpt-5.1", "Bearer sk-secret")
    assert key.startswith("api.openai.com|gpt-5.1|")
    assert "secret" not in key
    assert key != key_for("api.openai.com", "gpt-5.1", "Bearer sk-other")


def compaction_refusal(code, status=400):
    error = {"type": "invalid_request_error", "message": "see the details",
             "details": {"error_code": code}}  # fmt: skip
    return Refused(status, {"type": "error", "error": error})


def test_a_compaction_that_was_unavailable_is_asked_for_once_more():
    body = json.dumps({**big("anthropic", 2), "compaction": {"type": "summarize"}}).encode()
    run = flow(body, reactive().fit)
    first = next(run)
    again = run.send(compaction_refusal("compaction_unavailable", 529))
    assert (again.attempt, again.request) == (2, first.request)
    with pytest.raises(StopIteration) as stop:
        run.send(compaction_refusal("compaction_unavailable", 529))
    assert (stop.value.value.accepted, stop.value.value.attempts) == (False, 2)


BLOCK = {"type": "compaction", "content": "Summary.", "encrypted_content": "ZW5j"}


@pytest.mark.parametrize("code", ["compaction_block_misplaced", "compaction_block_ambiguous"])
def test_a_compaction_block_that_is_refused_where_it_stands_is_put_first(code):
    body = big("anthropic", 4)
    at = [n for n, message in enumerate(body["messages"]) if message["role"] == "assistant"][2]
    body["messages"].insert(at, {"role": "assistant", "content": [BLOCK]})
    run = flow(json.dumps(body).encode(), reactive().fit)
    assert json.loads(next(run).request)["messages"] == body["messages"]
    again = json.loads(run.send(compaction_refusal(code)).request)
    assert again["messages"][0]["content"][0] == BLOCK
    assert again["messages"] == body["messages"][at:]


@pytest.mark.parametrize("code", [
    "compaction_content_mismatch", "compaction_signature_invalid", "compaction_unavailable",
    "compaction_tool_changes_mismatch", "compaction_nothing_to_summarize",
    "compaction_too_many_tool_references",
])  # fmt: skip
def test_a_refused_compaction_that_nothing_mends_is_passed_on(code):
    body = big("anthropic", 2)
    body["messages"].insert(0, {"role": "assistant", "content": [{**BLOCK, "signature": "c2ln"}]})
    run = flow(json.dumps(body).encode(), reactive().fit)
    next(run)
    if code == "compaction_unavailable":
        run.send(compaction_refusal(code))
    with pytest.raises(StopIteration) as stop:
        run.send(compaction_refusal(code))
    assert not stop.value.value.accepted


@EVERY
def test_an_error_that_is_none_of_ours_is_logged_by_its_type_since_its_text_may_quote_a_request(
    format, caplog
):
    def fails(request, **_):
        raise ValueError("disallowed text: xylophone")

    got = drive(StrictProvider(), format, big(format, 2), fails)
    assert got.done.accepted
    assert "sent unchanged: ValueError" in caplog.text
    assert "xylophone" not in caplog.text

    def fails_as_we_do(request, **_):
        raise trimtab.errors.StoreError("no answer from redis")

    drive(StrictProvider(), format, big(format, 2), fails_as_we_do)
    assert "sent unchanged: StoreError: no answer from redis" in caplog.text
