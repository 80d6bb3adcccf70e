"""``python -m soak.compacted --count 2000``: conversations with providers that compact.

Run in tests/, with tests/support on the path.
"""

from __future__ import annotations

import argparse
import collections
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from compacted_talks import Told, drawn, hold, through
from compacting_provider import Compacting

import trimtab


def main() -> int:
    """Hold them; 1 where any was refused, changed or miscounted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    held: collections.Counter[str] = collections.Counter()
    faults: list[str] = []
    for seed in range(given.first, given.first + given.count):
        talk, told = drawn(seed), Told()
        session = trimtab.Session(window=talk.window, settings=trimtab.Settings(counter="o200k"))
        try:
            done = hold(talk, through(session, Compacting(talk.window, seed), talk, told))
        except Exception as error:
            told.faults.append(f"seed {seed}: {type(error).__name__}: {error}"[:300])
            done = told
        faults += told.faults
        held.update({"conversations": 1, "turns": done.turns, "compactions": done.compactions,
                     "requests cut behind one": told.cut_behind})  # fmt: skip
    print(", ".join(f"{value:,} {name}" for name, value in held.items()), f"; {len(faults)} faults")
    print("\n".join(faults[:20]))
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
