"""From a refusal about size to limits that the next request has to meet.

Knows numbers: what was sent, in our count, and what the provider said.  Pure.  Does not know how
a request is fitted, nor who sends it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from trimtab.model import TRIGGER, Limits
from trimtab.refusals import Refusal
from trimtab.sending.learned import Learned, ratio

SHARES = (0.7, 0.4)
"""Of what was refused, where nobody says how much would be accepted: the first time, and then."""
_MARGIN = 0.98
"""Of a limit that is known while our count of the request is only an estimate."""
_PLAUSIBLE_TOKENS = 8_000
"""Below this, or half the window, a refusal that says nothing is no sign of size."""
_LONG_CONTEXT = 200_000
"""Tokens above which providers ask for another plan."""
_MANY_IMAGES = 20
_MANY_IMAGE_PIXELS = 2_000
"""Up to 20 images, each may have 8,000 pixels a side; more than that, 2,000 (Anthropic)."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What was refused, in our count: tokens of the prompt, bytes, output that it asked for.

    ``scale``: what ``fit`` divides a window by to have it in our tokens.
    """

    tokens: int
    body_bytes: int
    output: int = 0
    window: int | None = None
    scale: float = 1.0


def plausible(refusal: Refusal, sent: Sent) -> bool:
    """Whether size can be the reason at all; a rate error below its own limit is a rate error."""
    if refusal.rule == "rate_tpm_size" and refusal.requested is None:
        return sent.tokens + sent.output > 0.8 * (refusal.limit or _LONG_CONTEXT)
    if refusal.rule in ("opaque", "no_body"):
        window = sent.window
        half = _PLAUSIBLE_TOKENS if window is None else window // 2
        return sent.tokens >= min(half, _PLAUSIBLE_TOKENS)
    return True


def learn(refusal: Refusal, sent: Sent, known: Learned) -> Learned:
    """What is known after this refusal; the same object where it taught nothing."""
    if refusal.kind == "too_long":
        return _tokens(refusal, sent, known)
    if refusal.rule == "images":
        return replace(known, images=_images(refusal), exactness="exact")
    if refusal.rule == "string_too_long" and refusal.limit:
        return replace(known, result_chars=refusal.limit, exactness="exact")
    if refusal.rule == "request_bytes" and refusal.limit and refusal.limit < sent.body_bytes:
        return replace(known, request_bytes=refusal.limit, exactness="exact")
    return known


def _tokens(refusal: Refusal, sent: Sent, known: Learned) -> Learned:
    refused = min(sent.tokens, known.refused or sent.tokens)
    if refusal.limit is None:
        accepted = min(known.accepted, refused - 1)
        return replace(known, limit=None, refused=refused, accepted=accepted, exactness="guess")
    whole = refusal.requested is not None and refusal.output is None
    counts = refusal.output is not None or (not whole and sent.output < refusal.limit // 2)
    output = refusal.output if refusal.output is not None else (sent.output if counts else 0)
    stated = None if refusal.requested is None else refusal.requested - (refusal.output or 0)
    least = (refusal.limit - output) / (max(sent.tokens, 1) * _MARGIN)
    found = max(known.ratio if known.limit else 1.0, least)
    if refusal.exactness == "exact" and stated is not None:
        found = ratio(stated, sent.tokens)
    return Learned(
        refusal.limit, max(found, 0.01), counts or known.output_counts, refusal.exactness, refused,
        0, known.request_bytes, known.result_chars, known.images, known.mends,
    )  # fmt: skip


def _images(refusal: Refusal) -> int:
    """How many images may stay: the limit where it is a count, none where each is too big."""
    if refusal.unit == "images" and refusal.limit is not None:
        return refusal.limit
    many = refusal.unit == "pixels" and (refusal.limit or 0) <= _MANY_IMAGE_PIXELS
    return _MANY_IMAGES if many else 0


def known_keywords(known: Learned, limits: Limits, sent: Sent) -> dict[str, Any]:
    """Keywords of ``fit`` that hold a request to what is known; {} where it meets that anyway.

    ``limits`` are those asked for; nothing here is laxer than they are.
    """
    words: dict[str, Any] = {}
    room = known.prompt_tokens(sent.output)
    if room is not None and sent.tokens > (limits.trigger or TRIGGER) * room:
        words |= _window(room, known, sent)
    tight = {
        name: value
        for name in ("request_bytes", "result_chars", "images")
        if (value := getattr(known, name)) is not None
        and ((given := getattr(limits, name)) is None or value < given)
    }
    if tight and ("window" in words or _exceeds(tight, sent)):
        words["limits"] = replace(limits, **tight)
    return words


def _exceeds(tight: dict[str, int], sent: Sent) -> bool:
    """Whether a limit other than tokens may be exceeded; only bytes can be told from here."""
    return sent.body_bytes > tight.get("request_bytes", -1)


def _window(room: int, known: Learned, sent: Sent) -> dict[str, int]:
    reserve = sent.output if known.output_counts else 0
    return {"window": max(int(room * sent.scale), 1) + reserve, "reserve": reserve}


def keywords(
    refusal: Refusal, sent: Sent, known: Learned, limits: Limits, attempt: int = 1,
    result_chars: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Keywords of ``fit`` for the request to send instead; {} where nothing smaller is asked for.

    ``attempt``: which send was refused; ``result_chars``: to what a bare refusal cuts each tool
    result.
    """
    room, share = known.prompt_tokens(sent.output), SHARES[min(attempt, len(SHARES)) - 1]
    if refusal.kind == "too_long":
        if refusal.limit is None or room is None or room >= sent.tokens:
            room = int(sent.tokens * share)
        return _window(room, known, sent) if room > 0 else {}
    if refusal.rule == "opaque" and result_chars is not None:
        return {"limits": replace(limits, result_chars=result_chars)}
    if refusal.rule == "images":
        return {"limits": replace(limits, images=known.images)}
    if refusal.rule == "string_too_long":
        chars = known.result_chars
        return {"limits": replace(limits, result_chars=chars)} if chars else {}
    size = known.request_bytes or int(sent.body_bytes * share)
    if refusal.rule == "opaque":
        return {"window": max(int(sent.tokens * share * sent.scale), 1), "reserve": 0}
    return {"limits": replace(limits, request_bytes=size)}
