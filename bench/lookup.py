"""Looked up: how often at most two look-ups bring back a planted fact that a request no longer has.

    python bench/lookup.py                     # the table of docs/recall.md
    python bench/lookup.py --held-out          # other worlds, to judge what was tuned on the first

The worlds and questions are those of ``bench/answerable``.  A fixed rule asks: the first look-up
searches for the question's own words without its small ones; the second reads the step that the
search named first.  Nothing is chosen by a model, and no word is added that the question lacks.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from answerable import policies, reader, tokens
from answerable.worlds import Question, build

import trimtab
from trimtab.errors import CannotFit

WINDOWS, STEPS, TOKENS, EACH = (16_000, 32_000, 60_000), (40, 120), 150_000, 4
SEEDS, HELD_OUT = (1, 2), (5_001, 5_002)
_SMALL = """a an and are as at be by did do does for from give given had has have how i in is it
itself its now of on or say says said that the this to user was were what when where which who whom
why will with"""
SMALL = frozenset(_SMALL.split())
"""Words of a question that nobody would search for."""
_WORD = re.compile(r"[\w./-]*\w")
_FIRST = re.compile(r"(?m)^(r\w+)(?: step (\d+))? ")


class Asked(NamedTuple):
    """A question, the look-ups that it took (0: it is in the request; 9: not found), and the
    tokens that they gave."""

    question: Question
    looks: int
    told: int


@dataclass
class Outcome:
    """One world at one window."""

    window: int
    asked: list[Asked] = field(default_factory=list)


def words_of(question: str) -> str:
    """The question's words without its small ones.

    >>> words_of("What is RETRY_LIMIT in src/media/part_7.py now?")
    'RETRY_LIMIT src/media/part_7.py'
    """
    return " ".join(word for word in _WORD.findall(question) if word.lower() not in SMALL)


def says(text: str, question: Question, call: str = "") -> bool:
    """Whether a text states the answer."""
    bare = reader.plain(text)
    return any(value == question.value for _, value in reader.statements(bare, question, call))


def run(task: tuple[int, int, int, str]) -> Outcome:
    """Play a world and look its facts up."""
    window, seed, steps, preset = task
    world, done = build(seed, steps, TOKENS, EACH), Outcome(window)
    session = trimtab.Session(
        window=window, reserve=0, preset=preset, recall=True, clock=lambda: 0.0
    )
    tool = trimtab.recall_tool("openai-chat")
    fitted = None
    for turn in world.turns:
        try:
            fitted = session.fit(policies.body(world.messages[:turn], [tool.definition]))
        except CannotFit:
            fitted = None
    for question in world.questions:
        if fitted is None:
            done.asked.append(Asked(question, 9, 0))
        else:
            done.asked.append(looked_up(fitted, question))
    return done


def looked_up(fitted: Any, question: Question) -> Asked:
    """Ask by the fixed rule."""
    alone = reader.read(fitted.request, question, None)
    if alone.answer is not None and alone.answer.value == question.value:
        return Asked(question, 0, 0)
    told = answered(fitted, {"search": words_of(question.text)})
    size = tokens.of_text(told)
    if says(told, question):
        return Asked(question, 1, size)
    if (first := _FIRST.search(told)) is None:
        return Asked(question, 9, size)
    handle, step = first.groups()
    told = answered(fitted, {"handle": handle, **({"steps": step} if step else {})})
    size += tokens.of_text(told)
    return Asked(question, 2 if says(told, question, first.string[first.start() :].partition(
        "\n")[0]) else 9, size)  # fmt: skip


def answered(fitted: Any, arguments: dict[str, Any]) -> str:
    """One look-up, as a model is answered."""
    from trimtab.journal.excerpts import answer

    return answer(fitted, arguments).text


def table(outcomes: Sequence[Outcome]) -> str:
    """A Markdown row a window."""
    rows = [
        "| window | questions | in the request | found with one look-up | with at most two "
        "| of those not in the request | tokens of the look-ups |",
        "|---|---|---|---|---|---|---|",
    ]
    for window in dict.fromkeys(one.window for one in outcomes):
        asked = [row for one in outcomes if one.window == window for row in one.asked]
        n, there = len(asked), sum(row.looks == 0 for row in asked)
        one, two = (sum(row.looks <= most for row in asked) for most in (1, 2))
        away = [row for row in asked if row.looks]
        told = sum(row.told for row in away) / max(1, len(away))
        rows.append(
            f"| {window // 1000}k | {n} | {there / n:.0%} | {one / n:.0%} | {two / n:.1%} "
            f"| {sum(r.looks <= 2 for r in away) / max(1, len(away)):.1%} | {told:,.0f} |"
        )
    return "\n".join(rows)


def missed(outcomes: Sequence[Outcome]) -> str:
    """The sorts of question that were not found, with how many of how many."""
    counts: dict[str, list[int]] = {}
    for row in (row for one in outcomes for row in one.asked if row.looks):
        own = counts.setdefault(f"{row.question.subject}, {row.question.kind}", [0, 0])
        own[0], own[1] = own[0] + (row.looks > 2), own[1] + 1
    lost = [f"{name} {some} of {all_}" for name, (some, all_) in sorted(counts.items()) if some]
    return "Not found: " + ("; ".join(lost) or "none")


def main(argv: Sequence[str] | None = None) -> int:
    """Run it and print the table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--window", type=int, nargs="+", default=WINDOWS)
    options.add_argument("--steps", type=int, nargs="+", default=STEPS)
    options.add_argument("--seed", type=int, nargs="+", default=SEEDS)
    options.add_argument("--preset", default="balanced")
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options.add_argument("--held-out", action="store_true", help="other worlds")
    args = options.parse_args(argv)
    seeds = HELD_OUT if args.held_out else args.seed
    wanted = [
        (window, seed, steps, args.preset)
        for window in args.window for seed in seeds for steps in args.steps
    ]  # fmt: skip
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(args.jobs, context) as pool:
        outcomes = list(pool.map(run, wanted))
    print(table(outcomes))
    print(f"\n{missed(outcomes)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
