"""Locks and names in a forked child."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from long_sessions import KEYWORDS, request
from settings_words import as_keywords

from trimtab import Session
from trimtab.forking import Lock, ProcessName, loading, renew_in_children
from trimtab.journal.journal import Journal

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork"),
    # From 3.12 on Python warns of a fork beside threads: that is what is tried here.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
SECONDS = 5.0


def in_child(ask: Callable[[], object]) -> str:
    """What ``ask`` returns in a forked child, as text."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, str(ask()).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    with os.fdopen(read) as answer:
        return answer.read()


@contextmanager
def held_elsewhere(lock: Lock) -> Iterator[None]:
    """Another thread holds the lock meanwhile."""
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait(SECONDS)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(SECONDS)
    yield
    done.set()
    thread.join(SECONDS)


def test_a_lock_keeps_other_threads_out_and_lets_its_own_in_again() -> None:
    lock = Lock()
    with lock, lock:
        pass
    with held_elsewhere(lock):
        assert not lock.acquire(timeout=0.01)
    assert lock.acquire(timeout=SECONDS)
    lock.release()


def test_a_lock_that_another_thread_held_is_free_in_the_child_and_says_so() -> None:
    lock, free = Lock(), Lock()
    with held_elsewhere(lock):
        found = in_child(lambda: (lock.acquire(timeout=1), lock.was_lost, free.was_lost))
        assert not lock.acquire(timeout=0.01), "the parent's is as it was"
    assert found == "(True, True, False)"
    assert not lock.was_lost


def test_a_lock_that_the_forking_thread_holds_is_still_its_own_in_the_child() -> None:
    lock = Lock()

    def ask() -> str:
        before = in_thread(lambda: lock.acquire(timeout=0.01))
        lock.release()
        return f"{before} {in_thread(lambda: lock.acquire(timeout=1))} {lock.was_lost}"

    with lock:
        assert in_child(ask) == "False True False"


def in_thread(ask: Callable[[], object]) -> object:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(ask()))
    thread.start()
    thread.join(SECONDS)
    return found[0]


def test_each_child_has_another_name() -> None:
    name = ProcessName()
    names = {str(name), in_child(lambda: name), in_child(lambda: name), str(name)}
    assert len(names) == 3


def test_what_is_gone_is_not_renewed() -> None:
    class Renewed:
        def renew(self) -> None:
            seen.append(self)

    seen: list[object] = []
    kept = Renewed()
    renew_in_children(kept)
    renew_in_children(Renewed())
    assert in_child(lambda: len(seen)) == "1"
    assert not seen


@pytest.mark.parametrize("store", ["memory:", None])
def test_a_conversation_that_a_thread_was_changing_at_the_fork_is_read_anew(
    store: str | None,
) -> None:
    """Whatever that thread had done by then, the child goes on with what is stored."""
    session = Session(store=store, **as_keywords(**KEYWORDS))
    done = session.fit(request(20))
    conversation = session._last

    def ask() -> list[bool]:
        if store is not None:  # half of an entry was added
            conversation.journal = conversation.confirmed = Journal()
            conversation.unconfirmed = {"half": b"{}"}
        cache = conversation.cache
        again = session.fit(request(20))
        kept = conversation.cache
        session.fit(request(20))
        return [
            again.request == done.request, any(edit.new for edit in again.report.edits),
            kept is cache, conversation.cache is kept,
        ]  # fmt: skip

    with held_elsewhere(conversation.lock):
        assert in_child(ask) == "[True, False, False, True]"


def test_a_fork_waits_for_what_another_thread_is_importing() -> None:
    """The child could never import it: Python leaves the module's lock held."""
    held, waited = threading.Event(), threading.Event()

    def load() -> None:
        with loading:
            held.set()
            waited.wait(0.3)  # longer than a fork takes
            done.append(True)

    done: list[bool] = []
    thread = threading.Thread(target=load)
    thread.start()
    assert held.wait(SECONDS)
    assert in_child(lambda: (done, loading.acquire(timeout=1), loading.was_lost)) == (
        "([True], True, False)"
    )
    thread.join(SECONDS)
