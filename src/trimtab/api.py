"""``fit``, ``check`` and ``repair``: one request, nothing remembered but what saves time.

Knows the arguments and what each means.  Does no work itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trimtab.asking.summarizer import Summarizer
from trimtab.fitted import Fitted
from trimtab.model import Limits
from trimtab.planning.arrival import Arrival
from trimtab.protect import Pin
from trimtab.reading.history import Duplicates, FailedInputs
from trimtab.reading.internal import SIGNATURES
from trimtab.rules import Violation
from trimtab.settings import NO_WINDOW, Settings, Thinking, joined_settings
from trimtab.strategies import Strategy
from trimtab.strategies.retrieval.article import ArticleRule
from trimtab.telling.events import OnEvent
from trimtab.tokens import Counter
from trimtab.turns.journal import Journal
from trimtab.turns.once import check_only, known_for, repair_only
from trimtab.turns.turn import fitted


def fit(
    request: Any,
    *,
    window: int | None = None,
    reserve: int | None = None,
    limits: Limits | None = None,
    preset: str = "balanced",
    target: float | None = None,
    format: str | None = None,
    model: str | None = None,
    counter: str | Callable[[str], int] | Counter | None = None,
    pins: Sequence[Pin] = (),
    protected_tools: Sequence[str] = (),
    protected_paths: Sequence[str] = (),
    protected_turns: int = 0,
    duplicates: Duplicates = Duplicates(),  # noqa: B008 - frozen
    failed_inputs: FailedInputs = FailedInputs(),  # noqa: B008 - frozen
    strategies: Sequence[Strategy] | None = None,
    extra_strategies: Sequence[Strategy] = (),
    internal: Sequence[str] = SIGNATURES,
    recall: bool = False,
    open_tail: bool = False,
    strict: bool = False,
    thinking: Thinking = "drop",
    articles: ArticleRule | None = None,
    quote_embedded: bool = False,
    summarizer: Callable[[str], str] | Summarizer | None = None,
    calls_left: int | None = None,
    prices: str | None = None,
    idle_seconds: float | None = None,
    arrival: Arrival = "none",
    on_event: OnEvent | None = None,
) -> Fitted:
    """Make a request acceptable: valid by the provider's rules, and within its limits.

    ``request``: a body (dict), a bare list of messages, or JSON as str or bytes.  It is never
    changed; ``.request`` of the result is the very same object where nothing had to be done.

    - ``window``: tokens the model takes, output included.  None, and no other limit given: what
      our table of models has (``trimtab.models``).
    - ``reserve``: output tokens to keep free.  None: the request's own max_tokens, else 0.
    - ``limits``: a ``Limits`` (trigger, target, request_bytes, result_chars, images);
      ``window``, ``reserve`` and ``target`` given as arguments win.
    - ``preset``: "cautious" (until the window is full only what is lossless or came again),
      "balanced", "deep" (down to half the room), or "in-place" (each old result is shrunk where it
      stands; no step is folded into a note).
    - ``target``: the one dial: the share of the room a batch goes down to.  None: the preset's.
    - ``format``: one of the five, or what ``detect`` names ("openai-chat:deepseek"); None: by the
      body's shape.  ``model``: None: the request's.
    - ``counter``: None: the best we have for the model; "o200k"; "estimate"; or any function
      from text to tokens.
    - ``pins``: refs or predicates over blocks that must stay whole.
    - ``protected_tools``, ``protected_paths``: globs; their calls and results are touched only
      when nothing but the user's own words would be left to shorten.
    - ``protected_turns``: the same for so many of the newest steps of the model (0: none).
    - ``duplicates``, ``failed_inputs``: whether, and for which tools, what came again later and
      what a failed call was given may go.
    - ``strategies``: instead of ours; ``extra_strategies``: beside ours (see docs/settings.md).
    - ``internal``: how the client's own requests begin (titles, summaries): these are reduced
      only where they would not fit at all.
    - ``recall``: the model has a recall tool, so markers may name it.
    - ``open_tail``: the last calls are just being run; they are no violation and never touched.
    - ``strict``: raise instead of repairing input or falling back.
    - ``thinking``: what to do with thinking that is bound to text an edit changed: "drop" takes
      the blocks out, "drop_block" asks the API to.
    - ``articles``: how lists of search results are shortened: an ``ArticleRule``.
    - ``quote_embedded``: mark tool output that stands as text in a user's message as a quote.
    - ``summarizer``: says articles and old steps in its own words instead: a function from prompt
      to answer, an ``Endpoint``, or a ``Summarizer`` around one of them.
    - ``calls_left``: how many more tool calls the agent may make; nothing is cut before the window
      is full where they will all fit, and no deeper than they need.
    - ``prices``: a price table by name (``trimtab replay --list``): the report says what the batch
      does to the bill.
    - ``idle_seconds``: how long ago the last request of this conversation was.  Where the cached
      prefix has expired since, all is written again anyway: a batch that would come soon comes now.
    - ``arrival``: what becomes of results that just came, below the trigger too, as no cache has
      them yet: "none", "lossless" (re-spelled where that loses nothing and saves 256 tokens), or
      "large" (and cut to a quarter of what may be sent).  For a ``Session``, which keeps it so.
    - ``on_event``: told of this fit and of each new edit: counts, tokens, milliseconds (see
      docs/observability.md).

    Each tool result that no call asks for is taken out, recallable, with a warning to the logger
    "trimtab" that does not quote it.

    Raises CannotFit, InvalidRequest, InvalidSetting; with ``strict`` also NotAccepted.
    """
    wanted = joined_settings(
        window, reserve, limits, format=format, model=model, counter=counter, pins=pins,
        protected_tools=protected_tools, protected_paths=protected_paths, recall=recall,
        open_tail=open_tail, strict=strict, thinking=thinking, articles=articles or ArticleRule(),
        quote_embedded=quote_embedded,
        preset=preset, target=target,
        protected_turns=protected_turns, duplicates=duplicates, failed_inputs=failed_inputs,
        strategies=strategies, extra_strategies=extra_strategies, internal=internal,
        summarizer=summarizer, calls_left=calls_left, prices=prices, idle_seconds=idle_seconds,
        arrival=arrival,
        on_event=on_event,
    )  # fmt: skip
    with known_for(request, wanted) as known:
        return fitted(request, wanted, known, Journal())[1]


def check(
    request: Any, *, format: str | None = None, model: str | None = None, open_tail: bool = False
) -> tuple[Violation, ...]:
    """Why a provider would refuse this request as it stands; ``()`` means acceptable.

    Each violation has ``rule``, ``path`` and ``message`` (with the provider's own words).
    Raises InvalidRequest, InvalidSetting.
    """
    return check_only(request, format=format, model=model, open_tail=open_tail)


def repair(
    request: Any,
    *,
    format: str | None = None,
    model: str | None = None,
    open_tail: bool = False,
    counter: str | Callable[[str], int] | Counter | None = None,
) -> Fitted:
    """The request with its violations mended and nothing else; what was taken out is recallable.

    Raises InvalidRequest, InvalidSetting.
    """
    wanted = Settings(
        Limits(window=NO_WINDOW, reserve=0), format=format, model=model, open_tail=open_tail,
        counter=counter,
    )  # fmt: skip
    return repair_only(request, wanted)
