"""How hard Hypothesis tries where an example is cheaper or dearer than most."""

from __future__ import annotations

from typing import Any

from hypothesis import Phase, settings

FOUND_AGAIN = (Phase.explicit, Phase.reuse, Phase.generate)
"""The phases of a test that is known to fail: nobody needs its example made small."""


def examples(share: float, **more: Any) -> settings:
    """As a decorator: so many times the examples of the profile (``HYPOTHESIS_PROFILE``)."""
    return settings(max_examples=max(5, round(settings().max_examples * share)), **more)
