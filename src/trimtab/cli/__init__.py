"""The command line: ``trimtab fit``, ``check``, ``explain``, ``replay``, ``proxy`` and the others.

``status`` is loaded alone: agents run it on each turn.  All others are in ``commands``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; never a traceback."""
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] == ["status"]:
        from trimtab.cli import status

        return status.main(words[1:])
    from trimtab.cli import commands

    return commands.main(words)
