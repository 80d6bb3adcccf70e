"""Characters that no provider accepts: lone halves of UTF-16 pairs, which have no UTF-8 form, and
NUL.

JavaScript clients cut texts between the halves of a character; tools print NUL; bytes that are not
UTF-8 are read as lone halves (Python's ``surrogateescape``).  Each becomes U+FFFD.
"""

from __future__ import annotations

import re
from typing import Any

from trimtab.jsontext.parsing import MAX_DEPTH, too_deep
from trimtab.jsontext.paths import Path

STAND_IN = "\ufffd"
_UNREADABLE = re.compile(
    "\x00|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]"
)


def is_unreadable(text: str) -> bool:
    """Whether a text contains a lone half or NUL; two halves that form a pair are fine."""
    if text.isascii():
        return "\x00" in text
    try:
        text.encode()  # much faster than a search for halves
    except UnicodeEncodeError:
        return _UNREADABLE.search(text) is not None
    return "\x00" in text


def unreadable_paths(value: Any, path: Path = ()) -> tuple[Path, ...]:
    """Paths of unreadable texts; for a key the path of its object, which is replaced whole.

    Raises InvalidRequest where containers nest too deep.
    """
    paths: list[Path] = []
    _collect(value, path, paths, MAX_DEPTH)
    return tuple(paths)


def _collect(value: Any, path: Path, paths: list[Path], depth: int) -> None:
    kind = type(value)
    if kind is str:
        if is_unreadable(value):
            paths.append(path)
        return
    if depth < 0:
        raise too_deep()
    if kind is dict:
        if any(type(key) is str and is_unreadable(key) for key in value):
            paths.append(path)
            return
        for key, child in value.items():
            if type(child) in _WALKED:
                _collect(child, (*path, key), paths, depth - 1)
    elif kind is list:
        for index, child in enumerate(value):
            if type(child) in _WALKED:
                _collect(child, (*path, index), paths, depth - 1)


_WALKED = frozenset((str, dict, list))


def readable(value: Any) -> Any:
    """The value with U+FFFD for each unreadable character, in keys too; keys that become equal get
    a number."""
    if isinstance(value, str):
        return _UNREADABLE.sub(STAND_IN, value)
    if isinstance(value, list):
        return [readable(item) for item in value]
    if not isinstance(value, dict):
        return value
    made: dict[Any, Any] = {}
    for key, item in value.items():
        new, number = readable(key), 1
        while new in made or (new != key and new in value):
            number += 1
            new = f"{readable(key)}{number}"
        made[new] = readable(item)
    return made


def count(value: Any) -> int:
    """The number of unreadable characters in a value, keys included."""
    if isinstance(value, str):
        return len(_UNREADABLE.findall(value))
    if isinstance(value, list):
        return sum(map(count, value))
    if isinstance(value, dict):
        return sum(count(key) + count(item) for key, item in value.items())
    return 0
