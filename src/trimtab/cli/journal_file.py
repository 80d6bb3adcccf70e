"""The file behind ``fit --journal``: a session's journal, with the originals of its edits; those
of ``batch --originals`` are read too.

It is JSON, written atomically, and readable by its owner alone: originals are tool output and may
contain secrets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trimtab.cli import files
from trimtab.cli.exit_codes import UNREADABLE, ExitWith
from trimtab.errors import InvalidSetting
from trimtab.journal import file_format
from trimtab.journal.journal import Journal


def load(name: str, *, must_exist: bool = False) -> Journal:
    """The journal in a file; an empty one if there is no file, unless ``must_exist``."""
    if not must_exist and not Path(name).exists():
        return Journal()
    data = files.read(name)
    try:
        if (originals := _of_a_batch(data)) is not None:
            return Journal(originals=originals)
        return file_format.from_dict(json.loads(data))
    except InvalidSetting as error:
        raise ExitWith(UNREADABLE, f"{name}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise ExitWith(UNREADABLE, f"{name} is no journal of trimtab: {error}") from None


def _of_a_batch(data: bytes) -> dict[str, str] | None:
    """The originals that ``trimtab batch --originals`` wrote, the newest record first; None where
    the first line has none.  Raises ValueError."""
    first, _, rest = data.partition(b"\n")
    try:
        row = json.loads(first)
    except ValueError:
        return None  # a journal's JSON has several lines
    if not isinstance(row, dict) or not isinstance(row.get("originals"), dict) or "edits" in row:
        return None
    rows = [row, *map(json.loads, rest.splitlines())]
    return {handle: text for row in reversed(rows) for handle, text in row["originals"].items()}


def save(name: str, journal: Mapping[str, Any]) -> None:
    """Write what ``Session.journal`` returned, with mode 0600."""
    files.write(name, json.dumps(journal, indent=1).encode("ascii"), private=True)
