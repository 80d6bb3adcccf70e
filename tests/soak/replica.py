"""``trimtab proxy`` whose time jumps: by the seconds that the file in SOAK_CLOCK holds.

Its caches are small, as those of ``together`` are.

SOAK_CLOCK=FILE python tests/soak/replica.py --upstream URL --listen 127.0.0.1:4141 …
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

REAL = time.time


def jumping() -> float:
    """Seconds since 1970, by a clock that somebody sets."""
    try:
        return REAL() + float(Path(os.environ["SOAK_CLOCK"]).read_text("utf-8") or 0)
    except (OSError, ValueError):  # it is being written
        return REAL()


if __name__ == "__main__":
    time.time = jumping
    from soak.small_caches import small_caches
    from trimtab.cli import main

    with small_caches():
        sys.exit(main(["proxy", *sys.argv[1:]]))
