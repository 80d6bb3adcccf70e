"""Scripted answers of the model: texts, thinking, tool calls; built in Python or read from JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Stop = Literal["", "length", "window"]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call.  If ``id`` is "", an id in the provider's form is generated."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of the model: thinking, then text, then calls (several are parallel).

    ``stop``: "" for what follows from the content, "length" for an answer cut by its output
    limit, "window" for one cut by the model's window.
    """

    text: str = ""
    calls: Sequence[Call] = ()
    thinking: str = ""
    stop: Stop = ""


def answer_from(item: Mapping[str, Any]) -> Answer:
    """``{"text": …, "thinking": …, "calls": [{"name": …, "arguments": {…}}]}`` as an Answer.

    Raises TypeError for a key that is none of these.
    """
    calls = tuple(Call(**call) for call in item.get("calls", ()))
    return Answer(**{**item, "calls": calls})
