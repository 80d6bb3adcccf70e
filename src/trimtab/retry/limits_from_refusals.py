"""Computes the limits for the next request from a refusal about size.  All functions are pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from trimtab.retry.learned_limits import KINDS, ModelLimits, ratio
from trimtab.retry.refusals import Refusal
from trimtab.settings import LIMITS, Settings
from trimtab.transcript.model import TRIGGER

SHARES = (0.7, 0.4)
"""Shares of the first refused size to try if no refusal names a limit: second send, third send."""
TARGET = 0.97
"""Share of a room that was only guessed to which the request is cut: less would be lost for
nothing, and more could be refused once more."""
MIN_RESULT_CHARS = 96
"""Chars to which tool results are cut before the last send: about what a marker needs."""
_NEAR = 0.85
"""A room above this share of what was refused comes from this refusal alone, and is a guess."""
_OUTPUT_SHARE = 0.25
"""Share of a window that is asked for as output where a request asks for most of it."""
_MIN_OUTPUT = 1_024
"""Output tokens that are asked for where the request's own limit leaves no room for a prompt."""
_EXCESS_MARGIN = 0.03
"""Share of the request that is cut beyond an excess in the provider's tokens."""
_MARGIN = 0.98
"""The share of a known limit that is used while our count of the request is an estimate."""
_PLAUSIBLE_TOKENS = 8_000
"""Below this, or half the window, a refusal without a reason is not taken to be about size."""
_LONG_CONTEXT = 200_000
"""Tokens above which providers require a plan for long context."""
_MANY_IMAGES = 20
_MANY_IMAGE_PIXELS = 2_000
"""Up to 20 images, each may have 8,000 pixels a side; more than that, 2,000 (Anthropic)."""

_IMAGE_LIMITS = {"pixels": "image_pixels", "bytes": "image_bytes"}
"""What a refusal for one image counts → the setting by which such an image is made smaller."""


@dataclass(frozen=True, slots=True)
class SentRequest:
    """The sizes of a sent request: prompt tokens (ours), body bytes, requested output tokens.

    ``scale``: ``fit`` divides a window by it to get our tokens.  ``longest_result``: chars of the
    longest tool result, 0 if not needed.  ``managed``: the provider clears or compacts the request
    by itself, so its count does not cover all that was sent.  ``unseen``: the provider's server
    adds a history that we do not know, so ``tokens`` is only a part of what was refused.
    """

    tokens: int
    body_bytes: int
    output: int = 0
    window: int | None = None
    scale: float = 1.0
    longest_result: int = 0
    managed: bool = False
    unseen: bool = False


def names_nothing(refusal: Refusal) -> bool:
    """Whether ``refusal`` gives no reason."""
    return refusal.rule in ("opaque", "no_body")


def may_be_too_large(refusal: Refusal, sent: SentRequest) -> bool:
    """Whether size can be the reason of ``refusal``; a rate error below its own limit is not about
    size."""
    if refusal.rule == "rate_tpm_size" and refusal.requested is None:
        return sent.tokens + sent.output > 0.8 * (refusal.limit or _LONG_CONTEXT)
    if names_nothing(refusal):
        window = sent.window
        half = _PLAUSIBLE_TOKENS if window is None else window // 2
        return sent.tokens >= min(half, _PLAUSIBLE_TOKENS)
    return True


def learn_from_refusal(
    refusal: Refusal, sent: SentRequest, limits: ModelLimits, conversation: str = ""
) -> ModelLimits:
    """``limits`` updated with what ``refusal`` told ``conversation``; the same object if it says
    nothing new."""
    mine, kind = limits.for_conversation(conversation), ""
    if refusal.limit is None and limits.limit is None:
        mine = limits  # sizes that others were refused and accepted with bound a guess, too
    fresh = mine
    if refusal.kind == "too_long":
        kind, fresh = "tokens", _tokens(refusal, sent, mine)
    elif refusal.rule == "images" and refusal.unit == "images" and refusal.limit is not None:
        kind, fresh = "images", replace(mine, images=refusal.limit)
    elif refusal.rule == "images" and refusal.unit == "pixels" and refusal.limit:
        if refusal.limit != _MANY_IMAGE_PIXELS:  # of many images; one alone would be accepted
            kind, fresh = "image_pixels", replace(mine, image_pixels=refusal.limit)
    elif refusal.rule == "images" and refusal.unit == "bytes" and refusal.limit:
        kind, fresh = "image_bytes", replace(mine, image_bytes=refusal.limit)
    elif refusal.rule == "string_too_long" and refusal.limit:
        kind, fresh = "chars", replace(mine, result_chars=refusal.limit)
    elif refusal.rule == "request_bytes" and refusal.limit and refusal.limit < sent.body_bytes:
        kind, fresh = "bytes", replace(mine, request_bytes=refusal.limit)
    if fresh is mine:
        return limits
    if kind != "tokens" and limits.limit is None and limits.refused is None:
        fresh = replace(fresh, exactness="exact")
    learned = {name: getattr(fresh, name) for name in KINDS[kind]}
    return replace(limits, **{**learned, "exactness": fresh.exactness}).taught(
        kind, conversation, limits
    )


def _tokens(refusal: Refusal, sent: SentRequest, limits: ModelLimits) -> ModelLimits:
    if sent.unseen:
        if refusal.limit is None:
            return limits
        return replace(limits, limit=refusal.limit, exactness=refusal.exactness)
    refused = min(sent.tokens, limits.refused or sent.tokens)
    if refusal.limit is None:
        accepted = min(limits.accepted, refused - 1)
        return replace(limits, limit=None, refused=refused, accepted=accepted, exactness="guess")
    whole = refusal.requested is not None and refusal.output is None
    counts = refusal.output is not None or (not whole and sent.output < refusal.limit // 2)
    output = refusal.output if refusal.output is not None else (sent.output if counts else 0)
    stated = None if refusal.requested is None else refusal.requested - (refusal.output or 0)
    least = (refusal.limit - output) / (max(sent.tokens, 1) * _MARGIN)
    factor = max(limits.ratio if limits.limit else 1.0, least)
    if refusal.exactness == "exact" and stated is not None and not sent.managed:
        factor = ratio(stated, sent.tokens)
    return replace(
        limits, limit=refusal.limit, ratio=max(factor, 0.01), accepted=0, refused=refused,
        output_counts=counts or limits.output_counts, exactness=refusal.exactness,
    )  # fmt: skip


def output_to_ask_for(refusal: Refusal, sent: SentRequest) -> int | None:
    """The output tokens to ask for where the request's own limit takes most of a window that was
    named; None: the output is not what is in the way.

    At most ``_OUTPUT_SHARE`` of the window: the conversation goes on, and its prompt grows."""
    if refusal.kind != "too_long" or not refusal.limit or 2 * sent.output < refusal.limit:
        return None
    prompt = sent.tokens
    if refusal.output is not None and refusal.requested is not None:
        prompt = refusal.requested - refusal.output
    room = int(_MARGIN * (refusal.limit - prompt))
    share = int(_OUTPUT_SHARE * refusal.limit)
    return max(min(room, share), min(_MIN_OUTPUT, share))


def _images(refusal: Refusal) -> int:
    """How many images may stay: the limit if it is a count, 0 if each image is too big."""
    if refusal.unit == "images" and refusal.limit is not None:
        return refusal.limit
    # A document has any number of pages, and we don't open it: like one that is too big.
    many = refusal.unit == "pixels" and (refusal.limit or 0) <= _MANY_IMAGE_PIXELS
    return _MANY_IMAGES if many else 0


def keywords_for_known_limits(
    limits: ModelLimits, settings: Settings, sent: SentRequest
) -> dict[str, Any]:
    """Keywords for ``fit`` that apply ``limits``; {} if ``sent`` meets them anyway.

    ``settings``: those so far; the keywords are never laxer.
    """
    words: dict[str, Any] = {}
    room = limits.prompt_tokens(sent.output)
    trigger = settings.trigger or settings.window_trigger or TRIGGER
    if room is not None and sent.tokens > trigger * room:
        words |= _window(room, limits, sent)
    chars = limits.allowed_chars(sent.longest_result)
    tight: dict[str, Any] = {
        name: value
        for name, value in (
            ("request_bytes", limits.request_bytes),
            ("result_chars", limits.result_chars if chars is None else chars),
            ("images", limits.images),
            ("image_pixels", limits.image_pixels),
            ("image_bytes", limits.image_bytes),
        )
        if value is not None and ((given := getattr(settings, name)) is None or value < given)
    }
    if tight and ("window" in words or _exceeds(tight, sent)):
        words["settings"] = Settings(**tight)
    return words


def _exceeds(tight: dict[str, int], sent: SentRequest) -> bool:
    """Whether the request is above its limit in bytes; the other limits can't be judged here."""
    return sent.body_bytes > tight.get("request_bytes", -1)


def _window(room: int, limits: ModelLimits, sent: SentRequest) -> dict[str, int]:
    reserve = sent.output if limits.output_counts else 0
    return {"window": max(int(room * sent.scale), 1) + reserve, "reserve": reserve}


def keywords_for_retry(
    refusal: Refusal, sent: SentRequest, limits: ModelLimits, settings: Settings,
    first: SentRequest | None = None, result_chars: int = 0,
) -> dict[str, Any]:  # fmt: skip
    """Keywords for ``fit`` to make the next, smaller request; {} if there is nothing to reduce.

    ``settings``: those of the refused request; ``first``: what was sent at first, if this
    refusal is the second for size: the next send is the last, and goes to the floor of what is
    named or seen; ``result_chars``: chars to which each tool result is cut after a refusal without
    a reason, 0: not cut.
    """
    last, room = first is not None, limits.prompt_tokens(sent.output)
    base, share = first or sent, SHARES[last]
    if names_nothing(refusal):
        return _for_nothing_named(refusal, sent, settings, result_chars, base if last else None)
    if refusal.kind == "too_long":
        if refusal.excess and refusal.excess < sent.tokens:
            return _guessed(int(sent.tokens * (1 - _EXCESS_MARGIN)) - refusal.excess, sent)
        if room is None or room >= _NEAR * sent.tokens:
            return _guessed(min(int(base.tokens * share), sent.tokens - 1), sent)
        return _window(room, limits, sent) if room > 0 else {}
    if refusal.rule == "images":
        one = _IMAGE_LIMITS.get(refusal.unit)
        if one and refusal.limit and (getattr(settings, one) or refusal.limit + 1) > refusal.limit:
            return {"settings": _limited(settings, **{one: refusal.limit})}
        return {"settings": _limited(settings, images=_images(refusal))}
    if refusal.rule == "string_too_long":
        chars = limits.result_chars
        return {"settings": _limited(settings, result_chars=chars)} if chars else {}
    size = limits.request_bytes or min(int(base.body_bytes * share), sent.body_bytes - 1)
    shortest = {"result_chars": result_chars} if last and result_chars else {}
    return {"settings": _limited(settings, request_bytes=size, **shortest)}


def _guessed(room: int, sent: SentRequest) -> dict[str, Any]:
    """Keywords for a room that no refusal named: it is filled, as it is small enough already."""
    return {"window": max(int(room * sent.scale), 1), "reserve": 0, "target": TARGET}


def _for_nothing_named(
    refusal: Refusal, sent: SentRequest, settings: Settings, result_chars: int,
    first: SentRequest | None,
) -> dict[str, Any]:  # fmt: skip
    """Keywords after a refusal without a reason: long tool results are cut, before the last send
    as short as can be, and a request that may be too large gets a smaller window."""
    words: dict[str, Any] = {}
    chars = min(result_chars, MIN_RESULT_CHARS) if first else result_chars
    if chars and sent.longest_result > chars:
        words["settings"] = _limited(settings, result_chars=chars)
    if may_be_too_large(refusal, first or sent):
        share = SHARES[first is not None]
        words |= _guessed(min(int((first or sent).tokens * share), sent.tokens - 1), sent)
    return words


def _limited(settings: Settings, **tighter: int | None) -> Settings:
    """The limits in ``settings``, with ``tighter`` replacing some of them."""
    limits: dict[str, Any] = {
        name: settings.given[name] for name in LIMITS if name in settings.given
    }
    return Settings(**{**limits, **tighter})
