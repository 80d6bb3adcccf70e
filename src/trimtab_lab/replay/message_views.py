"""Messages as the metric reads them: tokens, identifiers and lines.

Equal messages share one view, so that each is read once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from trimtab.formats import Format
from trimtab.lazy import cached_property
from trimtab.logs.recording import Recording
from trimtab.transcript.model import Block, Message
from trimtab.transcript.token_sizes import TokenSizes
from trimtab.transcript.token_sources import Vocabulary
from trimtab.transcript.tokens import Counter
from trimtab.transcript.transcript import Transcript
from trimtab_lab.replay import text_features
from trimtab_lab.replay.text_features import Context, Span
from trimtab_lab.replay.user_constraints import demands, squeezed

_READ = ("text", "system", "call", "result", "reasoning", "other")
"""Kinds of blocks whose text the metric reads; tool definitions are left out, as every request has
them."""


def own_counter() -> Counter:
    """An o200k counter with a cache of its own and its vocabulary loaded.

    With a shared cache, texts that the metric has counted would cost a timed policy nothing.
    """
    counter = Counter(Vocabulary("o200k", "o200k_base"), own=True)
    counter.source.load()
    return counter


_referee = cache(own_counter)


class CacheUnit(NamedTuple):
    """One unit that the simulated prefix cache compares: a block's key and its tokens."""

    key: str
    tokens: int


class TextPiece(NamedTuple):
    """One text of a message: its block's kind, tool and call id, and the text made plain."""

    kind: str
    tool: str
    text: str
    call_id: str


class MessageView:
    """One message; each property is computed on first use."""

    def __init__(self, message: Message, usage: TokenSizes) -> None:
        self.message = message
        self._usage = usage

    @cached_property
    def tokens(self) -> int:
        """o200k tokens, with the fixed cost of the message and its calls and results."""
        return self._usage.message(self.message)

    @cached_property
    def units(self) -> tuple[CacheUnit, ...]:
        """The message's units for a prefix cache; the first one has the fixed cost."""
        sizes = self._usage.sizes(self.message).blocks
        role = self.message.role
        rest = self.tokens - sum(sizes)
        blocks = [
            CacheUnit(f"{role}:{block.digest}", size)
            for block, size in zip(self.message.blocks, sizes, strict=True)
        ]
        return (CacheUnit(role, rest), *blocks)

    @cached_property
    def pieces(self) -> tuple[TextPiece, ...]:
        """The texts the metric reads."""
        return tuple(piece for block in self.message.blocks for piece in _pieces(block))

    @cached_property
    def spans(self) -> Mapping[str, list[tuple[int, Span]]]:
        """Identifier → (number of the piece, span in it) of each occurrence."""
        occurrences: dict[str, list[tuple[int, Span]]] = {}
        for number, piece in enumerate(self.pieces):
            for span in text_features.spans(piece.text):
                occurrences.setdefault(span.identifier, []).append((number, span))
        return occurrences

    @cached_property
    def lines(self) -> frozenset[str]:
        """Lines long enough to count (``text_features.lines``); one behind a + also without it, as
        a reader of a patch reads it."""
        every = [line for piece in self.pieces for line in text_features.lines(piece.text)]
        added = (line[1:].strip() for line in every if line.startswith("+"))
        return frozenset([*every, *added])

    @cached_property
    def demands(self) -> tuple[str, ...]:
        """Sentences in which the user demands something."""
        if self.message.role != "user":
            return ()
        texts = (piece.text for piece in self.pieces if piece.kind == "text")
        return tuple(part for text in texts for part in demands(text))

    @cached_property
    def squeezed(self) -> str:
        """All text of the message, with each run of blanks as one space."""
        return squeezed("\n".join(piece.text for piece in self.pieces))

    @cached_property
    def _contexts(self) -> dict[tuple[str, bool], tuple[Context, ...]]:
        return {}

    def contexts(self, identifier: str, *, wide: bool) -> tuple[Context, ...]:
        """The words around each occurrence, on the line or (``wide``) across lines."""
        contexts = self._contexts.get((identifier, wide))
        if contexts is None:
            look = text_features.around if wide else text_features.near
            contexts = self._contexts[identifier, wide] = tuple(
                look(self.pieces[number].text, span)
                for number, span in self.spans.get(identifier, ())
            )
        return contexts

    def written(self) -> MessageView:
        """The message with its texts and calls only, without hidden reasoning."""
        blocks = tuple(b for b in self.message.blocks if b.kind in ("text", "call"))
        return MessageView(Message(self.message.role, blocks), self._usage)


def _pieces(block: Block) -> list[TextPiece]:
    if block.kind not in _READ or not block.text:
        return []
    texts = text_features.values(block.text) if block.kind in ("call", "other") else [block.text]
    return [
        TextPiece(block.kind, block.tool or "", text_features.plain_text(text), block.call_id or "")
        for text in texts
    ]


class MessageViews:
    """Views by content: a message that a policy leaves unchanged has the recording's own view.

    ``base``: other views in which a message is looked up too.
    """

    def __init__(self, format: Format, base: MessageViews | None = None) -> None:
        self.format = format
        self.usage: TokenSizes = base.usage if base else TokenSizes(_referee())
        self._base = base
        self._by_id: dict[int, tuple[Any, MessageView]] = {}
        self._by_key: dict[bytes, MessageView] = {}

    def all(self, messages: Sequence[Any]) -> list[MessageView]:
        """The view of each message.  Message objects are kept until the next call."""
        fresh: dict[int, tuple[Any, MessageView]] = {}
        views = []
        for message in messages:
            view = self._seen(message)
            if view is None:
                view = self._by_content(message)
            fresh[id(message)] = (message, view)
            views.append(view)
        self._by_id = fresh
        return views

    def intact(self, messages: Sequence[Any], views: Sequence[MessageView]) -> bool:
        """Whether ``messages`` still have the content that they had in ``views``."""
        known = (self._by_content(message) for message in messages)
        return all(now is then for now, then in zip(known, views, strict=True))

    def _seen(self, message: Any) -> MessageView | None:
        cached = self._by_id.get(id(message))
        if cached is None and self._base is not None:
            cached = self._base._by_id.get(id(message))
        return cached[1] if cached is not None and cached[0] is message else None

    def _by_content(self, message: Any) -> MessageView:
        data = json.dumps(message, sort_keys=True, default=str).encode("utf-8", "surrogatepass")
        key = hashlib.blake2b(data, digest_size=16).digest()
        view = self._by_key.get(key)
        if view is None and self._base is not None:
            view = self._base._by_key.get(key)
        if view is None:
            view = self._by_key[key] = MessageView(self.format.read_message(message), self.usage)
        return view


def transcript_of(recording: Recording, body: Any, views: Sequence[MessageView]) -> Transcript:
    """The transcript of a body whose messages already have views."""
    reader = recording.reader
    return Transcript(
        reader, reader.base(body), reader.read_head(body),
        tuple(view.message for view in views), reader.read_facts(body, recording.model),
    )  # fmt: skip
