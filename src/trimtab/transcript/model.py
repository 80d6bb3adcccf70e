"""The nouns: block, message, group, transcript, edit, limits.  All frozen.

Knows the vocabulary and how blocks are distinguished (refs).  Does not know JSON, any provider's
format, any rule, or how to count tokens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar, dataclass_transform

from trimtab.jsontext.paths import Path
from trimtab.jsontext.unreadable import is_unreadable, readable

Kind = Literal["system", "tools", "text", "call", "result", "reasoning", "media", "other"]
PartKind = Literal[
    "text", "call", "result", "reasoning", "media", "server-call", "server-result", "compaction",
    "other",
]  # fmt: skip
Spelling = Literal["string", "json-string", "json", "part"]


T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def _noun(cls: type[T]) -> type[T]:
    """A dataclass that is its own identity and is frozen for the type checker.  Not while it runs:
    a thousand messages are made at first sight, and each field would cost a call."""
    return dataclass(slots=True, eq=False)(cls)


@_noun
class Block:
    """The smallest thing an edit can target: one leaf of the request.

    ``path`` and ``item`` are relative to the message (absolute for head blocks): ``path`` is the
    value that a replacement sets, ``item`` the whole part that a removal takes out.
    ``spelling`` says how a replacement is written: as a plain string, as a string that must hold
    a JSON object (call arguments), as a JSON object, or as a text part put in place of ``item``.
    ``text`` is what the model reads; ``""`` for media and sealed payloads, whose cost is
    ``fixed_tokens``.
    """

    kind: Kind
    path: Path
    item: Path
    text: str
    label: str = ""
    """Read by the model too but never edited: the name of a called tool.  Counted."""
    spelling: Spelling = "string"
    tool: str | None = None
    call_id: str | None = None
    error: bool = False
    sealed: bool = False
    fixed_tokens: int = 0
    signature_chars: int = 0
    """Length of a signature, behind which some models bill thinking that is not in the text."""
    payload_bytes: int = 0
    """Encoded bytes of media, which no text stands for."""
    media: Literal["", "image", "document", "video", "audio"] = ""
    identity: str = ""
    """What tells sealed or media blocks apart when ``text`` is empty; never a payload."""
    _digest: str = field(init=False, default="", repr=False)

    @property
    def digest(self) -> str:
        """16 hex characters over the block's meaning; volatile keys and payloads stay out."""
        if not self._digest:
            parts = (self.kind, self.tool or "", self.call_id or "", self.identity, self.text)
            data = "\x1f".join(parts).encode("utf-8", "surrogatepass")
            this: Any = self
            this._digest = hashlib.blake2b(data, digest_size=8).hexdigest()
        return self._digest


class Part(NamedTuple):
    """One content part as rules see it: what it is, where, and which call it belongs to."""

    kind: PartKind
    path: Path
    """Relative to the message; ``()`` when the whole message is the part (a ``tool`` message)."""
    id: str = ""
    id_path: Path = ()
    """Where the id is written, relative to the message; ``()`` where there is none."""
    tool: str = ""
    flaw: str = ""
    """What one format's rules hold against this part on its own: "empty", "id", "arguments" …"""
    marked: bool = False
    """Whether the client put a cache breakpoint on it."""


@_noun
class Message:
    """One item of the history, read once and reused for as long as it does not change.

    ``role`` is the speaker in our terms; ``parts`` are its content parts in order; ``listed``
    says whether the content is a list of parts (so that another can be added).
    """

    role: Literal["system", "user", "assistant", "tool", "other"]
    blocks: tuple[Block, ...]
    parts: tuple[Part, ...] = ()
    listed: bool = False
    marks: tuple[Part, ...] = ()
    """Cache breakpoints that are parts of their own, in order; not among ``parts``."""
    inner_marks: tuple[Path, ...] = ()
    """Items within a part that carry a cache breakpoint, relative to the message."""
    id: str | None = None
    """The id of the item itself, where the format gives it one; None where it has none."""
    type: str = ""
    """What the format calls this item, where a history consists of more than messages."""
    framed: bool = True
    """Whether it pays for the frame of a message; calls and results that are items do not."""
    unreadable: tuple[Path, ...] = ()
    """Where, relative to the message, texts stand that no provider reads."""
    calls: tuple[Part, ...] = field(init=False)
    """The tool calls the client has to answer, in order."""
    results: tuple[Part, ...] = field(init=False)
    """The tool results, in order."""
    call_ids: tuple[str, ...] = field(init=False)
    result_ids: tuple[str, ...] = field(init=False)
    results_first: bool = field(init=False)
    """Whether no result stands behind another part."""
    marked: tuple[Part, ...] = field(init=False)
    """The parts that carry a cache breakpoint."""
    compaction: Part | None = field(init=False)
    """The newest part that stands for all before it, as the provider compacted it."""

    def __post_init__(self) -> None:
        this: Any = self
        results: list[Part] = []
        calls: list[Part] = []
        marked: list[Part] = []
        compaction = None
        for part in self.parts:
            if part.kind == "result":
                results.append(part)
            elif part.kind == "call":
                calls.append(part)
            elif part.kind == "compaction":
                compaction = part
            if part.marked:
                marked.append(part)
        this.results, this.calls, this.marked = tuple(results), tuple(calls), tuple(marked)
        this.compaction = compaction
        this.call_ids = tuple([part.id for part in calls]) if calls else ()
        this.result_ids = tuple([part.id for part in results]) if results else ()
        this.results_first = self.parts[: len(results)] == this.results

    @property
    def width(self) -> int:
        """How many items its list of content parts has, cache breakpoints included."""
        return len(self.parts) + len(self.marks)

    def marks_in(self, inner: Path) -> list[Path]:
        """The cache breakpoints at this place of the message, and within."""
        parts = (part.path for part in (*self.marked, *self.marks) if part.marked)
        return [path for path in (*self.inner_marks, *parts) if path[: len(inner)] == inner]

    @property
    def other_parts(self) -> tuple[Part, ...]:
        """Everything that is not a tool result: words, media, what we do not know."""
        return tuple(part for part in self.parts if part.kind != "result")


@dataclass(frozen=True, slots=True)
class Facts:
    """What stands outside the messages and rules need to know; never the request itself."""

    model: str | None = None
    dialect: str = ""
    """Whose reading of the format the request is for: a provider or a model family."""
    max_output: int | None = None
    thinking: str = ""
    tools: tuple[str, ...] | None = None
    server_state: bool = False
    managed: bool = False
    """Whether the provider is asked to clear, compact or truncate by itself what is sent."""
    alternates: bool = False
    """Whether two neighbouring messages of one role are refused."""
    apart: bool = False
    """Whether words beside tool calls or results in one message are refused."""
    stand_in: Literal["", "user", "assistant"] = ""
    """Who has to speak what stands for dropped turns; "" where it is whoever speaks not next."""
    bare: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, unsafe_hash=True)
class Place:
    """A block where it stands: message index (−1 in the head) and index within the message.

    Nothing changes one; it is not frozen because thousands are made in a turn.
    """

    message: int
    index: int
    block: Block


class Group:
    """The smallest run of messages that can be removed without breaking a rule.

    ``first``/``last`` are message indices (inclusive); ``numbers`` those of them that belong to
    the group; of the last one only the tool results where ``partial``.  ``closed`` says whether
    every call has its result.
    """

    __slots__ = (
        "_base", "_items", "_messages", "_places", "closed", "first", "has_calls", "last",
        "numbers", "partial",
    )  # fmt: skip

    def __init__(
        self,
        messages: Sequence[Message],
        base: Path,
        numbers: Sequence[int],
        *,
        closed: bool,
        has_calls: bool,
        partial: bool = False,
    ) -> None:
        self._messages, self._base = messages, base
        self.first, self.last, self.numbers = numbers[0], numbers[-1], numbers
        self.closed, self.has_calls, self.partial = closed, has_calls, partial
        self._items: tuple[Path, ...] | None = None
        self._places: tuple[Place, ...] | None = None

    @property
    def items(self) -> tuple[Path, ...]:
        """The absolute paths that a drop deletes."""
        if self._items is None:
            whole = self.numbers[:-1] if self.partial else self.numbers
            paths: list[Path] = [(*self._base, number) for number in whole]
            if self.partial:
                message = self._messages[self.last]
                parts = (*message.results, *_leading_marks(message))
                paths += [(*self._base, self.last, *part.path) for part in parts]
            self._items = tuple(paths)
        return self._items

    @property
    def places(self) -> tuple[Place, ...]:
        """Its blocks, in order."""
        if self._places is None:
            places = []
            for number in self.numbers:
                some = self.partial and number == self.last
                for index, block in enumerate(self._messages[number].blocks):
                    if not some or is_of_result(block):
                        places.append(Place(number, index, block))
            self._places = tuple(places)
        return self._places


def _leading_marks(message: Message) -> list[Part]:
    """Breakpoints that would stand first when the results are gone: nothing left to cache."""
    first = message.other_parts[0].path
    return [mark for mark in message.marks if mark.path < first]


def is_of_result(block: Block) -> bool:
    """Whether a block of a user message is a tool result, or what one shows."""
    return block.kind == "result" or (block.call_id is not None and block.kind != "call")


Op = Literal["replace", "remove", "drop", "fold", "insert", "restore"]


@dataclass(frozen=True, slots=True)
class Edit:
    """One reduction as a value: print it, store it, compare two.

    ``targets`` are refs: one for ``replace`` and ``remove``, every block that goes for ``drop`` and
    ``fold``, the block it stands behind for ``insert``.  ``text`` is what is shown instead: for
    ``drop`` a marker, for ``fold`` the result of the call ``anchor``, which stands for all results.
    ``witness`` is the newest model-authored block of the last closed
    group when the choice was made: without it the edit does not count (no edits from the future).
    ``needs``: what else must be there, such as the later result that made this one stale.
    """

    op: Op
    targets: tuple[str, ...]
    text: str
    kind: str
    why: str
    loss: float = 0.0
    witness: str = ""
    handle: str = ""
    needs: tuple[str, ...] = ()
    anchor: str = ""
    """Of a fold: the ref of the call that stays, "" where only words do."""
    arguments: str = ""
    """Of a fold: the anchor's arguments where they are shown shorter, "" where they stay whole."""
    said: str = ""
    """Of a fold: what is left of the model's words."""
    asked: str = ""
    """Of a fold: what is left of the user's words."""

    def __post_init__(self) -> None:
        for name in ("text", "arguments", "said", "asked"):
            text = getattr(self, name)
            if is_unreadable(text):  # parsed out of text that is legal, as JSON within JSON
                object.__setattr__(self, name, readable(text))


TRIGGER, SURE_TRIGGER = 0.90, 0.95
"""Share of what may be sent above which a batch begins: where counts are estimates, and where the
model's own tokenizer counted or answers were observed (replay: 3.5 points more of the old lines,
and a sixth fewer lost caches)."""
