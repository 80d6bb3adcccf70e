"""The dashboard in a real browser: each state at each width, and nothing hostile runs.

Knows the pages as a person sees them.  TRIMTAB_PICTURES=FOLDER keeps a picture of each.  Those of
the docs are made by scripts/pictures.py.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from browser import tab
from proxies import proxied, settled
from proxy_story import WINDOW, answers, turn_by_turn

from trimtab_lab.testing import Refuse, StrictProvider

pytestmark = pytest.mark.world
LINK = "[...document.querySelectorAll('td a')].find(a => a.textContent.includes({}))"
WIDTHS = (390, 900, 1600)
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
HIDDEN = """Math.max(...[...document.querySelectorAll('.scroll')]
    .map(one => one.scrollWidth - one.clientWidth))"""
CUT_OFF = """[...document.querySelectorAll('main *')]
    .filter(one => !one.closest('svg, .scroll, pre'))
    .filter(one => one.getBoundingClientRect().right > innerWidth + 1)
    .map(one => one.outerHTML.slice(0, 80))"""


def link(text: str) -> str:
    return LINK.format(json.dumps(text))


def button(text: str) -> str:
    return (
        f"[...document.querySelectorAll('button')].find(b => b.textContent == {json.dumps(text)})"
    )


def text_of(page) -> str:
    return page.eval("document.body.innerText")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    return Path(os.environ.get("TRIMTAB_PICTURES") or tmp_path_factory.mktemp("pictures"))


@pytest.fixture(scope="module")
def looked_at(pictures):
    """Takes pictures of a page at each width, light and dark; nothing is cut off or refused."""

    def look(page, name: str) -> None:
        for width in WIDTHS:
            for dark in (False, True):
                kind = "dark" if dark else "light"
                page.picture(pictures / f"{name}-{width}-{kind}.png", width=width, dark=dark)
            assert page.eval(TOO_WIDE) <= 0, (name, width)
            assert page.eval(CUT_OFF) == [], (name, width)
        # The policy of the page lets all of it through, and nothing else was tried.
        assert [e for e in page.events if e.get("method") == "Log.entryAdded"] == []

    return look


@pytest.fixture(scope="module")
def busy():
    """A proxy with one long session that was refused once, and six short ones."""
    count = 0

    def script(record):
        nonlocal count
        count += 1
        return Refuse("overflow", limit=record.tokens - 100) if count == 16 else answers(record)

    with (
        StrictProvider(script, window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW) as server,
    ):
        turn_by_turn(server.url, 40, lines=110, hostile=True)
        for number in range(6):
            lines = 60 * number + 20
            turn_by_turn(server.url, 3 + 2 * number, name=f"job-{number}", lines=lines)
        yield settled(server)


def test_an_empty_dashboard_says_how_to_begin(looked_at):
    with proxied("http://127.0.0.1:9") as server, tab() as page:
        page.open(server.dashboard)
        assert "ANTHROPIC_BASE_URL=http://127.0.0.1" in text_of(page)
        looked_at(page, "empty")
        for name, said in (("requests", "None yet"), ("spend", "Nothing yet")):
            page.open(f"{server.url}/_trimtab/{name}")
            assert said in text_of(page)
            looked_at(page, f"empty-{name}")


def test_a_dead_provider_is_the_first_thing_one_sees(looked_at):
    with proxied("http://127.0.0.1:9") as server, tab() as page:
        for _ in range(7):
            with pytest.raises(RuntimeError):
                turn_by_turn(server.url, 1)
        page.open(settled(server).dashboard)
        text = text_of(page)
        assert text.index("Failed requests") < text.index("last request failed")
        assert "502 from provider, 7 requests: " in text
        assert "last request failed: " in text
        looked_at(page, "failing")
        page.click(link("Go through the parts"))
        assert page.eval("document.querySelectorAll('svg.wide g .failed').length") == 7
        assert "Nothing has been cut" in text_of(page)
        looked_at(page, "failing-session")
        page.click("document.querySelector('[data-part=turns] td a')")
        assert "Request as received" in text_of(page)
        looked_at(page, "failing-request")


def test_sessions_are_listed_searched_and_opened(busy, looked_at):
    with tab() as page:
        page.open(busy.dashboard)
        text = text_of(page)
        for shown in ("parts of review", "parts of job-5", "would have been refused", "claude-cli"):
            assert shown in text
        looked_at(page, "sessions")
        page.eval("document.querySelector('input[name=q]').value = 'job-3'")
        page.click("document.querySelector('form button')")
        assert page.eval("document.querySelectorAll('tbody tr').length") == 1
        page.click(link("job-3"))
        assert page.eval("document.querySelector('h1').textContent").endswith("job-3.")


def test_a_session_shows_its_context_over_the_turns_its_edits_and_refusals(busy, looked_at):
    with tab() as page:
        page.open(busy.dashboard)
        page.click(link("review"))
        for form in ("wide", "narrow"):
            assert page.eval(f"document.querySelectorAll('svg.{form} g').length") == 40
            for part in ("kept", "cached", "reduced", "gone"):
                bars = f"document.querySelectorAll('svg.{form} g rect.{part}').length"
                assert page.eval(bars) > 0, part
            assert page.eval(f"document.querySelectorAll('svg.{form} polyline.window').length") == 1
            assert page.eval(f"document.querySelectorAll('svg.{form} path.break').length") > 0
        text = text_of(page)
        assert "recovered" in text
        assert "our edits" in text
        looked_at(page, "session")
        shown = "[...document.querySelectorAll('svg.chart')].filter(s => s.clientWidth).length"
        assert page.eval(shown) == 1


def test_the_original_is_one_click_away_and_hostile_output_stays_text(busy, looked_at):
    with tab() as page:
        page.open(busy.dashboard)
        page.click(link("review"))
        edits = "document.querySelector('[data-part=edits] td a')"
        handle = page.eval(f"{edits}.textContent")
        page.click(edits)
        assert page.eval("document.title") == f"{handle} · trimtab"
        looked_at(page, "edit")
        page.click("document.querySelector('.steps a')")
        before = page.eval("document.querySelector('.before').textContent")
        assert "model calls bash" in before  # readable, not the JSON of the format
        assert "<script>document.title='owned'</script>" in before
        assert "\u202e" not in before
        assert page.eval("document.title") == f"{handle} · trimtab"
        assert page.eval("document.querySelectorAll('main script, main img, main svg').length") == 0
        assert page.eval("document.querySelectorAll('.before, .after').length") == 2
        looked_at(page, "step")


def test_a_list_is_gone_through_by_keys_and_what_was_cut_is_found(busy, looked_at):
    def press(page, key):
        for kind in ("keyDown", "keyUp"):
            page.call(
                "Input.dispatchKeyEvent", type=kind, key=key, text=key if len(key) == 1 else ""
            )

    focus = "document.activeElement.textContent"
    with tab() as page:
        page.open(busy.dashboard)
        rows = page.eval("[...document.querySelectorAll('a[data-row]')].map(a => a.textContent)")
        for key, row in (("j", 0), ("j", 1), ("j", 2), ("k", 1)):
            press(page, key)
            assert page.eval(focus) == rows[row]
        press(page, "/")
        assert page.eval("document.activeElement.name") == "q"
        page.call("Input.insertText", text="jk/")
        assert page.eval("document.activeElement.value") == "jk/"
        press(page, "Escape")
        assert page.eval("document.activeElement === document.body")
        page.click("[...document.querySelectorAll('nav a')].find(a => a.textContent == 'Search')")
        page.eval("document.querySelector('input[name=q]').value = 'part_0 module_7.py'")
        page.click("document.querySelector('form button')")
        assert "src/part_0/module_7.py:" in text_of(page)
        looked_at(page, "search")
        page.click("document.querySelector('a[data-row]')")
        assert not page.eval("document.querySelector('.copy').hidden")
        page.eval("document.querySelector('.copy').click()")
        until = time.monotonic() + 5
        while page.eval("document.querySelector('.copy').textContent") == "Copy":
            assert time.monotonic() < until
        press(page, "Escape")
        page.wait("Page.loadEventFired")
        assert page.eval("location.pathname").startswith("/_trimtab/s/")


def test_a_request_is_read_with_one_click_and_hostile_output_stays_text(busy, looked_at):
    with tab() as page:
        page.open(busy.dashboard)
        page.click("[...document.querySelectorAll('nav a')].find(a => a.textContent == 'Requests')")
        assert page.eval("document.querySelectorAll('tbody tr').length") == 30
        assert "58 more" in text_of(page)
        looked_at(page, "requests")
        page.open(f"{busy.url}/_trimtab/r/40")
        for part in ("Request as received", "Request as sent", "Answer"):
            assert part in text_of(page)
        shown = page.eval("document.querySelector('#came').textContent")
        assert "<script>document.title='owned'</script>" in shown
        assert page.eval("document.title") == "Request 40 · trimtab"
        assert page.eval("document.querySelectorAll('main script, main img').length") == 0
        looked_at(page, "request")
        page.open(f"{busy.url}/_trimtab/r/40/came")  # as text: nothing in it runs either
        assert page.eval("document.title") != "owned"
        assert page.eval("document.contentType") == "text/plain"


def test_a_long_word_in_a_prompt_leaves_the_figures_in_view():
    with (
        StrictProvider(answers, window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW) as server,
        tab() as page,
    ):
        turn_by_turn(server.url, 40, name="a_" * 120)
        page.open(settled(server).dashboard)
        home = page.eval("location.href")
        session = page.eval("document.querySelector('td.first a').href")
        for address in (home, session, f"{home}requests", f"{home}spend?by=session"):
            page.open(address)
            page.eval("document.querySelectorAll('details').forEach(one => one.open = true)")
            for width in WIDTHS:
                size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
                page.call("Emulation.setDeviceMetricsOverride", **size)
                assert page.eval(HIDDEN) <= 0, (address, width)


def test_spend_says_what_was_paid_saved_how_sure_and_what_trimtab_cost(busy, looked_at):
    with tab() as page:
        page.open(busy.dashboard)
        for by in ("day", "agent", "model", "tenant", "session"):
            page.open(f"{busy.url}/_trimtab/spend?by={by}")
            text = text_of(page)
            for question in ("Paid", "trimtab itself", "start with --control 0.2"):
                assert question in text
            assert "not measured" not in text
            looked_at(page, f"spend-{by}")


def test_undo_and_pin_are_one_click_each_and_are_off_where_they_would_do_nothing(busy):
    with tab() as page:
        page.open(busy.dashboard)
        page.click(link("job-5"))
        page.click("document.querySelector('[data-part=edits] td a')")
        for label, said in (("Pin", "Pinned"), ("Unpin", "Unpinned"), ("Undo", "Undone")):
            assert not page.eval(f"{button(label)}.disabled")
            page.click(button(label))
            assert said in text_of(page)
        assert page.eval(f"{button('Undo')}.disabled")
        assert "undone already: the next turn sends the original" in text_of(page)


def test_new_sessions_appear_and_what_is_being_typed_stays():
    with (
        StrictProvider(answers, window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW) as server,
        tab() as page,
    ):
        turn_by_turn(server.url, 1, name="first")
        page.open(settled(server).dashboard)
        page.eval("document.querySelector('input').focus()")
        page.call("Input.insertText", text="half a wor")
        turn_by_turn(server.url, 1, name="second")
        until = time.monotonic() + 20
        while "parts of second" not in text_of(page) and time.monotonic() < until:
            time.sleep(0.2)
        assert "parts of second" in text_of(page)
        assert page.eval("document.activeElement.value") == "half a wor"
        server.stop()
        until = time.monotonic() + 20
        while "does not answer" not in text_of(page) and time.monotonic() < until:
            time.sleep(0.2)
        assert "The proxy does not answer" in text_of(page)
        assert page.eval("document.activeElement.value") == "half a wor"


def test_two_hundred_sessions_and_one_of_400_turns_are_there_after_a_restart(tmp_path, looked_at):
    store = f"sqlite:///{tmp_path}/s.db"
    with StrictProvider(answers, window=WINDOW) as provider:
        with proxied(provider.url, window=WINDOW, store=store) as server:
            for number in range(200):
                turn_by_turn(server.url, 1, name=f"job-{number}")
            turn_by_turn(server.url, 400, lines=8)
            settled(server)
            server.__exit__()
        with proxied(provider.url, window=WINDOW, store=store) as server, tab() as page:
            began = time.monotonic()
            page.open(server.dashboard)
            assert time.monotonic() - began < 5
            assert page.eval("document.querySelectorAll('tbody tr').length") == 50
            assert "151 more" in text_of(page)
            looked_at(page, "restart")
            page.click(link("review"))
            assert page.eval("document.querySelectorAll('svg.wide g').length") == 134
            assert page.eval("document.querySelectorAll('svg.narrow g').length") == 58
            assert "385 more" in text_of(page)
            looked_at(page, "restart-session")


def test_a_page_of_another_site_cannot_post_to_the_dashboard(busy):
    """Its form is refused although the browser would send it."""
    import http.server
    import threading

    session = next(iter(busy.proxy.addons.records.activity.sessions.values()))
    handle = next(iter(session.edits))
    form = (
        f"<form method=post action='{busy.url}/_trimtab/undo'>"
        f"<input name=session value='{session.id}'><input name=handle value='{handle}'>"
        f"<input name=token value='x'><button>go</button></form>"
    )

    class Evil(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(form.encode())

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Evil)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with tab(f"--host-resolver-rules=MAP evil.example 127.0.0.1:{server.server_port}") as page:
            page.open("http://evil.example/")
            page.click("document.querySelector('button')")
            assert "another site's page" in page.eval("document.body.innerText")
    finally:
        server.shutdown()


def test_a_name_that_is_made_to_point_here_reaches_nothing(busy):
    """DNS rebinding: the page's own name, resolved to the proxy."""
    port = busy.port
    with tab(f"--host-resolver-rules=MAP evil.example 127.0.0.1:{port}") as page:
        page.open("http://evil.example/_trimtab/")
        text = page.eval("document.body.innerText")
        assert "not one of the proxy's" in text
        assert "parts of review" not in text
