"""Several worker processes on one port: each is a whole proxy, and they share the store.

A worker that dies is started again; signals go to all of them.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Callable

from trimtab.errors import InvalidSetting
from trimtab.proxy import logs
from trimtab.proxy.settings import ProxySettings

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
    running: dict[int, float] = {}
    ending = False

    def forward(number: int, frame: object) -> None:
        nonlocal ending
        ending = ending or number != signal.SIGHUP
        for worker in list(running):
            os.kill(worker, signal.SIGTERM if number == signal.SIGINT else number)

    kept = {
        number: signal.signal(number, forward)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    failed = False
    try:
        for _ in range(count):
            running[_forked(work)] = time.monotonic()
        while running:
            worker, status = os.wait()
            began = running.pop(worker, None)
            if began is None or ending:
                continue
            code = os.waitstatus_to_exitcode(status)
            logs.say(f"a worker has ended ({code})", level=logging.WARNING)
            if code > 0 and time.monotonic() - began < _SOON_SECONDS:
                failed = True
                forward(signal.SIGTERM, None)
            else:
                running[_forked(work)] = time.monotonic()
    finally:
        for number, before in kept.items():
            signal.signal(number, before)
    return int(failed)


def _forked(work: Callable[[], None]) -> int:
    """The process id of a worker."""
    sys.stdout.flush()
    sys.stderr.flush()
    worker = os.fork()
    if worker:
        return worker
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's goes through the parent
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        work()
        code = 0
    except Exception as error:
        print(f"trimtab: {error}", file=sys.stderr)
    finally:
        sys.stderr.flush()
        os._exit(code)
