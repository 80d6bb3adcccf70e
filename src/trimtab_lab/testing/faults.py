"""Scripted faults: refusals, cut streams, slow answers; and the script that orders them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.errors import InvalidSetting
from trimtab_lab.testing.http_apis.answers import Answer, answer_from
from trimtab_lab.testing.http_apis.refusals import Shape
from trimtab_lab.testing.record import Record


@dataclass(frozen=True, slots=True)
class Refuse:
    """Refuse the next ``times`` requests, whatever their content.

    ``when``: a kind of the catalogue: "overflow", "overflow_output", "request_bytes", "rate",
    "rate_size" (the request alone is above the limit per minute), "server_error", "overloaded",
    "opaque", "rule:<name>" and others.  ``limit``, ``input`` and ``output`` (tokens) are the
    numbers it names; None: the request's own against the window, or against three quarters of
    its size where there is none.  ``retry_after`` in seconds adds that header.  ``body`` and
    ``status`` replace what the catalogue has.
    """

    when: str = "overflow"
    times: int = 1
    shape: Shape | None = None
    limit: int | None = None
    input: int | None = None
    output: int | None = None
    retry_after: float | None = None
    status: int | None = None
    body: Any = None


@dataclass(frozen=True, slots=True)
class Cut:
    """Answer, and break the connection after ``after_bytes`` bytes of the body."""

    after_bytes: int
    answer: Answer | str = "OK"


@dataclass(frozen=True, slots=True)
class Slow:
    """Wait ``first`` seconds before the first byte, ``between`` seconds between stream chunks."""

    first: float = 0.0
    between: float = 0.0
    answer: Answer | str = "OK"


ScriptStep = Answer | Refuse | Cut | Slow | str
"""One item of a script; a str is an Answer of that text."""
Script = Iterable[ScriptStep] | Callable[[Record], ScriptStep]
"""Steps, one for each request that is answered (``Refuse``: one for ``times`` requests), and the
default answer once they are used up; or a function from the request to its step."""


class ScriptRunner:
    """Runs a script, one step per request."""

    def __init__(self, script: Script, otherwise: Answer) -> None:
        self._ask = script if callable(script) else None
        self._steps = iter(()) if callable(script) else iter(script)
        self._otherwise = otherwise
        self._again: list[ScriptStep] = []

    def next(self, record: Record) -> ScriptStep:
        """The step for this request."""
        if self._ask is not None:
            return self._ask(record)
        if self._again:
            return self._again.pop()
        step = next(self._steps, self._otherwise)
        if isinstance(step, Refuse):
            self._again = [step] * (step.times - 1)
        return step


def as_answer(answer: Answer | str) -> Answer:
    """A str as an answer of that text."""
    return Answer(answer) if isinstance(answer, str) else answer


def step_from(item: Any) -> ScriptStep:
    """One item of a script in JSON: a text, an answer, {"refuse": …}, {"cut": …}, {"slow": …}.

    Raises InvalidSetting for anything else.
    """
    try:
        if isinstance(item, str):
            return item
        if not isinstance(item, Mapping):
            raise TypeError("not an object")
        fields = dict(item)
        if "refuse" in fields:
            return Refuse(fields.pop("refuse"), **fields)
        if "cut" in fields:
            return Cut(fields.pop("cut"), answer_from(fields))
        if "slow" in fields:
            return Slow(fields.pop("slow"), fields.pop("between", 0.0), answer_from(fields))
        return answer_from(fields)
    except TypeError as error:
        raise InvalidSetting(f"script item {item!r}: {error}") from None
