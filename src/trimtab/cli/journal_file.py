"""The file behind ``fit --journal``: a session's journal, with the originals of its edits.

Knows the file: JSON, readable by its owner alone (originals are tool output, which may hold
secrets), written whole or not at all.  Does not know what an edit means.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trimtab.cli import files
from trimtab.cli.exits import UNREADABLE, Stop
from trimtab.errors import InvalidSetting
from trimtab.turns import journal_format
from trimtab.turns.journal import Journal


def load(name: str, *, must_exist: bool = False) -> Journal:
    """The journal in a file; an empty one where there is no file, unless it must be there."""
    if not must_exist and not Path(name).exists():
        return Journal()
    try:
        return journal_format.from_dict(json.loads(files.read(name)))
    except InvalidSetting as error:
        raise Stop(UNREADABLE, f"{name}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise Stop(UNREADABLE, f"{name} is no journal of trimtab: {error}") from None


def save(name: str, journal: Mapping[str, Any]) -> None:
    """Write what ``Session.journal`` returned, with mode 0600."""
    files.write(name, json.dumps(journal, indent=1).encode("ascii"), private=True)
