"""Chooses which articles stay shortened, once the lengths of their summaries are known.

The plan shortened as many articles as are needed to reach the target with extracts.  Summaries are
often much shorter: then fewer articles are enough, and those shortened last are restored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trimtab.planning.planner import FILL_TOKENS, Planner
from trimtab.planning.shown_blocks import Replacement
from trimtab.reducers import with_handle
from trimtab.reducers.base import Answer, Ask, Offer, Shortened
from trimtab.transcript.model import Place


@dataclass(frozen=True)
class _Block:
    """A block whose articles this cut shortened."""

    place: Place
    shown: Replacement
    whole: int
    """Tokens of the original block."""


@dataclass(frozen=True)
class _Row:
    """One shortened article of one block."""

    block: int
    index: int
    article: Shortened


class ArticleChoices:
    """The articles that one cut shortened, in the order of shortening."""

    def __init__(self, plan: Planner, goal: int | None) -> None:
        self._plan, self._goal = plan, goal
        self._blocks = [
            _Block(place, shown, plan.sizes.block(plan.transcript, place))
            for place, shown in plan.state.replacements()
            if shown.edit is None and shown.offer.shortened and shown.offer.with_answers
        ]
        self._rows = sorted(
            (
                _Row(number, index, article)
                for number, block in enumerate(self._blocks)
                for index, article in enumerate(block.shown.offer.shortened)
            ),
            key=lambda row: (row.article.order, -row.block, row.index),
        )

    @property
    def asks(self) -> Sequence[Ask]:
        """The asks in order; the same ask may occur more than once."""
        return [row.article.ask for row in self._rows if row.article.ask is not None]

    def suffice(self, known: Mapping[Ask, str]) -> bool:
        """Whether the answers in ``known`` reach the goal with all later articles whole."""
        return self._goal is not None and self._least(known, self._answered(known)) is not None

    def show(self, known: Mapping[Ask, str]) -> None:
        """Show the answers, and restore the articles that need not be shortened; without an answer
        all stays as planned."""
        if not any(known.get(ask) for ask in self.asks):
            return
        number = self._answered(known)
        if self._goal is not None and (least := self._least(known, number)) is not None:
            number = least
            self._lengthen(known, number)
            return
        self._show(self._answers(known, len(self._rows)))

    # --- how many ---

    def _answered(self, known: Mapping[Ask, str]) -> int:
        """The number of rows before the first whose ask has no answer yet."""
        for number, row in enumerate(self._rows):
            if row.article.ask is not None and row.article.ask not in known:
                return number
        return len(self._rows)

    def _least(self, known: Mapping[Ask, str], most: int) -> int | None:
        """The fewest rows that must be shortened, up to ``most``; None if ``most`` are too few."""
        assert self._goal is not None
        if self._tokens(self._answers(known, most)) > self._goal:
            return None
        low, high = 0, most
        while low < high:
            middle = (low + high) // 2
            if self._tokens(self._answers(known, middle)) <= self._goal:
                high = middle
            else:
                low = middle + 1
        return high

    def _lengthen(self, known: Mapping[Ask, str], number: int) -> None:
        """Show the first ``number`` rows; if there is room, more of the last one's own words."""
        answers = self._answers(known, number)
        slack = (self._goal or 0) - self._tokens(answers)
        if number and slack >= FILL_TOKENS:
            row = self._rows[number - 1]
            summary, ask = answers[row.block][row.index], row.article.ask
            count = self._plan.inputs.config.count
            tokens = slack + (count(summary) if isinstance(summary, str) and summary else 0)
            if not summary and ask is not None:
                tokens = slack + ask.tokens
            longer = [list(of) for of in answers]
            longer[row.block][row.index] = tokens
            if self._tokens(answers) < self._tokens(longer) <= (self._goal or 0):
                answers = longer
        self._show(answers)

    # --- what is shown ---

    def _answers(self, known: Mapping[Ask, str], number: int) -> list[list[Answer]]:
        """The answers for each block's articles if the first ``number`` rows are shortened."""
        answers: list[list[Answer]] = [[None] * len(b.shown.offer.shortened) for b in self._blocks]
        for row in self._rows[:number]:
            ask = row.article.ask
            answers[row.block][row.index] = "" if ask is None else known.get(ask, "")
        return answers

    def _tokens(self, answers: Sequence[Sequence[Answer]]) -> int:
        """Tokens of the whole request with ``answers`` shown."""
        total = self._plan.state.tokens
        for block, of in zip(self._blocks, answers, strict=True):
            offer = self._offer(block, of)
            now = block.whole if offer is None else self._plan.state.price(block.place, offer)
            total += now - block.shown.tokens
        return total

    def _show(self, answers: Sequence[Sequence[Answer]]) -> None:
        state = self._plan.state
        for block, of in zip(self._blocks, answers, strict=True):
            offer = self._offer(block, of)
            if offer is None:
                state.restore(block.place, None)
            else:
                cost = state.price(block.place, offer)
                if self._goal is not None or cost <= block.shown.tokens:
                    state.show(block.place, offer, cost)

    def _offer(self, block: _Block, answers: Sequence[Answer]) -> Offer | None:
        """The offer for ``block`` with ``answers`` shown; None if all its articles are whole."""
        offer = block.shown.offer
        assert offer.with_answers is not None
        if all(answer is None for answer in answers):
            return None
        if not any(answers) and None not in answers:
            return offer
        text = offer.with_answers(answers)
        text = with_handle(text, block.place.block.text, self._plan.handle(block.place))
        summaries = sum(1 for answer in answers if answer and isinstance(answer, str))
        stay = sum(answer is None for answer in answers)
        why, kind = offer.why, offer.kind
        if stay:
            why = f"{why}; {stay} of them need not be"
        if summaries:
            why, kind = f"{why}; {summaries} in the words of a model", "summary"
        return replace(offer, text=text, kind=kind, why=why, shortened=(), with_answers=None)
