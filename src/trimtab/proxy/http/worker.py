"""Worker threads for the work that would block the event loop.

Parsing, fitting and every access to a store run here, so that other answers keep flowing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from trimtab.forking import renew_in_children

T = TypeVar("T")


class _Workers:
    """The threads; a child starts its own."""

    def __init__(self) -> None:
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """See ``Renewable``."""
        self.executor = ThreadPoolExecutor(4, thread_name_prefix="trimtab-proxy")


_workers = _Workers()


async def in_worker(work: Callable[[], T]) -> T:
    """The result of ``work``, run in a worker thread."""
    return await asyncio.get_running_loop().run_in_executor(_workers.executor, work)
