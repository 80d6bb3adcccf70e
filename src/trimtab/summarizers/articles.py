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
"""Text that looks like a call: models imitate it instead of making real calls."""
LABELS = re.compile(
    r"^\s{0,8}\[(?:(?:lines|record|a model's summary):|"
    r"(?:[\d,]{1,9} )?earlier (?:step|message|word)s?\b)",
    re.MULTILINE,
)
"""Our labels over verbatim lines and over summaries; an answer that contains one is not used."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Answers:
    """One text for each ask ("" if there is none), and counters.

    Asks: ``asked`` of the model, ``cached``, ``failed`` (no answer, or not in time), ``left_out``
    (above ``max_asks``), ``unusable`` (the answer could not be shown).  ``tokens_in`` and
    ``tokens_out`` are in our count; ``milliseconds``: elapsed time.
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
    """The message of the first failure."""
    name: str = ""
    """The name of the summarizer."""

    def as_dict(self) -> dict[str, int]:
        """The figures, for the report."""
        return {
            "asked": self.asked, "cached": self.cached, "failed": self.failed,
            "left_out": self.left_out, "unusable": self.unusable, "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out, "milliseconds": self.milliseconds,
        }  # fmt: skip

    def warnings(self) -> list[str]:
        """A line each about failed, left-out and unusable summaries."""
        texts = []
        if self.failed:
            failed = f"{self.failed} of {self.asked} summaries failed"
            texts.append(f"{failed}, extracts are shown instead: {self.why}")
        if self.left_out:
            texts.append(f"{self.left_out} summaries not asked for: max_asks allows {self.asked}")
        if self.unusable:
            texts.append(
                f"{self.unusable} summaries could not be shown, extracts are shown instead"
            )
        return [f"summarizer {self.name}: {text}" for text in texts]


Enough = Callable[[Sequence[str]], bool]
"""Whether the answers so far, in the order of the asks, are all that is needed."""


class Answerer(Protocol):
    """Answers asks in order, and may stop once ``enough`` is true."""

    def __call__(self, asks: Sequence[Ask], count: Count, enough: Enough | None = None) -> Answers:
        """Return one text for each ask, "" if there is none."""
        ...


def answer(
    plan: Planner, answerer: Answerer, goal: int | None = None, *, steps: bool = True
) -> Answers:
    """Show summaries instead of this cut's extracts, if they are no larger.

    An answer that can't be shown leaves the extract.  Articles are summarized in the order in
    which they were shortened, until the request is at most ``goal`` tokens with all other articles
    whole; those are then restored (``goal`` None: none is restored).  ``steps``: notes on old steps
    are summarized too.
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

    answers = answerer(asks, count, enough)
    enough(answers.texts)
    for note in noted:
        note.reword(plan.state, [known.get(ask, "") for ask in note.asks])
    choices.show(known)
    texts = zip(asks, answers.texts, strict=True)
    return replace(answers, unusable=sum(1 for ask, text in texts if text and not known[ask]))


def usable(text: str, ask: Ask, count: Count) -> str:
    """The answer as it can be shown; "" if it is empty, not shorter than the original, or contains
    text that looks like a call, a result or a label of ours.  An answer above ``ask.tokens`` is cut
    to its first sentences."""
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
