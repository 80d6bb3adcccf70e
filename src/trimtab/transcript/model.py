"""The data types of a request: block, part, message, group, facts, edit.  Treated as frozen.

They know nothing of JSON, a provider's format, rules, or how tokens are counted.
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
    """A dataclass compared by identity and frozen for the type checker only: at run time a first
    request makes thousands of these objects, and freezing costs one call for each field."""
    return dataclass(slots=True, eq=False)(cls)


class Picture(NamedTuple):
    """An image whose data are in the request: pixels, and characters of its base64."""

    width: int
    height: int
    encoded: int


@_noun
class Block:
    """The smallest unit that an edit can target: one leaf of the request.

    ``path`` and ``item`` are relative to the message (absolute for head blocks): ``path`` is the
    value that a replacement sets, ``item`` the whole part that a removal deletes.
    ``spelling`` says how a replacement is written: as a plain string, as a string that must hold
    a JSON object (call arguments), as a JSON object, or as a text part instead of ``item``.
    ``text`` is what the model reads; ``""`` for media and sealed payloads, whose cost is
    ``fixed_tokens``.
    """

    kind: Kind
    path: Path
    item: Path
    text: str
    label: str = ""
    """The name of a called tool: the model reads it and its tokens count, but no edit changes it.
    """
    spelling: Spelling = "string"
    tool: str | None = None
    call_id: str | None = None
    error: bool = False
    sealed: bool = False
    fixed_tokens: int = 0
    signature_chars: int = 0
    """Length of a signature; for it some models bill thinking that the text does not show."""
    payload_bytes: int = 0
    """Encoded bytes of media, which ``text`` does not include."""
    media: Literal["", "image", "document", "video", "audio"] = ""
    picture: Picture | None = None
    """Of an image whose data are in the request and say how large it is."""
    deferred: str = ""
    """The name of a tool whose definition the provider reads only once a search has found it."""
    identity: str = ""
    """Distinguishes sealed or media blocks whose ``text`` is empty: a digest or id, no payload."""
    _digest: str = field(init=False, default="", repr=False)

    @property
    def digest(self) -> str:
        """16 hex characters over kind, tool, call id, identity and text; no volatile key or
        payload enters."""
        if not self._digest:
            parts = (self.kind, self.tool or "", self.call_id or "", self.identity, self.text)
            data = "\x1f".join(parts).encode("utf-8", "surrogatepass")
            this: Any = self
            this._digest = hashlib.blake2b(data, digest_size=8).hexdigest()
        return self._digest


class Part(NamedTuple):
    """One content part as the rules see it: its kind, its path, and the call it belongs to."""

    kind: PartKind
    path: Path
    """Relative to the message; ``()`` when the whole message is the part (a ``tool`` message)."""
    id: str = ""
    id_path: Path = ()
    """Path of the id, relative to the message; ``()`` if there is none."""
    tool: str = ""
    flaw: str = ""
    """What the format's reader found wrong with this part by itself: "empty", "id", "arguments" …
    """
    marked: bool = False
    """Whether it carries the client's cache breakpoint."""
    refers: tuple[str, ...] = ()
    """Ids of other parts that it names beside the ``id`` that pairs a call and its result; of a
    part that we don't know, all ids in it."""


LINKED = ("server-call", "server-result", "other")
"""Kinds of parts whose partner may be in another message; which one, only their ids say."""


@_noun
class Message:
    """One item of the history, read once and reused as long as it does not change.

    ``role`` is the speaker, named alike for all formats; ``parts`` are its content parts in order;
    ``listed`` says whether the content is a list, to which a part can be added.
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
    """The format's type of this item, where a history holds other items beside messages."""
    framed: bool = True
    """Whether it costs a message's frame; calls and results that are items by themselves do not."""
    unreadable: tuple[Path, ...] = ()
    """Paths, relative to the message, of texts that no provider can read."""
    tool_state: tuple[tuple[Path, str], ...] = ()
    """(path, tool or "") of blocks that load or withdraw tools: no edit takes them out."""
    is_linked: bool = field(init=False)
    """Whether a part of it may belong to a part of another message, by an id in both."""
    calls: tuple[Part, ...] = field(init=False)
    """The tool calls the client has to answer, in order."""
    results: tuple[Part, ...] = field(init=False)
    """The tool results, in order."""
    call_ids: tuple[str, ...] = field(init=False)
    result_ids: tuple[str, ...] = field(init=False)
    results_first: bool = field(init=False)
    """Whether all results come before all other parts."""
    marked: tuple[Part, ...] = field(init=False)
    """The parts that carry a cache breakpoint."""
    suspect: bool = field(init=False)
    """Whether it has unreadable text, a part with a flaw, a call without a name, or a result of a
    server tool.  Few messages have; those scans look at no others."""
    compaction: Part | None = field(init=False)
    """The newest part in which the provider compacted everything before it."""

    def __post_init__(self) -> None:
        this: Any = self
        results: list[Part] = []
        calls: list[Part] = []
        marked: list[Part] = []
        compaction, suspect, linked = None, bool(self.unreadable), False
        for part in self.parts:
            if part.kind == "result":
                results.append(part)
            elif part.kind == "call":
                calls.append(part)
                suspect = suspect or not part.tool.strip()
            elif part.kind == "compaction":
                compaction = part
            suspect = suspect or bool(part.flaw) or part.kind == "server-result"
            linked = linked or bool(part.refers or (part.id and part.kind in LINKED))
            if part.marked:
                marked.append(part)
        this.is_linked = linked
        this.results, this.calls, this.marked = tuple(results), tuple(calls), tuple(marked)
        this.compaction, this.suspect = compaction, suspect
        this.call_ids = tuple([part.id for part in calls]) if calls else ()
        this.result_ids = tuple([part.id for part in results]) if results else ()
        this.results_first = self.parts[: len(results)] == this.results

    @property
    def width(self) -> int:
        """Number of items in its content list, cache breakpoints included."""
        return len(self.parts) + len(self.marks)

    def marks_in(self, inner: Path) -> list[Path]:
        """Paths of the cache breakpoints at ``inner`` (relative to the message) or below it."""
        parts = (part.path for part in (*self.marked, *self.marks) if part.marked)
        return [path for path in (*self.inner_marks, *parts) if path[: len(inner)] == inner]

    @property
    def other_parts(self) -> tuple[Part, ...]:
        """All parts that are no tool result: text, media, unknown parts."""
        return tuple(part for part in self.parts if part.kind != "result")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules need to know of a request beside its messages."""

    model: str | None = None
    dialect: str = ""
    """The provider or model family whose variant of the format applies."""
    max_output: int | None = None
    thinking: str = ""
    tools: tuple[str, ...] | None = None
    server_state: bool = False
    managed: bool = False
    """Whether the request tells the provider to clear, compact or truncate its content itself."""
    alternates: bool = False
    """Whether two neighbouring messages of one role are refused."""
    apart: bool = False
    """Whether text beside tool calls or results in one message is refused."""
    stand_in: Literal["", "user", "assistant"] = ""
    """The role of a note that replaces dropped turns; "": the role that does not speak next."""
    bare: bool = False
    version: str = ""
    """The version of the provider's API that a header asks for; "": the oldest that still works."""
    refused: frozenset[str] = frozenset()
    """Rows of the rule tables by whose names the provider has refused this request."""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, unsafe_hash=True)
class Place:
    """A block with its position: message index (−1 for the head) and index within the message.

    Never changed; it is not frozen because thousands are made in a turn.
    """

    message: int
    index: int
    block: Block


class Group:
    """The smallest run of messages that can be removed without breaking a rule.

    ``first``/``last`` are message indices (inclusive); ``numbers`` are the indices of its
    messages.  If ``partial``, only the tool results of the last message belong to it.  ``closed``
    says whether every call has its result.
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
    """Breakpoints that would come first once the results are gone, with nothing left to cache."""
    first = message.other_parts[0].path
    return [mark for mark in message.marks if mark.path < first]


def is_of_result(block: Block) -> bool:
    """Whether a block of a user message is a tool result or part of one (as an image)."""
    return block.kind == "result" or (block.call_id is not None and block.kind != "call")


Op = Literal["replace", "remove", "drop", "fold", "insert", "restore"]


class EditFigures(NamedTuple):
    """What an edit changed where it was made: tokens before and after, the whole ``steps`` that it
    took out, and the tools and the speaker of its blocks ("head": of system prompt and tools)."""

    tokens_before: int = 0
    tokens_after: int = 0
    steps: int = 0
    tool: str = ""
    role: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """One reduction as a value that can be printed, stored and compared.

    ``targets`` are refs: one for ``replace`` and ``remove``, every block taken out for ``drop`` and
    ``fold``, the preceding block for ``insert``.  ``text`` is shown instead: for ``drop`` a marker,
    for ``fold`` the new result of the call ``anchor``, in place of all results.  ``witness`` is the
    newest block by the model in the last closed group when the edit was made; the edit does not
    apply to a request without it (no edits from the future).  ``needs``: refs of other blocks that
    must be present, such as the later result that made this one stale.
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
    """Of a fold: the ref of the call that is kept, "" if only text is kept."""
    arguments: str = ""
    """Of a fold: the anchor's shortened arguments, "" if they are kept whole."""
    model_text: str = ""
    """Of a fold: what is kept of the model's words."""
    user_text: str = ""
    """Of a fold: what is kept of the user's words."""
    payload: str = ""
    """Of a medium made smaller: its new data as a data URL, which is sent; ``text`` names it."""
    figures: EditFigures | None = field(default=None, compare=False)
    """None: not known, as in journals of earlier releases."""

    def __post_init__(self) -> None:
        for name in ("text", "arguments", "model_text", "user_text"):
            text = getattr(self, name)
            if is_unreadable(text):  # parsed out of text that is legal, as JSON within JSON
                object.__setattr__(self, name, readable(text))


TRIGGER, SURE_TRIGGER = 0.90, 0.95
"""Share of the tokens that may be sent above which a cut begins: TRIGGER where counts
are estimates, SURE_TRIGGER where the model's own tokenizer counted or answers were observed
(replay: 3.5 points more of the old lines kept, and a sixth fewer lost caches)."""
