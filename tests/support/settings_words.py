"""Settings as loose words, for tests that pass them through helpers."""

from __future__ import annotations

from typing import Any

import trimtab
from trimtab.settings import FitKeywords

KEYWORDS = FitKeywords.__annotations__.keys()
SESSION = ("store", "tenant", "conversation", "journal", "clock")


def as_keywords(**words: Any) -> dict[str, Any]:
    """Keywords of ``fit`` and ``Session``: what is no keyword of theirs goes into ``settings=``."""
    own = {name: value for name, value in words.items() if name in KEYWORDS or name in SESSION}
    rest = {name: value for name, value in words.items() if name not in own}
    if rest:
        base = own.get("settings") or trimtab.Settings()
        own["settings"] = trimtab.Settings(**rest) | base
    return own
