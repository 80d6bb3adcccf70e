"""What a format is: views of a request, and the few shapes it takes to write one back.

Knows how messages are read once and kept, and how model turns and their results form groups.
Does not know any provider's keys (those stand in one file per format) nor any rule.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Sequence
from operator import is_
from typing import Any, Protocol

from trimtab import paths
from trimtab.errors import InvalidRequest
from trimtab.index import Line
from trimtab.model import Block, Facts, Group, Message, Part, Path, Place, Transcript
from trimtab.tokens import DOCUMENT_TOKENS, IMAGE_TOKENS

Tree = Any
RUN = 128
"""Copies of messages that are made at one go, so that they lie side by side."""


class Format(Protocol):
    """One request format.  All methods are pure; trees are never changed."""

    name: str
    merges_roles: bool
    """Whether the provider merges neighbouring messages of one role before it checks pairs."""
    content_key: str
    """The key of a message under which its parts stand."""
    head_keys: tuple[str, ...]
    """The keys beside the messages that ``read_head`` reads."""
    results_in_user: bool
    """Whether tool results are parts of a user message (else they are messages of their own)."""

    def detect(self, tree: Tree) -> str | None:
        """Why this tree is of this format, or None."""
        ...

    def base(self, tree: Tree) -> Path:
        """Where the list of messages stands: ``("messages",)``, or ``()`` for a bare list."""
        ...

    def read_head(self, tree: Tree) -> tuple[Block, ...]:
        """System text, tool definitions and whatever else is sent beside the messages."""
        ...

    def read_facts(self, tree: Tree, model: str | None) -> Facts:
        """Model, output limit, thinking mode, declared tools."""
        ...

    def read_message(self, message: Tree) -> Message:
        """One message as blocks and parts."""
        ...

    def groups(self, transcript: Transcript) -> tuple[Group, ...]:
        """The groups of the messages, in order."""
        ...

    def text_part(self, text: str, *, marked: Any = None) -> Tree:
        """A text part; ``marked`` is a cache breakpoint to carry."""
        ...

    def text_message(self, role: str, text: str, *, marked: Any = None) -> Tree:
        """A whole message of one text."""
        ...

    def result_parts(self, calls: Sequence[Part], text: str) -> list[Tree]:
        """Results for these calls: parts of a user message, or messages, as the format has it."""
        ...

    def results_message(self, parts: list[Tree]) -> Tree:
        """A message that holds result parts (only where results are parts of a user message)."""
        ...

    def goes_with(self, transcript: Transcript, place: Place) -> tuple[Path, ...]:
        """What else must go when this block is removed (an id that refers to it)."""
        ...

    def mark_of(self, part: Tree) -> Any:
        """The cache breakpoint that this part carries, or None."""
        ...


class Memo:
    """What was read before, kept by position: a message that is still the same is not read again.

    The very same objects are compared with a private copy, which notices a change in place; other
    objects must also agree in types and key order (``1`` is not ``True``).
    """

    def __init__(self) -> None:
        self.own = False
        """Whether nobody but us has what is read next, so that it needs no copy."""
        self.other: Memo | None = None
        """Where else a message may have been read, before this is asked."""
        self._format: Format | None = None
        self._objects: list[Tree] = []
        self._copies: list[Tree] = []
        self._views = Line()
        self._head: tuple[Tree, tuple[Block, ...]] | None = None

    def read_head(self, format: Format, tree: Tree) -> tuple[Block, ...]:
        """The head's blocks; read again only when one of its keys has changed."""
        self._for(format)
        source = {key: tree.get(key) for key in format.head_keys} if type(tree) is dict else {}
        if self._head is None or not _same(self._head[0], source):
            self._head = (_copy(source), format.read_head(tree))
        return self._head[1]

    def read(self, format: Format, messages: list[Tree]) -> tuple[Message, ...]:
        """Views of all messages; new ones only where something is new."""
        self._for(format)
        objects, copies, views = self._objects, self._copies, self._views
        shared = min(len(copies), len(messages))
        first = copies if shared == len(copies) else copies[:shared]
        known = all(map(is_, objects, messages)) and first == messages[:shared]
        if known and shared == len(views):
            return self._gone_on(format, messages[shared:])
        start = shared if known else self._unchanged(messages, shared)  # appended, or rewound
        fresh, copied = list(views[:start]), copies[:start]
        elsewhere, read = self._elsewhere(format, len(messages) - start), format.read_message
        for index in range(start, len(messages)):
            message = messages[index]
            if index < shared and self._is(index, message):
                fresh.append(views[index])
                copied.append(message if self.own else copies[index])
            else:
                fresh.append(elsewhere.get(id(message)) or read(message))
                copied.append(message if self.own else _copy(message))
        self._objects, self._copies, self._views = list(messages), copied, Line(fresh)
        return self._views

    def _gone_on(self, format: Format, new: list[Tree]) -> Line:
        """What was read, and these behind it."""
        if new:
            elsewhere, read = self._elsewhere(format, len(new)), format.read_message
            fresh = [elsewhere.get(id(message)) or read(message) for message in new]
            self._objects, self._copies, self._views = (
                [*self._objects, *new], self._copied(new), self._views.on(fresh),
            )  # fmt: skip
        return self._views

    def _copied(self, new: list[Tree]) -> list[Tree]:
        """The copies, with those of these behind them.  When a run of them is full it is copied
        once more at one go: all are compared each turn, and scattered ones take longer to read."""
        copies, full = self._copies, len(self._copies) // RUN * RUN
        if self.own:
            return [*copies, *new]
        copies = [*copies, *map(_copy, new)]
        if len(new) < RUN <= len(copies) - full:
            copies[full:] = map(_copy, copies[full:])
        return copies

    def _is(self, index: int, message: Tree) -> bool:
        """Whether this is the message that was read at this place."""
        copy = self._copies[index]
        if self._objects[index] is message:
            return bool(copy is message or copy == message)
        return _same(copy, message)

    def _elsewhere(self, format: Format, count: int) -> dict[int, Message]:
        """Object → how another memo has read it just now: the last ones, as these are."""
        other, last = self.other, 4 * count + 64
        if other is None or not (self.own and other.own) or other._format is not format:
            return {}
        return dict(zip(map(id, other._objects[-last:]), other._views[-last:], strict=True))

    def _unchanged(self, messages: list[Tree], shared: int) -> int:
        """How many of the first messages are the very objects that were read, and as they were."""
        same = map(is_, self._objects[:shared], messages)
        first = next((index for index, is_same in enumerate(same) if not is_same), shared)
        return first if self._copies[:first] == messages[:first] else 0

    def _for(self, format: Format) -> None:
        """Views of another format say nothing here."""
        if self._format is not format:
            self._format, self._objects, self._copies, self._views = format, [], [], Line()
            self._head = None


class Views(Memo):
    """A memo for trees that nobody changes: the same object is the same message, wherever it
    stands.  Begins with what ``messages`` were read as."""

    def __init__(self, messages: Sequence[Tree], views: Sequence[Message]) -> None:
        super().__init__()
        self._seen = {
            id(message): (message, view) for message, view in zip(messages, views, strict=False)
        }

    def read(self, format: Format, messages: list[Tree]) -> tuple[Message, ...]:
        """Views of all messages; new ones only of objects that are new."""
        found = []
        for message in messages:
            known = self._seen.get(id(message))
            if known is None:
                known = self._seen[id(message)] = (message, format.read_message(message))
            found.append(known[1])
        return tuple(found)


def _same(one: Tree, other: Tree) -> bool:
    """Equal in values, types and order; False where that cannot be told."""
    try:
        return bool(one == other) and marshal.dumps(one, 0) == marshal.dumps(other, 0)
    except ValueError:
        return False


def _copy(tree: Tree) -> Tree:
    """A copy whose containers are new and whose leaves are shared."""
    if isinstance(tree, dict):
        return {key: _copy(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_copy(value) for value in tree]
    return tree


def read(tree: Tree, format: Format, *, model: str | None = None, memo: Memo) -> Transcript:
    """The transcript of a parsed request.

    Raises InvalidRequest where a value has a type that no provider takes there.
    """
    try:
        return _read(tree, format, model, memo)
    except (TypeError, AttributeError, KeyError, IndexError) as error:
        raise InvalidRequest(
            f"this cannot be read as {format.name}: a value has an unexpected type ({error}); "
            "send it as it is, or mend it"
        ) from error


def _read(tree: Tree, format: Format, model: str | None, memo: Memo) -> Transcript:
    base, facts = format.base(tree), format.read_facts(tree, model)
    messages = tree if not base else tree.get(base[0])
    if messages is None and not facts.server_state:
        key = ".".join(str(step) for step in base)
        raise InvalidRequest(f"as {format.name} this has no {key}: name another format, or mend it")
    if not isinstance(messages, list):  # one text, or nothing, where a list of messages may stand
        return Transcript(format, base, format.read_head(tree), (), facts)
    return Transcript(
        format=format,
        base=base,
        head=memo.read_head(format, tree),
        messages=memo.read(format, messages),
        facts=facts,
    )


def alone(transcript: Transcript, place: Place) -> tuple[Path, ...]:
    """``goes_with`` of formats in which nothing refers to a block."""
    return ()


# --- shared by the formats -------------------------------------------------------------------


def compact(value: Tree) -> str:
    """Compact JSON as the model is assumed to read it."""
    return paths.dump(value)


def payload_digest(value: Tree) -> str:
    """Tells two payloads apart without keeping them: 16 hex characters."""
    data = paths.dump(value).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def other_block(value: Tree, path: Path) -> Block:
    """A part we do not know: carried through untouched, counted as its JSON."""
    return Block("other", path, path, compact(value), sealed=True)


def media_block(value: Tree, path: Path, kind: str) -> Block:
    """An image or a document: a fixed cost, replaceable by a text part."""
    size = len(compact(value))
    # A page of PDF costs 1,500–3,000 tokens (Anthropic's PDF guide) and is some 50 kB: chars / 20.
    cost = IMAGE_TOKENS if kind == "image" else max(DOCUMENT_TOKENS, size // 20)
    return Block(
        "media", path, path, "", spelling="part", fixed_tokens=cost, payload_bytes=size,
        media="image" if kind == "image" else "document", identity=payload_digest(value),
    )  # fmt: skip


def may_answer(message: Message, role: str) -> bool:
    """Whether results may stand in this message: by its role, or as a user's that holds some."""
    return message.role == role or (message.role == "user" and bool(message.results))


def group_turns(transcript: Transcript) -> tuple[Group, ...]:
    """Model turns with their results, for formats whose items are messages.

    A turn is one assistant message (a run of them where the provider merges roles) and the
    results that follow it: messages of their own, or the leading parts of the next user message.
    """
    messages, groups = transcript.messages, list(transcript.index.over)
    index = groups[-1].last + 1 if groups else 0
    while index < len(messages):
        if messages[index].role != "assistant":
            index += 1
            continue
        first = index
        index += 1
        while (
            transcript.format.merges_roles
            and index < len(messages)
            and messages[index].role == "assistant"
        ):
            index += 1
        group, index = _close(transcript, first, index)
        groups.append(group)
    return tuple(groups)


def _leading_marks(message: Message) -> list[Part]:
    """Breakpoints that would stand first when the results are gone: nothing left to cache."""
    first = message.other_parts[0].path
    return [mark for mark in message.marks if mark.path < first]


def _close(transcript: Transcript, first: int, end: int) -> tuple[Group, int]:
    """The group whose model part is messages[first:end], and the index to go on from."""
    messages, base = transcript.messages, transcript.base
    waiting = [part.id for message in messages[first:end] for part in message.calls]
    has_calls = bool(waiting)
    items: list[Path] = [(*base, number) for number in range(first, end)]
    places = [
        Place(number, index, block)
        for number in range(first, end)
        for index, block in enumerate(messages[number].blocks)
    ]
    last, index = end - 1, end
    role = "user" if transcript.format.results_in_user else "tool"
    while has_calls and index < len(messages) and may_answer(messages[index], role):
        message = messages[index]
        results = message.results
        if not results:
            break
        for part in results:
            if part.id in waiting:
                waiting.remove(part.id)
        mixed = bool(message.other_parts)
        if mixed:
            items += [(*base, index, *part.path) for part in (*results, *_leading_marks(message))]
        else:
            items.append((*base, index))
        places += [
            Place(index, number, block)
            for number, block in enumerate(message.blocks)
            if not mixed
            or block.kind == "result"
            or (block.call_id is not None and block.kind != "call")  # what a result shows
        ]
        last = index
        index += 1
        if mixed:
            break
    return (
        Group(first, last, tuple(items), tuple(places), not waiting, has_calls),
        max(index, end),
    )
