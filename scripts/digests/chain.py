"""Digests of what leaves, turn by turn, and names of the package wherever they stand."""

from __future__ import annotations

import hashlib
import importlib
import json
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

Told = dict[str, Any]
"""``digest`` of all turns, ``turns``, ``each`` (4 hex of every turn), ``journal`` (of edits)."""

PLACES = {
    "flow": ("trimtab.retry.flow", "trimtab.flow"),
    "Accepted": ("trimtab.retry.effects", "trimtab.retry.sends"),
    "Refused": ("trimtab.retry.effects", "trimtab.retry.sends"),
    "LearnedLimits": ("trimtab.retry.learned_limits", "trimtab.sending.learned"),
    "Duplicates": ("trimtab.settings", "trimtab"),
    "prunable": ("trimtab.sessions.session_turns", "trimtab.session"),
    "prune": ("trimtab.sessions.pruning",),
    "take_out": ("trimtab.sessions.session_turns",),
    "FailedInputs": ("trimtab.settings", "trimtab"),
}
"""All that is used of the package beside what it exports, and where it may stand: a renamed one
gets its new name in ``NAMES``, a moved one is looked for in every module."""

NAMES: Mapping[str, tuple[str, ...]] = {
    "flow": ("flow",),
    "Accepted": ("Accepted",),
    "Refused": ("Refused",),
    "LearnedLimits": ("LearnedLimits",),
    "Duplicates": ("Duplicates",),
    "prunable": ("prunable",),
    "prune": ("prune",),
    "take_out": ("take_out",),
    "FailedInputs": ("FailedInputs",),
}


KEYWORDS = (
    "window", "reserve", "model", "format", "preset", "target", "recall", "settings", "store",
    "tenant", "conversation", "journal", "clock",
)  # fmt: skip
RENAMED = {
    "strategies": "reducers", "extra_strategies": "extra_reducers",
    "internal": "client_requests",
}  # fmt: skip
"""Settings that once had another name."""


@cache
def internal(name: str) -> Any:
    """Something that trimtab does not export."""
    import trimtab

    for place in PLACES[name]:
        for known in NAMES[name]:
            try:
                found = getattr(importlib.import_module(place), known)
            except (ImportError, AttributeError):
                continue
            if callable(found):
                return found
    for module in pkgutil.walk_packages(trimtab.__path__, "trimtab.", lambda name: None):
        if module.name.endswith("__main__"):  # it would run
            continue
        try:
            inside = vars(importlib.import_module(module.name))
        except Exception:  # one that needs an extra
            continue
        for known in NAMES[name]:
            found = inside.get(known)
            if callable(found) and getattr(found, "__module__", "") == module.name:
                return found
    raise LookupError(f"{name}: name its new place in {__name__}.PLACES")


def as_keywords(words: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as keywords: what ``fit`` does not take itself goes into ``settings=``."""
    import trimtab

    if not hasattr(trimtab, "Settings"):
        old = {new: old for old, new in RENAMED.items()}
        return {old.get(name, name): value for name, value in words.items()}
    own = {name: value for name, value in words.items() if name in KEYWORDS}
    rest = {name: value for name, value in words.items() if name not in KEYWORDS}
    limits = rest.pop("limits", None)
    settings = trimtab.Settings(**rest)
    return {**own, "settings": settings if limits is None else limits | settings}


def body_bytes(value: Any) -> bytes:
    """A request as it would be sent, with its type in front."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return b"b" + bytes(value)
    if isinstance(value, str):
        return b"s" + value.encode("utf-8", "surrogatepass")
    return b"d" + json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def digest(data: bytes) -> str:
    """Of anything."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class Chain:
    """Digests of steps, one after the other."""

    def __init__(self) -> None:
        self._all = hashlib.blake2b(digest_size=16)
        self._each = list[str]()

    def add(self, *parts: bytes | str | int | None) -> None:
        """One step."""
        one = hashlib.blake2b(digest_size=16)
        for part in parts:
            data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
            one.update(len(data).to_bytes(8, "big") + data)
        self._all.update(one.digest())
        self._each.append(one.hexdigest()[:4])

    def step(self, fit: Callable[[], Any]) -> Any:
        """A step that is a fit: what is to be sent, or the name of the error; returns the result,
        None where there is none."""
        import trimtab

        try:
            done = fit()
        except trimtab.TrimtabError as error:
            self.add("error", type(error).__name__)
            return None
        self.add(body_bytes(done.request), done.tokens_after)
        return done

    def told(self, journal: Mapping[str, Any] | None = None) -> Told:
        """The digests, and that of the edits of a journal."""
        found: Told = {
            "digest": self._all.hexdigest(),
            "turns": len(self._each),
            "each": "".join(self._each),
        }
        if journal is not None:
            text = json.dumps(journal["edits"], ensure_ascii=False)
            found["journal"] = digest(text.encode("utf-8", "surrogatepass"))
            found["edits"] = len(journal["edits"])
        return found


class Clock:
    """Seconds that pass only when they are told to; reading them changes nothing."""

    def __init__(self, jumps: bool = False) -> None:
        self._jumps, self._turn, self.now = jumps, 0, 1_000.0

    def turn(self) -> None:
        """The next turn: ten seconds later, or now and then much later."""
        self._turn += 1
        step = 10.0
        if self._jumps and self._turn % 5 == 0:
            step = 4_000.0 if self._turn % 3 == 0 else 400.0
        self.now += step

    def __call__(self) -> float:
        return self.now
