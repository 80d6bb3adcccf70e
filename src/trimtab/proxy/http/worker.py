"""Worker threads for the work that would block the event loop.

Parsing, fitting and every access to a store run here, so that other answers keep flowing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_THREADS = ThreadPoolExecutor(4, thread_name_prefix="trimtab-proxy")
T = TypeVar("T")


async def in_worker(work: Callable[[], T]) -> T:
    """The result of ``work``, run in a worker thread."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, work)
