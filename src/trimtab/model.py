"""The nouns: block, message, group, transcript, edit, limits.  All frozen.

Knows the vocabulary and how blocks are told apart (refs).  Does not know JSON, any provider's
format, any rule, or how to count tokens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar, dataclass_transform

from trimtab.index import Index, called

Path = tuple[str | int, ...]
"""Where a value stands in the request: ``("messages", 3, "content", 0, "text")``."""

Kind = Literal["system", "tools", "text", "call", "result", "reasoning", "media", "other"]
PartKind = Literal[
    "text", "call", "result", "reasoning", "media", "server-call", "server-result", "other"
]
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

    def __post_init__(self) -> None:
        this: Any = self
        results: list[Part] = []
        calls: list[Part] = []
        marked: list[Part] = []
        for part in self.parts:
            if part.kind == "result":
                results.append(part)
            elif part.kind == "call":
                calls.append(part)
            if part.marked:
                marked.append(part)
        this.results, this.calls, this.marked = tuple(results), tuple(calls), tuple(marked)
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
    alternates: bool = False
    """Whether two neighbouring messages of one role are refused."""
    apart: bool = False
    """Whether words beside tool calls or results in one message are refused."""
    stand_in: Literal["", "user", "assistant"] = ""
    """Who has to speak what stands for dropped turns; "" where it is whoever speaks not next."""
    bare: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """A block where it stands: message index (−1 in the head) and index within the message."""

    message: int
    index: int
    block: Block


@dataclass(frozen=True, slots=True)
class Group:
    """The smallest run of messages that can be removed without breaking a rule.

    ``first``/``last`` are message indices (inclusive); ``items`` the absolute paths a drop
    deletes; ``closed`` whether every call has its result.
    """

    first: int
    last: int
    items: tuple[Path, ...]
    places: tuple[Place, ...]
    closed: bool
    has_calls: bool


@dataclass(frozen=True)
class Transcript:
    """Blocks and groups of one request, in order, with the format that read them."""

    format: Any
    base: Path
    head: tuple[Block, ...]
    messages: tuple[Message, ...]
    facts: Facts
    before: Index | None = field(default=None, repr=False, compare=False)
    """Of one that may begin this one: what is known of it is not worked out again."""

    def where(self, place: Place) -> Path:
        """Absolute path of the value that a replacement of this block sets."""
        return self._absolute(place, place.block.path)

    def item(self, place: Place) -> Path:
        """Absolute path of the part that a removal of this block takes out."""
        return self._absolute(place, place.block.item)

    def _absolute(self, place: Place, path: Path) -> Path:
        return path if place.message < 0 else (*self.base, place.message, *path)

    def places(self) -> Iterator[Place]:
        """Every block of head and messages, in order."""
        for number in range(-1, len(self.messages)):
            yield from self.places_in(number)

    def places_in(self, message: int) -> Iterator[Place]:
        """The blocks of one message; of the head for −1."""
        blocks = self.head if message < 0 else self.messages[message].blocks
        for index, block in enumerate(blocks):
            yield Place(message, index, block)

    def at(self, message: int, index: int) -> Place:
        """The block with this position; message −1 is the head."""
        blocks = self.head if message < 0 else self.messages[message].blocks
        return Place(message, index, blocks[index])

    @cached_property
    def index(self) -> Index:
        """Where everything stands."""
        return Index(self, self.before)

    @cached_property
    def refs(self) -> Mapping[str, Place]:
        """ref → place.  A ref is the digest plus its ordinal among equal ones, oldest first."""
        return self.index.names.places

    @cached_property
    def ref_of(self) -> Mapping[tuple[int, int], str]:
        """(message, index) → ref, the inverse of ``refs``."""
        return self.index.names.refs

    def ref(self, place: Place) -> str:
        """The ref of one block."""
        return self.ref_of[place.message, place.index]

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Groups in order; user and system messages belong to none."""
        groups: tuple[Group, ...] = self.format.groups(self)
        return groups

    @cached_property
    def group_at(self) -> Mapping[tuple[int, int], int]:
        """(message, index) of a block → the number of its group."""
        return self.index.rows.at

    @cached_property
    def runs(self) -> dict[tuple[str, ...], tuple[Group, ...] | None]:
        """Refs → the groups they are, as far as they were asked for (a memo of ``edits``)."""
        return {}

    def adjoin(self, before: Group, after: Group) -> bool:
        """Whether nothing would stand between these groups if both were dropped.

        Where roles must alternate, words beside the results of ``before`` would meet what the
        run's note is put into.
        """
        if before.last + 1 != after.first:
            return False
        last = self.messages[before.last]
        return not (self.facts.alternates and last.role == "user" and last.other_parts)

    def is_part(self, place: Place) -> bool:
        """Whether the block is a whole content part (else it stands beside the content)."""
        parts = self.messages[place.message].parts
        return any(part.path == place.block.item for part in parts)

    def tool(self, place: Place) -> str | None:
        """The tool a call or result belongs to; a result learns it from the call it answers."""
        number = None if place.block.tool else self.group_at.get((place.message, place.index))
        if number is None:
            return place.block.tool
        return called(self, self.groups[number]).get(place.block.call_id or "") or None


Op = Literal["replace", "remove", "drop", "insert", "restore"]


@dataclass(frozen=True, slots=True)
class Edit:
    """One reduction as a value: print it, store it, compare two.

    ``targets`` are refs: one for ``replace`` and ``remove``, every block of the dropped groups
    for ``drop``, the block it stands behind for ``insert``.  ``text`` is what is shown instead
    (for ``drop`` the note).  ``witness`` is the newest model-authored block of the last closed
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


TRIGGER, SURE_TRIGGER = 0.90, 0.95
"""Share of what may be sent above which a batch begins: where counts are estimates, and where the
model's own tokenizer counted or answers were observed (replay: 3.5 points more of the old lines,
and a sixth fewer lost caches)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request must meet.

    ``window`` and ``reserve`` in tokens; ``trigger`` the share of (window − reserve) above which
    something happens at all (None: 0.95 where our counts are the model's own or answers were
    observed, 0.90 where they are estimates), ``target`` the share of the room a batch goes down
    to (None: what the preset says);
    ``request_bytes`` of the encoded body, ``result_chars`` of one tool result, ``images`` a count.
    None means no such limit.
    """

    window: int | None = None
    reserve: int | None = None
    trigger: float | None = None
    target: float | None = None
    request_bytes: int | None = None
    result_chars: int | None = None
    images: int | None = None
