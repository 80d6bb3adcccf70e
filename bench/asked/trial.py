"""One question: does its answer survive with trimtab, and with a head and tail of the same size?"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import trimtab
from asked import head_tail
from asked.contents import made, planted
from asked.conversations import Conversation, conversation, request
from asked.facts import answered

COUNTER = "o200k"


@dataclass(frozen=True)
class Trial:
    """``share``: of the whole request, what the window takes."""

    kind: str
    asker: str
    place: str
    share: float
    number: int
    format: str
    held_out: bool = False

    @property
    def seed(self) -> str:
        part = "held-out" if self.held_out else "open"
        return f"{part}/{self.number}/{self.kind}/{self.asker}/{self.place}/{self.share}"


@dataclass(frozen=True)
class Outcome:
    """Whether each tells the answer; ``used``: what trimtab sent as a share of the window, 0 where
    it could not fit."""

    trial: Trial
    ours: bool
    rival: bool
    used: float


def run(trial: Trial) -> Outcome:
    """Build it, cut it both ways, look for the answer."""
    draw = random.Random(trial.seed)
    content = made(trial.kind, trial.seed, trial.held_out)
    fact = planted(content, draw)
    talk = conversation(trial.kind, content, fact, trial.asker, trial.place, draw, trial.held_out)
    whole = request(talk, trial.format)
    before = tokens(whole)
    window = int(before * trial.share)
    try:
        sent = trimtab.fit(whole, settings=limits(window)).request
        after = tokens(sent)
    except trimtab.CannotFit:
        sent, after = None, 0
    other = request(_rival(talk, trial.place, before - (after or window)), trial.format)
    return Outcome(
        trial, answered(sent, fact, content.near), answered(other, fact, content.near),
        after / window,
    )  # fmt: skip


def limits(window: int) -> trimtab.Settings:
    """All of the window is used, and nothing else limits."""
    return trimtab.Settings(window=window, reserve=0, trigger=1.0, target=1.0, counter=COUNTER)


def tokens(whole: object) -> int:
    """Tokens of a request."""
    return trimtab.measure(whole, counter=COUNTER).total


def _rival(talk: Conversation, place: str, saved: int) -> Conversation:
    """Newest: that result alone is cut, so it is as long as trimtab leaves it.  Fold: all are."""
    places = [talk.target] if place == "newest" else range(len(talk.steps))
    return head_tail.cut(talk, saved, places)


def sign_test(pairs: Sequence[tuple[bool, bool]]) -> float:
    """McNemar's exact two-sided p of pairs (ours, rival); 1 where none differ."""
    better = sum(ours and not rival for ours, rival in pairs)
    worse = sum(rival and not ours for ours, rival in pairs)
    n = better + worse
    tail: float = sum(comb(n, k) for k in range(min(better, worse) + 1)) / 2**n
    return min(1.0, 2 * tail)


def is_worse(pairs: Sequence[tuple[bool, bool]]) -> bool:
    """Whether trimtab is significantly worse, p < .05."""
    lost = sum(rival - ours for ours, rival in pairs)
    return lost > 0 and sign_test(pairs) < 0.05
