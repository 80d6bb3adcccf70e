"""Identifiers in a text: paths, ids, long numbers, compound names; never a plain word.

What an agent writes again later is mostly identifiers.  They decide which lines of an old result
are kept, and the benchmark counts how many survive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

TOKEN = re.compile(r"[#\w][\w./@~+-]*\w|\w")
_SPLIT_NAME = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]|\w_\w")
_QUANTITY = re.compile(r"\d+(?:\.\d+)?[a-zA-Z%]{1,3}")
_DOTTED = re.compile(r"[\w@~+-]{2,}(?:\.[\w@~+-]+)*\.[A-Za-z][A-Za-z0-9]{0,9}")
_VERSION = re.compile(r"v?\d+\.\d+\.\d+[\w.+-]*")

LONG_NUMBER = 5
"""A number of so many digits names something."""
_MAX_KNOWN = 100_000


class _NamesByRun(dict[str, tuple[str, ...] | None]):
    """Run of characters → its identifiers, or None for a plain word; a cache."""

    def __missing__(self, run: str) -> tuple[str, ...] | None:
        if len(self) >= _MAX_KNOWN:
            self.clear()
        names: tuple[str, ...] | None
        if len(run) >= LONG_NUMBER and run.isdigit():
            names = (run,)
        else:
            token = match[0] if (match := TOKEN.search(run)) else ""
            names = tuple(name for name, _ in _names(token))
            if not names and len(token) > 1 and not token.isdigit():
                names = None
        self[run] = names
        return names


NAMES_BY_RUN = _NamesByRun()
"""The identifiers of one of ``runs``: () where it has none, None where it is a plain word."""

_APART = {code: " " for code in range(128) if not re.match(r"[#\w./@~+\n-]", chr(code))}


def apart(text: str) -> str:
    """``text`` with a space for every character that is part of no ``TOKEN``, and of the same
    length; what is not ASCII becomes a space too."""
    ascii_text = text if text.isascii() else text.encode("ascii", "replace").decode()
    return ascii_text.translate(_APART)


def runs(text: str, spaced: str) -> Sequence[str]:
    """The tokens of a text, where it is cheaper with signs around them; ``spaced``: that part of
    what ``apart`` gave.

    >>> runs("see src/main.go.", apart("see src/main.go."))
    ['see', 'src/main.go.']
    """
    return spaced.split() if is_split_by_spaces(text) else TOKEN.findall(text)


def is_split_by_spaces(text: str) -> bool:
    """Whether the runs of a text are what is between the spaces of ``apart``, which is found
    three times as fast as by ``TOKEN``.  A # within a run begins another token."""
    return text.isascii() and "#" not in text


@lru_cache(_MAX_KNOWN)
def names_in(token: str) -> tuple[tuple[str, int], ...]:
    """The identifiers of one ``TOKEN`` and where each begins in it; () for a plain word.

    >>> names_in("src/app/main.go"), names_in("self.max_len"), names_in("window")
    ((('src/app/main.go', 0),), (('max_len', 5),), ())
    """
    return tuple(_names(token))


def _names(token: str) -> Iterator[tuple[str, int]]:
    if len(token) < 4:
        return
    if "/" in token:
        if _is_path(token):
            yield token, 0
        return
    if _VERSION.fullmatch(token):
        yield token, 0
        return
    offset = 0
    parts = token.split(".")
    named = [part for part in parts if _is_name(part)]
    if named and len(parts) > 1 and not (len(parts) == 2 and _DOTTED.fullmatch(token)):
        for part in parts:  # self.max_len: each name by itself
            if _is_name(part):
                yield part, offset
            offset += len(part) + 1
    elif named or _DOTTED.fullmatch(token):
        yield token, 0


def _is_path(token: str) -> bool:
    """``src/app``, ``a/b/c``, ``x/y.go``; not ``and/or``, ``1/2``."""
    parts = [part for part in token.split("/") if part]
    if len(parts) < 2 or not any(char.isalpha() for char in token):
        return False
    return len(parts) > 2 or any("." in part or _is_name(part) for part in parts)


def _is_name(part: str) -> bool:
    """Compound names, long numbers, letters mixed with digits, ``#123``."""
    if len(part) < 4:
        return False
    if part[0] == "#":
        return part[1:].isalnum() and any(char.isdigit() for char in part)
    if part.isdigit():
        return len(part) >= LONG_NUMBER
    if _SPLIT_NAME.search(part):
        return True
    digits = any(char.isdigit() for char in part)
    if digits and any(char.isalpha() for char in part):
        return not _QUANTITY.fullmatch(part)
    return part.count("-") >= 2 and not part.startswith("-")
