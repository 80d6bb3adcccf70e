"""A request as a chain: one digest for everything up to and including each of its parts.

Knows the order in which providers read a request (tools, system, messages) and which spellings
mean the same (a text or a list of one text part; cache breakpoints or none).  The prefix cache and
the binding of thinking both stand on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from trimtab import paths
from trimtab.model import Block, Message, Part, Path, Transcript
from trimtab.reading.usage import Usage

_MARKS = frozenset({"cache_control", "cachePoint", "prompt_cache_breakpoint"})
_TEXT = frozenset({"type", "text"})


class Unit(NamedTuple):
    """One part of a request.

    ``before`` and ``after``: digests of all that stands before it, and of all that with it;
    ``tokens`` up to and including it; ``mark`` the cache breakpoint it carries; ``message`` −1
    in the head; ``path`` within the message; ``raw`` the part itself.
    """

    message: int
    path: Path
    raw: Any
    before: str
    after: str
    tokens: int
    mark: Any = None


def units(transcript: Transcript, tree: Any, usage: Usage) -> list[Unit]:
    """The parts in the order in which the provider reads them."""
    found: list[Unit] = []
    for piece in (*_head(transcript, tree, usage), *_messages(transcript, tree, usage)):
        if piece.raw is _MARK_ONLY:
            if found:
                found[-1] = found[-1]._replace(mark=piece.mark)
            continue
        before = found[-1].after if found else ""
        tokens = piece.tokens + (found[-1].tokens if found else 0)
        after = step(before, piece.raw)
        found.append(Unit(piece.message, piece.path, piece.raw, before, after, tokens, piece.mark))
    return found


def step(before: str, raw: Any) -> str:
    """The digest of what stands before, and this part."""
    data = before + paths.dump(normal(raw))
    return hashlib.blake2b(data.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def after_all(units: list[Unit], frame: Any) -> str:
    """The digest that a part of a new message with this frame would have before it."""
    if units and units[-1].message >= 0:
        last = [unit for unit in units if unit.message == units[-1].message]
        if last[0].path == () and last[0].raw == frame:
            return units[-1].after
    return step(units[-1].after if units else "", frame)


class _Piece(NamedTuple):
    message: int
    path: Path
    raw: Any
    tokens: int
    mark: Any = None


_MARK_ONLY = object()


def _head(transcript: Transcript, tree: Any, usage: Usage) -> Iterator[_Piece]:
    format = transcript.format
    for block in sorted(transcript.head, key=lambda block: block.kind != "tools"):
        raw = paths.get(tree, block.item)
        yield _Piece(-1, block.item, raw, usage.block_cost(block), format.mark_of(raw))
    marked = transcript.facts.extra.get("marked_head")
    if isinstance(marked, tuple) and marked:  # breakpoints that are items of their own
        yield _Piece(-1, marked[-1], _MARK_ONLY, 0, format.mark_of(paths.get(tree, marked[-1])))


def _messages(transcript: Transcript, tree: Any, usage: Usage) -> Iterator[_Piece]:
    merges, speaker = transcript.format.merges_roles, None
    for number, message in enumerate(transcript.messages):
        raw = paths.get(tree, (*transcript.base, number))
        parts = sorted((*message.parts, *message.marks), key=lambda part: part.path)
        frame = _frame(raw, parts, transcript.format.content_key)
        inner = [_part(transcript, raw, number, message, part, usage) for part in parts]
        rest = usage.message(message) - sum(piece.tokens for piece in inner)
        if frame and not (merges and frame == speaker):
            yield _Piece(number, (), frame, rest)
        elif inner:
            inner[0] = inner[0]._replace(tokens=inner[0].tokens + rest)
        speaker = frame
        yield from inner


def _frame(raw: Any, parts: list[Part], content_key: str) -> dict[str, Any]:
    """What a message has beside its parts: its role, a name, reasoning of its own."""
    if not isinstance(raw, dict) or any(part.path == () for part in parts):
        return {}
    held = {part.path[0] for part in parts} | {content_key}
    return {key: value for key, value in raw.items() if key not in held}


def _part(
    transcript: Transcript, raw: Any, number: int, message: Message, part: Part, usage: Usage
) -> _Piece:
    try:
        value = paths.get(raw, part.path)
    except LookupError:  # a flaw that stands for content which is not there
        value = None
    if part in message.marks:
        return _Piece(number, part.path, _MARK_ONLY, 0, transcript.format.mark_of(value))
    sizes = usage.sizes(message).blocks
    own = sum(
        size for size, block in zip(sizes, message.blocks, strict=True) if _within(block, part)
    )
    tokens = own + usage.pairs([part])
    return _Piece(number, part.path, value, tokens, transcript.format.mark_of(value))


def _within(block: Block, part: Part) -> bool:
    return block.item[: len(part.path)] == part.path


def normal(value: Any) -> Any:
    """The value without breakpoints, texts spelled in one way."""
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, list):
        return [normal(item) if isinstance(item, dict) else item for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: inner for key, inner in value.items() if key not in _MARKS}
    if isinstance(kept.get("text"), str) and kept.keys() <= _TEXT:
        return {"text": kept["text"]}
    if isinstance(kept.get("content"), str):
        kept["content"] = [{"text": kept["content"]}]
    return {
        key: normal(inner) if isinstance(inner, (dict, list)) else inner
        for key, inner in kept.items()
    }
