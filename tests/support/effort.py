"""How many made-up histories a test tries, in the profile of ``HYPOTHESIS_PROFILE``."""

from __future__ import annotations

from typing import Any

from hypothesis import Phase, settings

FOUND_AGAIN = (Phase.explicit, Phase.reuse, Phase.generate)
"""The phases of a test that is known to fail: nobody needs its example made small."""


def examples(share: float, **more: Any) -> settings:
    """As a decorator: so many times the examples of the profile, for those cheap or dear."""
    return settings(max_examples=max(5, round(settings().max_examples * share)), **more)


def large(count: int) -> int:
    """A size: a third in the profile ``ci``, all of it in ``long``.  What grows with the square
    takes minutes of either."""
    return int(count * min(1.0, settings().max_examples / 90))


def seeds(count: int) -> range:
    """So many seeds in the profile ``ci``, more in ``long``."""
    return range(max(5, count * settings().max_examples // 30))
