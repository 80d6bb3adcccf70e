"""``python -m soak.compacted --count 2000``: conversations with providers that compact.

``--door wrap`` or ``--door proxy``: through a real SDK's client instead of a session.

Run in tests/, with tests/support on the path.
"""

from __future__ import annotations

import argparse
import collections
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from compacted_doors import DOORS, through_door
from compacted_talks import Drawn, Told, drawn, hold, through
from compacting_provider import Compacting

import trimtab


def main() -> int:
    """Hold them; 1 where any was refused, changed or miscounted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--door", choices=("session", *DOORS), default="session")
    given = parser.parse_args()
    held: collections.Counter[str] = collections.Counter()
    faults: list[str] = []
    for seed in range(given.first, given.first + given.count):
        talk, told = drawn(seed), Told()
        try:
            if given.door == "session":
                done = _through_session(talk, told, seed)
            else:
                refused, done = through_door(given.door, talk, seed)
                told.faults += [f"seed {seed}: {refusal}" for refusal in refused]
        except Exception as error:
            told.faults.append(f"seed {seed}: {type(error).__name__}: {error}"[:300])
            done = told
        faults += told.faults
        held.update({"conversations": 1, "turns": done.turns, "compactions": done.compactions,
                     "requests cut behind one": told.cut_behind})  # fmt: skip
    print(", ".join(f"{value:,} {name}" for name, value in held.items()), f"; {len(faults)} faults")
    print("\n".join(faults[:20]))
    return 1 if faults else 0


def _through_session(talk: Drawn, told: Told, seed: int) -> Told:
    session = trimtab.Session(window=talk.window, settings=trimtab.Settings(counter="o200k"))
    return hold(talk, through(session, Compacting(talk.window, seed), talk, told))


if __name__ == "__main__":
    raise SystemExit(main())
