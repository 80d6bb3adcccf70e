"""One policy over one world at one window: what it sends, what that costs, what can be answered."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from answerable import policies, reader, tokens
from answerable.worlds import MODEL, TOOL, USER, Question, World, build
from trimtab.errors import CannotFit
from trimtab.pricing.prices import TABLES

PRICES = TABLES["claude-5m"]
DOLLARS = 3.0
"""For a million plain input tokens."""


@dataclass(frozen=True)
class Task:
    """What is tried: a world by its arguments, a policy, a window."""

    policy: str
    window: int
    seed: int
    steps: int
    tokens: int = 150_000
    each: int = 4


class Scored(NamedTuple):
    """A question and what ``reader.score`` says of its answer."""

    question: Question
    score: str


@dataclass
class Outcome:
    """``plain`` and ``recalled``: what became of each question, without and with recall.

    ``over``: requests above the window; ``sent``: tokens of all; ``dollars``: their bill, with the
    cache; ``calls`` and ``read``: recalls and searches, and the tokens they gave.
    """

    task: Task
    plain: list[Scored] = field(default_factory=list)
    recalled: list[Scored] = field(default_factory=list)
    turns: int = 0
    over: int = 0
    sent: int = 0
    dollars: float = 0.0
    calls: int = 0
    read: int = 0


def run(task: Task) -> Outcome:
    """Play a world and ask its questions."""
    world = build(task.seed, task.steps, task.tokens, task.each)
    return play(task, world, policies.start(task.policy, world, task.window))


def play(task: Task, world: World, step: policies.Step) -> Outcome:
    """The same with a policy that was begun."""
    done, last, before = Outcome(task), None, list[Any]()
    for turn in world.turns:
        try:
            last = step(world.messages[:turn])
        except CannotFit:
            last = None
        done.turns += 1
        if last is None:
            done.over += 1
            continue
        messages, size = last.request["messages"], tokens.count(last.request)
        done.sent += size
        done.over += size > task.window
        shared = 0
        for old, new in zip(before, messages, strict=False):
            if old != new:
                break
            shared += tokens.of_message(new)
        bill = PRICES.prompt(size, shared) + PRICES.call(*last.asked)
        done.dollars += bill * DOLLARS / 1e6
        before = messages
    if last is None or tokens.count(last.request) > task.window:
        lost = [Scored(one, "none") for one in world.questions]
        done.plain, done.recalled = lost, lost
        return done
    said = reader.spoken(world.messages)
    for one in world.questions:
        alone = reader.read(last.request, one, None)
        done.plain.append(Scored(one, reader.score(one, alone.answer, said)))
        helped = reader.read(last.request, one, last.recaller)
        done.recalled.append(Scored(one, reader.score(one, helped.answer, said)))
        done.calls += helped.calls
        done.read += sum(map(tokens.of_text, helped.texts))
    return done


GROUPS = {TOOL: "tool facts", USER: "the user's words", MODEL: "the model's words"}
"""Who said what is asked for.  How many of each a world has is our choice, so they are never
pooled."""


def group(question: Question) -> str:
    """A key of ``GROUPS``: what a tool said is a tool's, though the model wrote it too."""
    return next(speaker for speaker in GROUPS if speaker in question.speakers)


def of_group(scores: Sequence[Scored], wanted: str) -> list[Scored]:
    """The scores of one group."""
    return [one for one in scores if group(one.question) == wanted]


def share(scores: Sequence[Scored], wanted: str = "right") -> float:
    """The share of a score."""
    return sum(one.score == wanted for one in scores) / max(1, len(scores))


def interval(scores: Sequence[Scored]) -> tuple[float, float]:
    """The 95 % interval of the share that is right."""
    return wilson(sum(one.score == "right" for one in scores), len(scores))


def wilson(right: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of so many of ``n``."""
    n, z = max(1, n), 1.96
    p = right / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def counted(scores: Sequence[Scored], key: Callable[[Question], str]) -> dict[str, Counter[str]]:
    """Scores by a word for the question."""
    found: dict[str, Counter[str]] = {}
    for one in scores:
        found.setdefault(key(one.question), Counter())[one.score] += 1
    return dict(sorted(found.items()))
