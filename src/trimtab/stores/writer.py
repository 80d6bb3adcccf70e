"""Writes to one tenant's part of a store from a thread of its own, in order, until they succeed.

Knows queues and how long to wait.  What has to be kept before a request leaves is waited for; what
may be kept later goes along with the next write.  Does not know what is written.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from trimtab.errors import StoreError
from trimtab.stores.base import Batch
from trimtab.stores.tenant import TenantStore

WAIT_SECONDS = 2.0
"""How long a request waits for the store."""
LATER_SECONDS = 2.0
"""After so long what may be kept later is written by itself."""
IDLE_SECONDS = 10.0
"""After so long without work the thread ends; the next job begins another."""
RETRY_SECONDS = (0.2, 1.0, 5.0)
MOST_BYTES = 64_000_000
"""Of batches that wait for a store that does not answer; above, the newest are not kept."""


class Lost(StoreError):
    """A batch was not even put in the queue."""


@dataclass(eq=False)
class Job:
    """One thing to do on the store; ``error`` says why it was not done so far."""

    act: Callable[[], None]
    stored_bytes: int = 0
    then: Callable[[], None] | None = None
    done: bool = False
    error: StoreError | None = None
    tried: int = 0


@dataclass(eq=False)
class _State:
    """What belongs to one process: after a fork the child begins with nothing to do."""

    pid: int = field(default_factory=os.getpid)
    changed: threading.Condition = field(default_factory=threading.Condition)
    jobs: deque[Job] = field(default_factory=deque)
    later: dict[str, Any] = field(default_factory=dict)
    later_since: float = 0.0
    thread: threading.Thread | None = None
    failing: StoreError | None = None
    closing: bool = False


class Writer:
    """Jobs are done one by one; one that fails stays first and is tried again."""

    def __init__(self, store: TenantStore) -> None:
        self.store = store
        self.lost = 0
        """Batches that were given up because too many waited."""
        self._now = _State()
        _all.add(self)

    @property
    def failing(self) -> StoreError | None:
        """Why the store does not answer; None while it does."""
        return self._state.failing

    def write(
        self, batch: Batch, then: Callable[[], None] | None = None, *, wait: bool = True
    ) -> StoreError | None:
        """Keep a batch, and wait until it is kept; ``then`` is called once it is.

        Returns why it is not kept yet; it is tried again, in order.
        """
        size = sum(len(data) for _, data in (*batch.entries, *batch.originals))
        job = Job(lambda: self._keep(batch), size, then)
        state = self._state
        with state.changed:
            if size + sum(one.stored_bytes for one in state.jobs) > MOST_BYTES:
                self.lost += 1
                return Lost(f"{self.store.store.url}: too much waits for it: make it answer")
            self._add(state, job)
            until = time.monotonic() + WAIT_SECONDS
            while wait and not job.done and job.error is None and state.failing is None:
                if not state.changed.wait(until - time.monotonic()):
                    url = self.store.store.url
                    return StoreError(f"{url} takes longer than {WAIT_SECONDS:g} s: look after it")
            return None if job.done or not wait else job.error or state.failing

    def later(self, name: str, value: Any) -> None:
        """State a fact some time soon; of several with one name the last is kept."""
        state = self._state
        with state.changed:
            first = not state.later
            state.later[name] = value
            if first:  # what comes behind it goes with it: nobody has to wake up for that
                state.later_since = time.monotonic()
                self._awake(state)

    def waiting(self, name: str) -> Any:
        """The value of a fact that is to be kept later; None where none is."""
        return self._state.later.get(name)

    def soon(self, act: Callable[[], None]) -> None:
        """Do something when there is nothing else to do; a failure is passed over."""
        state = self._state
        with state.changed:
            if state.failing is None:
                self._add(state, Job(act, tried=-1))

    def flush(self, seconds: float = WAIT_SECONDS) -> StoreError | None:
        """Wait until everything is kept, as long as the store answers."""
        state, until = self._state, time.monotonic() + seconds
        with state.changed:
            state.closing = True  # what may be kept later is kept now
            self._awake(state)
            while (state.jobs or state.later) and state.failing is None:
                if not state.changed.wait(until - time.monotonic()):
                    break
            state.closing = False
            return state.failing

    # --- the thread ---

    @property
    def _state(self) -> _State:
        if self._now.pid != os.getpid():
            self._now = _State()
        return self._now

    def _add(self, state: _State, job: Job) -> None:
        state.jobs.append(job)
        self._awake(state)

    def _awake(self, state: _State) -> None:
        if state.thread is None or not state.thread.is_alive():
            state.thread = threading.Thread(target=self._run, args=(state,), daemon=True)
            state.thread.name = "trimtab-store"
            state.thread.start()
        state.changed.notify_all()

    def _run(self, state: _State) -> None:
        while (job := self._next(state)) is not None:
            try:
                job.act()
                error = None
            except StoreError as failed:
                error = failed
            except Exception as failed:  # a fault of the store's code is one of the store
                error = StoreError(f"{self.store.store.url}: {type(failed).__name__}: {failed}")
            self._after(state, job, error)

    def _next(self, state: _State) -> Job | None:
        with state.changed:
            while True:
                if state.jobs:
                    return state.jobs[0]
                waits = state.later_since + LATER_SECONDS - time.monotonic()
                if state.later and (waits <= 0 or state.closing):
                    state.jobs.append(Job(lambda: self._keep(Batch())))
                    return state.jobs[0]
                woken = state.changed.wait(waits if state.later else IDLE_SECONDS)
                if not woken and not state.jobs and not state.later:
                    state.thread = None
                    return None

    def _after(self, state: _State, job: Job, error: StoreError | None) -> None:
        with state.changed:
            job.error, state.failing = error, None if job.tried < 0 else error
            if error is None or job.tried < 0:
                state.jobs.remove(job)
                job.done = True
                if job.then is not None and error is None:
                    job.then()
                state.changed.notify_all()
                return
            state.changed.notify_all()
            pause = RETRY_SECONDS[min(job.tried, len(RETRY_SECONDS) - 1)]
            job.tried += 1
            state.changed.wait_for(lambda: state.closing, pause)

    def _keep(self, batch: Batch) -> None:
        """Write a batch together with what may be kept later."""
        state = self._state
        with state.changed:
            taken = dict(state.later)
        stated = self.store.batch("", stated=taken).stated
        self.store.write(replace(batch, stated=(*batch.stated, *stated)))
        with state.changed:
            for name, value in taken.items():
                if state.later.get(name) is value:
                    del state.later[name]


_all: weakref.WeakSet[Writer] = weakref.WeakSet()


@atexit.register
def _flush_all() -> None:
    """Statistics and what was learned from answers are kept at the end of a program."""
    for writer in list(_all):
        if writer._now.pid == os.getpid() and (writer._now.jobs or writer._now.later):
            writer.flush()
