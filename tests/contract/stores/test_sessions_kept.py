"""Sessions with a store: any number of conversations, any process, nothing lost.

All four stores where they differ; Redis and PostgreSQL are real servers (world tier).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import store_urls
from long_sessions import KEYWORDS, WINDOW, grown, request, step
from settings_words import as_keywords

import trimtab
from trimtab import stores
from trimtab.errors import InvalidSetting, StoreError, UnknownHandle
from trimtab.journal import excerpts
from trimtab.stores.base import Store, WriteBatch
from trimtab.stores.memory import MemoryStore

KINDS = [
    *store_urls.NEAR,
    *(pytest.param(kind, marks=pytest.mark.world) for kind in store_urls.FAR),
]


@pytest.fixture(params=KINDS[1:])
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Stores that several processes can open."""
    with store_urls.store_url(request.param, tmp_path) as found:
        yield found
        close_all()


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with store_urls.store_url(request.param, tmp_path) as found:
        yield found
        close_all()


@pytest.fixture
def file(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


_opened: list[trimtab.Session] = []


def session(url: Any, **keywords: Any) -> trimtab.Session:
    _opened.append(trimtab.Session(store=url, **as_keywords(**{**KEYWORDS, **keywords})))
    return _opened[-1]


def close_all() -> None:
    """Nothing is written to a store that was taken down."""
    while _opened:
        _opened.pop().close()


def handles(done: trimtab.Fitted) -> list[str]:
    return [edit.handle for edit in done.report.edits if edit.op != "insert"]


def prefix(one: Any, other: Any) -> bool:
    """Whether the messages sent first stand unchanged at the beginning of those sent later."""
    return bool(other["messages"][: len(one["messages"])] == one["messages"])


# --- the same in every process --------------------------------------------------------------------


def test_each_turn_in_another_process_sends_what_one_session_sends(url: str) -> None:
    alone = trimtab.Session(**as_keywords(**KEYWORDS))
    sent: dict[str, Any] | None = None
    batches = 0
    for body in grown(30):
        mine = session(url)  # nothing in memory, as after a restart
        done = mine.fit(body)
        assert done.request == alone.fit(body).request
        new = any(edit.new for edit in done.report.edits)
        assert new or sent is None or prefix(sent, done.request), "nothing new, nothing moved"
        batches += new
        sent = done.request
        mine.close()
    assert 1 <= batches <= 6


def test_every_original_comes_back_from_another_process(url: str) -> None:
    first = session(url)
    known: dict[str, str] = {}
    for body in grown(45):
        done = first.fit(body)
        known |= {handle: done.recall(handle) for handle in handles(done)}
    first.close()
    assert len(known) >= 3
    again = session(url)
    assert {handle: again.recall(handle) for handle in known} == known
    texts = [message["content"][0].get("content") for message in request(45)["messages"][2::2]]
    recalled = "".join(known.values())
    assert any(json.dumps(text)[1:-1] in recalled for text in texts)


PROGRAM = """
import json, sys, trimtab
from long_sessions import KEYWORDS
from settings_words import as_keywords
session = trimtab.Session(store=sys.argv[1], **as_keywords(**KEYWORDS))
for line in sys.stdin:
    done = session.fit(json.loads(line))
    print(json.dumps([done.request, [e.handle for e in done.report.edits]]), flush=True)
"""


def test_processes_take_turns_and_send_the_same(file: str) -> None:
    here, alone = session(file), trimtab.Session(**as_keywords(**KEYWORDS))
    other = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert other.stdin is not None
    assert other.stdout is not None
    for number, body in enumerate(grown(20)):
        expected = alone.fit(body).request
        if number % 2:
            assert here.fit(body).request == expected
        else:
            other.stdin.write(json.dumps(body) + "\n")
            other.stdin.flush()
            sent, its = json.loads(other.stdout.readline())
            assert sent == expected
            assert all(here.recall(handle) for handle in its), "kept before it was sent"
    other.stdin.close()
    assert other.wait(10) == 0


def test_replicas_that_remember_an_older_state_take_up_what_was_decided(url: str) -> None:
    """Both know the conversation; one decides; the other does not decide anew."""
    one, two = session(url), session(url)
    sent: list[Any] = []
    for number, body in enumerate(grown(24)):
        done = (one, two)[number % 2].fit(body)
        sent.append(done.request)
        again = (two, one)[number % 2].fit(body)
        assert again.request == done.request
        assert not any(edit.new for edit in again.report.edits)
    breaks = sum(not prefix(a, b) for a, b in itertools.pairwise(sent))
    assert breaks <= 5


def test_four_writers_at_once_agree_in_the_end(url: str) -> None:
    bodies, errors = grown(16), list[BaseException]()
    recalled: list[dict[str, str]] = [{} for _ in range(4)]

    def work(number: int) -> None:
        try:
            mine = session(url)
            for body in bodies:
                done = mine.fit(body)
                recalled[number] |= {handle: done.recall(handle) for handle in handles(done)}
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    later = [session(url).fit(bodies[-1]).request for _ in range(3)]
    assert later[0] == later[1] == later[2]
    other = session(url)
    for known in recalled:
        assert {handle: other.recall(handle) for handle in known} == known


FORKING = """
import json, os, sys, trimtab
from long_sessions import KEYWORDS, request
from settings_words import as_keywords
session = trimtab.Session(store=sys.argv[1], **as_keywords(**KEYWORDS))
session.fit(request(12))
read, write = os.pipe()
if os.fork() == 0:
    done = session.fit(request(20))
    os.write(write, json.dumps([e.handle for e in done.report.edits]).encode())
    session.close()
    os._exit(0)
os.wait()
theirs = json.loads(os.read(read, 100_000))
done = session.fit(request(20))
assert [e.handle for e in done.report.edits] == theirs
assert not any(e.new for e in done.report.edits), "the child had decided"
assert all(session.recall(handle) for handle in theirs)
assert not done.report.warnings, done.report.warnings
"""


def test_a_session_survives_a_fork_of_its_process(shared_url: str) -> None:
    # From 3.12 on Python warns of a fork beside threads: that is what is tried here.
    quiet = ("-W", "ignore::DeprecationWarning")
    done = subprocess.run(
        [sys.executable, *quiet, "-c", FORKING, shared_url],
        capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.world
def test_a_connection_that_was_cut_is_made_anew(tmp_path: Path) -> None:
    import psycopg

    with store_urls.store_url("postgresql", tmp_path) as url:
        mine = session(url)
        mine.fit(request(12))
        store: Any = stores.open_store(url)
        store.fact("t", "f")
        pid = store._own.db.db.info.backend_pid
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("SELECT pg_terminate_backend(%s)", (pid,))
        assert store.fact("t", "f") is None
        assert not mine.fit(request(20)).report.warnings
        store.close()


# --- many conversations ---------------------------------------------------------------------------


def test_one_session_serves_many_conversations_as_sessions_of_their_own_would(url: str) -> None:
    shared = session(url)
    own = [trimtab.Session(**as_keywords(**KEYWORDS)) for _ in range(4)]
    for number in range(1, 18):
        for seed in range(4):
            body = request(number, seed)
            assert shared.fit(body).request == own[seed].fit(body).request
    assert shared.stats()["turns"] == 17 * 4


def test_a_conversation_that_left_the_memory_is_found_again(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimtab.sessions.conversation_store.IN_MEMORY", 2)
    mine, alone = session(file), trimtab.Session(**as_keywords(**KEYWORDS))
    for number in range(10, 20):
        body = request(number)
        assert mine.fit(body).request == alone.fit(body).request
        for seed in (1, 2, 3):
            mine.fit(request(1, seed))


def test_bytes_dicts_and_other_spellings_are_one_conversation(file: str) -> None:
    mine = session(file)
    done = mine.fit(request(20))
    spelled = json.dumps(request(21), indent=3).encode()
    sent = json.loads(session(file).fit(spelled).request)
    assert prefix(done.request, sent)
    marked = request(22)
    marked["messages"][0]["content"] = [
        {"type": "text", "text": marked["messages"][0]["content"],
         "cache_control": {"type": "ephemeral"}}
    ]  # fmt: skip
    again = session(file).fit(marked)
    assert set(handles(done)) <= set(handles(again))


def test_a_name_finds_a_conversation_whose_beginning_was_rewritten(file: str) -> None:
    """A client's own compaction puts a summary where the first words stood."""
    mine = session(file, recall=True)
    done = mine.fit(request(20), conversation="claude-17")
    compacted = request(20)
    compacted["messages"][0]["content"] = "Summary of what was said before."
    with_name = session(file).fit(compacted, conversation="claude-17")
    without = session(file).fit(compacted)
    assert set(handles(with_name)) == set(handles(done)), "the edits stand"
    assert not set(handles(without)) & set(handles(done))
    forked = session(file).fit(request(20), conversation="another name")
    assert set(handles(forked)) == set(handles(done)), "a fork under a new name begins the same"


def test_threads_share_a_session(file: str) -> None:
    mine, errors = session(file), list[BaseException]()

    def work(seed: int) -> None:
        try:
            alone = trimtab.Session(**as_keywords(**KEYWORDS))
            for body in grown(12, seed % 3, first=8):
                assert mine.fit(body).request == alone.fit(body).request
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_afit_lets_the_loop_go_on_and_gives_the_same(file: str) -> None:
    async def run() -> tuple[Any, int]:
        mine, ticks = session(file), 0
        task = asyncio.create_task(mine.afit(request(20), window=WINDOW))
        while not task.done():
            await asyncio.sleep(0.001)
            ticks += 1
        return task.result().request, ticks

    sent, ticks = asyncio.run(run())
    assert sent == trimtab.Session(**as_keywords(**KEYWORDS)).fit(request(20)).request
    assert ticks > 3


# --- rewind, fork, edited history -----------------------------------------------------------------


def test_rewind_before_a_batch_shows_the_originals_and_coming_back_the_batch(file: str) -> None:
    mine = session(file)
    sent = {number: mine.fit(request(number)).request for number in range(8, 21)}
    rewound = request(6)
    assert mine.fit(rewound).request is rewound
    assert mine.fit(request(20)).request == sent[20]
    assert session(file).fit(request(20)).request == sent[20]


def test_a_fork_keeps_what_was_decided_before_it_and_goes_its_own_way(file: str) -> None:
    mine = session(file)
    before = mine.fit(request(20))
    fork = request(20)
    fork["messages"] += step(900) + step(901)
    other = session(file).fit(fork)
    assert prefix(before.request, other.request)
    assert prefix(before.request, mine.fit(request(21)).request)


def test_a_regenerated_last_turn_keeps_its_batch(file: str) -> None:
    mine = session(file)
    done = mine.fit(request(20))
    assert any(edit.new for edit in done.report.edits)
    again = request(20)
    again["messages"] += step(500)
    assert prefix(done.request, mine.fit(again).request)
    instead = request(20)
    instead["messages"] += step(600)
    assert prefix(done.request, mine.fit(instead).request)


def test_an_edited_result_is_shown_as_it_is_now(file: str) -> None:
    mine = session(file)
    done = mine.fit(request(20))
    folded = next(edit for edit in done.report.edits if edit.op in ("drop", "fold"))
    body = request(20)
    old = body["messages"][2]["content"][0]
    old["content"] = "rewritten by the client"
    again = mine.fit(body)
    now = next(edit for edit in again.report.edits if edit.op in ("drop", "fold"))
    assert now.handle != folded.handle
    assert "rewritten by the client" in mine.recall(now.handle)
    assert "rewritten by the client" not in mine.recall(folded.handle)


def test_call_ids_used_again_in_each_turn_are_told_apart(file: str) -> None:
    def body(turns: int) -> dict[str, Any]:
        made = request(turns)
        for message in made["messages"][1:]:
            part = message["content"][0]
            key = "id" if "id" in part else "tool_use_id"
            part[key] = "call_0"
        return made

    mine, sent = session(file), list[Any]()
    for number in range(8, 22):
        done = mine.fit(body(number))
        sent.append(done.request)
        assert trimtab.check(done.request) == ()
        for handle in handles(done):
            assert '"content":"rewritten' not in mine.recall(handle)
    assert session(file).fit(body(21)).request == sent[-1]


def read(number: int, text: str) -> list[dict[str, Any]]:
    """The same file read once more."""
    call_id = f"toolu_read_{number}"
    call = {"type": "tool_use", "id": call_id, "name": "Read", "input": {"path": "src/app.py"}}
    result = {"type": "tool_result", "tool_use_id": call_id, "content": text}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def test_a_duplicate_counts_only_while_what_it_repeats_is_there(file: str) -> None:
    text = step(0, 77, 60)[1]["content"][0]["content"]
    body = request(1)
    body["messages"] += read(1, text) + step(1) + read(2, text)
    for number in range(2, 6):
        body["messages"] += step(number)
    mine = session(file, preset="in-place", window=4_000)
    done = mine.fit(body)
    (edit,) = [one for one in done.report.edits if one.kind == "duplicate"]
    assert edit.path[1] == 4
    assert mine.recall(edit.handle) == text
    without = json.loads(json.dumps(body))
    del without["messages"][7:9]  # the client leaves the newer one out
    again = mine.fit(without, window=50_000)
    assert edit.handle not in handles(again)
    assert again.request["messages"][4]["content"][0]["content"] == text
    assert edit.handle in handles(mine.fit(body, window=50_000))


# --- replay ---------------------------------------------------------------------------------------


def test_originals_and_journal_reproduce_every_request_that_was_sent(url: str) -> None:
    mine = session(url)
    sent = [mine.fit(json.dumps(body)).request for body in grown(26)]
    kept = json.loads(json.dumps(mine.journal))
    assert kept["originals"]
    mine.close()
    replayed = (
        trimtab.Session(journal=kept, **as_keywords(**KEYWORDS))
        .fit(json.dumps(request(26)))
        .request
    )
    assert replayed == sent[-1]
    alone = trimtab.Session(**as_keywords(**KEYWORDS))
    assert [alone.fit(json.dumps(body)).request for body in grown(26)] == sent


# --- tenants --------------------------------------------------------------------------------------


def test_a_handle_is_good_for_its_tenant_alone_and_cannot_be_guessed(url: str) -> None:
    one, two = session(url, tenant="one"), session(url, tenant="two")
    mine, other = handles(one.fit(request(20))), handles(two.fit(request(20)))
    assert mine
    assert not set(mine) & set(other), "the same words, another key"
    assert not set(mine) & set(handles(trimtab.fit(request(20), **as_keywords(**KEYWORDS))))
    assert all(len(handle) <= 12 for handle in mine)
    for handle in mine:
        with pytest.raises(UnknownHandle, match="no original is kept under"):
            two.recall(handle)
    elsewhere = session("memory:")
    assert not set(handles(elsewhere.fit(request(20)))) & set(mine)


# --- recall ---------------------------------------------------------------------------------------


def test_an_original_comes_back_whole_in_part_and_by_search(url: str) -> None:
    mine = session(url)
    done = mine.fit(request(20))
    handle = handles(done)[0]
    whole = mine.recall(handle)
    assert mine.recall(handle, 5, 25) == whole[5:25]
    assert mine.recall(handle, start=len(whole) - 3) == whole[-3:]
    assert mine.recall(handle, end=4) == whole[:4]
    word = step(0)[1]["content"][0]["content"].split("\n")[3].upper()
    found = session(url)
    found.fit(request(20))
    (hit,) = found.search(word)
    assert mine.recall(hit.handle, hit.start, hit.end) == hit.text
    assert word in hit.text.upper()
    assert found.search("no such words in any original") == []
    assert len(found.search("src", most=7)) == 7
    assert found.search("src", handle, most=1)[0].handle == handle


ODD_HANDLES = ["", "\ud800", "a\x00b", "%", "../x", "x" * 5_000]


@pytest.mark.parametrize("handle", ODD_HANDLES, ids=ascii)
def test_whatever_a_model_may_write_as_a_handle_is_unknown_and_no_fault_of_the_store(
    url: str, handle: str
) -> None:
    mine = session(url)
    with pytest.raises(UnknownHandle, match=r"history\(\) lists them, or run the tool again"):
        mine.recall(handle)
    assert excerpts.answer(mine, {"handle": handle}).failed == bool(handle)  # "": a list


def test_an_unknown_handle_and_a_purged_one_say_what_to_do(file: str) -> None:
    mine = session(file)
    handle = handles(mine.fit(request(20)))[0]
    with pytest.raises(UnknownHandle, match=r"history\(\) lists them, or run the tool again"):
        mine.recall("rnosuchone22")
    kept = stores.open(file)
    stores.purge(kept.store, lambda tenant: kept, now=time.time() + 10, older_than=0)
    with pytest.raises(UnknownHandle, match=r"was purged from the store on \d{4}-\d\d-\d\d"):
        mine.recall(handle)


# --- pins, undo, history --------------------------------------------------------------------------


def test_undo_shows_the_original_again_in_every_process_and_pins_it(url: str) -> None:
    mine = session(url)
    body = request(20)
    done = mine.fit(body)
    (edit, *_) = [one for one in done.report.edits if one.op in ("drop", "fold")]
    session(url).undo(edit.handle)  # another process, which has seen no request
    roomy = session(url).fit(body, window=50_000)
    assert edit.handle not in handles(roomy)
    assert roomy.request["messages"][1:3] == body["messages"][1:3]
    assert [edit.undone for edit in _history(url, body)][-1]
    tight = session(url).fit(body)
    assert tight.report.tokens_after < WINDOW
    assert any("pins gave way to the window: " in line for line in tight.report.warnings)
    again = session(url).fit(body)
    assert again.request == tight.request
    assert not any("gave way" in line for line in again.report.warnings), "it is said once"


def test_a_small_pin_stays_where_only_a_large_one_does_not_fit(url: str) -> None:
    mine = session(url)
    body = request(20)
    mine.fit(body)
    (edit, *_) = [one for one in mine.fit(body).report.edits if one.op in ("drop", "fold")]
    mine.undo(edit.handle)
    pins = mine.journal["pins"]
    done = session(url).fit(body)
    left = session(url)
    left.fit(body)
    assert 0 < len(left.journal["pins"]) < len(pins)
    assert done.report.tokens_after < WINDOW


def test_a_pin_of_the_settings_never_gives_way(url: str) -> None:
    body = request(20)
    settings = trimtab.Settings(pins=(lambda block: block.kind == "result",))
    with pytest.raises(trimtab.CannotFit, match="pin"):
        session(url).fit(body, settings=settings)


def _history(url: str, body: Any) -> list[trimtab.report.ReportEdit]:
    mine = session(url)
    mine.fit(body, window=50_000)
    return mine.history()


def test_undone_and_done_again_is_another_entry(file: str) -> None:
    mine, body = session(file), request(20)
    first = mine.fit(body)
    handle = handles(first)[0]
    mine.undo(handle)
    mine.unpin(handle)
    again = mine.fit(body)
    assert again.request == first.request
    assert session(file).fit(body).request == first.request
    ops = [row["op"] for row in mine.journal["edits"] if row["handle"] == handle]
    assert ops == ["fold", "restore", "fold"]
    assert [row.undone for row in mine.history() if row.handle == handle] == [False]


def test_a_pinned_block_stays_whole_in_every_process(url: str) -> None:
    body = request(20)
    measured = trimtab.measure(body, counter="o200k")
    block = next(b for b in measured.rows if b.path[:2] == ("messages", 4))
    mine = session(url)
    mine.fit(request(2))
    mine.pin(block.ref)
    (result,) = body["messages"][4]["content"]

    def stands(done: trimtab.Fitted) -> bool:
        return any(result in message["content"] for message in done.request["messages"][1:])

    assert not stands(trimtab.fit(body, **as_keywords(**KEYWORDS)))
    assert stands(session(url).fit(body))


def test_a_pin_of_another_process_holds_at_the_very_next_batch(url: str) -> None:
    body = request(20)
    row = next(b for b in trimtab.measure(body, counter="o200k").rows if b.path[1:2] == (4,))
    mine, other = session(url), session(url)
    mine.fit(request(10))  # knows the conversation, and reads nothing anew by itself
    other.fit(request(2))
    other.pin(row.ref)
    (result,) = body["messages"][4]["content"]
    sent = mine.fit(body).request["messages"]
    assert any(result in message["content"] for message in sent[1:])


def test_what_nobody_knows_cannot_be_undone(file: str) -> None:
    for mine in (session(file), trimtab.Session(**as_keywords(**KEYWORDS))):
        mine.fit(request(3))
        with pytest.raises(UnknownHandle):
            mine.undo("rnosuchone22")
        with pytest.raises(UnknownHandle):
            mine.pin("rnosuchone22")


# --- a store that does not answer -----------------------------------------------------------------


class Flaky(MemoryStore):
    """A store somebody pulls the plug of."""

    def __init__(self) -> None:
        super().__init__()
        self.down = False
        self.slow = 0.0
        self.calls: list[str] = []
        self.waited: list[str] = []
        """Those that the test's own thread made."""

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if threading.current_thread() is threading.main_thread():
            self.waited.append(name)
        time.sleep(self.slow)
        if self.down:
            raise StoreError("the store is down: plug it in")

    def write(self, tenant: str, batch: WriteBatch) -> None:
        self._call("write")
        super().write(tenant, batch)

    def read(self, tenant: str, conversation: str, after: str = "") -> tuple[list[bytes], str]:
        self._call("read")
        return super().read(tenant, conversation, after)

    def fact(self, tenant: str, name: str) -> bytes | None:
        self._call("fact")
        return super().fact(tenant, name)

    def facts(self, tenant: str, prefix: str) -> Any:
        self._call("facts")
        return super().facts(tenant, prefix)

    def original(self, tenant: str, handle: str) -> bytes | None:
        self._call("original")
        return super().original(tenant, handle)


@pytest.fixture
def flaky(monkeypatch: pytest.MonkeyPatch) -> Flaky:
    monkeypatch.setattr("trimtab.stores.breaker.AGAIN_SECONDS", 0.0)
    monkeypatch.setattr("trimtab.stores.writer.RETRY_SECONDS", (0.01,))
    return Flaky()


def sent_text(done: trimtab.Fitted) -> str:
    return json.dumps(done.request)


def test_with_a_store_that_is_down_requests_go_on_without_promising_recall(flaky: Flaky) -> None:
    flaky.down = True
    mine = session(flaky, recall=True)
    done = mine.fit(request(20))
    assert trimtab.check(done.request) == ()
    assert "recall(" not in sent_text(done)
    assert any("plug it in" in warning for warning in done.report.warnings)
    assert all(mine.recall(handle) for handle in handles(done)), "this process still has them"
    again = mine.fit(request(21))
    assert prefix(done.request, again.request), "and what was decided stays"


def test_what_could_not_be_kept_is_kept_when_the_store_is_back(flaky: Flaky) -> None:
    mine = session(flaky, recall=True)
    mine.fit(request(2))
    flaky.down = True
    done = mine.fit(request(20))
    flaky.down = False
    assert mine._conversations is not None
    for _ in range(200):
        if mine._conversations.writer.flush() is None:
            break
        time.sleep(0.01)
    other = session(flaky, recall=True)
    for handle in handles(done):
        assert other.recall(handle) == mine.recall(handle)
    assert prefix(done.request, other.fit(request(21)).request)
    later = mine.fit(request(40))
    assert "recall(" in sent_text(later)
    assert not later.report.warnings


def test_a_store_that_hangs_is_not_waited_for_for_long(
    flaky: Flaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimtab.stores.writer.WAIT_SECONDS", 0.05)
    mine = session(flaky, recall=True)
    mine.fit(request(2))
    flaky.slow = 0.4
    done = mine.fit(request(20))
    assert "recall(" not in sent_text(done)
    assert any("takes longer" in warning for warning in done.report.warnings)
    flaky.slow = 0.0
    mine.close()
    other = session(flaky)
    assert all(other.recall(handle) for handle in handles(done)), "it arrived late"


def test_a_full_disk_stops_no_request(file: str) -> None:
    mine = session(file, recall=True)
    mine.fit(request(2))
    assert mine._conversations is not None
    mine._conversations.writer.flush()
    store: Any = mine._conversations.store.store

    def full(batch: Any, _: Any = store.write) -> None:
        with store._connected() as db:  # as SQLite itself says it
            db.execute("PRAGMA max_page_count = 1")
        _("default", batch)

    mine._conversations.store.write = full  # type: ignore[method-assign]
    done = mine.fit(request(20))
    assert any("full" in warning for warning in done.report.warnings)
    assert "recall(" not in sent_text(done)
    assert trimtab.check(done.request) == ()


def test_too_much_that_waits_is_given_up_and_counted(
    flaky: Flaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimtab.stores.writer.MAX_BYTES", 100)
    flaky.down = True
    mine = session(flaky)
    done = mine.fit(request(20))
    assert any("too much waits" in warning for warning in done.report.warnings)
    assert all(done.recall(handle) for handle in handles(done)), "the result has its own"
    assert mine.stats()["lost"] == 1


def test_a_turn_without_a_new_edit_waits_for_no_write(flaky: Flaky) -> None:
    mine = session(flaky)
    mine.fit(request(20))
    assert mine._conversations is not None
    mine._conversations.writer.flush()
    flaky.calls.clear()
    done = mine.fit(request(20))
    assert handles(done)
    assert flaky.calls == ["read", "fact"], "what is new, and what was learned: once each"
    flaky.is_local = False
    flaky.calls.clear()
    flaky.waited.clear()
    mine._conversations.end = lambda one: None  # type: ignore[method-assign]
    mine.fit(request(20))
    # What other machines learned: how tokens are counted, and the limits of this model.
    assert flaky.waited == ["facts", "fact"]
    assert {*flaky.calls} <= {"facts", "fact", "read"}


def test_originals_are_kept_before_the_request_is_returned(flaky: Flaky) -> None:
    mine = session(flaky)
    done = mine.fit(request(20))
    kept = stores.open(flaky)
    for handle in handles(done):
        found = kept.original(handle)
        assert found is not None
        assert found.text == done.recall(handle)


# --- what contradicts -----------------------------------------------------------------------------


def test_a_journal_and_a_store_are_one_too_many(file: str) -> None:
    with pytest.raises(InvalidSetting, match="give one"):
        session(file, journal=trimtab.Session(**as_keywords(**KEYWORDS)).journal)


def test_a_store_of_ones_own_is_taken_as_it_is() -> None:
    own: Store = MemoryStore()
    done = session(own).fit(request(20))
    assert session(own).fit(request(20)).request == done.request


# --- statistics -----------------------------------------------------------------------------------


def _sums(rows: Sequence[trimtab.Fitted]) -> tuple[int, int]:
    return (
        sum(row.report.tokens_before for row in rows),
        sum(row.report.tokens_after for row in rows),
    )


def test_statistics_add_up_over_processes(url: str) -> None:
    done: list[trimtab.Fitted] = []
    for half in (grown(12), grown(24, first=13)):
        mine = session(url)
        done += [mine.fit(body) for body in half]
        mine.close()
    stats = session(url).stats()
    arrived, sent = _sums(done)
    assert (stats["turns"], stats["tokens_arrived"], stats["tokens_sent"]) == (24, arrived, sent)
    assert stats["kept_out"] == arrived - sent
    new = [edit for one in done for edit in one.report.edits if edit.new]
    assert stats["edits"] == len(new)
    in_force = [edit for edit in done[-1].report.edits if edit.kind in stats["saved"]]
    assert sum(stats["saved"].values()) == sum(edit.tokens_saved for edit in in_force)
    assert stats["waiting"] == 0


def test_what_answers_taught_is_known_to_the_next_process(url: str) -> None:
    mine = session(url)
    done = mine.fit(request(10))
    assert not done.report.calibration
    for number in range(10, 15):
        done = mine.fit(request(number), window=100_000)
        mine.observe({"usage": {"input_tokens": 2 * done.report.tokens_after}}, done)
    mine.close()
    learned = session(url).fit(request(10), window=100_000).report.calibration
    assert learned["answers"] == 5
    assert learned["mean"] == pytest.approx(2.0, rel=0.01)
