"""What the dashboard knows of sessions: names, history in the store, failures, cache breaks, spend.

Knows the proxy from outside, and its JSON.  How pages look is for world/test_dashboard.py.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time

import pytest
from proxies import ask, proxied, settled
from proxy_story import WINDOW, answers, turn_by_turn

from trimtab import stores
from trimtab.proxy.http.answer_usage import TokenUsage, UsageReader
from trimtab.proxy.http.routes import route
from trimtab.proxy.records.prefix_breaks import (
    CLIENT,
    EXPIRED,
    OURS,
    PROVIDER,
    beginning,
    note_break,
)
from trimtab.proxy.records.request_record import RequestRecord
from trimtab.proxy.records.session_history import fill
from trimtab.proxy.records.session_record import SessionRecord
from trimtab.proxy.records.session_title import first_prompt, folder
from trimtab_lab.testing import StrictProvider


def read(server, path):
    status, _, body = ask(server.url, "GET", f"/_trimtab/{path}")
    assert status == 200, body
    return json.loads(body)


def page(server, path=""):
    return ask(server.url, "GET", f"/_trimtab/{path}")[2].decode()


def test_sessions_with_turns_and_edits_are_there_after_a_restart_and_can_be_undone(tmp_path):
    store = f"sqlite:///{tmp_path}/s.db"
    with StrictProvider(answers, window=WINDOW) as provider:
        with proxied(provider.url, window=WINDOW, store=store) as server:
            turn_by_turn(server.url, 24)
            (before,) = read(settled(server), "sessions.json")["sessions"]
            whole = read(server, f"s/{before['id']}.json")
            server.__exit__()
        with proxied(provider.url, window=WINDOW, store=store) as server:
            (after,) = read(server, "sessions.json")["sessions"]
            assert after == before
            again = read(server, f"s/{before['id']}.json")
            for turn in whole["turns"]:
                turn.pop("request")  # requests are of one run
            assert again["turns"] == whole["turns"]
            assert again["edits"] == whole["edits"]
            edit = next(one for one in again["edits"] if one["state"] == "in force")
            path = f"s/{before['id']}/e/{edit['handle']}"
            token = re.search(r'name="token" value="(\w+)"', page(server, path))[1]
            form = f"token={token}&session={before['id']}&handle={edit['handle']}"
            assert ask(server.url, "POST", "/_trimtab/undo", form)[0] == 303
            assert "to be undone" in page(server, path)
            turn_by_turn(server.url, 2)
            (again,) = read(settled(server), "sessions.json")["sessions"]
            assert again["sums"]["turns"] == before["sums"]["turns"] + 2
            numbers = [t["number"] for t in read(server, f"s/{before['id']}.json")["turns"]]
            assert numbers == list(range(1, 27))


def test_nothing_is_kept_of_a_session_that_no_provider_has_accepted(tmp_path):
    store = f"sqlite:///{tmp_path}/s.db"
    with proxied("http://127.0.0.1:9", store=store) as server:
        with pytest.raises(RuntimeError):
            turn_by_turn(server.url, 1)
        assert "Failed requests" in page(settled(server))
        assert read(server, "sessions.json")["sessions"]
        server.__exit__()
    assert not stores.open_store(store).conversations()


def test_texts_are_not_kept_and_name_nothing_where_they_are_switched_off(tmp_path):
    for wanted, seen in ((False, False), (None, True)):
        store = f"sqlite:///{tmp_path}/{wanted}.db"
        with (
            StrictProvider(answers, window=WINDOW) as provider,
            proxied(provider.url, window=WINDOW, store=store, dashboard_texts=wanted) as server,
        ):
            turn_by_turn(server.url, 1, name="secret")
            (one,) = read(settled(server), "sessions.json")["sessions"]
            assert one["title"] == ("Go through the parts of secret." if seen else "secret")
            assert (ask(server.url, "GET", "/_trimtab/r/1/came")[0] == 200) == seen
            assert ("Go through" in page(server, "r/1")) == seen
            server.__exit__()
        kept = stores.open(store, "trimtab sessions").facts("stats/")
        assert ("Go through" in json.dumps(kept)) == seen


def test_a_request_is_listed_with_its_status_and_shown_with_both_texts():
    with (
        StrictProvider(answers, window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW) as server,
    ):
        turn_by_turn(server.url, 24)
        rows = read(settled(server), "requests.json")["requests"]
        assert [row["number"] for row in rows] == list(range(24, 0, -1))
        last = rows[0]
        assert (last["status"], last["output"] > 0, last["cached"] >= 0) == (200, True, True)
        assert last["sent"] < last["arrived"]
        kept = {name: ask(server.url, "GET", f"/_trimtab/r/24/{name}") for name in
                ("came", "sent", "answer")}  # fmt: skip
        assert {found[0] for found in kept.values()} == {200}
        assert {found[1]["content-type"] for found in kept.values()} == {
            "text/plain; charset=utf-8"
        }
        assert len(kept["sent"][2]) < len(kept["came"][2])
        assert json.loads(kept["answer"][2])["content"][0]["text"].startswith("Step ")
        assert ask(server.url, "GET", "/_trimtab/r/24/other")[0] == 404
        assert ask(server.url, "GET", "/_trimtab/r/99")[0] == 404


def test_a_browser_is_led_from_the_root_to_the_dashboard_and_a_client_is_not():
    with proxied("http://127.0.0.1:9") as server:
        browser = {"accept": "text/html,application/xhtml+xml"}
        status, headers, _ = ask(server.url, "GET", "/", headers=browser)
        assert (status, headers["location"]) == (303, "/_trimtab/")
        assert ask(server.url, "GET", "/")[0] == 502


def test_spend_is_told_by_day_agent_model_key_and_session():
    with (
        StrictProvider(answers, window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW) as server,
    ):
        turn_by_turn(server.url, 3)
        settled(server)
        names = {}
        for by in ("day", "agent", "model", "tenant", "session"):
            found = read(server, f"spend.json?by={by}")
            assert found["paid"]["calls"] == 3
            assert found["savings"] is None
            names[by] = [group["name"] for group in found["groups"]]
        assert names["agent"] == ["claude-cli"]
        assert names["model"] == ["claude-opus-5-5"]
        assert names["tenant"] == ["local"]
        text = page(server, "spend")
        assert "not measured" not in text
        assert "start with --control 0.2" in text
        assert "it called no model itself" in text


@pytest.mark.parametrize("by", ["", "nobody", "__class__"])
def test_an_unknown_grouping_of_spend_is_by_day(by):
    with proxied("http://127.0.0.1:9") as server:
        assert "Nothing yet" in page(server, f"spend?by={by}")


SYSTEM = {"role": "system", "content": "You are.\nWorking directory: /home/me/tally\nPlatform: x"}
TITLES = [
    ({"messages": [{"role": "user", "content": "  Fix it.\nNow."}]}, "Fix it.", ""),
    ({"messages": [SYSTEM, {"role": "user", "content": "Go"}]}, "Go", "tally"),
    ({"system": [{"type": "text", "text": " - Primary working directory: /srv/app\n"}],
      "messages": [{"role": "user", "content": [
          {"type": "text", "text": "<system-reminder>\nAs you <b>answer\n</system-reminder>"},
          {"type": "text", "text": "<command-name>x</command-name>Do this"}]}]}, "Do this", "app"),
    ({"input": [{"role": "user", "content": [{"type": "input_text", "text":
        "<environment_context>\n  <cwd>/w/agentv</cwd>\n</environment_context>"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "Run tests"}]}]},
     "Run tests", "agentv"),
    ({"input": "Hello"}, "Hello", ""),
    ({"contents": [
        {"role": "user", "parts": [{"text": "This is the Gemini CLI. We are setting up the context "
         "for our chat.\nI'm currently working in the directory: /home/me/x y"}]},
        {"role": "model", "parts": [{"text": "Got it."}]},
        {"role": "user", "parts": [{"text": "Read a file"}]}]}, "Read a file", "x"),
    ({"messages": [{"role": "user", "content": [{"type": "tool_result", "content": "no"}]}]},
     "", ""),
    ({"messages": "x" * 500}, "x" * 119 + "…", ""),
    ({}, "", ""), ([], "", ""), (None, "", ""), ({"messages": [None, 3]}, "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("tree", "title", "project"), TITLES)
def test_a_session_is_named_by_what_its_user_wrote_first_and_its_agent_s_folder(
    tree, title, project
):
    assert (first_prompt(tree), folder(tree)) == (title, project)


TAGGED = ("<" + "a" * 200 + ">x</a>") * 190
HARD = {
    "names that may end anywhere": [TAGGED],
    "in each of many parts": [{"type": "text", "text": TAGGED}] * 2_000,
    "tags alone": ["<a></a>" * 6_000],
    "folders": [{"type": "text", "text": "working directory " * 2_200}] * 2_000,
    "no texts": [[0] * 3_000_000],
}


@pytest.mark.parametrize("content", HARD.values(), ids=HARD)
def test_no_text_takes_long_to_be_named(content):
    """On the event loop, where all other answers wait for it."""
    nested: list[object] = []
    for _ in range(5_000):
        nested = [nested]
    tree = {"system": content, "messages": [{"role": "user", "content": content}] * 6}
    began = time.process_time()
    for one in (tree, {**tree, "system": nested}):
        first_prompt(one)
        folder(one)
    beginning(tree)
    assert time.process_time() - began < 2


def chat(*texts, model="m", tools=1):
    messages = [{"role": "user", "content": text, "cache_control": {}} for text in texts]
    return {"model": model, "messages": messages, "tools": [{}] * tools}


BREAKS = [
    ({}, chat("a", "b", "c", "d", "e"), ""),
    ({"cached": 9_500}, chat("a", "b", "c", "d", "e"), ""),
    ({"cached": 0}, chat("a", "b", "c", "d", "e"), PROVIDER),
    ({"cached": 0, "when": 400.0}, chat("a", "b", "c", "d", "e"), EXPIRED),
    ({"cached": 0}, chat("a", "x", "c", "d", "e"), CLIENT),
    ({"cached": 0}, chat("a", "b", "c", "d", "e", model="n"), CLIENT),
    ({"cached": 0, "when": 400.0}, chat("a", "b", "c", "d", "e", tools=2), CLIENT),
    ({"cached": 0, "arrived": 5_000}, chat("a", "b", "c"), CLIENT),
    ({"cached": 0, "new": 2}, chat("a", "x", "c", "d", "e"), OURS),
    # what the provider itself reports comes first
    ({"cached": 0, "new": 2, "diagnosis": "tools_changed"}, chat("a", "b", "c", "d", "e"), CLIENT),
    ({"cached": 0, "new": 2, "diagnosis": "input_changed"}, chat("a", "b", "c", "d", "e"), OURS),
    ({"cached": 0, "when": 400.0, "diagnosis": "messages_changed"}, chat("a", "b", "c"), CLIENT),
    ({"cached": 0, "diagnosis": "cache_hit"}, chat("a", "x", "c", "d", "e"), PROVIDER),
    ({"cached": 0, "when": 400.0, "diagnosis": "cache_hit"}, chat("a", "x", "c"), EXPIRED),
    ({"cached": 0, "new": 2, "diagnosis": "context_compacted"}, chat("a", "b", "c"), PROVIDER),
    ({"cached": 0, "diagnosis": "unavailable"}, chat("a", "x", "c", "d", "e"), CLIENT),
    ({"cached": 10_000, "diagnosis": "tools_changed"}, chat("a", "b", "c", "d", "e"), ""),
]


@pytest.mark.parametrize(("change", "tree", "cause"), BREAKS)
def test_a_break_of_the_prompt_cache_has_a_cause(change, tree, cause):
    one = SessionRecord("1", "local", "u", "openai-chat", "", "", 0.0, 0.0)
    first = RequestRecord(1, 0.0, 10_000, 10_000, prompt=10_000, written=10_000, status=200)
    one.turns.append(first)
    note_break(one, first, beginning(chat("a", "b", "c", "d")))
    given = {"when": 10.0, "arrived": 11_000, "prompt": 11_000, "cached": 10_000, **change}
    turn = RequestRecord(2, status=200, **given)
    one.turns.append(turn)
    note_break(one, turn, beginning(tree))
    assert turn.cause == cause
    assert turn.lost == (10_000 - turn.cached if cause else 0)


MISSED = {"type": "cache_miss", "reason": "input_changed", "cache_missed_tokens": 9_000}
STARTED = {"id": "msg_1", "diagnostics": {"cache_miss_reason": {"type": "tools_changed"}}}
DIAGNOSES = [
    ("/v1/messages", {"type": "message_start", "message": {**STARTED, "usage": {}}},
     "tools_changed"),
    ("/v1/responses", {"type": "response.completed",
                       "response": {"prompt_cache_diagnostics": MISSED, "usage": {}}},
     "input_changed"),
    ("/v1/responses", {"response": {"prompt_cache_diagnostics": {"type": "cache_hit"},
                                    "usage": {}}}, "cache_hit"),
    ("/v1/messages", {"message": {"diagnostics": {"cache_miss_reason": None}, "usage": {}}}, ""),
    ("/v1/messages", {"message": {"diagnostics": None, "usage": {}}}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("path", "event", "found"), DIAGNOSES)
def test_a_provider_s_own_finding_on_its_cache_is_read_from_a_stream(path, event, found):
    usage = TokenUsage()
    reader = UsageReader(route("POST", path, ""), usage)
    reader.feed(b"data: " + json.dumps(event).encode() + b"\n\n")
    assert usage.diagnosis == found


HASHES = """
import json, sys
from trimtab.proxy.records.prefix_breaks import beginning
messages = [{"role": "user", "content": "a" * 20_000}, {"role": "user", "content": "\\ud800"}] * 3
print(json.dumps(beginning({"model": "m", "messages": messages})))
"""


def test_what_a_session_began_with_can_be_compared_after_a_restart(tmp_path):
    """Before, each process had hashes of its own: the client's change was the provider's fault."""
    said = {
        subprocess.run(
            [sys.executable, "-c", HASHES], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(said) == 1
    store = f"sqlite:///{tmp_path}/s.db"
    with StrictProvider(answers, window=WINDOW) as provider:
        with proxied(provider.url, window=WINDOW, store=store) as server:
            turn_by_turn(server.url, 1)
            (before,) = settled(server).proxy.addons.records.activity.sessions.values()
            server.__exit__()
        with proxied(provider.url, window=WINDOW, store=store) as server:
            (after,) = server.proxy.addons.records.activity.sessions.values()
            assert dict(after.beginning) == dict(before.beginning)
            assert dict(after.beginning)["model"]


def test_refusals_of_an_earlier_release_are_shown_with_their_turns():
    session = SessionRecord("1", "local", "u", "anthropic", "", "", 0.0, 0.0, loaded=False)
    turns = [{"number": 1, "when": 5.0, "status": 200}, {"number": 2, "when": 6.0, "status": 400}]
    refusals = [
        {"when": 5.1, "turn": 1, "status": 400, "kind": "too_long", "action": "recovered"},
        {"when": 6.1, "turn": 2, "status": 429, "kind": "rate", "action": "passed on"},
        {"when": 6.1, "turn": 9, "status": 429, "kind": "rate", "action": "passed on"},
    ]
    fill(session, [{"turns": turns, "edits": [], "refusals": refusals}])
    shown = [(row["turn"], row["kind"], row["action"]) for row in session.refusals]
    assert shown == [(1, "too_long", "recovered"), (2, "rate", "passed on")]


def test_without_a_store_nothing_waits_to_be_written():
    with (
        StrictProvider(answers, window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW, store="memory:") as server,
    ):
        turn_by_turn(server.url, 2)
        records = settled(server).proxy.addons.records
        records._collect()
        assert records.activity.totals["turns"] == 2
        assert not records._history._waiting
