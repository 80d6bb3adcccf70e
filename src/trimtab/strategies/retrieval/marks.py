"""``"compressed":true`` put into a JSON text, among an article's metadata or beside it.

Knows one object's fields and where they stand in the text.  Does not know lists of articles.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.jsontext import Spot
from trimtab.strategies.retrieval.article import Splice
from trimtab.strategies.retrieval.holder import COMPRESSED, METADATA


def mark_of(text: str, fields: Mapping[str, Any], spot: Spot) -> tuple[Splice | None, bool]:
    """``"compressed":true`` among the metadata; beside it where that is no object."""
    metadata = fields.get(METADATA, {})
    if isinstance(metadata, dict):
        if METADATA in spot.inner:
            return _flag(spot.inner[METADATA], f'"{COMPRESSED}":true', metadata)
        flag, _ = _flag(spot, f'"{METADATA}":{{"{COMPRESSED}":true}}', {})
        return flag, False
    return _flag(spot, f'"{COMPRESSED}":true', fields)


def _flag(spot: Spot, member: str, fields: Mapping[str, Any]) -> tuple[Splice | None, bool]:
    if COMPRESSED in fields and COMPRESSED in spot.inner:
        if fields[COMPRESSED] is True:
            return None, True
        value = spot.inner[COMPRESSED]
        return Splice(value.start, value.end, "true"), False
    if spot.ends:
        return Splice(spot.ends[-1], spot.ends[-1], f",{member}"), False
    return Splice(spot.start + 1, spot.start + 1, member), False
