"""Prints whether what somebody asks for by name survives a cut, a row a kind of content.

    python bench/asked                              # the tables, in two to four minutes
    python bench/asked --kinds csv python --trials 10
    python bench/asked --held-out --out held.txt    # other seeds and another vocabulary

Each request is cut to a half and to a quarter.  The text asked for is the newest long result, or it
is old and has to be folded.  Beside each figure is what a head and tail of the same size keeps.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from asked import trial
from asked.contents import KINDS
from asked.conversations import ASKERS, PLACES
from asked.trial import Outcome, Trial

SHARES = (0.5, 0.25)
SHOWN = {0.5: "1/2", 0.25: "1/4"}
FORMATS = ("anthropic", "openai-chat")
ALL_FORMATS = (*FORMATS, "openai-responses", "bedrock", "gemini")
TRIALS = 8
MIN_USED = 0.5
"""Of the window: what sends less has thrown away more than was asked of it."""
NAMED = ASKERS[:-1]
CELLS = [(place, share) for place in PLACES for share in SHARES]


def trials(args: argparse.Namespace) -> list[Trial]:
    """What is tried: each kind, asker, place and depth with seeds of its own."""
    return [
        Trial(kind, asker, place, share, number,
              args.format or FORMATS[(number + place_number + asker_number) % 2], args.held_out)
        for kind in args.kinds
        for asker_number, asker in enumerate(ASKERS)
        for place_number, place in enumerate(PLACES)
        for share in SHARES
        for number in range(args.trials)
    ]  # fmt: skip


def pairs(
    found: Iterable[Outcome], wanted: Callable[[Trial], bool] = lambda _: True
) -> list[tuple[bool, bool]]:
    """(ours, rival) of the trials that are wanted."""
    return [(one.ours, one.rival) for one in found if wanted(one.trial)]


def _cell(own: Sequence[tuple[bool, bool]]) -> str:
    """How many of each, and whether ours is worse: ``14:9 of 16``."""
    ours, rival = sum(one for one, _ in own), sum(one for _, one in own)
    return f"{ours}:{rival} of {len(own)}" + (" worse" if trial.is_worse(own) else "")


def by_kind(found: Sequence[Outcome]) -> str:
    """A row a kind: named by somebody at each place and depth, then the control."""
    head = " | ".join(f"{place} {SHOWN[share]}" for place, share in CELLS)
    control = " | ".join(f"nobody, {place}" for place in PLACES)
    rows = [f"| kind | {head} | all | used | {control} |", "|---|" + "---|" * (len(CELLS) + 4)]
    for kind in dict.fromkeys(one.trial.kind for one in found):
        own = [one for one in found if one.trial.kind == kind]
        named = [one for one in own if one.trial.asker in NAMED]
        cells = [
            _cell(pairs(named, lambda t, p=place, s=share: (t.place, t.share) == (p, s)))  # type: ignore[misc]
            for place, share in CELLS
        ]
        used = sum(one.used for one in named) / max(1, len(named))
        cells += [_cell(pairs(named)), f"{used:.0%}"]
        cells += [
            _cell(pairs(own, lambda t, p=place: (t.asker, t.place) == ("nobody", p))).removesuffix(  # type: ignore[misc]
                " worse"
            )
            for place in PLACES
        ]
        rows.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(rows)


def by_asker(found: Sequence[Outcome]) -> str:
    """A row an asker, all kinds together."""
    head = " | ".join(f"{place} {SHOWN[share]}" for place, share in CELLS)
    rows = [f"| who names it | {head} |", "|---|" + "---|" * len(CELLS)]
    for asker in ASKERS:
        cells = [
            _cell(pairs(found, lambda t, k=(asker, *cell): (t.asker, t.place, t.share) == k))  # type: ignore[misc]
            for cell in CELLS
        ]
        rows.append(f"| {asker} | {' | '.join(cells)} |")
    return "\n".join(rows)


def overall(found: Sequence[Outcome]) -> str:
    """The figures in a sentence each, and the kinds in which ours is worse."""
    named, lines = [one for one in found if one.trial.asker in NAMED], list[str]()
    for place, share in CELLS:
        own = pairs(named, lambda t, k=(place, share): (t.place, t.share) == k)  # type: ignore[misc]
        many = max(1, len(own))
        ours, rival = (sum(one[n] for one in own) / many for n in (0, 1))
        lines.append(f"Named by user or call, {place}, {SHOWN[share]}: {ours:.0%} of {len(own)}, "
                     f"head and tail {rival:.0%}")  # fmt: skip
    worse = [
        f"{kind} ({place})"
        for kind in dict.fromkeys(one.trial.kind for one in named)
        for place in PLACES
        if trial.is_worse(pairs(named, lambda t, k=(kind, place): (t.kind, t.place) == k))  # type: ignore[misc]
    ]
    lines.append(f"Significantly worse than head and tail: {', '.join(worse) or 'nowhere'}")
    cliffs = [one.trial.kind for one in found if 0 < one.used < MIN_USED]
    told = ", ".join(f"{kind} {cliffs.count(kind)}" for kind in dict.fromkeys(cliffs))
    lines.append(f"Sent less than {MIN_USED:.0%} of the window: {len(cliffs)} of {len(found)}"
                 f" ({told or 'none'})")  # fmt: skip
    lines.append(f"Could not fit: {sum(one.used == 0 for one in found)} of {len(found)}")
    return "\n".join(lines)


def report(found: Sequence[Outcome]) -> str:
    """All tables; in a cell ``trimtab:head and tail of trials``."""
    return f"{by_kind(found)}\n\n{by_asker(found)}\n\n{overall(found)}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run it and print the tables."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND",
                         help=", ".join(KINDS))  # fmt: skip
    options.add_argument("--trials", type=int, default=TRIALS, help="of each cell of the table")
    options.add_argument("--format", choices=ALL_FORMATS, help="default: the first two in turn")
    options.add_argument("--held-out", action="store_true", help="seeds and words set aside")
    options.add_argument("--out", type=Path, help="a file for the tables, which are not printed")
    args = options.parse_args(argv)
    wanted, found = trials(args), list[Outcome]()
    for number, one in enumerate(wanted, 1):
        if number % 50 == 0:
            print(f"{number} of {len(wanted)}: {one.kind}", file=sys.stderr, flush=True)
        found.append(trial.run(one))
    text = ("Held out\n\n" if args.held_out else "") + report(found)
    if args.out:
        args.out.write_text(f"{text}\n", encoding="utf-8")
    else:
        print(text)
    return 0
