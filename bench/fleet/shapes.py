"""How conversations grow: tokens a turn adds, of recorded ones.

    python bench/fleet/shapes.py DIRECTORY      writes bench/results/shapes.json

Numbers only: of each source at most 15 recordings of five turns or more; characters / 4.
"""

from __future__ import annotations

import json
import random
import sys
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "bench" / "results" / "shapes.json"
EACH, FEWEST = 15, 5


def recorded(folder: str) -> list[list[int]]:
    """[tokens of the first request, tokens each turn adds …] of each recording."""
    from trimtab.logs import log_files

    by_source: dict[str, list[list[int]]] = {}
    for one in log_files.read([folder]).recordings:
        if len(one.turns) < FEWEST:
            continue
        sizes = [len(json.dumps(message, default=str)) // 4 for message in one.messages]
        sums = [sum(sizes[: turn.sent]) for turn in one.turns]
        growth = [sums[0], *(b - a for a, b in pairwise(sums))]
        by_source.setdefault(one.source, []).append(growth)
    rng = random.Random(1)
    return [
        shape
        for source in sorted(by_source)
        for shape in rng.sample(by_source[source], min(EACH, len(by_source[source])))
    ]


def load() -> list[list[int]]:
    """The shapes that were written."""
    found: list[list[int]] = json.loads(FILE.read_text("utf-8"))["shapes"]
    return found


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    shapes = recorded(sys.argv[1])
    FILE.write_text(json.dumps({"shapes": shapes}, separators=(",", ":")) + "\n", "utf-8")
    turns = sorted(len(shape) for shape in shapes)
    print(f"{len(shapes)} shapes, median {turns[len(turns) // 2]} turns, most {turns[-1]}")
