"""Prints how the cost of a broken history grows with its length, for each way to break one.

    python bench/mutations.py            # repaired only: about 4 minutes
    python bench/mutations.py --cut      # and cut to half its size: about 15 minutes

Histories are those of ``tests/soak``, n, 2n and 4n of them one behind the other (about 1,000, 2,000
and 4,000 messages); in each, one mutation is made three times.  For each format the larger of two
doublings (2 is linear), and the seconds of the slowest at 4n.  Ends with 1 where a doubling takes
more than 2.4 times as long, or a call more than one second (two where it is cut).  Timed as in
``structure.py``, without Python's garbage collector.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from soak.mutations import MUTATIONS  # noqa: E402
from soak.story import FORMATS, Draw, Frame, Message, Part, Story, frame, story  # noqa: E402
from soak.writers_more import WRITERS  # noqa: E402

import trimtab  # noqa: E402

SIZES = (40, 80, 160)
"""Histories that one is made of, each of 20 to 35 messages: 4,000 together."""
TIMES_EACH = 3
"""How often each of them is broken."""
FILES = ("image", "document")
"""Left out: a request may hold a hundred images, so that a longer one is cut besides."""
MAX_CHARS = 200
"""Of a text: some providers take 20 MB, so that a longer history is weighed and cut besides."""
MODELS = {
    "openai-chat": "gpt-5.1",
    "openai-responses": "gpt-5.1",
    "anthropic": "claude-opus-4-6",
    "bedrock": "eu.anthropic.claude-opus-4-6-v1",
    "gemini": "gemini-2.5-pro",
}
MAX_RATIO = 2.4
MAX_SECONDS = {"repaired": 1.0, "cut to half": 2.0}


def history(format: str, mutation: str, pieces: int) -> Any:
    """A request of so many histories.  The shorter is how the longer begins."""
    draw = Draw(random.Random(1))
    around = _plain(frame(draw, format), format)
    told: Story = []
    for _ in range(pieces):
        told += _piece(draw, around, format, mutation, len(told))
    return WRITERS[format](told, around)


def _plain(around: Frame, format: str) -> Frame:
    around.bare, around.model, around.ids = False, MODELS[format], "global"
    return around


def _piece(draw: Draw, around: Frame, format: str, mutation: str, at: int) -> list[Message]:
    piece = story(draw, around, format)
    for message in piece:
        message.parts = [part for part in message.parts if part.kind not in FILES] or message.parts
        for part in message.parts:
            _shorten(part, MAX_CHARS)
            part.id = f"{part.id}_{at}" if part.id else part.id
    for _ in range(TIMES_EACH):
        MUTATIONS[mutation](draw, piece)
    for part in (part for message in piece for part in message.parts):
        _shorten(part, 10 * MAX_CHARS)
    return piece


def _shorten(part: Part, most: int) -> None:
    part.text = part.text[:most]
    part.shape = "" if part.shape == "image" else part.shape
    if isinstance(part.arguments, dict):
        part.arguments = {
            key: value[:most] if isinstance(value, str) else value
            for key, value in part.arguments.items()
        }


def seconds(request: Any, share: float) -> float:
    """Of one call, the best of five."""
    window = max(1_000, int(share * trimtab.measure(request).total))
    best = float("inf")
    for _ in range(5):
        copy = json.loads(json.dumps(request))
        gc.collect()
        gc.disable()
        begin = time.process_time()
        with suppress(trimtab.CannotFit):
            trimtab.fit(copy, window=window, reserve=0)
        best = min(best, time.process_time() - begin)
        gc.enable()
    return best


def measured(format: str, mutation: str, share: float) -> tuple[float, float]:
    """The larger of the doublings, and seconds of the longest.  Twice as many histories are not
    quite twice as long, so times are compared by the length of the request's JSON."""
    requests = [history(format, mutation, size) for size in SIZES]
    times = [seconds(request, share) for request in requests]
    each = [took / len(json.dumps(one)) for took, one in zip(times, requests, strict=True)]
    return max(2 * after / before for before, after in pairwise(each)), times[-1]


def main() -> int:
    """Print a table; 1 where a case grows too fast or takes too long."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cut", action="store_true", help="cut to half its size, too")
    failed = False
    for name in MAX_SECONDS if parser.parse_args().cut else ["repaired"]:
        print(f"{name:20}", *(f"{format:>18}" for format in FORMATS), f"{'s at 4n':>10}", sep="")
        for mutation in MUTATIONS:
            share = 9.0 if name == "repaired" else 0.5
            found = [measured(format, mutation, share) for format in FORMATS]
            slowest = max(took for _, took in found)
            bad = max(ratio for ratio, _ in found) > MAX_RATIO or slowest > MAX_SECONDS[name]
            failed |= bad
            ratios = "".join(f"{ratio:>18.2f}" for ratio, _ in found)
            print(f"{mutation:20}{ratios}{slowest:>10.2f}{'  !' if bad else ''}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
