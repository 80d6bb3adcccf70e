"""How many children hang that are forked while three threads are in `fit`.

    python bench/forks.py fit memory: sqlite:///forks.db --children 200

Each argument is a place to fit: `fit` without a session, or the URL of a session's store.  A child
fits a conversation of its own and one that a thread of the parent is in.  Prints how many children
hung or failed, what went wrong in the parent's threads, and which conversations lost edits.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]

from forked_children import forked  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("places", nargs="+", metavar="place", help="fit, or the URL of a store")
    parser.add_argument("--children", type=int, default=200)
    parser.add_argument("--threads", type=int, default=3)
    given = parser.parse_args()
    well = True
    print(f"Python {sys.version.split()[0]}, {given.threads} threads")
    for place in given.places:
        began = time.monotonic()
        outcome = forked(None if place == "fit" else place, given.children, given.threads)
        well = well and outcome.well
        print(
            f"{place}: {outcome.children} children, {len(outcome.hung)} hung, "
            f"{len(outcome.failed)} faults in children, {len(outcome.parent)} in the parent, "
            f"{len(outcome.lost)} lost, {time.monotonic() - began:.0f} s",
            flush=True,
        )
        for line in (outcome.failed + outcome.parent + outcome.lost)[:5]:
            print("   ", line.strip().replace("\n", "\n    "))
    return 0 if well else 1


if __name__ == "__main__":
    raise SystemExit(main())
