"""Prints what reductions up to a given loss save on recorded sessions, and what they forget.

    python bench/recoverable.py [--tokens N] [--calls N] [--sessions N] [directory]

Of each source the sessions whose last call has more than N tokens (default 40,000), at most 8 of
them evenly spread, and of each about 8 model calls, requests below N/2 tokens left out: each is
fitted by itself, down to nothing, with only those offers whose loss is at most the level's.  The
newest eighth of a request and its newest 5 steps stay as they are.

- *lossless*: line numbers thinned, escapes, JSON compact or as tables, repeated lines;
- *came again*: besides, what came again later, in this or another call;
- *stale*: besides, superseded reads and writes, and inputs of failed calls;
- *blobs*: besides, encoded and minified runs to their beginning and size, pages to their text;
- *digests*: besides, long results to the lines that say most, down to a loss of one half;
- *default*: everything the library does at its defaults, folded steps included, but down to 70 % of
  the tokens of each request and no further.  The original of each edit can be recalled.

``saved``: tokens not sent, of those of all these calls.  ``recall``: identifiers the agent wrote in
the call that stood in what was sent, of all that stood in the whole.  ``handle``: the same where a
lost one also counts if the handle of an edit gives it back.  All in o200k, no factor.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import trimtab  # noqa: E402
from trimtab import reducers  # noqa: E402
from trimtab.logs import log_files  # noqa: E402
from trimtab.reducers import Config, Offer, Reducer  # noqa: E402
from trimtab.transcript.model import Block  # noqa: E402
from trimtab_lab.replay import policy_run  # noqa: E402
from trimtab_lab.replay.message_views import own_counter  # noqa: E402
from trimtab_lab.replay.metric import Judge  # noqa: E402
from trimtab_lab.replay.policies import PolicyOutput, PolicyStep  # noqa: E402
from trimtab_lab.replay.recording_index import RecordingIndex  # noqa: E402

LEVELS = {"lossless": 0.0, "came again": 0.05, "stale": 0.15, "blobs": 0.3, "digests": 0.5}
DEFAULT, SHARE = "default", 0.7
"""The level of all reductions, and what share of a request it leaves."""
HUGE = 10**9


def up_to(strategy: Reducer, most: float) -> Reducer:
    """The strategy without its offers that lose more."""

    def offers(block: Block, config: Config) -> Iterator[Offer]:
        for offer in strategy(block, config):
            if offer.loss > most or offer.op != "replace":
                return
            yield offer

    return offers


class Level:
    """One level as a policy without memory."""

    def __init__(self, name: str) -> None:
        nothing = dict[str, Any](trigger=1e-6, target=1e-6)
        self.limits = dict[str, Any](trigger=SHARE, target=SHARE) if name == DEFAULT else nothing
        self.options = dict[str, Any]()
        if name == DEFAULT:
            return
        without = {"articles", *(one.__name__ for one in reducers.DEEP)}
        if name == "digests":
            without.remove("digest")
        elif name != "blobs":
            without |= {"blobs", "page"}
        ours = [one for one in reducers.REDUCERS if one.__name__ not in without]
        ours = [up_to(one, LEVELS[name]) for one in ours]
        self.options = {"preset": "in-place", "reducers": ours}

    def window(self, tokens: int) -> int:
        """For a request of so many tokens: its own size, or more, so that it is never over."""
        return tokens if not self.options else tokens + tokens // 20 + 1_000

    def step(self, index: RecordingIndex, window: int) -> PolicyStep:
        """One batch, taken at once."""

        def step(body: dict[str, Any]) -> PolicyOutput:
            fitted = trimtab.fit(
                body,
                window=window,
                reserve=0,
                format=index.recording.format,
                model=index.recording.model,
                settings=trimtab.Settings(counter=own_counter(), **self.limits, **self.options),
            )
            edits = [edit for edit in fitted.report.edits if edit.handle]
            return PolicyOutput(fitted.request, {e.handle: fitted.recall(e.handle) for e in edits})

        return step


def measured(index: RecordingIndex, level: Level, calls: int, least: int) -> Counter[str]:
    """The sums over some calls of one session with at least so many tokens, each judged as if
    nothing had been sent before."""
    total = Counter[str]()
    apart = max(1, len(index.turns) // calls)
    for number in range(len(index.turns) - 1, -1, -apart):
        judge, tokens = Judge(index, HUGE), index.tokens(index.turns[number])
        if tokens < least:
            break
        step = level.step(index, level.window(tokens))
        judge.turn(number, policy_run.ask(step, index, number))
        for row in judge.done.rows:
            total.update(row._asdict())
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default=os.environ.get("TRIMTAB_DATA"))
    parser.add_argument("--tokens", type=int, default=40_000)
    parser.add_argument("--calls", type=int, default=8)
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--level", action="append", choices=[*LEVELS, DEFAULT], default=None)
    args = parser.parse_args()
    folder = Path(args.folder) if args.folder else ROOT.parent / "shared" / "data"
    by_source = defaultdict(list)
    for recording in log_files.read([str(folder)]).recordings:
        by_source[recording.source].append(recording)
    levels = args.level or [*LEVELS, DEFAULT]
    heads = "".join(f"{name:^25}" for name in levels)
    print(f"{'':24}{'':>9}{heads}\n{'source':24}{'sessions':>9}"
          + f"{'saved':>8}{'recall':>8}{'handle':>7}  " * len(levels))  # fmt: skip
    for source, every in sorted(by_source.items()):
        sums: dict[str, Counter[str]] = {name: Counter() for name in levels}
        done = 0
        # Characters first: to count the tokens of all would take minutes.
        long = [one for one in every if len(json.dumps(one.messages)) > 4 * args.tokens]
        for recording in long[:: -(-len(long) // args.sessions) or 1]:
            index = RecordingIndex(recording)
            if not index.turns or index.tokens(index.turns[-1]) < args.tokens:
                continue
            done += 1
            for name, total in sums.items():
                total.update(measured(index, Level(name), args.calls, args.tokens // 2))
        if not done:
            continue
        print(f"{source:24}{done:9}", end="")
        for total in sums.values():
            saved = 100 - 100 * total["tokens"] / max(total["full"], 1)
            if not (asked := total["need"]):
                print(f"{saved:7.1f}%{'–':>8}{'–':>8}  ", end="")
                continue
            kept = 100 * total["need_kept"] / asked
            back = 100 * (total["need_kept"] + total["recoverable"]) / asked
            failed = "!" if total["failed"] or total["invalid"] else ""
            print(f"{saved:7.1f}%{kept:7.2f}%{back:7.2f}%{failed:2}", end="")
        print(flush=True)


if __name__ == "__main__":
    main()
