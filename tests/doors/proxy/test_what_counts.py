"""What is counted as work: only what was answered, in one unit, and never below nothing."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

from long_requests import JSON, long_session
from proxies import ask, proxied, settled

from trimtab.amounts import many
from trimtab.pricing.prices import named
from trimtab.proxy.dashboard.home_view import Choice, home
from trimtab.proxy.dashboard.status import session_status
from trimtab.proxy.records.activity_log import ActivityLog
from trimtab.proxy.records.recent_requests import RecentRequests
from trimtab.proxy.records.request_record import RequestRecord
from trimtab.proxy.records.session_record import SessionRecord
from trimtab.request.fitted import facts_of
from trimtab.retry.effects import Done
from trimtab.session import Session
from trimtab_lab.testing import Refuse, StrictProvider


def test_requests_that_fail_are_no_work_however_often_they_are_tried():
    """Before: 30 times 502 were "0 of 234,840 tokens saved over 30 requests"."""
    script = [Refuse("server_error", times=3), "ok", "ok"]
    with StrictProvider(script) as provider, proxied(provider.url, window=40_000) as server:
        bodies = [long_session(4, most=500)] * 4 + [long_session(5, most=500)]
        statuses = [ask(server.url, "POST", "/v1/messages", b, JSON)[0] for b in bodies]
        assert statuses == [500, 500, 500, 200, 200]
        activity = settled(server).proxy.addons.records.activity
        (session,) = activity.sessions.values()
        assert session.sums["turns"] == activity.totals["turns"] == 2
        assert activity.line().startswith("0 of ")
        assert " over 2 requests, " in activity.line()
        assert activity.line().endswith(", 3 requests failed")
        metrics = ask(server.url, "GET", "/metrics")[2].decode()
        arrived = f'trimtab_tokens_total{{kind="arrived"}} {activity.totals["arrived"]:.1f}'
        assert arrived in metrics


def test_an_empty_request_saves_nothing_and_not_less(caplog):
    caplog.set_level("INFO", "trimtab.proxy")
    body = {"model": "claude-opus-4-8", "max_tokens": 9, "messages": []}
    with StrictProvider() as provider, proxied(provider.url, window=9_000) as server:
        ask(server.url, "POST", "/v1/messages", json.dumps(body), JSON)
        settled(server)
    facts = [record.facts for record in caplog.records if "saved" in record.facts]
    assert all(row["saved"] >= 0 for row in facts)


def test_without_a_count_of_the_provider_s_its_last_one_says_how_large_its_tokens_are():
    activity = ActivityLog()
    session = activity.session(
        "s", tenant="t", upstream="u", format="anthropic", client="", hint="", now=0.0
    )
    counted = RequestRecord(1, 0.0, arrived=2_000, sent=1_000, prompt=1_500, status=200)
    silent = RequestRecord(2, 1.0, arrived=4_000, sent=2_000, status=200)
    for turn in (counted, silent):
        activity.ended(session, turn)
    assert (silent.arrived, silent.sent) == (6_000, 3_000)
    assert activity.totals["saved"] == 1_500 + 3_000


def test_what_costs_more_is_called_so():
    activity = ActivityLog()
    activity.prices = named("claude-5m")
    activity.totals.update(turns=1, whole=500_000, estimated=700_100)
    assert activity.line().endswith("about $0.20 more than without (claude-5m)")


def ended(*turns: RequestRecord, model: str = "claude-sonnet-4-5") -> ActivityLog:
    """An activity log with one session of these turns."""
    activity = ActivityLog()
    session = activity.session(
        "s", tenant="t", upstream="u", format="anthropic", client="", hint="", now=0.0
    )
    session.model, session.count = model, len(turns)
    for turn in turns:
        session.turns.append(turn)
        activity.ended(session, turn)
    return activity


def test_a_request_larger_than_its_model_takes_would_have_been_refused_and_a_budget_refuses_none():
    larger = RequestRecord(1, 0.0, arrived=230_000, sent=90_000, window=100_000, status=200)
    budget = RequestRecord(2, 0.0, arrived=130_000, sent=90_000, window=100_000, status=200)
    activity = ended(larger, budget)
    first = "1 of 2 requests would have been refused; all were answered."
    assert activity.line().startswith(f"{first} 180,000 of 360,000 tokens saved")
    assert session_status(activity, "", recall=False)["outcome"] == first
    assert first in home(activity, RecentRequests(), 0.0, "", Choice()).decode()
    unknown = ended(larger, budget, model="mine")
    assert unknown.line().startswith("2 of 2 requests would have been refused")
    taught = RequestRecord(1, 0.0, arrived=130_000, sent=90_000, learned=120_000, status=200)
    assert ended(taught).line().startswith("1 of 1 request would have been refused")


def test_where_the_window_is_a_budget_the_sentence_says_so():
    """Before: "None of 2 requests would have been refused", over bars above the window."""
    budget = RequestRecord(1, 0.0, arrived=130_000, sent=90_000, window=100_000, status=200)
    small = RequestRecord(2, 0.0, arrived=9_000, sent=9_000, window=100_000, status=200)
    activity = ended(budget, small)
    said = "1 of 2 requests was larger than your window and was cut; the model would have taken it."
    assert session_status(activity, "", recall=False)["outcome"] == ""  # the line is short
    assert said in home(activity, RecentRequests(), 0.0, "", Choice()).decode()


def test_what_was_refused_counts_whether_its_client_saw_it_or_not_and_other_failures_do_not():
    survived = RequestRecord(1, 0.0, sends=2, status=200, refusals=((400, "too_long"),))
    refused = RequestRecord(2, 0.0, arrived=9, sent=9, status=400, refusals=((400, "too_long"),))
    busy = RequestRecord(3, 0.0, sends=2, status=200, refusals=((429, "rate"),))
    missing = RequestRecord(4, 0.0, arrived=9, sent=9, status=404, refusals=((404, "other"),))
    activity = ended(survived, refused, busy, missing)
    assert activity.line().startswith("2 of 3 requests would have been refused; 1 still was.")
    nothing = ended(busy)
    assert "refused" not in nothing.line()
    assert session_status(nothing, "", recall=False)["outcome"] == ""
    page = home(nothing, RecentRequests(), 0.0, "", Choice()).decode()
    assert "None of 1 request would have been refused." in page


def test_a_refusal_in_a_stream_that_began_with_200_is_no_answer():
    """Before: "1 of 1 request would have been refused; all were answered"."""
    body = {"model": "gpt-5.1", "input": "Hello.", "max_output_tokens": 128_000, "stream": True}
    with StrictProvider(window=40_000) as provider, proxied(provider.url, window=40_000) as server:
        status, _, said = ask(server.url, "POST", "/v1/responses", json.dumps(body), JSON)
        assert (status, b"context_length_exceeded" in said) == (200, True)
        line = settled(server).proxy.addons.records.activity.line()
    assert line == "1 request failed"


def test_a_turn_whose_edits_all_stand_is_recorded_without_a_report(monkeypatch):
    monkeypatch.delitem(sys.modules, "opentelemetry", raising=False)  # it would ask for a report
    session, bodies = Session(window=60_000, reserve=4_000), [long_session(40), long_session(41)]
    record = SessionRecord("1", "local", "u", "anthropic", "", "", 0.0, 0.0)
    first, second = (session.fit(body) for body in bodies)
    made = RequestRecord(0, 1.0)
    record.add(made, [first])
    assert (made.new, made.edits) == (len(first.report.edits), len(first.report.edits)) != (0, 0)
    assert "report" not in vars(second)
    stood = RequestRecord(0, 2.0)
    record.add(stood, [second])
    assert "report" not in vars(second), "nobody reads what it would say"
    assert (stood.new, stood.edits, stood.repairs) == (0, made.edits, 0)
    assert record.in_force == facts_of(first).handles == facts_of(second).handles
    edited = sum(edit.tokens_after for edit in second.report.edits)
    assert stood.kept == stood.sent - edited > 0
    assert Done(True, 1, second).summary.endswith(f" tokens; {many(made.edits, 'edit')}")


def test_an_edit_made_anew_on_the_same_block_is_recorded_as_it_is_now():
    record = SessionRecord("1", "local", "u", "anthropic", "", "", 0.0, 0.0)
    session = Session(window=60_000, reserve=4_000)
    fitted = session.fit(long_session(40))
    record.add(RequestRecord(0, 1.0), [fitted])
    (handle, *_) = facts_of(fitted).handles
    old = record.edits[handle]
    record.edits[handle] = replace(old, tokens_after=old.tokens_before, turn=0)
    record.add(RequestRecord(0, 2.0), [fitted])
    assert record.edits[handle] == replace(old, turn=2, at=2.0)
