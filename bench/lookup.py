"""Looked up: how often at most two look-ups bring back a planted fact that a request no longer has.

    python bench/lookup.py          # the table of docs/recall.md

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
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from answerable import policies, reader, tokens
from answerable.worlds import DECLARED, Question, build

import trimtab
from trimtab.errors import CannotFit
from trimtab.journal.excerpts import answer

WINDOWS, STEPS, TOKENS, EACH = (16_000, 32_000, 60_000), (40, 120), 150_000, 4
SEEDS, HELD_OUT = (1, 2), (7_001, 7_002)
_SMALL = """a an and are as at be by did do does for from give given had has have how i in is it
itself its now of on or say says said that the this to user was were what when where which who whom
why will with"""
SMALL = frozenset(_SMALL.split())
"""Words of a question that nobody would search for."""
_WORD = re.compile(r"[\w./-]*\w")
_FIRST = re.compile(r"(?m)^(r\w+)(?: step (\d+))? ")


LOST = 9


class Asked(NamedTuple):
    """A question, the look-ups that it took (0: it is in the request), the tokens that they gave,
    and whether they told an older value first."""

    question: Question
    looks: int
    told: int = 0
    stale: bool = False


class Task(NamedTuple):
    """A world and a window."""

    window: int
    seed: int
    steps: int
    preset: str = "balanced"
    tokens: int = TOKENS
    each: int = EACH


class Outcome(NamedTuple):
    """What became of the questions of a world."""

    task: Task
    asked: list[Asked]

    @property
    def held_out(self) -> bool:
        """Whether nothing was tuned on its world."""
        return self.task.seed in HELD_OUT


def words_of(question: str) -> str:
    """The question's words without its small ones.

    >>> words_of("What is RETRY_LIMIT in src/media/part_7.py now?")
    'RETRY_LIMIT src/media/part_7.py'
    """
    return " ".join(word for word in _WORD.findall(question) if word.lower() not in SMALL)


def values(text: str, question: Question, call: str = "") -> list[str]:
    """What a text states about what is asked, in order."""
    return [value for _, value in reader.statements(reader.plain(text), question, call)]


def run(task: Task) -> Outcome:
    """Play a world and look its facts up."""
    world = build(task.seed, task.steps, task.tokens, task.each)
    session = trimtab.Session(
        window=task.window, reserve=0, preset=task.preset, recall=True, clock=lambda: 0.0
    )
    tools = [trimtab.recall_tool("openai-chat").definition]
    fitted = None
    for turn in world.turns:
        try:
            fitted = session.fit(policies.body(world.messages[:turn], [*DECLARED, *tools]))
        except CannotFit:
            fitted = None
    if fitted is None:
        return Outcome(task, [Asked(question, LOST) for question in world.questions])
    return Outcome(task, [looked_up(fitted, question) for question in world.questions])


def looked_up(fitted: trimtab.Fitted, question: Question) -> Asked:
    """Ask by the fixed rule."""
    alone = reader.read(fitted.request, question, None)
    if alone.answer is not None and alone.answer.value == question.value:
        return Asked(question, 0)
    told = answer(fitted, {"search": words_of(question.text)}).text
    size, found, head = tokens.of_text(told), values(told, question), _FIRST.search(told)
    looks = 1
    if question.value not in found and head is not None:
        handle, step = head.groups()
        read = answer(fitted, {"handle": handle, **({"steps": step} if step else {})}).text
        line = told[head.start() :].partition("\n")[0]
        size, found, looks = size + tokens.of_text(read), values(read, question, line), 2
    if question.value not in found:
        return Asked(question, LOST, size)
    return Asked(question, looks, size, found[0] != question.value)


def table(outcomes: Sequence[Outcome]) -> str:
    """A Markdown row a window."""
    rows = [
        "| window | questions | in the request | one look-up | at most two | of those not in the "
        "request | an older value first | tokens of the look-ups |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for held, window in dict.fromkeys((one.held_out, one.task.window) for one in outcomes):
        own = [one for one in outcomes if (one.held_out, one.task.window) == (held, window)]
        asked = [row for one in own for row in one.asked]
        n, away = len(asked), [row for row in asked if row.looks]
        none, one, two = (sum(row.looks <= most for row in asked) for most in (0, 1, 2))
        got = sum(row.looks <= 2 for row in away)
        rows.append(
            f"| {window // 1000}k{', held out' * held} | {n} "
            f"| {none / n:.0%} | {one / n:.0%} | {two / n:.0%} "
            f"| {got} of {len(away)} | {sum(row.stale for row in away)} "
            f"| {sum(row.told for row in away) / max(1, len(away)):,.0f} |"
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
    options.add_argument("--held-out", action="store_true", help="only the other worlds")
    args = options.parse_args(argv)
    seeds = HELD_OUT if args.held_out else [*args.seed, *HELD_OUT]
    wanted = [
        Task(window, seed, steps, args.preset)
        for seed in seeds for window in args.window for steps in args.steps
    ]  # fmt: skip
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(args.jobs, context) as pool:
        outcomes = list(pool.map(run, wanted))
    print(table(outcomes))
    print(f"\n{missed(outcomes)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
