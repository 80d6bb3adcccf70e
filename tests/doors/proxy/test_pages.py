"""The dashboard's pages as HTML: everything of a request is text, everything it needs is in it.

Knows the pages as bytes.  How they look is for world/test_dashboard.py.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser

import pytest

from trimtab.errors import MissingExtra
from trimtab.proxy import Proxy, ProxySettings
from trimtab.proxy.activity_log import ActivityLog, EditRecord, RefusalRecord, TurnRecord
from trimtab.proxy.dashboard import views
from trimtab.reporting import pages

HOSTILE = "<img src=x onerror=alert(1)>\"'&\x1b\u202e"


class Markup(HTMLParser):
    """Tags in order, attributes, and whether what is opened is closed."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.text = ""
        self.feed(page.decode())
        self.close()

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def activity():
    log = ActivityLog()
    one = log.session(
        "5e55", tenant="local", upstream="openai", format="openai-chat", client=HOSTILE,
        hint=HOSTILE, now=100.0,
    )  # fmt: skip
    one.model = HOSTILE
    for number in range(1, 400):
        turn = TurnRecord(number, 100.0 + number, 900 * number, 300 * number, 90_000, 70_000)
        turn.kept, turn.cached, turn.prompt = 100 * number, 50, 300 * number
        turn.sends = 2 if number == 399 else 1
        one.turns.append(turn)
        one.count = number
    one.edits["h1"] = EditRecord("h1", "log-digest", "replace", HOSTILE, HOSTILE, 3, 900, 90, 0.1)
    one.refusals.append(RefusalRecord(150.0, 3, 400, "too_long", "recovered"))
    return log


def shown(activity):
    (one,) = activity.sessions.values()
    yield views.home(activity, 500.0, "http://127.0.0.1:1", HOSTILE, live=True)
    yield views.home(ActivityLog(), 500.0, "http://127.0.0.1:1", "", live=True)
    yield views.session(one, 500.0, HOSTILE, live=False)
    yield views.session(one, 500.0, "", live=True)
    actions = (("undo", "Undo", "send it again"),)
    edit = one.edits["h1"]
    yield views.edit(one, edit, HOSTILE, "", token="t", said="Undone.", actions=actions)
    yield views.edit(one, edit, None, HOSTILE * 5_000, token="t", said="", actions=actions)
    yield views.sign_in(True)
    yield views.message(HOSTILE, HOSTILE)


def test_what_a_client_or_a_tool_said_is_only_ever_text(activity):
    for page in shown(activity):
        markup = Markup(page)
        assert page.startswith(b"<!doctype html>")
        assert not markup.open
        assert not {"img", "script", "iframe", "link"} & set(markup.names)
        assert not {"onerror", "src", "style"} & markup.attributes
        assert b"\x1b" not in page
        assert "\u202e".encode() not in page


def test_a_session_shows_its_bars_edits_and_refusals(activity):
    (one,) = activity.sessions.values()
    page = Markup(views.session(one, 500.0, "", live=True))
    assert page.names.count("g") == 133  # every third of 399 turns, the last among them
    assert page.names.count("polyline") == 2
    assert "turn 399: 119,700 tokens sent of 359,100" in page.text
    assert "log-digest" in page.text
    assert "recovered" in page.text


def test_a_proxy_without_its_extra_says_so_when_it_is_made(monkeypatch):
    for name in ("jinja2", "prometheus_client"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, name, None)
            pages.templates.cache_clear()
            with pytest.raises(MissingExtra, match=r"pip install 'trimtab\[proxy\]'"):
                Proxy(ProxySettings())
    pages.templates.cache_clear()
