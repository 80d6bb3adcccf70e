"""Several worker processes on one port: each is a whole proxy, and they share the store.

A worker that dies is started again; signals go to all of them.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from tempfile import TemporaryDirectory
from typing import Any

from trimtab.errors import InvalidSetting, TrimtabError
from trimtab.proxy.addons.metrics import FOLDER, worker_ended
from trimtab.proxy.config import log_lines
from trimtab.proxy.config.settings import ProxySettings

_READ_SETTINGS = getattr(signal, "SIGHUP", signal.SIGTERM)
"""Where there is no SIGHUP nothing asks to read the settings again."""
_SOON_SECONDS = 3.0
"""A worker that fails so soon after its start would do so again; one that was killed would not."""


def check(settings: ProxySettings) -> None:
    """Raises InvalidSetting where several workers cannot serve these settings."""
    if not hasattr(os, "fork"):
        raise InvalidSetting("workers: this system cannot fork; start one proxy for each port")
    if not settings.store or settings.store.startswith("memory:"):
        raise InvalidSetting(
            "workers: they share what was cut through a store: give --store, or leave it at the "
            "default"
        )


def serve(work: Callable[[], None], count: int) -> int:
    """Run so many workers until SIGINT or SIGTERM; 1 where one of them cannot begin.

    ``work``: what each does, in a process of its own; it ends by SIGTERM.
    """
    with _shared_metrics() as folder:
        return _serve(work, count, folder)


@contextmanager
def _shared_metrics() -> Iterator[str]:
    """A folder in which the metrics of all workers add up, named in the environment; "" where none
    can be made: each then has its own."""
    try:
        kept = TemporaryDirectory(prefix="trimtab-metrics-", ignore_cleanup_errors=True)
    except OSError as error:
        log_lines.say(
            f"metrics are those of the worker that answers: {error}: set TMPDIR to a folder that "
            "can be written", level=logging.WARNING,
        )  # fmt: skip
        yield ""
        return
    before = os.environ.get(FOLDER)
    with kept as folder:
        os.environ[FOLDER] = folder
        try:
            yield folder
        finally:
            os.environ.pop(FOLDER)
            if before is not None:
                os.environ[FOLDER] = before


def _serve(work: Callable[[], None], count: int, folder: str) -> int:
    """``serve``, with the folder of the metrics."""
    running: dict[Any, float] = {}
    ending = False

    def forward(number: int, frame: object) -> None:
        nonlocal ending
        ending = ending or number != _READ_SETTINGS
        for worker in list(running):
            with suppress(ProcessLookupError):  # it has ended by itself meanwhile
                os.kill(worker.pid, signal.SIGTERM if number == signal.SIGINT else number)

    numbers = (signal.SIGINT, signal.SIGTERM, _READ_SETTINGS)
    kept = {number: signal.signal(number, forward) for number in numbers}
    failed = False
    try:
        for _ in range(count):
            running[_started(work)] = time.monotonic()
        while running:
            wait([worker.sentinel for worker in running])
            for worker in [one for one in running if not one.is_alive()]:
                began = running.pop(worker)
                if folder:
                    worker_ended(worker.pid, folder)
                if ending:
                    continue
                log_lines.say(f"a worker has ended ({worker.exitcode})", level=logging.WARNING)
                if worker.exitcode > 0 and time.monotonic() - began < _SOON_SECONDS:
                    failed = True
                    forward(signal.SIGTERM, None)
                else:
                    running[_started(work)] = time.monotonic()
    finally:
        for number, before in kept.items():
            signal.signal(number, before)
    return int(failed)


def _started(work: Callable[[], None]) -> Any:
    """A worker process, forked: it has the socket and the token of this one."""
    process = get_context("fork").Process(target=_begin, args=(work,))
    process.start()
    return process


def _begin(work: Callable[[], None]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's comes through the parent
    for number in (signal.SIGTERM, _READ_SETTINGS):
        signal.signal(number, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        work()
    except TrimtabError as error:
        print(f"trimtab: {error}", file=sys.stderr)
        raise SystemExit(1) from None


def _end_with_parent() -> None:
    """End this worker as by SIGTERM once its parent was killed: it would keep the port."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
