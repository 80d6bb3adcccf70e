"""Reads the logs that a command names, and prints what could not be read."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trimtab.cli.exit_codes import MISSING, ExitWith
from trimtab.cli.terminal import clean

if TYPE_CHECKING:
    from trimtab.logs.log_files import LoadedLogs

_SHOWN_PROBLEMS = 5


def read_logs(names: Sequence[str]) -> LoadedLogs:
    """The recordings in these files, folders and addresses.  Raises ExitWith if one is missing."""
    from trimtab.logs import log_files

    for name in names:
        if "://" not in name and not Path(name).exists():
            raise ExitWith(MISSING, f"{name}: no such file or folder; check the path")
    logs = log_files.read(names)
    for problem in logs.problems[:_SHOWN_PROBLEMS]:
        print(clean(f"trimtab: {problem}"), file=sys.stderr)
    if (more := len(logs.problems) - _SHOWN_PROBLEMS) > 0:
        print(f"trimtab: and {more} more that could not be read", file=sys.stderr)
    return logs
