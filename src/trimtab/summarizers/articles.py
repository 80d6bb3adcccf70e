"""Puts a model's summaries in place of extracts, if they are usable and no larger."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from trimtab.planning.planner import Planner
from trimtab.reducers.article_selection import split_segments
from trimtab.reducers.base import Ask
from trimtab.summarizers.article_choices import ArticleChoices
from trimtab.summarizers.steps import noted_steps

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
    r"^\s{0,8}\[(?:lines:|a model's summary:|(?:[\d,]{1,9} )?earlier (?:step|message|word)s?\b)",
    re.MULTILINE,
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
    name: str = ""
    """What was asked."""

    def as_dict(self) -> dict[str, int]:
        """The figures, for the report."""
        return {
            "asked": self.asked, "cached": self.cached, "failed": self.failed,
            "left_out": self.left_out, "unusable": self.unusable, "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out, "milliseconds": self.milliseconds,
        }  # fmt: skip

    def warnings(self) -> list[str]:
        """What went otherwise than asked for."""
        texts = []
        if self.failed:
            failed = f"{self.failed} of {self.asked} summaries failed"
            texts.append(f"{failed}, extracts stand instead: {self.why}")
        if self.left_out:
            texts.append(f"{self.left_out} summaries not asked for: most_asks allows {self.asked}")
        if self.unusable:
            texts.append(f"{self.unusable} summaries could not be shown, extracts stand instead")
        return [f"summarizer {self.name}: {text}" for text in texts]


Enough = Callable[[Sequence[str]], bool]
"""Whether the answers so far, in the order of the asks, are all that is needed."""


class Answerer(Protocol):
    """Answers asks in order, and may stop where that is enough."""

    def __call__(self, asks: Sequence[Ask], count: Count, enough: Enough | None = None) -> Answers:
        """One text for each ask; "" for one that has none."""
        ...


def answer(
    plan: Planner, answerer: Answerer, goal: int | None = None, *, steps: bool = True
) -> Answers:
    """Show answers instead of the extracts of new choices, wherever that is no larger.

    An answer that cannot be shown leaves the extract.  Articles are asked about in the order in
    which they were shortened, until their answers make room for ``goal`` tokens with all other
    articles whole; those then are (None: nothing becomes whole again).  ``steps``: notes on old
    steps too.
    """
    choices, count = ArticleChoices(plan, goal), plan.inputs.config.count
    noted = noted_steps(plan) if steps else []
    of_steps = [ask for note in noted for ask in note.asks]
    asks = list(dict.fromkeys([*of_steps, *choices.asks]))
    if not asks:
        return Answers()
    known = dict[Ask, str]()

    def enough(texts: Sequence[str]) -> bool:
        for ask, text in zip(asks[len(known) :], texts[len(known) :], strict=False):
            known[ask] = usable(text, ask, count)
        return all(ask in known for ask in of_steps) and choices.suffice(known)

    got = answerer(asks, count, enough)
    enough(got.texts)
    for note in noted:
        note.reword(plan.state, [known.get(ask, "") for ask in note.asks])
    choices.show(known)
    wasted = sum(1 for ask, text in zip(asks, got.texts, strict=True) if text and not known[ask])
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
    for piece in split_segments(text):
        room -= count(text[piece.start : piece.end])
        if room < 0:
            break
        end = piece.end
    return text[:end].rstrip()
