"""Reads a request into a transcript, and caches its messages from one request of a conversation to
the next."""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from dataclasses import replace
from operator import is_
from typing import Any

from trimtab import interruption
from trimtab.errors import InvalidRequest
from trimtab.formats.engine.base import Format
from trimtab.formats.engine.compacted import IGNORED, without_compacted
from trimtab.jsontext import paths
from trimtab.jsontext.parsing import is_same
from trimtab.jsontext.unreadable import unreadable_paths
from trimtab.transcript.model import Block, Message
from trimtab.transcript.transcript import Transcript

Tree = Any


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
            entry = self._read.get(id(message))
            if entry is None:
                entry = self._read[id(message)] = (message, self._read_new(format, message))
            read_messages.append(entry[1])
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
        unchanged = self._unchanged(messages)
        if unchanged == len(messages) == len(self._views):
            return self._views
        views, copies = list(self._views[:unchanged]), self._copies[:unchanged]
        for index in range(unchanged, len(messages)):
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
