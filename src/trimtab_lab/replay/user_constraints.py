"""Sentences in which a user forbids or demands something.

Of a user's words they are kept longest; the benchmark asks questions about them.
"""

from __future__ import annotations

import re

_SENTENCE = re.compile(r"(?:[^.!?\n。！？]|[.!?](?=[^\s.!?]))+[.!?。！？]?")
"""A full stop that no blank follows does not end a sentence: ``config/app.toml``, ``v1.2``."""
_DEMAND = re.compile(
    r"\b(?:must|never|always|do(?:n['’]t| not)|should(?:n['’]t| not)?|only|without|avoid|ensure"
    r"|make sure|required?|forbidden|at (?:most|least)|nie(?:mals)?|immer|muss|nicht|nur"
    r"|nunca|siempre|debe|solo|jamais|toujours|doit)\b|必须|不要|不能|只能|никогда|нельзя|всегда",
    re.IGNORECASE,
)
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)


def demands(text: str) -> list[str]:
    """Sentences of 15 to 300 characters in which a user forbids or demands something.

    Text between ``<system-reminder>`` tags is skipped: the client injected it.
    """
    return [squeezed(text[start:end]) for start, end in demand_spans(text)]


def may_demand(text: str) -> bool:
    """Whether ``text`` has a word that forbids or demands; a cheap test before ``demands``."""
    return _DEMAND.search(text) is not None


def demand_spans(text: str) -> list[tuple[int, int]]:
    """Start and end offsets in ``text`` of each sentence that ``demands`` returns."""
    own = _REMINDER.sub(lambda spans: " " * len(spans[0]), text)
    spans = []
    for match in _SENTENCE.finditer(own):
        said = squeezed(match[0])
        if 15 <= len(said) <= 300 and _DEMAND.search(said):
            blank = len(match[0]) - len(match[0].lstrip())
            spans.append((match.start() + blank, match.end()))
    return spans


def squeezed(text: str) -> str:
    """Return ``text`` with each run of blanks and line breaks replaced by one space."""
    return " ".join(text.split())
