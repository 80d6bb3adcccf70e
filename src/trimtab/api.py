"""``fit``, ``check`` and ``repair``: functions on one request; they remember nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from trimtab import formats
from trimtab.errors import expect
from trimtab.formats import rules
from trimtab.formats.body import RequestBody
from trimtab.formats.registry import FormatName
from trimtab.formats.rules import Violation
from trimtab.planning.presets import PresetName
from trimtab.reporting import log
from trimtab.reporting.measured import measure
from trimtab.request import pipeline
from trimtab.request.fitted import Fitted
from trimtab.request.received import TurnInputs
from trimtab.sessions.turn import take_turn
from trimtab.settings import (
    NO_WINDOW,
    FitKeywords,
    Settings,
    naming_nearest,
    with_keywords,
)
from trimtab.transcript.tokens import Counter

R = TypeVar("R")


@naming_nearest
def fit(
    request: R,
    window: int | str | None = None,
    *,
    reserve: int | str | None = None,
    model: str | None = None,
    format: FormatName | None = None,
    preset: PresetName | None = None,
    target: float | str | None = None,
    recall: bool | None = None,
    settings: Settings | None = None,
) -> Fitted[R]:
    """Make a request acceptable: valid by the provider's rules, and within its limits.

    ``request``: a body (dict), a bare list of messages, or JSON as str or bytes.  It is never
    changed; ``.request`` of the result is the very same object where nothing had to be done.

    - ``window``: tokens the model takes, output included, as 32_000 or "32k".  None, and no other
      limit given: what our table of models has (``trimtab.pricing.models``).
    - ``reserve``: output tokens to keep free.  None: the request's own max_tokens, else 0.
    - ``model``: None: the request's.
    - ``format``: the name of one of the six formats, with a dialect if wanted
      ("openai-chat:deepseek"); None: detected by the body's shape.
    - ``preset``: "balanced" (None), "economy" (a cut is made as soon as it pays, and leaves 20,000
      tokens of history), or "in-place" (each old result is shrunk where it is; no step is folded
      into a note).
    - ``target``: the share of the room that a cut goes down to.  None: the preset's, and deeper
      where the request grows fast.
    - ``recall``: the model has a recall tool (``wrap`` adds it), so markers may name it.
    - ``settings``: all other settings, as a ``Settings``; the keywords override it.

    A tool result without a call is removed; it can be recalled.  The logger "trimtab" gets a
    warning that does not quote it.

    Raises CannotFit, InvalidRequest, InvalidSetting; with ``strict`` also NotAccepted.
    """
    keywords: FitKeywords = {
        "window": window, "reserve": reserve, "model": model, "format": format, "preset": preset,
        "target": target, "recall": recall, "settings": settings,
    }  # fmt: skip
    return take_turn(request, TurnInputs(with_keywords(Settings(), keywords)))[1]


@naming_nearest
def check(
    request: Any,
    *,
    format: FormatName | None = None,
    model: str | None = None,
    open_tail: bool = False,
    doubtful: bool = False,
) -> tuple[Violation, ...]:
    """The reasons why a provider would refuse this request; ``()`` if it is acceptable.

    Each violation has ``rule``, ``path`` and ``message`` (with the provider's own words).  Roles,
    required keys and types of content are judged here only: ``fit`` carries them as they are.
    ``doubtful``: also what may be refused: somebody was, and this request may differ from theirs.
    Such a violation is not ``certain``, and nothing is repaired for it before a refusal.
    Raises InvalidRequest, InvalidSetting.
    """
    Settings(format=format, model=model, open_tail=open_tail)  # checked as those of fit are
    expect(type(doubtful) is bool, "doubtful", doubtful, "True or False")
    tree = RequestBody.of(request).tree
    detected, _ = formats.find(tree, format)
    transcript = formats.read(tree, detected, model=model)
    found = rules.check(transcript, open_tail=open_tail, doubtful=doubtful)
    return rules.with_shape(found, detected, tree)


@naming_nearest
def repair(
    request: R,
    *,
    format: FormatName | None = None,
    model: str | None = None,
    open_tail: bool = False,
    counter: str | Callable[[str], int] | Counter | None = None,
) -> Fitted[R]:
    """Repair a request's violations and change nothing else; what is removed can be recalled.

    Raises InvalidRequest, InvalidSetting.
    """
    wanted = Settings(
        window=NO_WINDOW, reserve=0, format=format, model=model, open_tail=open_tail,
        counter=counter,
    )  # fmt: skip
    measured = pipeline.prepare(request, TurnInputs(wanted))
    if measured.repaired.made is None:
        return Fitted(pipeline.as_received(measured), {})
    result = pipeline.only_repaired(measured)
    done = Fitted(result, result.originals)
    log.log_fit(result, done)
    return done


@naming_nearest
def count_tokens(
    request: Any, model: str | None = None, *, format: FormatName | None = None
) -> int:
    """Tokens of a request as its provider counts them, as well as we know: what ``fit`` compares
    with the window.

    ``model``: None: the request's.  Messages, tools and system prompt count, an answer does not.
    ``measure`` says where they are.  Raises InvalidRequest, InvalidSetting.
    """
    return measure(request, model=model, format=format).total
