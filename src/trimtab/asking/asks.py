"""What a model says in place of extracts: asked after the choice, checked, never larger than it.

Knows offers that carry asks and what an answer must not be.  Does not know who answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from trimtab.asking.step_asks import noted_steps
from trimtab.planning.plan import Planner
from trimtab.strategies import with_handle
from trimtab.strategies.base import Ask
from trimtab.strategies.retrieval.pieces import pieces

Count = Callable[[str], int]

CALL_SYNTAX = re.compile(
    r"</?\s*(?:tool_?(?:calls?|use|results?|response)|function_?(?:calls?|results?)|functions?|"
    r"invoke|parameter|antml:\w+)\b"
    r"|<\|\w{1,40}\|?>|\[/?TOOL_(?:CALLS?|RESULTS?)\]|\bto=functions\."
    r'|"(?:tool_?calls?|tool_?use(?:_?id)?|tool_call_id|function_?call|tool_?result)"\s{0,8}:'
    r'|\{\s{0,8}"name"\s{0,8}:\s{0,8}"[^"\n]{1,64}"\s{0,8},\s{0,8}"(?:arguments|parameters|input)"'
    r"|^\s{0,8}(?:Action|Action Input|Observation|Tool call|Tool result)\s{0,8}:",
    re.IGNORECASE | re.MULTILINE,
)
"""Text that looks so is imitated by models instead of making real calls."""
LABELS = re.compile(
    r"^\s{0,8}\[(?:lines:|a model's summary:|[\d,]{1,9} earlier steps?\b)", re.MULTILINE
)
"""What we write over lines kept word for word, and over summaries: no answer passes for them."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Answers:
    """One text for each ask ("" where there is none), and what they took.

    ``asked`` went to the model, ``cached`` did not have to, ``failed`` got no answer in time,
    ``left_out`` were more than allowed, ``unusable`` came back but could not be shown; tokens in
    our count, ``milliseconds`` by the clock.
    """

    texts: tuple[str, ...] = ()
    asked: int = 0
    cached: int = 0
    failed: int = 0
    left_out: int = 0
    unusable: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    milliseconds: int = 0
    why: str = ""
    """What the first failure said."""

    def as_dict(self) -> dict[str, int]:
        """The figures, for the report."""
        return {
            "asked": self.asked, "cached": self.cached, "failed": self.failed,
            "left_out": self.left_out, "unusable": self.unusable, "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out, "milliseconds": self.milliseconds,
        }  # fmt: skip

    def warnings(self) -> list[str]:
        """What went otherwise than asked for."""
        found = []
        if self.failed:
            failed = f"{self.failed} of {self.asked} summaries failed"
            found.append(f"{failed}, extracts stand instead: {self.why}")
        if self.left_out:
            found.append(f"{self.left_out} summaries not asked for: most_asks allows {self.asked}")
        if self.unusable:
            found.append(f"{self.unusable} summaries could not be shown, extracts stand instead")
        return found


Answerer = Callable[[Sequence[Ask], Count], Answers]


def answer(plan: Planner, answerer: Answerer, *, steps: bool = True) -> Answers:
    """Show answers instead of the extracts of new choices, wherever that is no larger.

    An answer that cannot be shown leaves the extract.  A summary costs no more tokens than the
    extract it replaces, so summaries cannot outgrow the plan.  ``steps``: of notes on old steps
    too.
    """
    board, count = plan.board, plan.choice.config.count
    waiting = [
        (place, shown) for place, shown in board.standing()
        if shown.edit is None and shown.offer.asks and shown.offer.with_answers
    ]  # fmt: skip
    noted = noted_steps(plan) if steps else []
    every = [*(shown.offer.asks for _, shown in waiting), *(note.asks for note in noted)]
    asks = list(dict.fromkeys(ask for own in every for ask in own))
    if not asks:
        return Answers()
    got = answerer(asks, count)
    said = {ask: usable(text, ask, count) for ask, text in zip(asks, got.texts, strict=True)}
    for place, shown in waiting:
        offer = shown.offer
        assert offer.with_answers is not None
        answers = [said[ask] for ask in offer.asks]
        if not any(answers):
            continue
        text = offer.with_answers(answers)
        text = with_handle(text, place.block.text, plan.handle(place))
        told = sum(map(bool, answers))
        why = f"{offer.why}; {told} in the words of a model"
        new = replace(offer, text=text, kind="summary", why=why, asks=(), with_answers=None)
        cost = board.price(place, new)
        if cost <= shown.tokens:
            board.show(place, new, cost)
    for note in noted:
        note.retell(board, [said[ask] for ask in note.asks])
    wasted = sum(1 for ask, text in zip(asks, got.texts, strict=True) if text and not said[ask])
    return replace(got, unusable=wasted)


def usable(text: str, ask: Ask, count: Count) -> str:
    """The answer as it can be shown, "" if it cannot: empty, longer than what it stands for, or
    with what looks like a call, its result or a label of ours.  Of one that is too long, the first
    sentences."""
    text = text.strip()
    if not text or any(bad.search(text) for bad in (CALL_SYNTAX, LABELS, _SURROGATE)):
        return ""
    if count(text) <= ask.tokens:
        return text
    if len(text) >= len(ask.text):
        return ""
    room, end = ask.tokens, 0
    for piece in pieces(text):
        room -= count(text[piece.start : piece.end])
        if room < 0:
            break
        end = piece.end
    return text[:end].rstrip()
