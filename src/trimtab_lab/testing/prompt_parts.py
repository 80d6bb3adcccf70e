"""The parts of a request in the provider's order, each with a digest of everything up to it.

Providers read tools, system, messages in this order.  Equivalent forms get the same digest: a text
or a list of one text part, with or without cache breakpoints.  The prefix cache and the signatures
of thinking use these digests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from trimtab.jsontext import paths
from trimtab.jsontext.paths import Path
from trimtab.transcript.model import Block, Message, Part
from trimtab.transcript.token_sizes import TokenSizes
from trimtab.transcript.transcript import Transcript

_MARKS = frozenset({"cache_control", "cachePoint", "prompt_cache_breakpoint"})
_TEXT = frozenset({"type", "text"})


class PromptPart(NamedTuple):
    """One part of a request.

    ``before`` and ``after``: digests of everything before the part, without and with the part;
    ``tokens`` up to and including it; ``mark``: its cache breakpoint; ``message``: −1 for system
    text and tools; ``path`` within the message; ``raw``: the part itself.
    """

    message: int
    path: Path
    raw: Any
    before: str
    after: str
    tokens: int
    mark: Any = None


def prompt_parts(transcript: Transcript, tree: Any, usage: TokenSizes) -> list[PromptPart]:
    """The parts in the order in which the provider reads them."""
    parts: list[PromptPart] = []
    for piece in (*_head(transcript, tree, usage), *_messages(transcript, tree, usage)):
        if piece.raw is _MARK_ONLY:
            if parts:
                parts[-1] = parts[-1]._replace(mark=piece.mark)
            continue
        before = parts[-1].after if parts else ""
        tokens = piece.tokens + (parts[-1].tokens if parts else 0)
        after = step(before, piece.raw)
        parts.append(
            PromptPart(piece.message, piece.path, piece.raw, before, after, tokens, piece.mark)
        )
    return parts


def step(before: str, raw: Any) -> str:
    """The digest of everything before a part, and the part."""
    data = before + paths.dump(normal(raw))
    return hashlib.blake2b(data.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def after_all(parts: list[PromptPart], frame: Any) -> str:
    """The digest that a part of a new message with this frame would have before it."""
    if parts and parts[-1].message >= 0:
        last = [part for part in parts if part.message == parts[-1].message]
        if last[0].path == () and last[0].raw == frame:
            return parts[-1].after
    return step(parts[-1].after if parts else "", frame)


class _Piece(NamedTuple):
    message: int
    path: Path
    raw: Any
    tokens: int
    mark: Any = None


_MARK_ONLY = object()


def _head(transcript: Transcript, tree: Any, usage: TokenSizes) -> Iterator[_Piece]:
    format = transcript.format
    for block in sorted(transcript.head, key=lambda block: block.kind != "tools"):
        raw = paths.get(tree, block.item)
        yield _Piece(-1, block.item, raw, usage.block_cost(block), format.mark_of(raw))
    marked = transcript.facts.extra.get("marked_head")
    if isinstance(marked, tuple) and marked:  # breakpoints that are items of their own
        yield _Piece(-1, marked[-1], _MARK_ONLY, 0, format.mark_of(paths.get(tree, marked[-1])))


def _messages(transcript: Transcript, tree: Any, usage: TokenSizes) -> Iterator[_Piece]:
    merges, speaker = transcript.format.merges_roles, None
    for number, message in enumerate(transcript.messages):
        raw = paths.get(tree, (*transcript.base, number))
        parts = sorted((*message.parts, *message.marks), key=lambda part: part.path)
        frame = _frame(raw, parts, transcript.format.content_key)
        inner = [_part(transcript, raw, number, message, part, usage) for part in parts]
        frame_tokens = usage.message(message) - sum(piece.tokens for piece in inner)
        if frame and not (merges and frame == speaker):
            yield _Piece(number, (), frame, frame_tokens)
        elif inner:
            inner[0] = inner[0]._replace(tokens=inner[0].tokens + frame_tokens)
        speaker = frame
        yield from inner


def _frame(raw: Any, parts: list[Part], content_key: str) -> dict[str, Any]:
    """A message's other keys: role, name, reasoning on the message itself."""
    if not isinstance(raw, dict) or any(part.path == () for part in parts):
        return {}
    part_keys = {part.path[0] for part in parts} | {content_key}
    return {key: value for key, value in raw.items() if key not in part_keys}


def _part(
    transcript: Transcript, raw: Any, number: int, message: Message, part: Part, usage: TokenSizes
) -> _Piece:
    try:
        value = paths.get(raw, part.path)
    except LookupError:  # a flaw that stands for content which is not there
        value = None
    if part in message.marks:
        return _Piece(number, part.path, _MARK_ONLY, 0, transcript.format.mark_of(value))
    sizes = usage.sizes(message).blocks
    block_tokens = sum(
        size for size, block in zip(sizes, message.blocks, strict=True) if _within(block, part)
    )
    tokens = block_tokens + usage.pairs([part])
    return _Piece(number, part.path, value, tokens, transcript.format.mark_of(value))


def _within(block: Block, part: Part) -> bool:
    return block.item[: len(part.path)] == part.path


def normal(value: Any) -> Any:
    """``value`` normalised: without breakpoints, texts in one form."""
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, list):
        return [normal(item) if isinstance(item, dict) else item for item in value]
    if not isinstance(value, dict):
        return value
    fields = {key: inner for key, inner in value.items() if key not in _MARKS}
    if isinstance(fields.get("text"), str) and fields.keys() <= _TEXT:
        return {"text": fields["text"]}
    if isinstance(fields.get("content"), str):
        fields["content"] = [{"text": fields["content"]}]
    return {
        key: normal(inner) if isinstance(inner, (dict, list)) else inner
        for key, inner in fields.items()
    }
