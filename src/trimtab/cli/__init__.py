"""The command line.  ``status`` is loaded alone, because agents run it on each turn."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] == ["status"]:
        from trimtab.cli import status

        return status.main(words[1:])
    from trimtab.cli import commands

    return commands.main(words)
