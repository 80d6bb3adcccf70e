"""``trimtab proxy`` whose time jumps: by the seconds that the file in SOAK_CLOCK holds.

It keeps few conversations in memory, as ``together`` does: they are forgotten and read again all
the time, and what it takes is flat after minutes and not after days.

SOAK_CLOCK=FILE python tests/soak/replica.py --upstream URL --listen 127.0.0.1:4141 …
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

REAL = time.time
IN_MEMORY = 8
"""Conversations of a session."""


def jumping() -> float:
    """Seconds since 1970, by a clock that somebody sets."""
    try:
        return REAL() + float(Path(os.environ["SOAK_CLOCK"]).read_text("utf-8") or 0)
    except (OSError, ValueError):  # it is being written
        return REAL()


if __name__ == "__main__":
    time.time = jumping
    from trimtab.cli import main
    from trimtab.sessions import conversation_store

    conversation_store.IN_MEMORY = IN_MEMORY
    sys.exit(main(["proxy", *sys.argv[1:]]))
