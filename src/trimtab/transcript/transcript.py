"""The transcript of one request: its messages in order, the refs of its blocks, and its groups."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple, TypeVar

from trimtab.jsontext.paths import Path
from trimtab.lazy import cached_property
from trimtab.transcript.model import Block, Facts, Group, Message, Part, Place, is_of_result


class Prefix(NamedTuple):
    """Values computed for one request, reused for a later one that begins with the same messages:
    refs with their places, how often each digest occurs, and the groups."""

    base: Path
    head: tuple[Block, ...]
    messages: tuple[Message, ...]
    refs: Mapping[str, Place]
    digests: Mapping[str, int]
    groups: tuple[Group, ...]

    def begins(self, read: Transcript) -> bool:
        """Whether ``read`` begins with the same head and message objects."""
        same = self.base == read.base and self.head is read.head
        return same and self.messages == read.messages[: len(self.messages)]

    @property
    def ended_groups(self) -> list[Group]:
        """Groups that later messages cannot extend, in formats where a group ends at the first
        message that does not belong to it."""
        last = len(self.messages) - 1
        return [group for group in self.groups if group.last < last]


class Compaction(NamedTuple):
    """Position of the provider's newest compaction: it ignores everything before this part.

    ``earlier``: older compactions, as (message, part), oldest first.
    """

    message: int
    part: Part
    earlier: tuple[tuple[int, Part], ...] = ()


class MessagePass:
    """Collects something in one pass through the messages of a transcript, first to last."""

    def add(self, number: int, message: Message) -> None:
        """Process the next message; ``number`` is its index."""
        raise NotImplementedError


AnyPass = TypeVar("AnyPass", bound=MessagePass)


@dataclass(frozen=True)
class Transcript:
    """Blocks and groups of one request, in order, with the format that read them."""

    format: Any
    base: Path
    head: tuple[Block, ...]
    messages: tuple[Message, ...]
    facts: Facts
    prefix: Prefix | None = field(default=None, repr=False, compare=False)
    """Values of an earlier request that began with the same messages."""
    unreadable_head: tuple[Path, ...] = ()
    """Paths outside the messages of texts that no provider can read."""
    compaction: Compaction | None = None
    """The provider's own compaction; content before it has no blocks here."""

    @cached_property
    def _passes(self) -> dict[type[MessagePass], MessagePass]:
        return {}

    def passed(self, kind: type[AnyPass]) -> AnyPass:
        """The ``kind`` of pass, run once through all messages and then cached."""
        kept = self._passes.get(kind)
        if kept is None:
            kept = self._passes[kind] = kind()
            for number, message in enumerate(self.messages):
                kept.add(number, message)
        assert isinstance(kept, kind)
        return kept

    @cached_property
    def suspects(self) -> list[tuple[int, Message]]:
        """The ``suspect`` messages with their numbers; a scan for anything that this word does not
        cover reads ``messages``."""
        return [(n, message) for n, message in enumerate(self.messages) if message.suspect]

    @cached_property
    def absent_tools(self) -> frozenset[str]:
        """The deferred tools that nothing has loaded: their definitions are not in the prompt.

        Only where the model is known to defer tools; for any other all definitions count.
        """
        waiting = {block.deferred for block in self.head if block.deferred}
        if not waiting or not self.facts.extra.get("defers"):
            return frozenset()
        return frozenset(waiting.difference(n for m in self.messages for _, n in m.tool_state))

    def where(self, place: Place) -> Path:
        """Absolute path of the value that a replacement of this block sets."""
        return self._absolute(place, place.block.path)

    def item(self, place: Place) -> Path:
        """Absolute path of the part that a removal of this block deletes."""
        return self._absolute(place, place.block.item)

    def _absolute(self, place: Place, path: Path) -> Path:
        return path if place.message < 0 else (*self.base, place.message, *path)

    def places(self) -> Iterator[Place]:
        """Every block of head and messages, in order."""
        for number in range(-1, len(self.messages)):
            yield from self.places_in(number)

    def places_in(self, message: int) -> Iterator[Place]:
        """The blocks of one message; −1 is the head."""
        blocks = self.head if message < 0 else self.messages[message].blocks
        for index, block in enumerate(blocks):
            yield Place(message, index, block)

    def at(self, message: int, index: int) -> Place:
        """The block with this position; message −1 is the head."""
        blocks = self.head if message < 0 else self.messages[message].blocks
        return Place(message, index, blocks[index])

    @cached_property
    def refs(self) -> Mapping[str, Place]:
        """ref → place.  A ref is a block's digest and its ordinal among equal digests, oldest
        first."""
        return self._names[0]

    @cached_property
    def _names(self) -> tuple[dict[str, Place], dict[str, int]]:
        """ref → place, and how often each digest occurs."""
        places: dict[str, Place] = {}
        seen: dict[str, int] = {}
        first = -1
        if self.prefix is not None:
            places, seen = dict(self.prefix.refs), dict(self.prefix.digests)
            first = len(self.prefix.messages)
        for number in range(first, len(self.messages)):
            blocks = self.head if number < 0 else self.messages[number].blocks
            for index, block in enumerate(blocks):
                digest = block._digest or block.digest
                ordinal = seen.get(digest, 0)
                seen[digest] = ordinal + 1
                places[f"{digest}.{ordinal}"] = Place(number, index, block)
        return places, seen

    def as_prefix(self) -> Prefix | None:
        """The computed values for a later request that begins with these messages; None if neither
        refs nor groups were computed."""
        if "_names" not in vars(self) and "groups" not in vars(self):
            return None
        return Prefix(self.base, self.head, self.messages, *self._names, self.groups)

    @cached_property
    def ref_of(self) -> Mapping[tuple[int, int], str]:
        """(message, index) → ref, the inverse of ``refs``."""
        return {(place.message, place.index): ref for ref, place in self.refs.items()}

    def ref(self, place: Place) -> str:
        """The ref of one block."""
        return self.ref_of[place.message, place.index]

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Groups in order.  User and system messages belong to none."""
        groups: tuple[Group, ...] = self.format.groups(self)
        return groups

    @cached_property
    def table(self) -> GroupTable:
        """Columns over the groups."""
        return GroupTable(self)

    def group_number(self, message: int, index: int) -> int | None:
        """The number of the group that a block belongs to; None for one outside all groups."""
        number = self.table.of_message[message] if message >= 0 else -1
        if number < 0:
            return None
        group = self.groups[number]
        some = group.partial and message == group.last
        belongs = not some or is_of_result(self.messages[message].blocks[index])
        return number if belongs else None

    def adjoin(self, before: Group, after: Group) -> bool:
        """Whether nothing would remain between these groups if both were dropped.

        Where roles must alternate, the user's words beside the results of ``before`` would remain,
        next to the message that the run's note is put into.
        """
        if before.last + 1 != after.first:
            return False
        last = self.messages[before.last]
        return not (self.facts.alternates and last.role == "user" and last.other_parts)

    def ends_with_words(self, group: Group) -> bool:
        """Whether the last message of a group has words of the user beside the results."""
        last = self.messages[group.last]
        return group.last > group.first and last.role == "user" and bool(last.other_parts)

    def is_part(self, place: Place) -> bool:
        """Whether the block is a whole content part, not a field beside the content."""
        parts = self.messages[place.message].parts
        return any(part.path == place.block.item for part in parts)

    def longest_result(self, end: int | None = None) -> int:
        """Chars of the longest tool result; ``end``: of those in messages before this one."""
        return max(
            (
                sum(
                    len(block.text)
                    for block in message.blocks
                    if block.kind == "result" and block.item[: len(part.path)] == part.path
                )
                for message in self.messages[:end]
                for part in message.results
            ),
            default=0,
        )

    def tool(self, place: Place) -> str | None:
        """The tool of a call or result; a result without a tool name has that of its call."""
        number = None if place.block.tool else self.group_number(place.message, place.index)
        if number is None:
            return place.block.tool
        return self.table.called(number).get(place.block.call_id or "") or None


class GroupTable:
    """Columns over the groups of one transcript, computed on first use.  A column of running sums
    has one row more than there are groups."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._spans: dict[tuple[str, ...], tuple[int, int] | None] = {}
        self._called: dict[int, dict[str, str]] = {}

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups, in order."""
        return self._transcript.groups

    @cached_property
    def of_message(self) -> list[int]:
        """The group of each message; −1 where it belongs to none."""
        numbers = [-1] * len(self._transcript.messages)
        for number, group in enumerate(self.groups):
            for message in group.numbers:
                numbers[message] = number
        return numbers

    @cached_property
    def user_and_system(self) -> list[int]:
        """Indices of system messages and of user messages with text."""
        return [
            number
            for number, message in enumerate(self._transcript.messages)
            if message.role == "system"
            or (message.role == "user" and any(b.kind == "text" for b in message.blocks))
        ]

    @cached_property
    def without_calls(self) -> list[int]:
        """Numbers of the groups without calls."""
        return [number for number, group in enumerate(self.groups) if not group.has_calls]

    @cached_property
    def partial_messages(self) -> list[int]:
        """Messages between a group's first and last that do not wholly belong to it."""
        numbers: list[int] = []
        for group in self.groups:
            whole = {*(group.numbers[:-1] if group.partial else group.numbers)}
            numbers += [n for n in range(group.first, group.last + 1) if n not in whole]
        return numbers

    @cached_property
    def not_droppable(self) -> list[int]:
        """How many groups before each are open or without calls."""
        return _sums(not (group.closed and group.has_calls) for group in self.groups)

    @cached_property
    def breaks(self) -> list[int]:
        """How many groups before each do not adjoin the one before them."""
        return _sums(self._apart)

    @cached_property
    def _apart(self) -> list[bool]:
        """Whether each group does not adjoin the one before it."""
        groups, adjoin = self.groups, self._transcript.adjoin
        pairs = pairwise(groups)
        return [False, *(not adjoin(*pair) for pair in pairs)][: len(groups)]

    @cached_property
    def note_barriers(self) -> list[int]:
        """Numbers of the groups that a note cannot pass on its way to the user's message: they do
        not adjoin the group before them, or that group ends with words of the user."""
        return [
            number
            for number in range(1, len(self.groups))
            if self._apart[number] or self._transcript.ends_with_words(self.groups[number - 1])
        ]

    @cached_property
    def marked(self) -> list[int]:
        """How many items of the groups before each carry a cache breakpoint or contain one."""
        messages, depth = self._transcript.messages, len(self._transcript.base) + 1
        return _sums(
            sum(bool(messages[int(item[depth - 1])].marks_in(item[depth:])) for item in group.items)
            for group in self.groups
        )

    def called(self, number: int) -> dict[str, str]:
        """Call id → tool for the calls of a group."""
        tools = self._called.get(number)
        if tools is None:
            tools = self._called[number] = {part.id: part.tool for part in self._calls(number)}
        return tools

    def called_tools(self, first: int, last: int) -> Iterator[str]:
        """The tool of each call of groups[first:last + 1]."""
        for number in range(first, last + 1):
            for part in self._calls(number):
                yield part.tool

    def _calls(self, number: int) -> Iterator[Part]:
        group = self.groups[number]
        messages = self._transcript.messages[group.first : group.last + 1]
        return chain.from_iterable(message.calls for message in messages)

    def places(self, first: int, last: int) -> Iterator[Place]:
        """Every block of groups[first:last + 1]."""
        return chain.from_iterable(group.places for group in self.groups[first : last + 1])

    def targets(self, first: int, last: int) -> tuple[str, ...]:
        """The refs of every block of groups[first:last + 1]."""
        return tuple(map(self._transcript.ref, self.places(first, last)))

    def items(self, first: int, last: int) -> list[Path]:
        """The paths that a drop of groups[first:last + 1] deletes."""
        return [item for group in self.groups[first : last + 1] for item in group.items]

    def span(self, targets: tuple[str, ...]) -> tuple[int, int] | None:
        """The first and last number of the groups whose blocks are exactly ``targets``, in order;
        None if there are none."""
        if targets not in self._spans:
            self._spans[targets] = self._span(targets)
        return self._spans[targets]

    def _span(self, targets: tuple[str, ...]) -> tuple[int, int] | None:
        refs = self._transcript.refs
        wanted = [refs[ref] for ref in targets if ref in refs]
        if not wanted or len(wanted) < len(targets):
            return None
        first = self._transcript.group_number(wanted[0].message, wanted[0].index)
        last = self._transcript.group_number(wanted[-1].message, wanted[-1].index)
        if first is None or last is None:
            return None
        keys = [(place.message, place.index) for place in self.places(first, last)]
        same = keys == [(place.message, place.index) for place in wanted]
        return (first, last) if same else None

    def droppable(self, first: int, last: int) -> bool:
        """Whether groups[first:last + 1] are closed, have calls and adjoin each other."""
        called = all(group.has_calls for group in self.groups[first : last + 1])
        return called and self.adjoining(first, last)

    def adjoining(self, first: int, last: int) -> bool:
        """Whether groups[first:last + 1] are closed and adjoin each other."""
        groups, adjoin = self.groups[first : last + 1], self._transcript.adjoin
        return all(group.closed for group in groups) and all(
            adjoin(*pair) for pair in pairwise(groups)
        )

    def starting_at(self, message: int) -> int:
        """The number of the group that begins with this message."""
        return bisect_left(self.groups, message, key=lambda group: group.first)


def _sums(values: Iterable[int]) -> list[int]:
    return list(accumulate(values, initial=0))
