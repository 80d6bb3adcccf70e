"""The limits of one request, from the settings, its output reserve and the provider's limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil

from trimtab.errors import InvalidSetting
from trimtab.formats import rules
from trimtab.planning.eligibility import Bounds
from trimtab.planning.presets import PRESETS
from trimtab.pricing import models
from trimtab.pricing.calibration import Calibration, Factors
from trimtab.settings import BODY_LIMITS, NO_WINDOW, Settings
from trimtab.transcript.client_requests import is_client_request
from trimtab.transcript.model import SURE_TRIGGER, TRIGGER
from trimtab.transcript.token_sizes import TokenSizes
from trimtab.transcript.tokens import Counter
from trimtab.transcript.transcript import Transcript

LASTS = 8
"""Model calls that a cut should last, unless a target is given."""
BELOW_TRIGGER = 0.9
"""A preset's target is at most this share of the trigger."""


@dataclass(frozen=True)
class EffectiveLimits:
    """The limits that apply to one request."""

    window: int
    reserve: int
    bounds: Bounds
    is_client_request: bool = False
    """Whether this is a request of the client's own and not part of the conversation."""
    window_of: str = ""
    """The model whose window was looked up in our table; "" if the caller gave a window."""
    factors: Factors | None = None
    """Tokens billed by the provider for one token of our count, if learned from answers."""
    cold: bool = False
    """Whether the cached prefix has expired, so that everything is written again anyway."""
    cleared: bool = False
    """Whether the client emptied an old result, so that most of the request is written again."""
    trigger: float = TRIGGER
    """Share of the capacity above which a cut begins."""
    given: int = 0
    """The window in the provider's tokens, if ``factors`` converted ``window`` to ours."""

    def theirs(self, tokens: int) -> int:
        """Convert tokens of our count to the provider's at the worst: the smallest capacity, in its
        count, in which they fit."""
        if self.factors is None:
            return tokens
        scaled = ceil(tokens * self.factors.worst)
        return scaled if int(scaled / self.factors.worst) >= tokens else scaled + 1

    def as_dict(self, target: int | None = None) -> Mapping[str, int | None]:
        """The limits as the report shows them."""
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
            "image_pixels": bounds.image_pixels,
            "image_bytes": bounds.image_bytes,
        }


def effective_limits(
    settings: Settings, transcript: Transcript, counter: Counter
) -> EffectiveLimits:
    """The limits of a request.  The reserve is read from the request if none was given; if no limit
    was given at all, the window is that of the model in our table.  A cut begins later if the
    ``counter`` is the model's own tokenizer.

    Raises InvalidSetting if the request's own output limit leaves nothing of the window, or if no
    window is known.
    """
    window, reserve, window_of = _window(settings, transcript)
    hard = rules.hard_limits(transcript)
    capacity = window - reserve
    own = is_client_request(transcript, settings.client_requests)
    begins = trigger_for(counter)  # always: it loads the counter, which a calibration's key names
    trigger = _trigger(settings, window, capacity, begins)
    target = settings.target
    if target is None:  # it must be below a low trigger, else each turn would make a cut
        target = min(PRESETS[settings.preset].target, BELOW_TRIGGER * trigger)
    bounds = Bounds(
        capacity=capacity,
        trigger=capacity if own else int(capacity * trigger),
        target=1.0 if own else target,
        body_bytes=byte_limit(settings, transcript),
        result_chars=settings.result_chars,
        images=_image_limit(settings, transcript),
        image_pixels=settings.image_pixels or hard.get("image_pixels"),
        many_image_pixels=hard.get("many_image_pixels"),
        image_bytes=settings.image_bytes or hard.get("image_bytes"),
        given=frozenset(name for name in IMAGE_LIMITS if getattr(settings, name) is not None),
        lasts=0 if own or settings.target is not None else LASTS,
        history=None if own or settings.target is not None else PRESETS[settings.preset].history,
    )
    return EffectiveLimits(window, reserve, bounds, own, window_of, trigger=trigger)


IMAGE_LIMITS = "image_pixels", "image_bytes"
"""Limits of single images."""
SMALL_WINDOW = 200_000
"""Tokens: Claude takes fewer images where the model's window is no larger (docs, vision)."""


def _image_limit(settings: Settings, transcript: Transcript) -> int | None:
    """The most images that the provider takes in a request; None if it names no number."""
    if settings.images is not None:
        return settings.images
    hard = rules.hard_limits(transcript)
    if "images_in_small_window" in hard:
        model = models.find(settings.model or transcript.facts.model or "")
        if model is not None and model.window <= SMALL_WINDOW:
            return hard["images_in_small_window"]
    return hard.get("images")


def byte_limit(settings: Settings, transcript: Transcript) -> int | None:
    """The most bytes that the encoded body may have; None without a limit."""
    return settings.request_bytes or rules.hard_limits(transcript).get("request_bytes")


def _trigger(settings: Settings, window: int, capacity: int, usual: float) -> float:
    """Share of the capacity above which a cut begins.  One given as a share of the window is
    never above ``usual``: the reserve may leave less than that share."""
    if settings.trigger is None and settings.window_trigger is not None:
        return min(settings.window_trigger * window / capacity, usual)
    return settings.trigger or usual


def trigger_for(counter: Counter) -> float:
    """Share of the capacity above which a cut begins: higher if the model's own tokenizer counts,
    or a caller's function, which is trusted.

    It is the same before the first count and after the last, so that equal requests get equal
    results.
    """
    counter.source.load()  # to know whether it is missing
    return SURE_TRIGGER if counter.own and not counter.source.missing else TRIGGER


def output_limit(transcript: Transcript) -> int:
    """Output tokens that a request asks for; 0 if it has no such limit, or an odd one."""
    asked = transcript.facts.max_output
    return asked if type(asked) is int and asked > 0 else 0


def _window(settings: Settings, transcript: Transcript) -> tuple[int, int, str]:
    """Window, output reserve, and the model whose window was looked up ("": it was given)."""
    window, reserve, model = settings.window, settings.reserve, None
    others = [name for name in BODY_LIMITS if getattr(settings, name) is not None]
    if window is None and others:
        window = NO_WINDOW
    if window is None:
        model = models.require(settings.model or transcript.facts.model)
        window = model.window
    if reserve is None:
        reserve = output_limit(transcript)
        if settings.reserve_share is not None:
            reserve = min(reserve, int(window * settings.reserve_share))
    if model is not None and not model.shared:
        reserve = max(reserve, window - model.input_tokens)
    if reserve >= window:
        raise InvalidSetting(
            f"the request asks for {reserve:,} output tokens of {window:,}: "
            "lower its output limit, or give the model's real window (reserve and reserve_share "
            "override)"
        )
    return window, reserve, model.name if model else ""


def calibration_key(settings: Settings, transcript: Transcript, counter: Counter) -> str:
    """The key of a calibration: one model in one format by one counter; "" without a model."""
    model = settings.model or transcript.facts.model
    if not model:
        return ""
    name = models.undated(models.plain_name(model))
    return f"{transcript.format.name} {name} {counter.version}"


def calibrated(
    force: EffectiveLimits,
    settings: Settings,
    calibrations: Mapping[str, Calibration],
    transcript: Transcript,
    sizes: TokenSizes,
) -> EffectiveLimits:
    """Convert limits in the provider's tokens to ours: the trigger by the mean factor, the capacity
    by the worst.  Unchanged if nothing was learned about this model.

    ``calibrations``: learned from answers, by ``calibration_key``.
    """
    calibration = calibrations.get(calibration_key(settings, transcript, sizes.counter))
    if calibration is None or force.window >= NO_WINDOW:
        return force
    tokens, signed, bounds = sizes.measure(transcript), sizes.signed(transcript), force.bounds
    factors = calibration.factors(tokens - signed, signed, bounds.capacity)
    if factors is None:
        return force
    capacity = max(1, int(bounds.capacity / factors.worst))
    share = _trigger(settings, force.window, bounds.capacity, SURE_TRIGGER)
    begins = bounds.capacity if force.is_client_request else bounds.capacity * share
    trigger = min(capacity, max(1, int(begins / factors.mean)))
    bounds = replace(bounds, capacity=capacity, trigger=trigger)
    return replace(
        force, window=capacity + force.reserve, bounds=bounds, factors=factors, trigger=share,
        given=force.window,
    )  # fmt: skip
