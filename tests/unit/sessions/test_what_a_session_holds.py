"""What a session holds of memory and threads, and that it lets go of it."""

from __future__ import annotations

import gc
import json
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tool_calls import Step, conversation

import trimtab
from trimtab.sessions.session_turns import store_of


def request(steps: int) -> dict[str, Any]:
    found = "\n".join(f"name_{n * 7919} = {n * 31} of it" for n in range(60))
    return conversation(
        "anthropic",
        *(Step("read", {"file_path": f"{n}.py"}, f"# {n}\n{found}") for n in range(steps)),
    )


class Threads:
    """Those that write to stores, save the ones that stood when this was made."""

    def __init__(self) -> None:
        self.before = {*threading.enumerate()}

    def writers(self) -> list[threading.Thread]:
        started = (one for one in threading.enumerate() if one not in self.before)
        return [thread for thread in started if thread.name == "trimtab-store"]


def test_a_closed_session_leaves_no_thread_behind(tmp_path: Path) -> None:
    threads = Threads()
    session = trimtab.Session(window=4_000, reserve=0, store=f"sqlite:///{tmp_path}/kept.db")
    fitted = session.fit(request(10))
    assert threads.writers()
    session.close()
    assert threads.writers() == []
    again = trimtab.Session(window=4_000, reserve=0, store=f"sqlite:///{tmp_path}/kept.db")
    again.fit(request(10))
    assert again.recall(fitted.report.edits[0].handle) != ""
    again.close()
    assert threads.writers() == []


def test_a_closed_session_that_is_used_again_leaves_no_thread_behind(tmp_path: Path) -> None:
    threads, url = Threads(), f"sqlite:///{tmp_path}/kept.db"
    session = trimtab.Session(window=4_000, reserve=0, store=url)
    fitted = session.fit({**request(10), "model": "claude-sonnet-4-5"})
    billed = fitted.tokens_after + 200
    session.close()
    uses: dict[str, Callable[[], Any]] = {
        "observe": lambda: session.observe({"usage": {"input_tokens": billed, "output_tokens": 1}}),
        "fit": lambda: session.fit(request(12)),
        "prune": lambda: session.sweep(request(12), most=1),
        "undo": lambda: session.undo(fitted.report.edits[0].handle),
        "stats": lambda: session.stats(),
        "close": lambda: session.close(),
    }
    for name, use in uses.items():
        use()
        assert threads.writers() == [], name
    again = trimtab.Session(window=4_000, reserve=0, store=url)
    learned = again.fit({**request(10), "model": "claude-sonnet-4-5"}).report.calibration
    again.close()
    assert learned["answers"] == 1  # what was observed after the first ``close`` is written


def test_one_closed_session_does_not_stop_another_on_the_same_store(tmp_path: Path) -> None:
    threads, url = Threads(), f"sqlite:///{tmp_path}/kept.db"
    one, other = (trimtab.Session(window=4_000, reserve=0, store=url, tenant=t) for t in "ab")
    one.fit(request(10))
    other.fit(request(10))
    one.close()
    handle = other.fit(request(12)).report.edits[0].handle
    assert other.recall(handle) != ""
    other.close()
    assert threads.writers() == []


def test_a_session_of_150_turns_holds_at_most_ten_times_its_body() -> None:
    body = request(150)  # all that was sent is 75 times the body
    messages = body["messages"]
    size = len(json.dumps(body))
    gc.collect()
    tracemalloc.start()
    try:
        session = trimtab.Session(window=10**6, reserve=0, format="anthropic")
        for end in range(3, len(messages) + 1, 2):
            session.fit(json.dumps({**body, "messages": messages[:end]}).encode())
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] <= 10 * size
    finally:
        tracemalloc.stop()


def test_a_session_holds_no_fact_that_it_wrote_for_others() -> None:
    session = trimtab.Session(window=10**6, store="memory:")
    store = store_of(session)
    assert store is not None
    session.fit(request(1))
    gc.collect()
    tracemalloc.start()
    try:
        for n in range(100):
            store.write_fact_now(f"hidden/{n % 2}/{n}", {"real": f"{n} " + "x" * 100_000})
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()
