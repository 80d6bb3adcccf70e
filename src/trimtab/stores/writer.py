"""Writes to a store from one background thread, in order for each tenant, with retries.

A request waits for the data that must be stored before it is sent.  Other writes are joined to the
next one.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from trimtab.errors import StoreError
from trimtab.forking import Lock
from trimtab.stores.base import WriteBatch
from trimtab.stores.deferred import DeferredStore
from trimtab.stores.tenant import TenantStore

WAIT_SECONDS = 2.0
"""Most seconds that a request waits for the store."""
FLUSH_SECONDS = 2.0
"""Most seconds that a flush waits until everything is written."""
LATER_SECONDS = 2.0
"""Seconds after which a deferred fact is written on its own."""
IDLE_SECONDS = 10.0
"""Seconds without work after which the thread ends; the next job starts another."""
RETRY_SECONDS = (0.2, 1.0, 5.0)
MAX_BYTES = 64_000_000
"""Most bytes of batches that wait for a store that does not answer; further ones are given up."""


class QueueFull(StoreError):
    """A batch was not queued because too much is waiting."""


@dataclass(eq=False)
class WriteJob:
    """One job for the store; ``error``: why the last try failed."""

    owner: Writer
    act: Callable[[], None]
    stored_bytes: int = 0
    then: Callable[[], None] | None = None
    done: bool = False
    error: StoreError | None = None
    tried: int = 0
    resume_at: float = 0.0
    """Earliest time (monotonic) of the next try after a failure."""


@dataclass(eq=False)
class WriteQueue:
    """The jobs of one store, for all its tenants, and the thread that runs them.

    It belongs to one process: after a fork the child starts with an empty queue.
    """

    pid: int = field(default_factory=os.getpid)
    changed: threading.Condition = field(default_factory=threading.Condition)
    jobs: deque[WriteJob] = field(default_factory=deque)
    later: dict[Writer, dict[str, Any]] = field(default_factory=dict)
    later_since: float = 0.0
    thread: threading.Thread | None = None
    flushing: int = 0
    ending: bool = False
    """Whether the thread ends as soon as it is idle, without waiting IDLE_SECONDS."""

    def add(self, job: WriteJob) -> None:
        """Append a job and wake the thread."""
        self.jobs.append(job)
        self.awake()

    def awake(self) -> None:
        """Wake the thread, or start it if there is none."""
        self.ending = False
        if self.thread is None or not self.thread.is_alive():
            self.thread = threading.Thread(target=self._run, daemon=True, name="trimtab-store")
            self.thread.start()
        self.changed.notify_all()

    def waits_for(self, owner: Writer) -> bool:
        """Whether something of this writer is not written yet."""
        return owner in self.later or any(job.owner is owner for job in self.jobs)

    # --- the thread ---

    def _run(self) -> None:
        while (job := self._next()) is not None:
            try:
                job.act()
                error = None
            except StoreError as failed:
                error = failed
            except Exception as failed:  # a bug in the store's code counts as a store failure
                url = job.owner.store.store.url
                error = StoreError(f"{url}: {type(failed).__name__}: {failed}")
            self._after(job, error)

    def _next(self) -> WriteJob | None:
        with self.changed:
            while True:
                now = time.monotonic()
                due = self.later_since + LATER_SECONDS
                if self.later and (due <= now or self.flushing):
                    self._queue_later()
                if (job := self._runnable(now)) is not None:
                    return job
                if self.ending and not self.jobs and not self.later:
                    self.thread = None
                    return None
                times = [job.resume_at for job in self._first_jobs()]
                times += [due] if self.later and due > now else []
                woken = self.changed.wait(min(times) - now if times else IDLE_SECONDS)
                if not woken and not self.jobs and not self.later:
                    self.thread = None
                    return None

    def _runnable(self, now: float) -> WriteJob | None:
        """The first job that no other of its writer precedes and that is due (or flushed)."""
        for job in self._first_jobs():
            if job.resume_at <= now or self.flushing:
                return job
        return None

    def _first_jobs(self) -> Iterator[WriteJob]:
        """The oldest job of each writer; its later jobs wait for it, even if they are due."""
        seen = set[Writer]()
        for job in self.jobs:
            if job.owner not in seen:
                seen.add(job.owner)
                yield job

    def _queue_later(self) -> None:
        """Queue the deferred facts now; a writer that has a job already writes them with that."""
        busy = {job.owner for job in self.jobs}
        for owner in self.later:
            if owner not in busy:
                self.jobs.append(owner.empty_job())

    def _after(self, job: WriteJob, error: StoreError | None) -> None:
        with self.changed:
            job.error, job.owner.failing = error, None if job.tried < 0 else error
            if error is None or job.tried < 0:
                self.jobs.remove(job)
                job.done = True
                if job.then is not None and error is None:
                    job.then()
            else:
                pause = RETRY_SECONDS[min(job.tried, len(RETRY_SECONDS) - 1)]
                job.resume_at = time.monotonic() + (0.05 if self.flushing else pause)
                job.tried += 1
            self.changed.notify_all()
            if error is not None and self.flushing:
                self.changed.wait(0.05)  # lets ``flush`` see the failure and stop waiting


_queues: weakref.WeakKeyDictionary[Any, WriteQueue] = weakref.WeakKeyDictionary()
_queues_lock = Lock()


def _queue_of(store: Any) -> WriteQueue:
    """The queue of a store in this process."""
    while isinstance(store, DeferredStore):
        store = store.store
    with _queues_lock:
        queue = _queues.get(store)
        if queue is None or queue.pid != os.getpid():
            queue = _queues[store] = WriteQueue()
        return queue


class Writer:
    """Runs one tenant's jobs one by one; a job that fails stays first and is tried again."""

    def __init__(self, store: TenantStore) -> None:
        self.store = store
        self.lost = 0
        """Number of batches given up because too much was waiting."""
        self.failing: StoreError | None = None
        """The error if the store does not answer, else None."""
        self.closed = False
        """Whether each further write is flushed, so that it leaves no thread behind."""
        self._queue_found = _queue_of(store.store)
        _all.add(self)

    def write(
        self, batch: WriteBatch, then: Callable[[], None] | None = None, *, wait: bool = True
    ) -> StoreError | None:
        """Queue a batch and (if ``wait``) wait until it is written; ``then`` is called after that.

        Returns the error if it is not written yet; it is then tried again, in order.
        """
        error = self._write(batch, then, wait)
        if self.closed:
            self.flush()
        return error

    def _write(
        self, batch: WriteBatch, then: Callable[[], None] | None, wait: bool
    ) -> StoreError | None:
        size = sum(len(data) for _, data in (*batch.entries, *batch.originals))
        job = WriteJob(self, lambda: self._keep(batch), size, then)
        queue = self._queue
        with queue.changed:
            if size + sum(one.stored_bytes for one in queue.jobs) > MAX_BYTES:
                self.lost += 1
                return QueueFull(f"{self.store.store.url}: too much waits for it: make it answer")
            queue.add(job)
            until = time.monotonic() + WAIT_SECONDS
            while wait and not job.done and job.error is None and self.failing is None:
                if not queue.changed.wait(until - time.monotonic()):
                    url = self.store.store.url
                    return StoreError(f"{url} takes longer than {WAIT_SECONDS:g} s: look after it")
            return None if job.done or not wait else job.error or self.failing

    def write_later(self, name: str, value: Any) -> None:
        """Write a fact within LATER_SECONDS; of several with one name only the last is written."""
        queue = self._queue
        with queue.changed:
            first = not queue.later
            queue.later.setdefault(self, {})[name] = value
            if first:  # later facts are written with this one and need not wake the thread
                queue.later_since = time.monotonic()
                queue.awake()
        if self.closed:
            self.flush()

    def pending_fact(self, name: str) -> Any:
        """The value of a fact that is not written yet; None if there is none."""
        return self._queue.later.get(self, {}).get(name)

    def run_when_idle(self, act: Callable[[], None]) -> None:
        """Queue ``act`` as a job that is not retried; its failure is ignored."""
        queue = self._queue
        with queue.changed:
            if self.failing is None and not self.closed:
                queue.add(WriteJob(self, act, tried=-1))

    def flush(self) -> StoreError | None:
        """Wait until everything is written, as long as the store answers."""
        error = self._flush()
        if self.closed:
            self._end_thread()
        return error

    def _flush(self) -> StoreError | None:
        queue, until = self._queue, time.monotonic() + FLUSH_SECONDS
        with queue.changed:
            queue.flushing += 1  # deferred facts are written now
            queue.awake()
            while queue.waits_for(self) and self.failing is None:
                if not queue.changed.wait(until - time.monotonic()):
                    break
            queue.flushing -= 1
            return self.failing

    def close(self) -> None:
        """Flush, and end the thread if nothing else waits."""
        self.closed = True
        self.flush()

    def _end_thread(self) -> None:
        """End the thread of the store if nothing waits, also of other writers."""
        queue = self._queue
        with queue.changed:
            thread, idle = queue.thread, not (queue.jobs or queue.later)
            queue.ending = True
            queue.changed.notify_all()
        if thread is not None and idle and thread is not threading.current_thread():
            thread.join(FLUSH_SECONDS)

    @property
    def waits(self) -> bool:
        """Whether something is not written yet, in this process."""
        return self._queue.waits_for(self)

    def empty_job(self) -> WriteJob:
        """A job that writes only the deferred facts."""
        return WriteJob(self, lambda: self._keep(WriteBatch()))

    @property
    def _queue(self) -> WriteQueue:
        if self._queue_found.pid != os.getpid():  # both are of the process before the fork
            self._queue_found, self.failing = _queue_of(self.store.store), None
        return self._queue_found

    def _keep(self, batch: WriteBatch) -> None:
        """Write a batch together with the deferred facts."""
        queue = self._queue
        with queue.changed:
            taken = dict(queue.later.get(self, {}))
        updated_facts = self.store.batch("", updated_facts=taken).updated_facts
        self.store.write(replace(batch, updated_facts=(*batch.updated_facts, *updated_facts)))
        with queue.changed:
            waiting = queue.later.get(self, {})
            for name, value in taken.items():
                if waiting.get(name) is value:
                    del waiting[name]
            if not waiting:
                queue.later.pop(self, None)


_all: weakref.WeakSet[Writer] = weakref.WeakSet()


@atexit.register
def _flush_all() -> None:
    """Write statistics and learned facts that are still deferred when the program ends."""
    for writer in list(_all):
        if writer.waits:
            writer.flush()
