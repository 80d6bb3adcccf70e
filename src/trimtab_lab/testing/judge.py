"""Decides whether a request is accepted: bytes, rules, sizes, signed thinking, window.

Checks in the same order as providers.  ``refusals`` has the texts of refusals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trimtab.formats import FORMATS, find, read, rules
from trimtab.formats.rules import Violation
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Path
from trimtab.pricing import models
from trimtab.transcript.model import Part
from trimtab.transcript.token_sizes import TokenSizes
from trimtab.transcript.tokens import Counter, counter_for
from trimtab.transcript.transcript import Transcript
from trimtab_lab.testing import signed_reasoning
from trimtab_lab.testing.http_apis import HttpApi, compaction
from trimtab_lab.testing.http_apis.refusals import Style
from trimtab_lab.testing.images import MANY_IMAGES, image_data, image_path, longest_side
from trimtab_lab.testing.prompt_parts import PromptPart, prompt_parts
from trimtab_lab.testing.record import Record

UNREADABLE = "rule:unreadable"


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """The limits to enforce; None means the provider's own limit, if the rules have one."""

    window: int | None = None
    counter: str | Callable[[str], int] | Counter | None = "o200k"
    request_bytes: int | None = None
    result_chars: int | None = None
    images: int | None = None
    image_pixels: int | None = None
    image_bytes: int | None = None
    bind_thinking: bool = True
    secret: str = "trimtab"


@dataclass(slots=True)
class Verdict:
    """``when``: the kind of refusal, "" if accepted; ``facts``: the values in its text."""

    when: str = ""
    facts: dict[str, object] = field(default_factory=dict)
    prompt_parts: list[PromptPart] = field(default_factory=list)
    model: str | None = None


def judge(config: ProviderConfig, api: HttpApi, style: Style, tree: Any, record: Record) -> Verdict:
    """Judge one request; write sizes, violations and dropped thinking into ``record``."""
    limits = FORMATS[api.format].rules.limits if api.format in FORMATS else {}
    most = config.request_bytes or limits.get("request_bytes")
    if most and record.body_bytes > most:
        return Verdict("request_bytes", {"bytes": record.body_bytes, "limit": most})
    try:
        transcript = _read(api, style, tree, record)
        usage = TokenSizes(counter_for(config.counter, model=record.model, format=api.format))
        chain = prompt_parts(transcript, tree, usage)
        counts = record.operation == "count"
        found = rules.check(transcript, doubtful=True)
        record.violations = rules.with_shape(found, transcript.format, tree, counts=counts)
        if not record.violations:
            _only_objects(transcript, tree)
        broken = compaction.refused(tree, config.secret) if api.format == "anthropic" else ("", "")
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        return Verdict(UNREADABLE, {"message": f"the body is not valid: {error}"})
    record.model = transcript.facts.model
    record.tokens = chain[-1].tokens if chain else 0
    max_output = transcript.facts.max_output
    record.output = max_output if isinstance(max_output, int) and max_output > 0 else 0
    verdict = Verdict(prompt_parts=chain, model=record.model)
    if broken[0]:
        verdict.when, verdict.facts = broken[0], {"path": broken[1]}
        return verdict
    if record.violations:
        verdict.when = f"rule:{record.violations[0].rule}"
        verdict.facts = _broken_rule(transcript, api.format, record.violations)
        return verdict
    images = _image_limit(transcript) if config.images is None else config.images
    # A request that only counts is held to the same rules (count_tokens refuses what the model
    # would refuse), not to the window.
    problem = _images(transcript, images)
    problem = problem if problem[0] else _image_sizes(transcript, tree, config)
    problem = problem if problem[0] else _results(transcript, config.result_chars)
    problem = problem if problem[0] else _thinking(config, api, transcript, tree, chain, record)
    if record.operation == "generate" and not problem[0]:
        problem = _window(config, style, record)
    verdict.when, verdict.facts = problem
    return verdict


RefusalFacts = tuple[str, dict[str, object]]
_FINE: RefusalFacts = ("", {})


def _read(api: HttpApi, style: Style, tree: Any, record: Record) -> Transcript:
    if not isinstance(tree, dict):
        raise TypeError("a JSON object was expected")
    format, _ = find(tree, FORMATS[api.format].named_in(record.headers))
    transcript = read(tree, format, model=record.model)
    if style.dialect not in format.dialects:
        return transcript
    return replace(transcript, facts=format.facts_in(transcript.facts, style.dialect))


def _only_objects(transcript: Transcript, tree: Any) -> None:
    """Raise TypeError for a message that is not an object, in case the format's reader skips it."""
    key = transcript.base[0]
    messages = tree.get(key)
    for number, message in enumerate(messages if isinstance(messages, list) else ()):
        if not isinstance(message, dict):
            raise TypeError(f"{key}[{number}]: an object was expected")


# --- rules -----------------------------------------------------------------------------------

_SAMPLE = re.compile(r"messages\.\d+(\.content\.\d+)?")


def _broken_rule(
    transcript: Transcript, format: str, violations: Sequence[Violation]
) -> dict[str, object]:
    """Facts of the first violation, with the ids of all violations of its rule in the message."""
    first = violations[0]
    depth = len(transcript.base) + 1
    same = [v for v in violations if v.rule == first.rule and v.path[:depth] == first.path[:depth]]
    parts = [part for v in same if (part := _part(transcript, v.path)) is not None]
    ids = list(dict.fromkeys(part.id for part in parts if part.id))
    rows = FORMATS[format].rules.rows
    says = next((row.error_text for row in rows if row.name == first.rule), first.message)
    facts = where(transcript, first.path, format)
    number = re.search(r"\d+", first.message)
    return {
        **facts,
        "ids": ", ".join(ids),
        "id": ids[0] if ids else _item_id(transcript, first.path),
        "tool": parts[0].tool if parts else "",
        "type": _message_type(transcript, first.path),
        "chars": len(ids[0]) if ids else 0,
        "marks": number[0] if number else "",
        "signature": "…",
        "reasoning": "rs_…",
        "message": _SAMPLE.sub(lambda sample: _like(sample, facts), says),
    }


def _like(sample: re.Match[str], facts: Mapping[str, object]) -> str:
    block = f".content.{facts['block']}" if sample[1] else ""
    return f"messages.{facts['index']}{block}"


def where(transcript: Transcript, path: Path, format: str) -> dict[str, object]:
    """A place as the provider writes it, and its indices."""
    depth = len(transcript.base)
    index = path[depth] if len(path) > depth and isinstance(path[depth], int) else 0
    inner = [step for step in path[depth + 1 :] if isinstance(step, int)]
    dotted = transcript.format.results_in_user
    assert isinstance(index, int)
    return {
        "path": ".".join(map(str, path)) if dotted else paths.escape(path),
        "index": index,
        "next": index + 1,
        "position": index + 1,
        "block": inner[0] if inner else 0,
        "request_id": "req_…",
    }


def _message_at(transcript: Transcript, path: Path) -> int | None:
    depth = len(transcript.base)
    number = path[depth] if len(path) > depth else None
    good = isinstance(number, int) and number < len(transcript.messages)
    return number if good and isinstance(number, int) else None


def _part(transcript: Transcript, path: Path) -> Part | None:
    """The longest part that contains ``path``; one with an id is preferred."""
    number = _message_at(transcript, path)
    if number is None:
        return None
    inner = path[len(transcript.base) + 1 :]
    holding = [p for p in transcript.messages[number].parts if inner[: len(p.path)] == p.path]
    return max(holding, key=lambda part: (bool(part.id), len(part.path)), default=None)


def _item_id(transcript: Transcript, path: Path) -> str:
    number = _message_at(transcript, path)
    return (transcript.messages[number].id or "") if number is not None else ""


def _message_type(transcript: Transcript, path: Path) -> str:
    number = _message_at(transcript, path)
    return transcript.messages[number].type if number is not None else ""


# --- sizes -----------------------------------------------------------------------------------


def _image_limit(transcript: Transcript) -> int | None:
    limits, model = rules.hard_limits(transcript), models.find(transcript.facts.model or "")
    is_small = model is not None and model.window <= 200_000
    return limits.get("images_in_small_window" if is_small else "images", limits.get("images"))


def _images(transcript: Transcript, limit: int | None) -> RefusalFacts:
    media = [place.block.media for place in transcript.places() if place.block.media]
    if limit is None or len(media) <= limit:
        return _FINE
    images = media.count("image")
    return "images", {"images": images, "documents": len(media) - images, "limit": limit}


def _image_sizes(transcript: Transcript, tree: Any, config: ProviderConfig) -> RefusalFacts:
    """A refusal if an image has too many bytes of base64 or pixels.  Where ``config`` has no
    limit, it is that of the model's provider."""
    limits, format = rules.hard_limits(transcript), transcript.format.name
    blocks = transcript.places()
    images = [place for place in blocks if place.block.media == "image" or place.block.picture]
    most = config.image_bytes or limits.get("image_bytes")
    widest = config.image_pixels or limits.get("image_pixels")
    many = limits.get("many_image_pixels") if len(images) > MANY_IMAGES else None
    for place in images if most or widest or many else ():
        path = transcript.item(place)
        data = image_data(paths.get(tree, path))
        facts = {**where(transcript, path, format), "path": image_path(path, format)}
        if most and len(data) > most:
            return "image_bytes", {**facts, "bytes": len(data), "limit": most, "mb": most >> 20}
        longest = longest_side(data, required=config.image_pixels is not None)
        if many and longest > many:
            return "many_image_pixels", {**facts, "limit": many}
        if widest and longest > widest:
            return "image_pixels", {**facts, "limit": widest}
    return _FINE


def _results(transcript: Transcript, limit: int | None) -> RefusalFacts:
    """A refusal if the texts of one tool result together exceed ``limit`` chars."""
    for number, message in enumerate(transcript.messages) if limit is not None else ():
        for part in message.results:
            texts = [
                block
                for block in message.blocks
                if block.kind == "result" and block.item[: len(part.path)] == part.path
            ]
            chars = sum(len(block.text) for block in texts)
            if limit is not None and chars > limit:
                path = (*transcript.base, number, *texts[0].path)
                place = where(transcript, path, transcript.format.name)
                return "string_too_long", {**place, "chars": chars, "limit": limit}
    return _FINE


def _window(config: ProviderConfig, style: Style, record: Record) -> RefusalFacts:
    window = config.window
    if window is None:
        return _FINE
    output = record.output if style.output_counts else 0
    if record.tokens > window:
        return "overflow", numbers(record.tokens, output, window)
    if record.tokens + output > window:
        return "overflow_output", numbers(record.tokens, output, window)
    return _FINE


def numbers(input: int, output: int, limit: int) -> dict[str, object]:
    """The values that refusals for size mention in their texts."""
    total = input + output
    return {
        "input": input,
        "output": output,
        "total": total,
        "limit": limit,
        "about_input": input,
        "about_total": total,
        "least": limit - output + 1,  # vLLM stops counting there
        "limit_and_one": limit + 1,
        "over": max(input - limit, 1),
        "used": max(limit - total // 2, 0),
    }


# --- thinking --------------------------------------------------------------------------------


def _thinking(
    config: ProviderConfig,
    api: HttpApi,
    transcript: Transcript,
    tree: Any,
    chain: list[PromptPart],
    record: Record,
) -> RefusalFacts:
    # What stood before a compaction is gone, and thinking that was kept behind it stays valid.
    binds = config.bind_thinking and transcript.compaction is None
    binds = binds and transcript.format.binds_reasoning(transcript.facts)
    broken = signed_reasoning.check(api, transcript, chain, config.secret, binds=binds)
    if api.drops_unbound(tree):
        moved = [item for item in broken if item.kind == "thinking_binding"]
        dropped = signed_reasoning.with_siblings(moved, api, chain)
        base = transcript.base
        record.dropped = tuple(".".join(map(str, (*base, n, *path))) for n, path in dropped)
        broken = [item for item in broken if (item.message, item.path) not in dropped]
    if not broken:
        return _FINE
    first = broken[0]
    place = where(transcript, (*transcript.base, first.message, *first.path), api.format)
    return first.kind, {**place, "signature": first.signature}
