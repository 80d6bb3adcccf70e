"""Makes trimtab's caches small, so that they are full after minutes of a soak and not after hours.

What is forgotten is read again all the time, and a process that grows after that has a leak.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from unittest.mock import patch

from trimtab.proxy.callers import tenants
from trimtab.proxy.records import recent_requests
from trimtab.sessions import conversation_store
from trimtab.transcript import identifiers, token_sources

SIZES: tuple[tuple[ModuleType, str, int], ...] = (
    (conversation_store, "IN_MEMORY", 8),
    (recent_requests, "MAX_REQUESTS", 50),
    (tenants, "MAX_PARSED", 8),
    (token_sources, "MEMO_MAX_CHARS", 2_000_000),
    (token_sources, "CACHE_MAX_CHARS", 2_000_000),
    (identifiers, "_MAX_KNOWN", 10_000),
)
"""An eighth of what they are, or less."""


@contextmanager
def small_caches() -> Iterator[None]:
    """For so long."""
    with ExitStack() as stack:
        for module, name, size in SIZES:
            assert getattr(module, name) >= 8 * size, f"{name} is no such cache any more"
            stack.enter_context(patch.object(module, name, size))
        yield
