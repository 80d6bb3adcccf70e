"""The dashboard pins a sentence for a session, and shows what its next cut would take."""

from __future__ import annotations

import json
import re
from urllib.parse import quote_plus

from proxies import ask, proxied, settled
from proxy_story import WINDOW, answers, turn_by_turn

from trimtab_lab.testing import StrictProvider


def read(server, path):
    return json.loads(page(server, path))


def page(server, path):
    status, _, body = ask(server.url, "GET", f"/_trimtab/{path}")
    assert status == 200, body
    return body.decode()


def test_a_sentence_is_pinned_and_released_in_the_dashboard(tmp_path):
    with (
        StrictProvider(answers, window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW, store=f"sqlite:///{tmp_path}/s.db") as server,
    ):
        turn_by_turn(server.url, 24)
        (one,) = read(settled(server), "sessions.json")["sessions"]
        path = f"s/{one['id']}/keep"
        shown = page(server, path)
        assert f'href="/_trimtab/{path}"' in page(server, f"s/{one['id']}")
        assert "What the next cut would take" in shown
        assert "reduced to" in shown
        assert "recall(" in shown
        assert "src/part_2/module_7.py" in page(server, f"{path}?q=part_2+module_7")
        token = re.search(r'name="token" value="(\w+)"', shown)[1]
        words = "Go through the parts"
        form = f"token={token}&session={one['id']}&text={quote_plus(words)}"
        status, headers, _ = ask(server.url, "POST", "/_trimtab/keep", form)
        assert (status, "done=keep" in str(headers)) == (303, True)
        assert f"text: {words}" in page(server, path)
        assert ask(server.url, "POST", "/_trimtab/release", form)[0] == 303
        assert f"text: {words}" not in page(server, path)


def test_nothing_is_pinned_without_our_own_form_or_without_words(tmp_path):
    with (
        StrictProvider(answers, window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW, store=f"sqlite:///{tmp_path}/s.db") as server,
    ):
        turn_by_turn(server.url, 2)
        (one,) = read(settled(server), "sessions.json")["sessions"]
        path = f"s/{one['id']}/keep"
        token = re.search(r'name="token" value="(\w+)"', page(server, path))[1]
        wrong = f"token=0{token}&session={one['id']}&text=words"
        assert ask(server.url, "POST", "/_trimtab/keep", wrong)[0] == 403
        for more in ("", "&text=a&file=b"):
            form = f"token={token}&session={one['id']}{more}"
            status, _, body = ask(server.url, "POST", "/_trimtab/keep", form)
            assert status == 409
            assert b"Give a sentence or a file" in body
        assert "text: words" not in page(server, path)
