"""The dashboard in a real browser: what it shows, that nothing hostile runs, pictures for docs.

Knows the pages as a person sees them.  TRIMTAB_PICTURES=docs/pictures writes them there.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from browser import tab
from proxies import proxied, settled
from proxy_story import WINDOW, answers, turn_by_turn

import trimtab
from trimtab.testing import Refuse, StrictProvider

pytestmark = pytest.mark.world
LINK = "[...document.querySelectorAll('td a')].find(a => a.textContent == {})"


def link(text: str) -> str:
    return LINK.format(json.dumps(text))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    return Path(os.environ.get("TRIMTAB_PICTURES") or tmp_path_factory.mktemp("pictures"))


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


def test_an_empty_dashboard_says_how_to_begin(pictures):
    with proxied("http://127.0.0.1:9") as server, tab() as page:
        page.open(server.dashboard)
        assert "ANTHROPIC_BASE_URL=http://127.0.0.1" in page.eval("document.body.innerText")
        page.picture(pictures / "empty.png")
        page.picture(pictures / "empty-dark.png", dark=True)


def test_sessions_are_listed_searched_and_opened(busy, pictures):
    with tab() as page:
        page.open(busy.dashboard)
        text = page.eval("document.body.innerText")
        for shown in ("review", "job-5", "Tokens saved", "Refusals survived", "claude-cli"):
            assert shown in text
        page.picture(pictures / "sessions.png")
        page.picture(pictures / "sessions-dark.png", dark=True)
        page.eval("document.querySelector('input[name=q]').value = 'job-3'")
        page.click("document.querySelector('form button')")
        assert page.eval("document.querySelectorAll('tbody tr').length") == 1
        page.click(link("job-3"))
        assert page.eval("document.querySelector('h1').textContent") == "job-3"


def test_money_is_one_line_of_a_tile_as_the_other_figures_are():
    tall = "[...document.querySelectorAll('dd')].map(d => d.getBoundingClientRect().height)"
    with (
        StrictProvider(answers) as provider,
        proxied(provider.url, window=WINDOW, fit=trimtab.Settings(prices="claude-5m")) as server,
        tab() as page,
    ):
        turn_by_turn(server.url, 24)
        page.open(settled(server).dashboard)
        figure = "[...document.querySelectorAll('dt')].find(d => d.textContent == 'Money saved')"
        dollars = server.proxy.records.activity.dollars
        assert dollars
        said = page.eval(f"{figure}.nextSibling.textContent")
        assert float(said.replace("$", "").replace("−", "-")) == pytest.approx(dollars, abs=0.006)
        assert len(set(page.eval(tall))) == 1


def test_a_session_shows_its_context_over_the_turns_its_edits_and_refusals(busy, pictures):
    with tab() as page:
        page.open(busy.dashboard)
        page.click(link("review"))
        assert page.eval("document.querySelectorAll('svg g').length") == 40
        for part in ("kept", "cached", "reduced", "gone"):
            assert page.eval(f"document.querySelectorAll('g rect.{part}').length") > 0, part
        assert page.eval("document.querySelectorAll('polyline.window').length") == 1
        assert "recovered" in page.eval("document.body.innerText")
        page.picture(pictures / "session.png")
        page.picture(pictures / "session-dark.png", dark=True)


def test_the_original_is_one_click_away_and_hostile_output_stays_text(busy, pictures):
    with tab() as page:
        page.open(busy.dashboard)
        page.click(link("review"))
        handle = page.eval("document.querySelector('td a').textContent")
        page.click("document.querySelector('td a')")
        assert page.eval("document.title") == f"{handle} · trimtab"
        before = page.eval("document.querySelector('.before pre').textContent")
        assert "<script>document.title='owned'</script>" in before
        assert "\u202e" not in before
        assert page.eval("document.querySelectorAll('main script, main img, main svg').length") == 0
        assert page.eval("document.querySelectorAll('.before, .after').length") == 2
        page.picture(pictures / "edit.png")
        page.picture(pictures / "edit-dark.png", dark=True)
        logged = [e for e in page.events if e.get("method") == "Log.entryAdded"]
        assert logged == []  # nor was anything blocked: nothing was tried


def test_undo_and_pin_are_one_click_each(busy):
    with tab() as page:
        page.open(busy.dashboard)
        page.click(link("job-5"))
        page.click("document.querySelector('td a')")
        for label, said in (("Pin", "Pinned"), ("Let go", "Let go"), ("Undo", "Undone")):
            buttons = "[...document.querySelectorAll('form button')]"
            page.click(f"{buttons}.find(b => b.textContent == {json.dumps(label)})")
            assert said in page.eval("document.body.innerText")


def test_a_page_of_another_site_cannot_post_to_the_dashboard(busy):
    """Its form is refused although the browser would send it."""
    import http.server
    import threading

    session = next(iter(busy.proxy.records.activity.sessions.values()))
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
        assert "review" not in text
