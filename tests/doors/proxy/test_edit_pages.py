"""The pages of an edit and of a request in words: what was cut, and what of it is still sent.

Knows the pages as text, and the functions that find their words.
"""

from __future__ import annotations

import json
import re
import time

from dashboard_text import Markup
from proxies import ask, proxied, settled
from proxy_story import WINDOW, answers, turn_by_turn

from trimtab import stores
from trimtab.journal.archive import Archived
from trimtab.proxy.dashboard.compared import compared
from trimtab.proxy.dashboard.kept_lines import LineRun, marked, sent_lines
from trimtab.proxy.dashboard.readable import Statement
from trimtab.proxy.records.edit_words import CHARS, of_call, of_steps
from trimtab_lab.testing import StrictProvider


def fold(*calls):
    """The original of a fold: a step for each (tool, arguments)."""
    messages = []
    for number, (tool, arguments) in enumerate(calls):
        call = {"type": "tool_use", "id": f"c{number}", "name": tool, "input": arguments}
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "fine"}
        messages += [
            {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]},
        ]  # fmt: skip
    return json.dumps(messages)


def test_a_fold_is_called_by_its_steps_files_first_and_numbered_ones_as_a_range():
    reads = [("read_file", {"path": f"src/module_{number}.py"}) for number in (16, 17, 18, 20)]
    assert of_steps("r1", fold(*reads[:3])) == "3 steps: read module_16–18.py"
    assert of_steps("r1", fold(("bash", {"command": "pytest -q"}), *reads)) == (
        "5 steps: read module_16–18.py, module_20.py; bash pytest -q"
    )
    edit = {"path": "a/b.py", "old_string": "x", "new_string": "y"}
    assert of_steps("r1", fold(reads[0], ("edit_file", edit))) == (
        "2 steps: read module_16.py; edited b.py"
    )
    many = [("bash", {"command": f"grep -rn {word * 20} src"}) for word in "abcdef"]
    words = of_steps("r1", fold(*many))
    assert words.startswith("6 steps: bash grep -rn aaaaaaaaaaaaaaaaaaaa src, grep")
    assert len(words) < CHARS + 12
    assert of_steps("r1", "no steps at all") == ""


def test_the_result_of_one_call_is_called_by_its_file_or_its_own_words():
    def words(tool, arguments, kind="result"):
        return of_call(Archived("r1", kind, tool, json.dumps(arguments)))

    assert words("read_file", {"path": "src/clock.py"}) == "read clock.py"
    assert words("bash", {"command": "git log  --stat"}) == "git log --stat"
    assert words("search", {"query": "time zones", "limit": 5}) == "time zones"
    assert words("bash", {"command": "x" * 500}).endswith("…")
    assert words("bash", {"command": "git log"}, kind="text") == ""


def test_lines_of_an_original_that_are_sent_word_for_word_are_marked():
    sent = sent_lines("[64 of 151 lines]\n  one line here\n…\n}\nthe last one")
    text = "first\n\x1b[31mone line here\x1b[0m\n}\nthe last one"
    assert marked(text, sent) == [
        LineRun(False, "first\n"), LineRun(True, "\x1b[31mone line here\x1b[0m\n"),
        LineRun(False, "}\n"), LineRun(True, "the last one"),
    ]  # fmt: skip
    assert "".join(run.text for run in marked(text, sent)) == text
    assert marked("", sent) == []


def test_what_came_is_beside_what_was_sent_and_equal_parts_are_counted():
    head, cut, note, end = (Statement("user", "user", text) for text in "abcd")
    places = compared([head, head, cut, cut, end], [head, head, note, end])
    assert [place.same for place in places] == ["2 parts unchanged", "", "1 part unchanged"]
    assert (places[1].came, places[1].sent) == ((cut, cut), (note,))
    (removed,) = compared([cut] * 90, [])
    assert (len(removed.came), removed.sent) == (40, ())
    assert removed.more == "50 more parts: the whole texts have them"
    assert compared([head] * 5_000, [head]) is None


def test_many_different_parts_are_compared_within_a_second():
    rows = [Statement("tool", "result", f"line {number}") for number in range(4_000)]
    began = time.perf_counter()
    assert len(compared(rows, rows[2_000:])) == 2
    assert time.perf_counter() - began < 1


def page(server, path):
    status, _, body = ask(server.url, "GET", f"/_trimtab/{path}")
    assert status == 200, body
    return body.decode()


def test_session_edit_and_request_say_what_was_cut_in_words(tmp_path):
    for texts in (True, False):
        store = f"sqlite:///{tmp_path}/{texts}.db"
        with (
            StrictProvider(answers, window=WINDOW) as provider,
            proxied(provider.url, window=WINDOW, store=store, dashboard_texts=texts) as server,
        ):
            turn_by_turn(server.url, 24)
            (one,) = settled(server).proxy.addons.records.activity.sessions.values()
            session = page(server, f"s/{one.id}")
            titles = dict(re.findall(r'/e/(\w+)" data-row>([^<]+)<', session))
            folds = [edit for edit in one.edits.values() if edit.steps]
            for edit in folds:
                assert re.match(rf"{edit.steps} steps?: bash grep -rn part_0", titles[edit.handle])
                shown = page(server, f"s/{one.id}/e/{edit.handle}")
                assert f"<h1>{titles[edit.handle]}</h1>" in shown
                assert f'<code id="handle">{edit.handle}</code>' in shown
            assert folds
            step = Markup(page(server, f"s/{one.id}/e/{folds[-1].handle}?step=1").encode()).text
            assert re.search(r"Marked: \d+ of \d+ lines are sent word for word", step)
            shown = page(server, "r/24")
            assert ("What came, and what was sent" in shown) == texts
            assert bool(re.search(r"\d+ parts? unchanged", shown)) == texts
            turn_by_turn(server.url, 4, name="large results", lines=1_200)
            (*_, large) = settled(server).proxy.addons.records.activity.sessions.values()
            results = [edit for edit in large.edits.values() if not edit.steps]
            session = page(server, f"s/{large.id}")
            for edit in results:
                assert bool(edit.about) == texts
                assert (f"result of bash shortened: {edit.about}<" in session) == texts
            assert results
            server.__exit__()
        history = stores.open(store, "trimtab sessions")
        kept = [entry for session in (one, large) for entry in history.read(session.id)[0]]
        assert kept
        assert (b"grep" in b"".join(kept)) == texts
