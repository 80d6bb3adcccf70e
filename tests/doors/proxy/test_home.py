"""The dashboard's first page: what it says of all sessions, and of each in its row.

Knows the page as text.  How it looks is for world/test_dashboard.py.
"""

from __future__ import annotations

import re

from dashboard_text import Markup

from trimtab.pricing.prices import named
from trimtab.proxy.dashboard.home_view import Choice, home
from trimtab.proxy.dashboard.sparkline import HEIGHT, MARGIN, Sparkline
from trimtab.proxy.records.activity_log import ActivityLog
from trimtab.proxy.records.prefix_breaks import LIFETIME
from trimtab.proxy.records.recent_requests import RecentRequests
from trimtab.proxy.records.request_record import RequestRecord

NOW = 1_000_000.0


def log_of(**sessions):
    """An activity log with a session of each name, which sent so many tokens at so many seconds
    before NOW: ``name=(tokens, seconds)``."""
    log = ActivityLog()
    for name, (tokens, ago) in sessions.items():
        one = log.session(name, tenant="local", upstream="u", format="anthropic", client="agent/1",
                          hint=name, now=NOW - ago)  # fmt: skip
        one.project, one.model = f"project-{name}", "claude-sonnet-4-5"
        turn = RequestRecord(1, NOW - ago, arrived=tokens + 500, sent=tokens, window=10_000,
                             status=200)  # fmt: skip
        one.turns.append(turn)
        one.count, one.last = 1, NOW - ago
        log.ended(one, turn)
    return log


def page(log, requests=None, **choice):
    return home(log, requests or RecentRequests(), NOW, "http://127.0.0.1:1", Choice(**choice))


def names(log, **choice):
    return re.findall(r"data-row>([^<]+)<", page(log, **choice).decode())


def test_it_says_what_prompts_cost_compared_with_everything_sent():
    log = log_of(one=(1_000, 60))
    (one,) = log.sessions.values()
    text = Markup(page(log)).text
    assert "None of 1 request would have been refused." in text
    assert "$" not in text
    one.sums["paid"] = 120_000
    assert "The requests cost $0.12 at list prices." in Markup(page(log)).text
    log.prices = named("claude-5m")
    for number in (2, 3):
        log.ended(one, RequestRecord(number, NOW, arrived=200_000 * number, sent=9_000, status=200))
    one.sums["outgrown"] = 2
    text = Markup(page(log)).text
    assert "2 of 3 requests would have been refused; all were answered." in text
    words = r"trimtab costs \$(\S+) less: \$(\S+) for the prompts, \$(\S+) with everything sent and"
    cost = re.search(f"{words} nothing refused\\.", text)
    less, spent, whole = map(float, cost.groups())
    assert round(whole - spent, 2) == less > 0


def test_it_has_no_figure_for_what_is_not_there_yet():
    log = log_of(one=(1_000, 60))
    (one,) = log.sessions.values()
    one.sums.update(saved=-500)
    text = Markup(page(log)).text
    assert "Nothing has been cut yet" in text
    assert "<dt>" not in page(log).decode()
    one.sums.update(saved=500, edits=1)
    assert "Tokens not sent" in Markup(page(log)).text
    assert "Nothing has been cut yet" not in Markup(page(log)).text


def test_each_session_is_live_or_idle_and_says_how_full_its_window_is():
    log = log_of(new=(8_100, 1), old=(2_000, LIFETIME + 60))
    new, old = page(log).decode().split("data-row>")[1:]
    assert (">live<" in new, ">idle<" in new) == (True, False)
    assert (">live<" in old, ">idle<" in old) == (False, True)
    assert "81% of 10k" in new
    assert '<rect width="81"' in new
    assert "project-new" in new


def test_sessions_are_sorted_as_wanted_and_the_chosen_head_leads_back():
    log = log_of(b=(3_000, 10), a=(1_000, 20), c=(2_000, 30))
    assert names(log) == ["b", "a", "c"]
    assert names(log, sort="sent") == ["b", "c", "a"]
    assert names(log, sort="project") == ["a", "b", "c"]
    text = page(log, sort="sent", wanted="project", since="day").decode()
    assert 'aria-sort="descending"><a href="/_trimtab/?q=project&amp;since=day">Sent' in text
    assert '"/_trimtab/?q=project&amp;since=day&amp;sort=full"' in text
    assert '<input type="hidden" name="sort" value="sent">' in text  # a search keeps the order


def test_only_sessions_of_the_chosen_time_are_listed_and_summed():
    log = log_of(now=(3_000, 10), today=(1_000, 7_200), old=(2_000, 3 * 86_400))
    for since, listed in (("hour", 1), ("day", 2), ("week", 3), ("", 3)):
        assert len(names(log, since=since)) == listed
        assert f"None of {listed} request" in Markup(page(log, since=since)).text
    assert Choice.of({"since": "year", "sort": "loss", "q": "x" * 300}) == Choice("x" * 200)


def test_a_404_beside_the_conversations_is_no_alarm_and_neither_is_what_was_answered_since():
    log, requests = log_of(one=(1_000, 10)), RecentRequests()

    def add(number, status, session=""):
        row = RequestRecord(1, NOW - 100 + number, request=number, upstream="u", status=status)
        row.session, row.problem = session, f"p{status}"
        requests.add(row)
        return "Failed requests" in Markup(page(log, requests)).text

    assert not add(1, 404)  # a client that looked for a path
    assert add(2, 400, "one")
    assert not add(3, 200, "one")
    assert add(4, 404, "two")  # a model that is not there
    assert add(5, 200, "one")  # says nothing of the other session
    assert not add(6, 200, "two")
    assert add(7, 502)  # the provider is down …
    assert not add(8, 200, "one")  # … and is there again


def test_a_sparkline_is_below_its_window_and_leaves_out_one_far_above():
    line = Sparkline.of((1_000, 5_000), 10_000)
    heights = [float(point.partition(",")[2]) for point in line.points.split()]
    assert HEIGHT > heights[0] > heights[1] > float(line.window) == MARGIN
    assert line.label == "tokens sent: 1k to 5k, window 10k"
    assert Sparkline.of((1_000, 5_000), 1_000_000).window == ""
    assert len(Sparkline.of((700,), 0).points.split()) == 2  # one request is a line too
    assert Sparkline.of((), 10_000) is None
