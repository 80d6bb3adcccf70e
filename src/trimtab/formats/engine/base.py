"""The interface of a request format, and the code that formats share.

The shared code reads a request into a transcript and caches its messages.
"""

from __future__ import annotations

import hashlib
import json
import marshal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Any, Protocol

from trimtab import interruption
from trimtab.errors import InvalidRequest
from trimtab.formats.engine.compacted import IGNORED, without_compacted
from trimtab.formats.engine.parts import PartTable
from trimtab.jsontext import paths
from trimtab.jsontext.parsing import is_same
from trimtab.jsontext.paths import Path
from trimtab.jsontext.unreadable import unreadable_paths
from trimtab.transcript.model import Block, Facts, Group, Message, Part, Place
from trimtab.transcript.tokens import DOCUMENT_TOKENS, IMAGE_TOKENS
from trimtab.transcript.transcript import Transcript

Tree = Any

MESSAGE_LISTS = ("messages", "input", "contents")
"""The keys under which the formats keep a request's messages."""


class Format(Protocol):
    """One request format.  All methods are pure; trees are never changed."""

    name: str
    merges_roles: bool
    """Whether the provider merges neighbouring messages of one role before it checks pairs."""
    content_key: str
    """The key of a message that holds its parts."""
    table: PartTable
    """Where the parts of its messages are."""
    head_keys: tuple[str, ...]
    """The keys beside the messages that ``read_head`` reads."""
    results_in_user: bool
    """Whether tool results are parts of a user message (else they are messages of their own)."""

    def detect(self, tree: Tree) -> str | None:
        """Why this tree is of this format, or None."""
        ...

    def base(self, tree: Tree) -> Path:
        """The path of the list of messages: ``("messages",)``, or ``()`` for a bare list."""
        ...

    def read_head(self, tree: Tree) -> tuple[Block, ...]:
        """Blocks for system text, tool definitions and everything else outside the messages."""
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
        """Results with ``text`` for these calls: parts of a user message, or whole messages; which,
        ``results_in_user`` says."""
        ...

    def results_message(self, parts: list[Tree]) -> Tree:
        """A message that holds result parts (only where results are parts of a user message)."""
        ...

    def may_anchor(self, message: Message, part: Part) -> bool:
        """Whether this call can be kept alone in its message, with a result that we write."""
        ...

    def call_alone(self, message: Tree, call: Tree, words: str) -> list[Tree]:
        """The model's message with nothing left but ``words`` and this one call.

        A list, since some formats write the two as separate items.
        """
        ...

    def answered(self, result: Tree, text: str, *, marked: Any = None) -> Tree:
        """The result (a part, or a message where results are messages) with ``text`` as its
        content; ``marked`` is a cache breakpoint to carry."""
        ...

    def goes_with(self, transcript: Transcript, place: Place) -> tuple[Path, ...]:
        """Paths to delete together with this block, such as an id that refers to it."""
        ...

    def mark_of(self, part: Tree) -> Any:
        """The cache breakpoint that this part carries, or None."""
        ...


def read_one(format: Format, message: Tree) -> Message:
    """Read one message, with the paths of texts that no provider can read.

    Raises InvalidRequest where it nests too deep.
    """
    interruption.check()
    unreadable = unreadable_paths(message)  # first: it raises where containers nest too deep
    view = format.read_message(message)
    return replace(view, unreadable=unreadable) if unreadable else view


class MessageReader:
    """Reads the head and the messages of a request.  This base class caches nothing."""

    def read_head(self, format: Format, tree: Tree) -> tuple[Block, ...]:
        """The head's blocks."""
        return format.read_head(tree)

    def read(self, format: Format, messages: list[Tree]) -> tuple[Message, ...]:
        """Read all messages."""
        return tuple(read_one(format, message) for message in messages)


class SharedMessageReader(MessageReader):
    """Reads variants of one tree, which nobody changes meanwhile: an object that was read before,
    at any index, is not read again.

    Starts with the messages of ``tree``, which was read as the transcript ``read``.
    ``by_content``: messages of an earlier request, by their content.  ``made``: the messages that
    ``tree`` does not have, by their content, for the reader of the next request.
    """

    def __init__(
        self, tree: Tree, read: Transcript, by_content: Mapping[bytes, Message] | None = None
    ) -> None:
        self._by_content, self.made = by_content or {}, dict[bytes, Message]()
        messages = paths.get(tree, read.base) if read.messages else []
        self._tree, self._head = tree, read.head
        self._read = {
            id(message): (message, view)
            for message, view in zip(messages, read.messages, strict=True)
            if view.type != IGNORED  # ignored only as long as the compaction is there
        }

    def read_head(self, format: Format, tree: Tree) -> tuple[Block, ...]:
        """The head's blocks; read again only if one of its keys holds another object."""
        if type(tree) is type(self._tree) is dict:
            keys = format.head_keys
            if all(tree.get(key) is self._tree.get(key) for key in keys):
                return self._head
        return format.read_head(tree)

    def read(self, format: Format, messages: list[Tree]) -> tuple[Message, ...]:
        """All messages; only objects not seen before are read."""
        read_messages = []
        for message in messages:
            known = self._read.get(id(message))
            if known is None:
                known = self._read[id(message)] = (message, self._read_new(format, message))
            read_messages.append(known[1])
        return tuple(read_messages)

    def _read_new(self, format: Format, message: Tree) -> Message:
        try:
            content = marshal.dumps(message, 2)  # 3 and 4 may write equal values differently
        except ValueError:
            return read_one(format, message)
        view = self._by_content.get(content) or read_one(format, message)
        self.made[content] = view
        return view


class ConversationReader(MessageReader):
    """Reads the requests of one conversation: an unchanged message is not read again.

    A message is looked up by its index and compared with a private copy, as a caller may have
    changed its object in place.  A message that is a new object must also have the same types and
    key order (``1`` is not ``True``).
    """

    def __init__(self) -> None:
        self.private = False
        """Whether the tree that is read next is ours alone, so that its messages need no copy."""
        self._format: Format | None = None
        self._objects: list[Tree] = []
        self._copies: list[Tree] = []
        self._views: tuple[Message, ...] = ()
        self._head: tuple[Tree, tuple[Block, ...]] | None = None

    def read_head(self, format: Format, tree: Tree) -> tuple[Block, ...]:
        """The head's blocks; read again only when one of its keys has changed."""
        self._for(format)
        source = {key: tree.get(key) for key in format.head_keys} if type(tree) is dict else {}
        if self._head is None or not is_same(self._head[0], source):
            self._head = (_copy(source), format.read_head(tree))
        return self._head[1]

    def read(self, format: Format, messages: list[Tree]) -> tuple[Message, ...]:
        """All messages; only new or changed ones are read."""
        self._for(format)
        known = self._unchanged(messages)
        if known == len(messages) == len(self._views):
            return self._views
        views, copies = list(self._views[:known]), self._copies[:known]
        for index in range(known, len(messages)):
            message = messages[index]
            if index < len(self._copies) and self._is(index, message):
                views.append(self._views[index])
            else:
                views.append(read_one(format, message))
            copies.append(message if self.private else _copy(message))
        self._objects, self._copies, self._views = list(messages), copies, tuple(views)
        return self._views

    def _unchanged(self, messages: list[Tree]) -> int:
        """How many of the first messages are the objects read before, with unchanged content."""
        same = map(is_, self._objects, messages)
        shared = min(len(self._objects), len(messages))
        first = next((index for index, is_it in enumerate(same) if not is_it), shared)
        return first if self._copies[:first] == messages[:first] else 0

    def _is(self, index: int, message: Tree) -> bool:
        """Whether ``message`` equals the one read before at ``index``."""
        copy = self._copies[index]
        if self._objects[index] is message:
            return bool(copy is message or copy == message)
        return is_same(copy, message)

    def _for(self, format: Format) -> None:
        """Clear the cache if ``format`` is not the one it was read with."""
        if self._format is not format:
            self._format, self._objects, self._copies, self._views = format, [], [], ()
            self._head = None


def _copy(tree: Tree) -> Tree:
    """A copy whose containers are new and whose leaves are shared."""
    if isinstance(tree, dict):
        return {key: _copy(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_copy(value) for value in tree]
    return tree


def read(
    tree: Tree, format: Format, *, model: str | None = None, reader: MessageReader | None = None
) -> Transcript:
    """The transcript of a parsed request.

    Raises InvalidRequest where a value has a type that no provider takes there.
    """
    try:
        return _read(tree, format, model, reader or MessageReader())
    except (TypeError, AttributeError, KeyError, IndexError) as error:
        raise InvalidRequest(
            f"this cannot be read as {format.name}: a value has an unexpected type ({error}); "
            "send it as it is, or correct it"
        ) from error


def _read(tree: Tree, format: Format, model: str | None, reader: MessageReader) -> Transcript:
    base, facts = format.base(tree), format.read_facts(tree, model)
    messages = tree if not base else tree.get(base[0])
    if messages is None and not facts.server_state:
        key = ".".join(str(step) for step in base)
        raise InvalidRequest(
            f"as {format.name} this has no {key}: name another format, or correct it"
        )
    if not isinstance(messages, list):  # one text, or nothing, instead of a list of messages
        head, unreadable = format.read_head(tree), unreadable_paths(tree)
        return Transcript(format, base, head, (), facts, unreadable_head=unreadable)
    beside = {key: value for key, value in tree.items() if key != base[0]} if base else {}
    head = reader.read_head(format, tree)
    views, compaction = without_compacted(reader.read(format, messages))
    return Transcript(
        format=format,
        base=base,
        head=head,
        messages=views,
        facts=facts,
        unreadable_head=unreadable_paths(beside),
        compaction=compaction,
    )


def alone(transcript: Transcript, place: Place) -> tuple[Path, ...]:
    """``goes_with`` of formats in which nothing refers to a block."""
    return ()


def any_call(message: Message, part: Part) -> bool:
    """``may_anchor`` of formats in which the client runs every call."""
    return True


# --- shared by the formats -------------------------------------------------------------------


def compact(value: Tree) -> str:
    """Compact JSON as the model is assumed to read it."""
    return paths.dump(value)


def payload_digest(value: Tree) -> str:
    """A digest of 16 hex characters that identifies a payload without keeping it."""
    data = paths.dump(value).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def other_block(value: Tree, path: Path) -> Block:
    """A part of unknown type: sent unchanged, counted as its JSON."""
    return Block("other", path, path, compact(value), sealed=True)


def linking_ids(value: Tree) -> tuple[str, ...]:
    """The ids in a part that we don't know (``id``, ``…_id``, ``…Id``): by one that equals
    another part's the two belong together."""
    ids = list[str]()
    for key, inner in value.items() if isinstance(value, dict) else ():
        if isinstance(inner, dict):
            ids += linking_ids(inner)
        elif isinstance(inner, str) and inner and (key == "id" or key.endswith(("_id", "Id"))):
            ids.append(inner)
    return tuple(ids)


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
    """Whether this message can hold results: it has the role ``role``, or it is a user message
    with results."""
    return message.role == role or (message.role == "user" and bool(message.results))


# --- content parts with a ``type`` and a ``cache_control``: Chat Completions and Anthropic ---


def text_part(text: str, *, marked: Any = None) -> Any:
    """``{"type": "text", "text": …}``, with this cache breakpoint if there is one."""
    return {"type": "text", "text": text} | ({"cache_control": marked} if marked else {})


def text_message(role: str, text: str, *, marked: Any = None) -> Any:
    """A message of one text; with a breakpoint its content is a list of one part."""
    return {"role": role, "content": [text_part(text, marked=marked)] if marked else text}


def results_message(parts: list[Any]) -> Any:
    """A user message that holds these ``tool_result`` parts."""
    return {"role": "user", "content": parts}


def mark_of(part: Any) -> Any:
    """The ``cache_control`` of a part, or None."""
    return part.get("cache_control") if isinstance(part, dict) else None


def in_result(block: Block, call_id: str | None) -> Block:
    """The block as part of the result of this call; unchanged if ``call_id`` is None."""
    return block if call_id is None else replace(block, call_id=call_id)


def text_or_none(value: Any) -> str | None:
    """``value`` if it is a text: a model that is named by anything else is not known."""
    return value if isinstance(value, str) else None


def _no_constant(name: str) -> None:
    raise ValueError(name)


_STRICT = json.JSONDecoder(parse_constant=_no_constant).decode


def json_flaw(text: str) -> str:
    """ "json" for arguments that a strict parser rejects, else ""."""
    try:
        _STRICT(text)
    except (ValueError, RecursionError):
        return "json"
    return ""


HOUR, FIVE_MINUTES = 3600, 300
"""Seconds: the two lifetimes that Anthropic and Bedrock offer (``ttl``: "1h", "5m"; default 5m)."""


def breakpoint_facts(points: Iterable[tuple[Path, Any]]) -> Mapping[str, Any]:
    """``late_hours``: paths of breakpoints of an hour behind one of five minutes, which are
    refused; ``cache_seconds``: the longest lifetime, None without breakpoints.

    ``points``: (path, breakpoint) in the order in which the API reads them.
    """
    late, seconds, short = list[Path](), None, False
    for path, mark in points:
        hour = isinstance(mark, dict) and mark.get("ttl") == "1h"
        if hour and short:
            late.append(path)
        short = short or not hour
        seconds = HOUR if hour else seconds or FIVE_MINUTES
    return {"late_hours": tuple(late), "cache_seconds": seconds}
