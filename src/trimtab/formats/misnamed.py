"""Names of no format, and names of another format than the body's."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from trimtab.errors import InvalidSetting, shown
from trimtab.formats.engine.base import Format
from trimtab.formats.registry import FORMATS, MESSAGE_LISTS

_FIRST = 50
"""Messages that are looked at: a body of another format shows itself early."""


def no_format(name: str, *, dialects: bool = True) -> InvalidSetting:
    """The error for a name of no format; it says which was probably meant.  ``dialects``: whether
    the setting takes them."""
    plain = name.strip().lower().replace("_", "-").replace(" ", "-")
    meant = list(_meant(plain, dialects))
    if not meant:
        names = [name for format in FORMATS.values() for name in (format.name, *format.aliases)]
        near = get_close_matches(plain, names, n=1)
        meant = [one for name in near for one in _meant(name, dialects)]
    hint = f"did you mean {' or '.join(map(repr, meant))}? " if meant else ""
    return InvalidSetting(f"no format {shown(name)}: {hint}choose one of {', '.join(FORMATS)}")


def _meant(name: str, dialects: bool) -> Iterator[str]:
    """The formats and dialects that people call so, the better known first."""
    for format in reversed(FORMATS.values()):
        if name in (format.name, *format.aliases):
            yield format.name
            continue
        for dialect, aliases in format.dialects.items() if dialects else ():
            if name in (dialect, *aliases):
                yield f"{format.name}:{dialect}"


def no_variant(variant: str, format: Format) -> InvalidSetting:
    """The error for what is neither a dialect nor a version of a format."""
    for kind, names in (("dialect", format.dialects), ("version", format.versions)):
        if names:
            has = f"it has {', '.join(names)}"
            return InvalidSetting(f"no {kind} {variant!r} of {format.name}; {has}")
    return InvalidSetting(f"no dialect {variant!r} of {format.name}; it has one only")


def is_foreign(tree: Any, format: Format) -> bool:
    """Whether a body has what no request of the format has.

    Only what is certain: a body that two formats may read is whatever its caller says.
    """
    messages = tree
    if isinstance(tree, dict):
        keys = [key for key in MESSAGE_LISTS if isinstance(tree.get(key), list)]
        if len(keys) != 1:
            return False
        if keys[0] != format.messages_key:
            return True
        messages = tree[keys[0]]
    found = [one for one in messages[:_FIRST] if isinstance(one, dict)]
    if found and lacks_parts(found, format):
        return True
    return any(
        not format.is_own(one) and any(other.is_own(one) for other in FORMATS.values())
        for one in found
    )


def lacks_parts(messages: list[Any], format: Format) -> bool:
    """Whether no message has parts, in a format in which each has them."""
    key = format.content_key
    return format.needs_parts and not any(isinstance(m, dict) and key in m for m in messages)
