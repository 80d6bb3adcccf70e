"""Engines that process shards: in this process, in local processes, or on Ray.

Each engine yields the shards as they finish, in any order.  Ray Data schedules its own tasks.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from importlib import import_module
from threading import Thread
from typing import Any

from trimtab.errors import InvalidSetting, MissingExtra
from trimtab_lab.batch.shard import BatchJob, ShardDone, fit_shard
from trimtab_lab.batch.sources import Shard

Engine = Callable[[BatchJob, Sequence[Shard], int, Callable[[int], None]], Iterator[ShardDone]]
"""(job, shards, processes, called with the bytes done since its last call)."""
_TOLD_SECONDS = 0.2


def engine(name: str) -> Engine:
    """An engine by its name.  Raises InvalidSetting."""
    engines: dict[str, Engine] = {"local": local, "ray": on_ray}
    if name not in engines:
        raise InvalidSetting(f"no engine {name!r}; there are local and ray")
    return engines[name]


def local(
    job: BatchJob, shards: Sequence[Shard], jobs: int, tell: Callable[[int], None]
) -> Iterator[ShardDone]:
    """Process shards in this process if ``jobs`` is 1, else in ``jobs`` processes."""
    jobs = min(jobs, len(shards))
    if jobs > 1:
        yield from _processes(job, shards, jobs, tell)
        return
    for shard in shards:
        with _quiet():
            done = fit_shard(job, shard, tell)
        yield done


def _processes(
    job: BatchJob, shards: Sequence[Shard], jobs: int, tell: Callable[[int], None]
) -> Iterator[ShardDone]:
    context = multiprocessing.get_context("spawn")
    counted, reported = context.Value("q", 0), 0
    with ProcessPoolExecutor(jobs, context, _begin, (counted,)) as pool:
        pending = {pool.submit(_in_worker, job, shard) for shard in shards}
        try:
            while pending:
                ready, pending = wait(pending, _TOLD_SECONDS, FIRST_COMPLETED)
                now = counted.value
                tell(now - reported)
                reported = now
                for future in ready:
                    yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


_counted: Any = None
"""In a worker: the shared counter of bytes that all workers have processed."""


def _begin(counted: Any) -> None:
    global _counted
    _counted = counted
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker if its parent is killed; otherwise it would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _in_worker(job: BatchJob, shard: Shard) -> ShardDone:
    """One shard."""

    def progress(size: int) -> None:
        with _counted.get_lock():
            _counted.value += size

    with _quiet():
        return fit_shard(job, shard, progress)


def on_ray(
    job: BatchJob, shards: Sequence[Shard], jobs: int, tell: Callable[[int], None]
) -> Iterator[ShardDone]:
    """One Ray Data task per shard; uses a connected cluster, else this machine.

    Raises MissingExtra.
    """
    try:
        ray: Any = import_module("ray")
        data: Any = import_module("ray.data")
    except ImportError as error:
        why = "" if error.name == "ray" else f" ({error})"
        raise MissingExtra(
            f"--engine ray needs Ray Data: pip install 'trimtab[ray]'{why}"
        ) from None
    started = not ray.is_initialized()
    if started:
        address = os.environ.get("RAY_ADDRESS")
        where: dict[str, Any] = {} if address else {"num_cpus": jobs, "include_dashboard": False}
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **where)
    sizes = {shard.number: shard.size for shard in shards}
    try:
        data.DataContext.get_current().enable_progress_bars = False
        rows = [{"job": pickle.dumps(job), "shard": pickle.dumps(shard)} for shard in shards]
        dataset = data.from_items(rows, override_num_blocks=len(rows)).map(_ray_row)
        for row in dataset.iter_rows():
            done = ShardDone.of(row["done"], job.identity)
            if done is not None:
                tell(sizes[done.number])
                yield done
    finally:
        if started:
            ray.shutdown()


def _ray_row(row: dict[str, Any]) -> dict[str, Any]:
    with _quiet():
        return {"done": fit_shard(pickle.loads(row["job"]), pickle.loads(row["shard"])).as_json()}


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress warnings for single records; the manifest counts what they would report."""
    logger = logging.getLogger("trimtab")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
