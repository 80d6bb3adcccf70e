"""``python bench/kits``: see ``kits.command``."""

import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(BENCH), str(BENCH.parent / "src")]

if __name__ == "__main__":
    from kits.command import main

    sys.exit(main())
