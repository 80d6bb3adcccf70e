"""Prints which planted facts a program still finds in what each policy sends.

    python bench/answerable                      # the tables of docs/benchmark.md
    python bench/answerable --small              # one world of 30k tokens at 8k, in seconds
    python bench/answerable --model http://127.0.0.1:8000/v1 --name gpt-5.1 --cap 5

What tools said, what the user said and what the model said itself are told apart: how many of each
a world has is our choice.  ``--held-out``: another world, to judge what was tuned on the first.

Without ``--model`` a program answers that knows how facts are spelled, and no network is used.
With it a model of an OpenAI-compatible server does; its key is read from ANSWERABLE_KEY.
``small_model.py`` fetches and serves one that runs on a CPU.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor

from answerable import model_reader, policies, trial
from answerable.trial import Outcome, Task

WINDOWS, STEPS, SEEDS, TOKENS, EACH = (16_000, 32_000, 60_000), (40, 120), (1,), 150_000, 4
HELD_OUT = (5_001,)
"""Seeds of ``--held-out``."""


def tasks(args: argparse.Namespace) -> list[Task]:
    """What is tried: every policy at every window over every world."""
    return [
        Task(policy, window, seed, steps, args.tokens, args.each)
        for window in args.window
        for policy in args.policy
        for seed in args.seed
        for steps in args.steps
        if policies.available(policy)
    ]


def done(wanted: Sequence[Task], jobs: int) -> list[Outcome]:
    """All of them, in order, told as they are done."""
    context, found = multiprocessing.get_context("spawn"), list[Outcome]()
    with ProcessPoolExecutor(jobs, context) as pool:
        for number, one in enumerate(pool.map(trial.run, wanted), 1):
            print(f"{number} of {len(wanted)}: {one.task}", file=sys.stderr, flush=True)
            found.append(one)
    return found


def table(found: Iterable[Outcome]) -> str:
    """A Markdown table a window, a row a policy."""
    by_window: dict[int, dict[str, list[Outcome]]] = {}
    for one in found:
        by_window.setdefault(one.task.window, {}).setdefault(one.task.policy, []).append(one)
    parts = []
    for window, rows in by_window.items():
        worlds = len(next(iter(rows.values())))
        parts.append(
            f"### {window // 1000}k, {worlds} worlds\n\n"
            f"| policy | {' | '.join(HEADS)} |\n|{'---|' * (len(HEADS) + 1)}"
        )
        parts[-1] += "".join(f"\n{_row(policy, own)}" for policy, own in rows.items())
    return "\n\n".join(parts)


HEADS = (
    *trial.GROUPS.values(), *(f"{name}, with recall" for name in trial.GROUPS.values()),
    "in another's name", "above the window", "tokens a call", "a world", "recalls a question",
)  # fmt: skip


def explained(found: Sequence[Outcome]) -> str:
    """What the shares are of."""
    asked = trial.counted(list(found[0].plain), trial.group)
    counts = ", ".join(f"{asked[key].total()} {name}" for key, name in trial.GROUPS.items())
    return (
        f"Shares of facts that we planted ({counts} in a world), told once or changed once, at "
        "random places of results; found by a program that knows how they are spelled. A share of "
        "one column says nothing of another, nor of what a model would do with it."
    )


def _row(policy: str, own: Sequence[Outcome]) -> str:
    plain = [one for outcome in own for one in outcome.plain]
    helped = [one for outcome in own for one in outcome.recalled]
    moved = sum(one.score == "moved" for one in (*plain, *helped))
    turns, over = sum(one.turns for one in own), sum(one.over for one in own)
    calls, read = sum(one.calls for one in own), sum(one.read for one in own)
    first = [_share(trial.of_group(plain, key)) for key in trial.GROUPS]
    again = [_share(trial.of_group(helped, key)) if calls else "–" for key in trial.GROUPS]
    asked = f"{calls / len(helped):.1f}, {read / len(helped):,.0f} tokens" if calls else "–"
    return (
        f"| {policies.SHOWN.get(policy, policy)} | {' | '.join((*first, *again))} "
        f"| {moved} | {over} of {turns:,} | {sum(one.sent for one in own) / turns:,.0f} "
        f"| ${sum(one.dollars for one in own) / len(own):.2f} | {asked} |"
    )


def _share(scores: Sequence[trial.Scored]) -> str:
    low, high = trial.interval(scores)
    return f"{trial.share(scores):.0%} ({low:.0%}–{high:.0%})"


def kinds(found: Iterable[Outcome], policy: str) -> str:
    """Without recall, by sort of fact: what of a policy is right, at each window."""
    own = [one for one in found if one.task.policy == policy]
    windows = sorted({one.task.window for one in own})
    head = " | ".join(f"{window // 1000}k" for window in windows)
    rows = [f"| fact | named again by the agent | {head} |", "|---|---|" + "---|" * len(windows)]
    counts = {
        window: trial.counted(
            [s for one in own if one.task.window == window for s in one.plain],
            lambda question: f"{question.subject} | {'yes' if question.mentioned else 'no'}",
        )
        for window in windows
    }
    for name in next(iter(counts.values()), {}):
        cells = [f"{counts[w][name]['right']} of {counts[w][name].total()}" for w in windows]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Run it and print the tables."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--window", type=int, nargs="+", default=WINDOWS)
    options.add_argument("--steps", type=int, nargs="+", default=STEPS)
    options.add_argument("--seed", type=int, nargs="+", default=SEEDS, help="one world a seed")
    options.add_argument("--tokens", type=int, default=TOKENS, help="of a world")
    options.add_argument("--each", type=int, default=EACH, help="facts of each sort")
    every = dict.fromkeys((*policies.NAMES, *policies.PAIRED))
    options.add_argument("--policy", nargs="+", choices=every, default=policies.NAMES)
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options.add_argument("--small", action="store_true", help="one world of 30k tokens at 8k")
    model_reader.add_options(options.add_argument_group("a real model as the reader"))
    options.add_argument("--held-out", action="store_true", help="another world")
    args = options.parse_args(argv)
    if args.held_out:
        args.seed = HELD_OUT
    if args.small:
        args.window, args.steps, args.tokens, args.each = (8_000,), (40,), 30_000, 2
    if args.paired and not args.model:
        print(model_reader.there(tasks(args), model_reader.Endpoint.of(args)))
        return 0
    if args.model:
        told = model_reader.paired_tables if args.paired else model_reader.table
        print(told(tasks(args), model_reader.Endpoint.of(args)))
        return 0
    found = done(tasks(args), args.jobs)
    print(table(found))
    print(f"\n{explained(found)}")
    if "trimtab:balanced" in args.policy:
        print("\n### Which facts, trimtab:balanced without recall\n")
        print(kinds(found, "trimtab:balanced"))
    return 0
