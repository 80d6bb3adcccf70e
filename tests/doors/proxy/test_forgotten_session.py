"""The button of a session's page that deletes it: from the store, the dashboard and memory."""

from __future__ import annotations

import json
import re

from proxies import ask, proxied, settled
from proxy_story import WINDOW, answers, turn_by_turn
from stored_values import everything

from trimtab_lab.testing import StrictProvider


def page(server, path=""):
    return ask(server.url, "GET", f"/_trimtab/{path}")


def sessions(server):
    return json.loads(page(settled(server), "sessions.json")[2])["sessions"]


def test_a_session_is_deleted_for_good_and_the_other_one_stays(tmp_path):
    store = f"sqlite:///{tmp_path}/s.db"
    settings = {"window": WINDOW, "store": store, "dashboard_texts": True}
    with StrictProvider(answers, window=WINDOW) as provider:
        with proxied(provider.url, **settings) as server:
            turn_by_turn(server.url, 20, name="quokka")
            turn_by_turn(server.url, 20, name="wombat")
            server.__exit__()
        before = everything(store)
        assert b"parts of quokka" in before
        assert b"parts of wombat" in before
        with proxied(provider.url, **settings) as server:
            turn_by_turn(server.url, 20, name="quokka")  # it is in memory, too
            settled(server)
            ids = {one["title"]: one["id"] for one in sessions(server)}
            (gone,) = [id for title, id in ids.items() if "quokka" in title]
            (stays,) = set(ids.values()) - {gone}
            status, _, body = page(server, f"s/{gone}")
            assert "Delete it for good" in body.decode()
            token = re.search(r'name="token" value="(\w+)"', body.decode())[1]
            old = f"token={'0' * 64}&session={gone}"
            assert ask(server.url, "POST", "/_trimtab/forget", old)[0] == 403
            assert len(sessions(server)) == 2
            form = f"token={token}&session={gone}"
            status, _, body = ask(server.url, "POST", "/_trimtab/forget", form)
            assert (status, "Deleted" in body.decode()) == (200, True)
            assert [one["id"] for one in sessions(server)] == [stays]
            assert page(server, f"s/{gone}")[0] == 404
            assert page(server, f"s/{stays}")[0] == 200
            assert b"quokka" not in page(server, "requests")[2]
            server.__exit__()
        after = everything(store)
        assert b"quokka" not in after
        assert b"wombat" in after
        assert gone.encode() not in re.sub(rb"usage/[^\n]*|\{\"id\": \"[^\n]*", b"", after)
