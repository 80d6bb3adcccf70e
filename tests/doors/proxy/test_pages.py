"""The dashboard's pages as HTML: everything of a request is text, everything it needs is in it.

Knows the pages as bytes.  How they look is for world/test_dashboard.py.
"""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from hashlib import sha256

import pytest
from dashboard_text import Markup

from trimtab.errors import MissingExtra
from trimtab.pricing.call_usage import CallUsage, price_of
from trimtab.pricing.conversation_usage import WARMER
from trimtab.proxy import Proxy, ProxySettings
from trimtab.proxy.dashboard import (
    chart,
    edit_view,
    exports,
    home_view,
    keep_view,
    request_views,
    search_view,
    session_view,
    spend_view,
)
from trimtab.proxy.dashboard import page as whole_pages
from trimtab.proxy.dashboard.format import dollars as money
from trimtab.proxy.records import recent_requests
from trimtab.proxy.records.activity_log import ActivityLog
from trimtab.proxy.records.prefix_breaks import CLIENT
from trimtab.proxy.records.recent_requests import RecentRequests
from trimtab.proxy.records.request_record import RequestRecord, RequestTexts
from trimtab.proxy.records.session_record import EditRecord
from trimtab.proxy.records.usage_ledger import UsageLedger
from trimtab.reporting import pages

URL = "http://127.0.0.1:1"
HOSTILE = "<img src=x onerror=alert(1)>\"'&\x1b\u202e"


@pytest.fixture
def activity():
    log = ActivityLog()
    one = log.session(
        "5e55", tenant="local", upstream="openai", format="openai-chat", client=HOSTILE,
        hint=HOSTILE, now=100.0,
    )  # fmt: skip
    one.model = one.prompt = one.project = one.problem = HOSTILE
    for number in range(1, 400):
        turn = RequestRecord(number, 100.0 + number, 900 * number, 300 * number, 90_000, 70_000)
        turn.kept, turn.cached, turn.prompt = 100 * number, 50, 300 * number
        turn.sends, turn.status = 2 if number == 399 else 1, 200
        one.turns.append(turn)
        one.count = number
    one.edits["h1"] = EditRecord("h1", "log-digest", HOSTILE, HOSTILE, 3, 900, 90)
    one.in_force = ("h1",)
    one.turns[-1].refusals = ((400, "too_long"),)
    return log


@pytest.fixture
def requests():
    """One that failed, with texts."""
    found = RecentRequests()
    body = json.dumps({"messages": [{"role": "user", "content": HOSTILE}]}).encode()
    texts = RequestTexts(body, body + b" ", HOSTILE.encode())
    found.add(RequestRecord(
        1, 100.0, request=1, upstream="openai", path=HOSTILE, operation="generate", client=HOSTILE,
        model=HOSTILE, session="5e55", status=500, problem=HOSTILE, texts=texts,
    ))  # fmt: skip
    return found


def home(activity, requests, now=500.0, **choice):
    return home_view.home(activity, requests, now, URL, home_view.Choice(**choice))


def shown(activity, requests):
    (one,) = activity.sessions.values()
    yield home_view.home(activity, requests, 500.0, URL, home_view.Choice(HOSTILE, "day", "full"))
    yield home(activity, requests)
    yield home(ActivityLog(), RecentRequests())
    yield session_view.session(one, 500.0, HOSTILE)
    yield session_view.session(one, 500.0, "")
    edit = one.edits["h1"]
    yield edit_view.edit(one, edit, HOSTILE, "", token="t", notice="Undone.")
    yield edit_view.edit(one, edit, None, HOSTILE * 5_000, token="t")
    folded = json.dumps([{"role": "user", "content": HOSTILE}] * 2)
    yield edit_view.edit(one, edit, folded, "", token="t")
    yield request_views.requests(requests, activity.sessions, 500.0, "", keeps_texts=True)
    yield request_views.requests(requests, {}, 500.0, HOSTILE, keeps_texts=False)
    yield request_views.request(requests.rows[0], one, 500.0, keeps_texts=True)
    ledger = UsageLedger()
    usage = CallUsage(HOSTILE, 10, 10, 0, 0, 10)
    ledger.add("openai/5e55", agent=HOSTILE, upstream=HOSTILE, arm="", when=1.0, arrived=20,
               usage=usage, tenant=HOSTILE)  # fmt: skip
    for by in spend_view.GROUPS:
        found = spend_view.spend(ledger.unwritten(), by)
        yield spend_view.spend_page(found, by, activity, activity.sessions)
    line = search_view.Found(one, "h1", 1, HOSTILE, 3, HOSTILE)
    yield search_view.search(one, "session", HOSTILE, 1, [line])
    yield search_view.search(None, "", HOSTILE, 1, [])
    yield keep_view.keep(one, [f"text:{HOSTILE}"], None, {HOSTILE: HOSTILE}, token="t")
    yield whole_pages.sign_in(True)
    yield whole_pages.message(HOSTILE, HOSTILE)


def test_what_a_client_or_a_tool_said_is_only_ever_text(activity, requests):
    for page in shown(activity, requests):
        markup = Markup(page)
        assert page.startswith(b"<!doctype html>")
        assert not markup.open
        assert not {"img", "iframe", "link"} & set(markup.names)
        assert markup.scripts <= 1
        assert not {"onerror", "src", "style"} & markup.attributes
        assert b"\x1b" not in page
        assert "\u202e".encode() not in page


def test_the_policy_names_the_one_script_and_nothing_else_runs(activity, requests):
    (script,) = {
        page.decode().partition("<script>")[2].partition("</script>")[0]
        for page in shown(activity, requests)
    } - {""}
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in whole_pages.policy()
    assert "unsafe" not in whole_pages.policy()
    assert "default-src 'none'" in whole_pages.policy()


def test_a_session_shows_its_bars_edits_and_refusals(activity):
    (one,) = activity.sessions.values()
    page = Markup(session_view.session(one, 500.0, ""))
    wide, narrow = (chart.context(one.turns, size) for size in (chart.WIDE, chart.NARROW))
    assert len(wide.bars) == 133  # every third of 399 turns, the last among them
    assert len(narrow.bars) == 57
    assert page.names.count("g") == 133 + 57
    assert page.names.count("polyline") == 2  # the window, in each form
    assert "turn 399: 119,700 tokens sent of 359,100" in page.text
    assert one.title_of(one.edits["h1"]) in page.text.replace("\\x1b", "\x1b").replace(
        "\\x202e", "\u202e"
    )
    assert "recovered" in page.text
    assert "too many tokens" in page.text  # in words, not our name for it


def test_each_cell_of_a_card_has_the_name_of_its_column(activity, requests):
    """On a phone the head of a table is not shown."""
    (one,) = activity.sessions.values()
    one.turns[-1].cause = CLIENT
    cells = 0
    for page in shown(activity, requests):
        for table in page.decode().split('<table class="cards')[1:]:
            for cell in table.partition("</table>")[0].split("<td")[1:]:
                cells += 1
                assert 'data-name="' in cell.partition(">")[0] or ' class="first"' in cell
    assert cells > 300


def test_an_agent_and_its_provider_are_joined_by_one_arrow():
    log = ActivityLog()
    for id, client in (("1", "claude-cli/2.1"), ("2", "")):
        log.session(id, tenant="local", upstream="anthropic", format="anthropic", client=client,
                    hint="", now=1.0)  # fmt: skip
    text = Markup(home(log, RecentRequests(), 2.0)).text
    assert "claude-cli → anthropic" in text
    assert "· →" not in text


def test_the_axis_ends_at_or_above_the_largest_bar_and_leaves_out_a_window_far_above():
    turns = [RequestRecord(1, 1.0, arrived=1_130, sent=900, window=900, status=200)]
    assert chart.context(turns).ticks[-1].label == "1.2k"
    turns[0].window = 1_000_000
    found = chart.context(turns)
    assert found.ticks[-1].label == "1.2k"
    assert not found.lines


def test_turns_that_failed_or_lost_the_cache_are_drawn_when_others_are_left_out():
    turns = [RequestRecord(n, float(n), 900, 900, status=200) for n in range(1, 400)]
    turns[100].status, turns[200].cause = 502, CLIENT
    for size in (chart.WIDE, chart.NARROW):
        bars = chart.context(turns, size).bars
        assert [bar.number for bar in bars if bar.failed] == [101]
        assert [bar.number for bar in bars if bar.lost == "client"] == [201]


def test_an_edit_s_buttons_go_by_its_state(activity):
    (one,) = activity.sessions.values()
    edit = one.edits["h1"]

    def can(kept=True):
        return {name: not reason for name, _, _, reason in edit_view.actions(one, edit, kept)}

    assert can() == {"undo": True, "pin": True}
    assert can(kept=False) == {"undo": False, "pin": True}
    edit.pinned, edit.undone = True, one.count + 1
    assert one.state(edit) == "to be undone"
    assert can() == {"undo": False, "unpin": True}
    one.count, one.in_force = one.count + 1, ()
    assert one.state(edit) == "undone"
    assert can() == {"undo": False, "unpin": True}
    edit.pinned, edit.undone = False, 0
    assert one.state(edit) == "replaced"
    assert can() == {"undo": False, "pin": False}


def test_the_page_of_an_undone_edit_does_not_say_that_its_text_was_taken_out(activity):
    (one,) = activity.sessions.values()
    edit = one.edits["h1"]

    def told(after=""):
        text = Markup(edit_view.edit(one, edit, "before", after, token="t")).text
        return " ".join(text.split())

    assert "Sent instead, 90 tokens Copy what is sent" in told("what is sent")
    edit.undone = one.count + 1
    assert "Was sent instead, 90 tokens No longer: the next turn sends the original" in told()
    one.count, one.in_force = one.count + 1, ()
    assert "Was sent instead, 90 tokens No longer: the original is sent" in told()
    edit.undone = 0
    assert "Was sent instead, 90 tokens No longer kept." in told()
    edit.tokens_after, one.in_force = 0, ("h1",)
    assert "Sent instead, 0 tokens Nothing: it was taken out." in told()


def test_money_fits_its_tile():
    found = [money(n) for n in (0, -0.5591, 1.5, -999.5, 1_234.5, -1_234_567.8)]
    assert found == ["$0", "−$0.5591", "$1.50", "−$999.50", "$1,234", "−$1,234,568"]


def test_failures_come_first_and_count_as_no_work(activity, requests):
    page = Markup(home(activity, requests)).text
    assert page.index("Failed requests") < page.index("last request")
    log = ActivityLog()
    one = log.session("1", tenant="local", upstream="u", format="openai-chat", client="",
                      hint="", now=1.0)  # fmt: skip
    for status in (502, 0, 429):
        log.ended(one, RequestRecord(1, 1.0, arrived=500, sent=100, status=status))
    assert log.line() == "3 requests failed"
    assert one.sums == {"failed": 3}
    log.ended(one, RequestRecord(2, 1.0, arrived=500, sent=100, status=200))
    assert log.line().startswith("400 of 500 tokens saved over 1 request,")


def test_spend_says_what_an_experiment_measured_and_what_pings_cost(activity):
    ledger = UsageLedger()

    def add(name, arm, tokens, agent="claude-cli"):
        usage = CallUsage("claude-opus-4-5", tokens, 0, 0, 0, 10)
        ledger.add(name, agent=agent, upstream="u", arm=arm, when=1.0, arrived=10_000, usage=usage)

    for number in range(40):
        add(f"t{number}", "treated", 6_000 + 11 * number)
        add(f"c{number}", "control", 10_000)
    add("t1/keep-warm", "", 1_000, agent=WARMER)
    found = spend_view.spend(ledger.unwritten(), "agent")
    rows = spend_view._answers(found, activity)
    answers, how = {row[0]: row[1] for row in rows}, {row[0]: row[2] for row in rows}
    treated = sum(6_000 + 11 * number for number in range(40))
    assert answers["Saved"] == f"{1 - treated / 400_000:.1%}" == "37.9%"
    low, high = (float(part.rstrip("%")) for part in answers["How sure"].split(" to "))
    assert 37 < low < 38 < high < 39
    saved = (400_000 - treated) * price_of(CallUsage("claude-opus-4-5", 1, 0, 0, 0, 0)).prompt
    assert f"${saved:.4f} in the 40 conversations" in how["Saved"]  # and none in those left alone
    assert answers["trimtab itself"] == f"${found.pings.cost.total:.4f}"
    assert "summarizer" not in " ".join(spend_view._notes(found, summarizes=False))
    assert "summarizer" in " ".join(spend_view._notes(found, summarizes=True))
    assert [group.name for group in found.groups] == ["claude-cli"]  # pings are apart


def test_texts_of_requests_are_bounded(monkeypatch):
    monkeypatch.setattr(recent_requests, "MAX_TEXT_BYTES", 1_000)
    kept = RecentRequests()

    def add(number, size):
        texts = RequestTexts(b"x" * size, b"y" * size, b"z" * size)
        kept.add(RequestRecord(0, 1.0, request=number, texts=texts))

    add(1, 10)
    for number in range(2, 9):
        add(number, 100)
    assert [row.request for row in kept.rows if row.texts is not None] == [6, 7, 8]
    for number in range(9, 2_000):
        add(number, 1)
    assert len(kept.rows) == recent_requests.MAX_REQUESTS
    assert kept._held == sum(row.texts.held_bytes for row in kept.rows if row.texts is not None)


def test_json_has_what_the_pages_show_and_no_texts_of_requests(activity, requests):
    (one,) = activity.sessions.values()
    read = json.loads(exports.session(one))
    assert len(read["turns"]) == 399
    edit = read["edits"][0]
    assert edit["state"] == "in force"
    assert (
        edit.keys() - {"state", "turn", "pinned"}
        == one.edits[edit["handle"]].as_edit().as_dict().keys()
    )
    assert (edit["undone"], edit["tokens_saved"]) == (False, one.edits[edit["handle"]].saved)
    assert json.loads(exports.sessions([one]))["sessions"][0]["title"] == HOSTILE
    (row,) = json.loads(exports.requests(requests))["requests"]
    assert row["status"] == 500
    assert "texts" not in row


def test_a_proxy_without_its_extra_says_so_when_it_is_made(monkeypatch):
    for name in ("jinja2", "prometheus_client"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, name, None)
            pages.templates.cache_clear()
            with pytest.raises(MissingExtra, match=r"pip install 'trimtab\[proxy\]'"):
                Proxy(ProxySettings())
    pages.templates.cache_clear()
