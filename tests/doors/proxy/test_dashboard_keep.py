"""The dashboard pins a sentence for a session, and shows what its next cut would take."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from urllib.parse import quote_plus

from proxies import ask, proxied, settled
from proxy_story import JSON, WINDOW, answers, turn_by_turn

from trimtab.proxy.dashboard.search_view import of_scope
from trimtab.sessions.note_tool import note_tool
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
        assert f'href="/_trimtab/search?s={one["id"]}&amp;in=session"' in page(
            server, f"s/{one['id']}"
        )
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


def test_originals_are_searched_in_one_session_in_those_of_its_tenant_and_in_all(tmp_path):
    with (
        StrictProvider(answers, window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW, store=f"sqlite:///{tmp_path}/s.db") as server,
    ):
        for name in ("one", "two"):
            turn_by_turn(server.url, 24, name=name)
        first, second = settled(server).proxy.addons.records.activity.sessions.values()
        words = "part_2+module_7.py"

        def found(query):
            text = page(server, f"search?q={query}")
            return [session.id for session in (first, second) if f"/s/{session.id}/e/" in text]

        both = [first.id, second.id]
        assert found(words) == both
        assert found(f"{words}&s={first.id}&in=session") == [first.id]
        assert found(f"{words}&s={first.id}&in=tenant") == both
        other = replace(second, tenant="another")
        assert of_scope([first, other], first, "tenant") == [first]
        assert of_scope([first, other], first, "") == [other, first]  # the newest first
        text = page(server, f"search?q={words}&s={first.id}&in=session")
        assert "src/part_2/module_7.py:" in text
        steps = re.findall(rf'/s/{first.id}/e/(\w+)\?step=(\d+)"', text)
        handle, step = steps[0]
        assert "src/part_2/module_7.py:" in page(server, f"s/{first.id}/e/{handle}?step={step}")
        assert "No line of what was cut from 2 sessions has these words" in page(
            server, "search?q=zxqvbn"
        )
        assert "Originals of all edits are searched" in page(server, "search")


def test_what_the_model_noted_is_shown_while_the_text_of_its_request_is_kept(tmp_path):
    call = {"type": "tool_use", "id": "n1", "name": "note",
            "input": {"name": "plan", "text": "Keep the <old> clock."}}  # fmt: skip
    messages = [
        {"role": "user", "content": "Mend the clock."}, {"role": "assistant", "content": [call]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "n1", "content": "Kept: plan"}
        ]},
    ]  # fmt: skip
    body = {
        "model": "claude-opus-5-5", "max_tokens": 100, "messages": messages,
        "tools": [note_tool("anthropic").definition],
    }  # fmt: skip
    for texts in (True, False):
        with (
            StrictProvider() as provider,
            proxied(provider.url, window=WINDOW, dashboard_texts=texts) as server,
        ):
            assert ask(server.url, "POST", "/v1/messages", json.dumps(body), JSON)[0] == 200
            (one,) = settled(server).proxy.addons.records.activity.sessions.values()
            shown = page(server, f"s/{one.id}/keep")
            assert ("Keep the &lt;old&gt; clock." in shown) == texts
            assert ("<h3>plan" in shown) == texts
