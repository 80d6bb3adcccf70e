"""Children that are forked while three threads of their parent are fitting requests.

Each child has to fit two conversations: one of its own, and one that a thread of the parent is in.
It tells by a pipe what it sent; the parent says which children hung, which failed, what its own
threads suffered, and whether everything that was cut is in the store.
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from long_sessions import KEYWORDS, request
from settings_words import as_keywords

import trimtab

SECONDS = 12.0
"""After which a child counts as hung; it takes half a second."""
TURNS = (18, 20, 22)
OWN_SEED = 1_000_000
"""Seeds of the children's own conversations begin here; those of the threads at 0."""
TOGETHER = 4
"""Children that run at one time."""


@dataclass
class Outcome:
    """What became of the children, and what was found afterwards; all empty is well."""

    children: int = 0
    hung: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    parent: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    @property
    def well(self) -> bool:
        return not (self.hung or self.failed or self.parent or self.lost)


def digest(body: Any) -> str:
    return hashlib.sha256(json.dumps(body).encode()).hexdigest()


def fitting(store: str | None) -> tuple[Callable[[Any], Any], trimtab.Session | None]:
    """``fit``, or that of a session with this store."""
    words = as_keywords(**KEYWORDS)
    if store is None:
        return (lambda body: trimtab.fit(body, **words)), None
    session = trimtab.Session(store=store, **words)
    return session.fit, session


def forked(store: str | None, children: int, threads: int = 3) -> Outcome:
    """Fork so many children, one after the other, beside threads that never rest."""
    fit, session = fitting(store)
    outcome, stop = Outcome(children), threading.Event()

    current = list(range(threads))
    """The conversation that each thread is in; it goes on to another."""

    def work(thread: int) -> None:
        while not stop.is_set():
            for turns in TURNS:
                try:
                    outcome.parent += fit(request(turns, current[thread])).report.warnings
                except Exception:
                    outcome.parent.append(traceback.format_exc())
            current[thread] += threads

    fit(request(TURNS[-1], OWN_SEED - 1))
    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    running: dict[int, tuple[int, int, float]] = {}
    sent: dict[int, str] = {}
    for number in range(children):
        time.sleep(0.003 * (number % 7))  # at another point of the threads' work
        seeds = (OWN_SEED + number, current[number % threads])
        running |= _child(fit, session, number, seeds)
        while len(running) >= TOGETHER:
            _reap(running, sent, outcome)
    while running:
        _reap(running, sent, outcome)
    stop.set()
    for worker in workers:
        worker.join()
    if session is not None:
        session.close()
    if store is not None and not store.startswith("memory:"):
        _compare(store, sent, outcome)
    return outcome


def _child(
    fit: Callable[[Any], Any],
    session: trimtab.Session | None,
    number: int,
    seeds: tuple[int, int],
) -> dict[int, tuple[int, int, float]]:
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return {pid: (number, read, time.monotonic() + SECONDS)}
    try:
        faulthandler.dump_traceback_later(SECONDS - 2, file=sys.stderr)
        with os.fdopen(write, "w") as out:
            json.dump(_fitted_in_child(fit, session, seeds), out)
    finally:
        os._exit(0)


def _fitted_in_child(
    fit: Callable[[Any], Any], session: trimtab.Session | None, seeds: tuple[int, int]
) -> dict[str, Any]:
    problems: list[str] = []
    digests: dict[int, str] = {}
    try:
        for seed in seeds:
            for turns in TURNS:
                done = fit(request(turns, seed))
                problems += done.report.warnings
                if not done.report.edits:
                    problems.append("nothing was cut: the test is wrong")
                for edit in done.report.edits:
                    (session or done).recall(edit.handle)
            digests[seed] = digest(done.request)
        if session is not None:
            session.close()
    except Exception:
        problems.append(traceback.format_exc())
    return {"problems": problems, "digests": digests}


def _reap(
    running: dict[int, tuple[int, int, float]], sent: dict[int, str], outcome: Outcome
) -> None:
    """Wait for children until one has ended or is hung."""
    ready = select.select([read for _, read, _ in running.values()], [], [], 0.1)[0]
    for pid, (number, read, until) in list(running.items()):
        if read in ready:
            with os.fdopen(read) as answer:
                told = json.loads(answer.read() or '{"problems": ["died"], "digests": {}}')
            outcome.failed += (f"child {number}: {problem}" for problem in told["problems"])
            sent |= {int(seed): value for seed, value in told["digests"].items()}
        elif time.monotonic() > until:
            outcome.hung.append(f"child {number}")
            os.close(read)
            os.kill(pid, signal.SIGKILL)
        else:
            continue
        os.waitpid(pid, 0)
        del running[pid]


def _compare(store: str, sent: dict[int, str], outcome: Outcome) -> None:
    """A new session sends what the children sent: their edits are in the store."""
    fit, session = fitting(store)
    assert session is not None
    for seed, known in sorted(sent.items()):
        done = fit(request(TURNS[-1], seed))
        if any(edit.new for edit in done.report.edits):
            outcome.lost.append(f"conversation {seed}: its edits are not in the store")
        elif digest(done.request) != known and seed >= OWN_SEED:
            outcome.lost.append(f"conversation {seed}: other bytes")
        for edit in done.report.edits:
            session.recall(edit.handle)
    session.close()
