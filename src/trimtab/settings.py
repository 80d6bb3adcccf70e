"""The arguments of ``fit`` as one value, and the limits they come to.

Knows defaults and what contradicts what.  Does not know sizes of any request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, Literal

from trimtab import models, rules, strategies
from trimtab.errors import InvalidSetting
from trimtab.model import SURE_TRIGGER, TRIGGER, Limits, Transcript
from trimtab.money import prices
from trimtab.money.calibration import Calibration, Factors
from trimtab.planning.arrival import Arrival
from trimtab.planning.plan import Bounds
from trimtab.presets import PRESETS
from trimtab.protect import Pin
from trimtab.reading.history import Duplicates, FailedInputs
from trimtab.reading.internal import SIGNATURES, is_internal
from trimtab.reading.usage import Usage
from trimtab.strategies import Strategy
from trimtab.strategies.retrieval.article import DEFAULT_RULE, ArticleRule
from trimtab.tokens import Counter

VOCABULARY = "o200k"
"""The source of counts that is loaded on the first one."""
NO_WINDOW = 2**62
"""Tokens: more than any request has, where only other limits are asked for."""

Thinking = Literal["drop", "drop_block"]


@dataclass(frozen=True)
class Settings:
    """All keyword arguments of ``fit``; see there for what each means."""

    limits: Limits
    format: str | None = None
    model: str | None = None
    counter: str | Callable[[str], int] | Counter | None = None
    pins: Sequence[Pin] = ()
    protected_tools: Sequence[str] = ()
    protected_paths: Sequence[str] = ()
    protected_turns: int = 0
    duplicates: Duplicates = field(default_factory=Duplicates)
    failed_inputs: FailedInputs = field(default_factory=FailedInputs)
    recall: bool = False
    open_tail: bool = False
    strict: bool = False
    thinking: Thinking = "drop"
    articles: ArticleRule = DEFAULT_RULE
    quote_embedded: bool = False
    preset: str = "balanced"
    strategies: Sequence[Strategy] | None = None
    extra_strategies: Sequence[Strategy] = ()
    internal: Sequence[str] = SIGNATURES
    summarizer: Callable[..., Any] | None = None
    calls_left: int | None = None
    prices: str | None = None
    idle_seconds: float | None = None
    arrival: Arrival = "none"
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)
    """What answers of the provider taught, by ``calibration_key``."""
    on_event: Callable[..., Any] | None = None
    handle_key: bytes = b""
    """Makes handles that cannot be guessed; a session with a store sets it."""

    @property
    def all_strategies(self) -> tuple[Strategy, ...]:
        """What reductions are chosen from, in order."""
        ours = strategies.STRATEGIES if self.strategies is None else tuple(self.strategies)
        return strategies.with_extra(ours, self.extra_strategies)


def joined_settings(
    window: int | None, reserve: int | None, limits: Limits | None, **rest: object
) -> Settings:
    """Check and join the arguments.  Raises InvalidSetting."""
    joined = Limits() if limits is None else limits
    if not isinstance(joined, Limits):
        raise InvalidSetting(f"limits={joined!r}: give a trimtab.Limits")
    if window is not None:
        joined = replace(joined, window=window)
    if reserve is not None:
        joined = replace(joined, reserve=reserve)
    if (target := rest.pop("target", None)) is not None:
        joined = replace(joined, target=target)  # type: ignore[arg-type]
    if joined.window is None and (joined.request_bytes, joined.result_chars, joined.images) != (
        None,
        None,
        None,
    ):
        joined = replace(joined, window=NO_WINDOW)
    _check(joined)
    done = Settings(limits=joined, **rest)  # type: ignore[arg-type]
    _check_rest(done)
    return done


def _check_rest(given: Settings) -> None:
    for key, choices in (
        ("thinking", ("drop", "drop_block")),
        ("preset", tuple(PRESETS)),
        ("arrival", ("none", "lossless", "large")),
    ):
        if (value := getattr(given, key)) not in choices:
            quoted = [repr(choice) for choice in choices]
            said = f"{', '.join(quoted[:-1])} or {quoted[-1]}"
            raise InvalidSetting(f"{key}={value!r}: choose {said}")
    tables = ("duplicates", Duplicates), ("failed_inputs", FailedInputs), ("articles", ArticleRule)
    for key, kind in tables:
        if not isinstance(value := getattr(given, key), kind):
            raise InvalidSetting(f"{key}={value!r}: give a trimtab.{kind.__name__}")
    ages = given.failed_inputs.min_calls, given.failed_inputs.min_turns
    numbers = (("protected_turns", given.protected_turns), ("failed_inputs.min_calls", ages[0]),
               ("failed_inputs.min_turns", ages[1]))  # fmt: skip
    for key, number in numbers:
        if type(number) is not int or number < 0:
            raise InvalidSetting(f"{key}={number!r}: give a whole number, 0 or more")
    for key in ("strategies", "extra_strategies"):
        odd = [s for s in getattr(given, key) or () if not callable(s)]
        if odd:
            raise InvalidSetting(f"{key}: {odd[0]!r} is no function from a block to offers")
    if given.on_event is not None and not callable(given.on_event):
        raise InvalidSetting(f"on_event={given.on_event!r}: give a function of one event")
    if given.prices is not None:
        prices.named(given.prices)
    idle = given.idle_seconds
    if idle is not None and not (isinstance(idle, (int, float)) and idle >= 0):
        raise InvalidSetting(f"idle_seconds={idle!r}: give seconds, 0 or more")
    left = given.calls_left
    if left is not None and (type(left) is not int or left < 0):
        raise InvalidSetting(f"calls_left={left!r}: give a whole number, 0 or more")
    signatures = given.internal
    if isinstance(signatures, str) or not all(isinstance(s, str) for s in signatures):
        raise InvalidSetting(f"internal={signatures!r}: give a list of texts")


def _check(limits: Limits) -> None:
    for name in ("window", "request_bytes", "result_chars"):
        number = getattr(limits, name)
        if number is not None and (type(number) is not int or number <= 0):
            raise InvalidSetting(f"{name}={number!r}: give a whole number above 0")
    for name in ("reserve", "images"):
        number = getattr(limits, name)
        if number is not None and (type(number) is not int or number < 0):
            raise InvalidSetting(f"{name}={number!r}: give a whole number, 0 or more")
    for name in ("trigger", "target"):
        share = getattr(limits, name)
        if share is None:  # the preset's, or as sure as the counts are
            continue
        if type(share) not in (int, float) or not 0 < share <= 1:
            raise InvalidSetting(f"{name}={getattr(limits, name)!r}: give a share, 0 < share ≤ 1")
    window, reserve = limits.window, limits.reserve
    if window is not None and reserve is not None and reserve >= window:
        raise InvalidSetting(
            f"reserve {reserve:,} leaves nothing of the window {window:,}: "
            "reserve fewer output tokens, or give the model's real window"
        )


@dataclass(frozen=True)
class InForce:
    """Limits for one request: what was asked for, what it reserves, what the provider allows."""

    window: int
    reserve: int
    bounds: Bounds
    internal: bool = False
    """Whether this is a request of the client's own, which is no part of the conversation."""
    window_of: str = ""
    """The model whose window it is by our table; "" where the caller gave one."""
    factors: Factors | None = None
    """What the provider bills for one token of our count, where answers taught it."""
    cold: bool = False
    """Whether the cached prefix has expired, so that all is written again anyway."""
    trigger: float = TRIGGER
    """Share of the capacity above which something happens."""
    given: int = 0
    """The window in the provider's tokens, where ``factors`` have made it one in ours."""

    def theirs(self, tokens: int) -> int:
        """So many tokens of our count as the provider bills them at the worst: the smallest
        capacity of its count in which they fit."""
        if self.factors is None:
            return tokens
        found = ceil(tokens * self.factors.worst)
        return found if int(found / self.factors.worst) >= tokens else found + 1

    def as_dict(self, target: int | None = None) -> Mapping[str, int | None]:
        """For the report."""
        bounds = self.bounds
        return {
            "window": self.window,
            "reserve": self.reserve,
            "capacity": bounds.capacity,
            "trigger_tokens": bounds.trigger,
            "target_tokens": target,
            "request_bytes": bounds.body_bytes,
            "result_chars": bounds.result_chars,
            "images": bounds.images,
        }


def in_force(settings: Settings, transcript: Transcript, counter: Counter) -> InForce:
    """Read the reserve from the request where none was given; take the provider's own limits, and
    where no limit was given at all the window that our table has for the model.  How sure the
    ``counter`` is says when a batch begins.

    Raises InvalidSetting if the request's own output limit leaves nothing of the window, or if no
    window is known.
    """
    limits = settings.limits
    window, reserve, window_of = _window(settings, transcript)
    hard = rules.hard_limits(transcript)
    capacity = window - reserve
    internal = is_internal(transcript, settings.internal)
    target = PRESETS[settings.preset].target if limits.target is None else limits.target
    begins = trigger_for(counter)  # at all times: a calibration's name has what was loaded
    trigger = limits.trigger or begins
    bounds = Bounds(
        capacity=capacity,
        trigger=capacity if internal else int(capacity * trigger),
        target=1.0 if internal else target,
        body_bytes=limits.request_bytes or hard.get("request_bytes"),
        result_chars=limits.result_chars,
        images=hard.get("images") if limits.images is None else limits.images,
    )
    return InForce(window, reserve, bounds, internal, window_of, trigger=trigger)


def trigger_for(counter: Counter) -> float:
    """Share of the capacity above which a batch begins: higher where the model's own tokenizer
    counts, or a function of the caller's, which is taken at its word.

    The same before the first count and after the last, so that equal requests get equal answers.
    """
    if counter.source.name == VOCABULARY:
        counter("")  # loads it: only then is known whether it is missing
    return SURE_TRIGGER if counter.own and not counter.source.missing else TRIGGER


def _window(settings: Settings, transcript: Transcript) -> tuple[int, int, str]:
    """Window, what of it is kept free, and the model it was looked up for ("": it was given)."""
    window, reserve, model = settings.limits.window, settings.limits.reserve, None
    if window is None:
        model = models.known(settings.model or transcript.facts.model)
        window = model.window
    if reserve is None:
        asked = transcript.facts.max_output
        reserve = asked if type(asked) is int and asked > 0 else 0
    if model is not None and not model.shared:
        reserve = max(reserve, window - model.input_tokens)
    if reserve >= window:
        raise InvalidSetting(
            f"the request asks for {reserve:,} output tokens of {window:,}: "
            "lower its output limit, or give the model's real window (reserve=… overrides)"
        )
    return window, reserve, model.name if model else ""


def calibration_key(settings: Settings, transcript: Transcript, counter: Counter) -> str:
    """What a calibration holds for: one model in one format, by one counter; "" without a model."""
    model = settings.model or transcript.facts.model
    if not model:
        return ""
    name = models.undated(models.plain_name(model))
    return f"{transcript.format.name} {name} {counter.version}"


def calibrated(force: InForce, settings: Settings, transcript: Transcript, usage: Usage) -> InForce:
    """Limits in our tokens for a window in the provider's: the mean says when, the worst what must
    fit.  The same where no answer has taught anything about this model."""
    found = settings.calibrations.get(calibration_key(settings, transcript, usage.counter))
    if found is None or force.window >= NO_WINDOW:
        return force
    tokens, signed, bounds = usage.measure(transcript), usage.signed(transcript), force.bounds
    factors = found.factors(tokens - signed, signed, bounds.capacity)
    if factors is None:
        return force
    capacity = max(1, int(bounds.capacity / factors.worst))
    share = settings.limits.trigger or SURE_TRIGGER
    begins = bounds.capacity if force.internal else bounds.capacity * share
    trigger = min(capacity, max(1, int(begins / factors.mean)))
    bounds = replace(bounds, capacity=capacity, trigger=trigger)
    return replace(
        force, window=capacity + force.reserve, bounds=bounds, factors=factors, trigger=share,
        given=force.window,
    )  # fmt: skip
