"""Reduces a result to its most important lines, in order, with notes on how many were left out.

A line weighs more for each name that occurs in it first, and less if it repeats an earlier line.
Rules for particular kinds of tool output are in ``content``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from itertools import count as counting
from typing import NamedTuple

from trimtab.reducers.base import Config, Offer, loss_of, recall_call, smaller
from trimtab.reducers.content import kind_of, odd_rows
from trimtab.reducers.content.base import BY_NAME, CLIP, DEMOTED, MANDATORY, SUMMARY, shape
from trimtab.reducers.content.code import is_signature
from trimtab.reducers.cutting import cut_around
from trimtab.reducers.query_terms import MIN_RARE, NO_TERMS, RARE, QueryTerms, places
from trimtab.reducers.respell import strip_escapes
from trimtab.reducers.units import unit
from trimtab.transcript.identifiers import NAMES_BY_RUN, apart, runs
from trimtab.transcript.model import Block

SMALLEST_TOKENS = 60
MIN_LINES = 12
"""Least lines of a text; head and tail show a shorter one as well."""
_BY_WEIGHT = 0.7


def digest(block: Block, config: Config) -> Iterator[Offer]:
    """Offers for a tool result of many lines: 60 × √2ⁿ tokens, the largest at most 3/4 of it.

    Lines are kept whole and unchanged, with ``[214 lines left out]`` where lines are missing; a
    line of more than 400 characters may be cut in its middle.  Sizes are a fixed scale, so that a
    digest is not offered itself again.  Mandatory lines are chosen first, then those with the most
    weight per character.
    """
    text = block.text
    if block.kind != "result" or text.count("\n") < MIN_LINES - 1:
        return
    total = config.count(text)
    budgets = list(_budgets(total))
    if not budgets:
        return
    weighted = weigh_lines(text, block.tool or "", config.terms)
    excerpt = LineExcerpt(weighted, _advice(text, config), config.terms)
    last = text
    for budget in reversed(budgets):
        new = excerpt.within(budget, total, config)
        if new is not None and smaller(new, last, config.count):
            yield _offer(new, weighted, excerpt, total, config)
            last = new


def digest_to(block: Block, config: Config, tokens: int) -> Offer | None:
    """A digest of at most ``tokens``, between two levels of ``digest``; None if there is none."""
    text, total = block.text, config.count(block.text)
    if block.kind != "result" or not SMALLEST_TOKENS <= tokens < total:
        return None
    if text.count("\n") < MIN_LINES - 1:
        return None
    weighted = weigh_lines(text, block.tool or "", config.terms)
    excerpt = LineExcerpt(weighted, _advice(text, config), config.terms)
    new = excerpt.within(tokens, total, config)
    if new is None or not smaller(new, text, config.count):
        return None
    return _offer(new, weighted, excerpt, total, config)


def _offer(
    text: str, weighted: WeightedLines, excerpt: LineExcerpt, total: int, config: Config
) -> Offer:
    used = config.count(text)
    loss = _BY_WEIGHT * excerpt.loss + (1 - _BY_WEIGHT) * loss_of(used, total)
    why = f"{len(excerpt.picked):,} of {len(weighted.lines):,} lines, {used:,} tokens"
    return Offer("replace", text, round(loss, 3), f"{weighted.kind}-digest", why)


def _budgets(total: int) -> Iterator[int]:
    for half_octaves in counting():
        budget = int(SMALLEST_TOKENS * 2 ** (half_octaves / 2))
        if budget * 4 > total * 3:
            return
        yield budget


def _advice(text: str, config: Config) -> str:
    fetch = recall_call(text, config)
    return f"{fetch} has all" if fetch else "run the tool again to see them"


# --- what each line weighs ---

_MAX_NAMES = 4
_NEW_NAME, _PLAIN, _REPEATED = 1.0, 0.5, 0.15
_NEIGHBOUR = 0.4
"""Weight added to a line next to a mandatory one, because the lines around an error explain it."""
FIRST_LINES, LAST_LINES = 2, 3
_NEAR_END = 30.0
_ENVELOPE, _IN_ENVELOPE = 10, 0.3
_EXIT = re.compile(r"\b[Ee]xit(?:ed)?\b.{0,40}?\b(?:code|status)\b\D{0,12}(-?\d+)")
MAX_MANDATORY, MANDATORY_SHARE = 400, 0.5
"""Most mandatory lines, and their largest share of the characters; the best tier comes first."""


class WeightedLines(NamedTuple):
    """A text as lines (``text.split("\\n")``), their weights, and the name of its kind.

    ``shapes``: each line without numbers; repeated lines have equal shapes.
    """

    kind: str
    lines: list[str]
    weights: list[float]
    shapes: list[str]


def weigh_lines(text: str, tool: str = "", terms: QueryTerms = NO_TERMS) -> WeightedLines:
    """One weight for each of ``text.split("\\n")``: 0 is worthless, 100 or more is mandatory.

    Mandatory are what ``terms`` name, with its unit (2,000 or more), outcome and counts (1,000),
    what failed and where (500), errors (300) and the ends of an output (100 or more).  Any other
    line is worth the names that occur in it first; a line that repeats an earlier one except for
    numbers is worth next to nothing.  ``tool``: the tool that returned the text, if known.  Asking
    lowers no weight.  Pure and linear; never raises.
    """
    lines = text.split("\n")
    plain = strip_escapes(text).split("\n")
    clipped = [line[:CLIP].rstrip() for line in (plain if len(plain) == len(lines) else lines)]
    kind = kind_of(clipped, tool)
    shapes = list(map(shape, clipped))
    weights = _novelty(clipped, shapes)
    kind.weigh(clipped, weights)
    if kind.name in ("output", "text"):
        odd_rows.weigh(clipped, weights)
    inside = _weigh_envelope(clipped, weights)
    if kind.ends:
        _raise_ends(clipped, weights, inside)
    _raise_terms(text, lines, clipped, weights, kind.name, terms)
    _limit(lines, weights)
    _raise_neighbours(clipped, weights)
    return WeightedLines(kind.name, lines, weights, shapes)


def worth_of_lines(text: str, tool: str = "", terms: QueryTerms = NO_TERMS) -> Sequence[float]:
    """The weights alone of ``weigh_lines``, one for each of ``text.split("\\n")``.

    Tiers: BY_NAME 2,000 and more, SUMMARY 1,000, FAILURE 500, ERROR 300, MANDATORY 100; below that
    a line may go.
    """
    return weigh_lines(text, tool, terms).weights


def _novelty(lines: Sequence[str], forms: Sequence[str]) -> list[float]:
    """Weights by the names that occur first in each line; lines that differ only in numbers count
    once."""
    names: set[str] = set()
    shapes: set[str] = set()
    weights = []
    spaced = apart("\n".join(lines)).split("\n")
    for line, form, tokens in zip(lines, forms, map(runs, lines, spaced), strict=True):
        if not line:
            weights.append(0.0)
            continue
        before = len(names)
        for token in tokens:
            if own := NAMES_BY_RUN[token]:
                names.update(own)
        worth = _PLAIN + _NEW_NAME * min(len(names) - before, _MAX_NAMES)
        if form in shapes:
            worth *= _REPEATED
        else:
            shapes.add(form)
            if not any(map(str.isalnum, line[:80])):
                worth = 0.05
        weights.append(worth)
    return weights


def _raise_ends(lines: Sequence[str], weights: list[float], first: int) -> None:
    filled = [number for number in range(first, len(lines)) if lines[number]]
    for number in {*filled[:FIRST_LINES], *filled[-LAST_LINES:]}:
        weights[number] = max(weights[number], _NEAR_END)
    for number in {*filled[:1], *filled[-1:]}:
        weights[number] = max(weights[number], 2 * MANDATORY)


def _weigh_envelope(lines: Sequence[str], weights: list[float]) -> int:
    """Lower the weights of the lines that a client put before the output, down to ``Output:``, and
    return how many there are; raise exit codes."""
    end = next((n + 1 for n, line in enumerate(lines[:_ENVELOPE]) if line == "Output:"), 0)
    for number in range(end):
        weights[number] = min(weights[number], _IN_ENVELOPE)
    for number in {*range(min(_ENVELOPE, len(lines))), *range(len(lines))[-_ENVELOPE:]}:
        if match := _EXIT.search(lines[number]):
            failed = match[1].strip("0") != ""
            weights[number] = max(weights[number], SUMMARY if failed else MANDATORY)
    return end


def _limit(lines: Sequence[str], weights: list[float]) -> None:
    """Demote mandatory lines of the lesser tiers if there are too many."""
    must = [number for number, weight in enumerate(weights) if weight >= MANDATORY]
    room = int(MANDATORY_SHARE * sum(map(len, lines)))
    if len(must) <= MAX_MANDATORY and sum(min(len(lines[n]), CLIP) for n in must) <= room:
        return
    must.sort(key=lambda number: -weights[number])
    for rank, number in enumerate(must):
        room -= min(len(lines[number]), CLIP)
        if rank and (rank >= MAX_MANDATORY or room < 0):
            weights[number] = min(weights[number] / 10, DEMOTED)


_DECLARED = 1 / RARE
"""Worth of a mention in a declaration: it tells what the name is, however often it is used."""
_COMMON_RAISE = 8.0
"""Added, in shares, to the lines of a name that is on more than RARE lines."""


def _raise_terms(
    text: str,
    lines: Sequence[str],
    clipped: Sequence[str],
    weights: list[float],
    kind: str,
    terms: QueryTerms,
) -> None:
    """Raise the lines that have an asked name, and their units; never lower a weight."""
    worth: dict[int, float] = {}
    starts = [0, *accumulate(len(line) + 1 for line in lines)] if terms else []
    for at, share in places(text, terms).items() if terms else ():
        number = bisect_right(starts, at) - 1
        worth[number] = worth.get(number, 0.0) + share
        if kind == "code" and is_signature(clipped[number]):
            worth[number] += _DECLARED
    mentioned = sorted(worth, key=lambda number: (-worth[number], number))
    for number in mentioned:
        if worth[number] * RARE < MIN_RARE or not clipped[number]:
            weights[number] += _COMMON_RAISE * worth[number]
            continue
        top = BY_NAME * (1 + min(worth[number], 9.0))
        weights[number] = max(weights[number], top)
        for rank, near in enumerate(unit(clipped, number, kind), 1):
            if clipped[near]:
                weights[near] = max(weights[near], BY_NAME + (top - BY_NAME) / 2 - rank)


def _raise_neighbours(lines: Sequence[str], weights: list[float]) -> None:
    must = [number for number, weight in enumerate(weights) if weight >= MANDATORY]
    for number in must:
        for near in (number - 1, number + 1):
            if 0 <= near < len(lines) and lines[near] and weights[near] < MANDATORY:
                weights[near] += _NEIGHBOUR


# --- whole lines by weight, within a budget, with notes on gaps ---

_GAP_CHARS = 24
"""Characters of a note, which a line without kept neighbours costs in addition."""
_LONG_CHARS = 400
_MISFITS = 40
"""Number of lines that did not fit after which a level counts as full."""
_TRIES = 8
MIN_USED = 0.9
"""Least share of its budget that an excerpt should take, where lines remain."""


class LineExcerpt:
    """Chooses the lines for a budget; ``picked`` are those of the last call.  One per block."""

    def __init__(self, weighted: WeightedLines, advice: str, terms: QueryTerms = NO_TERMS) -> None:
        self.lines, self.advice, self.terms = weighted.lines, advice, terms
        self.picked: list[int] = []
        weights = weighted.weights
        self._worth = [min(weight, MANDATORY / 4) for weight in weights]
        self._all = sum(self._worth) or 1.0
        self._shapes = weighted.shapes
        self._rank = sorted(
            (n for n, weight in enumerate(weights) if weight > 0),
            key=lambda n: _order(weights[n], len(self.lines[n]), n),
        )

    @property
    def loss(self) -> float:
        """Loss by weight: 0 if all is shown, 0.9 if nothing is."""
        return 0.9 * (1 - sum(self._worth[number] for number in self.picked) / self._all)

    def within(self, tokens: int, total: int, config: Config) -> str | None:
        """The text of at most ``tokens``; None if there is no room for any line."""
        chars = tokens * sum(len(line) + 1 for line in self.lines) // total
        best: tuple[str, list[int]] | None = None
        fitting, over = 0, 0  # characters that fit, and that do not
        for _ in range(_TRIES):
            self.picked = self._pick(chars)
            new = self._text(chars)
            used = config.count(new)
            if used <= tokens:
                if self.picked and (best is None or len(new) > len(best[0])):
                    best, fitting = (new, self.picked), chars
                if not self.picked or used >= MIN_USED * tokens:
                    break
                more = min(chars * tokens * 49 // (50 * used), 2 * chars)
                more = (chars + over) // 2 if over and more >= over else more
            elif best:
                over, more = chars, (fitting + chars) // 2
            else:
                over, more = chars, min(chars - 8, chars * tokens * 49 // (50 * used))
            if more < 2 * _GAP_CHARS or more == chars:
                break
            chars = more
        if best is None:
            return None
        new, self.picked = best
        return new

    def _pick(self, chars: int) -> list[int]:
        """Pick lines by rank while there is room, notes on gaps included; then fill small gaps."""
        long = _long(chars)
        chosen: set[int] = set()
        used, misfits = _GAP_CHARS + len(self.advice) + 2, 0
        for number in self._rank:
            beside = (number - 1 in chosen) + (number + 1 in chosen)
            cost = min(len(self.lines[number]), long) + 1 + _GAP_CHARS * (1 - beside)
            if used + cost > chars:
                misfits += 1
                if misfits > _MISFITS:
                    break
                continue
            used += cost
            chosen.add(number)
        for number in range(len(self.lines)):  # what weighs nothing fills what is left, in order
            cost = len(self.lines[number]) + 1
            if used + cost > chars:
                break
            if number not in chosen and number - 1 in chosen and cost <= long:
                used += cost
                chosen.add(number)
        return self._filled(sorted(chosen))

    def _filled(self, chosen: list[int]) -> list[int]:
        """``chosen`` with the lines of each gap that takes no more room than its note."""
        out: list[int] = []
        for number in [*chosen, len(self.lines)]:
            after = out[-1] + 1 if out else 0
            if number - after <= _GAP_CHARS and out:
                gap = self.lines[after:number]
                if sum(map(len, gap)) + len(gap) <= _GAP_CHARS:
                    out += range(after, number)
            if number < len(self.lines):
                out.append(number)
        return out

    def _text(self, chars: int) -> str:
        long, out, after = _long(chars), list[str](), 0
        gaps = [(a + 1, b) for a, b in pairwise([-1, *self.picked, len(self.lines)]) if b > a + 1]
        longest = max(gaps, key=lambda gap: gap[1] - gap[0], default=None)
        for number in [*self.picked, len(self.lines)]:
            if number > after:
                out.append(self._note(after, number, (after, number) == longest))
            if number < len(self.lines):
                line = self.lines[number]
                out.append(line if len(line) <= long else cut_around(line, long, self.terms))
            after = number + 1
        return "\n".join(out)

    def _note(self, first: int, end: int, advise: bool) -> str:
        """``[214 lines left out, 180 like the one above; run the tool again to see them]``"""
        gone = end - first
        like = self._shapes[first:end].count(self._shapes[first - 1]) if first else 0
        alike = f", {like:,} like the one above" if 2 * like > gone and like > 2 else ""
        advice = f"; {self.advice}" if advise and self.advice else ""
        return f"[{gone:,} line{'s' * (gone > 1)} left out{alike}{advice}]"


def _long(chars: int) -> int:
    return max(_LONG_CHARS, chars // 4)


def _order(weight: float, chars: int, number: int) -> tuple[float, float, int]:
    """Mandatory lines by tier, then weight per character."""
    if weight >= MANDATORY:
        return -weight, 0.0, number
    return 0.0, -weight / (chars + 8), number
