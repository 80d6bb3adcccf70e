"""Prints what is left of the user's own words after a cut.

    python bench/own_prose                # the tables, in less than a minute
    python bench/own_prose --held-out     # the other half of the rules, with other seeds
    python bench/own_prose --lost         # and each text that is not kept

The side constraints of the PyPI package conpact (MIT license) are added where it is installed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from own_prose import judge, rules, tables, worlds


def chosen(held_out: bool) -> list[rules.Written]:
    """The rules of one half, those of conpact among them where it is installed."""
    constraints = rules.load_conpact()
    if not constraints:
        print("conpact is not installed: its 15 constraints are left out", file=sys.stderr)
    return rules.half([*rules.load(), *constraints], held_out)


def lost(found: Sequence[judge.Verdict]) -> str:
    """A line for each text that there was room for and that is not kept."""
    rows = list[str]()
    for one in found:
        for written, fate, room in zip(one.trial.written, one.fates, one.possible, strict=True):
            if room and fate != "kept":
                about = f"{tables.situation(one)}: {written.language}, {written.kind}"
                rows.append(f"{fate}  {about}: {' / '.join(written.needles)}")
    return "\n".join(rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Run it and print the tables."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--held-out", action="store_true", help="the other half, not for tuning")
    options.add_argument("--lost", action="store_true", help="also list what is not kept")
    args = options.parse_args(argv)
    found = [judge.run(one) for one in worlds.all_trials(chosen(args.held_out), args.held_out)]
    print(tables.everything(found))
    if args.lost:
        print(f"\n{lost(found)}")
    return 0
