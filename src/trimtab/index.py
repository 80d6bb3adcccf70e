"""Where everything stands in one transcript, and sums over runs of its groups.

Knows blocks, messages and groups, and which messages go on from which.  What was worked out about a
transcript that begins this one is carried on, so that to look at a conversation again costs what is
new in it: that changes no answer, only time.  Does not know sizes in tokens, edits, or any format.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, compress, count
from operator import is_not
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from trimtab.model import Group, Message, Path, Place, Transcript

Key = tuple[int, int]
"""(message, index) of a block."""


class Walk:
    """What one pass through messages comes to, from the first on (``walked``)."""

    count = 0
    """How many messages it has passed."""

    def add(self, number: int, message: Message) -> None:
        """Pass the next message; whatever was kept of those before is all that may be asked."""
        raise NotImplementedError


AnyWalk = TypeVar("AnyWalk", bound=Walk)


@dataclass(slots=True, eq=False)
class Origin:
    """What lines have in common of which each begins the next longer one."""

    longest: int
    """How many messages the longest has: only that one can be gone on from."""
    walks: dict[type[Walk], Walk] = field(default_factory=dict)


class Line(tuple["Message", ...]):
    """Messages read one behind the other: of two lines with one ``origin`` the shorter begins the
    longer, which need not be looked at to know it."""

    origin: Origin | None = None

    def on(self, more: Sequence[Message]) -> Line:
        """These messages, and more behind them."""
        longer, origin = Line(self + tuple(more)), self.origin
        if origin is None or origin.longest != len(self):  # else two would go on from the same
            origin = self.origin = Origin(len(self))
        longer.origin = origin
        origin.longest = len(longer)
        return longer

    def begun(self) -> Origin:
        """Its origin, from here on if it has none yet."""
        if self.origin is None:
            self.origin = Origin(len(self))
        return self.origin


class Names(NamedTuple):
    """How often each digest was seen; ref → place; (message, index) → ref."""

    seen: dict[str, int]
    places: dict[str, Place]
    refs: dict[Key, str]


@dataclass(slots=True)
class Rows:
    """The groups' blocks and items, one behind the other, and sums up to each group."""

    refs: list[str] = field(default_factory=list)
    items: list[Path] = field(default_factory=list)
    at: dict[Key, int] = field(default_factory=dict)
    """(message, index) of a block → the number of its group."""
    tools: list[tuple[str, ...]] = field(default_factory=list)
    """The tools of each group's blocks."""
    talk: list[int] = field(default_factory=list)
    """Groups without calls."""
    partial: list[int] = field(default_factory=list)
    """Messages among a group's of which not all belongs to it."""
    first_ref: list[int] = field(default_factory=lambda: [0])
    first_item: list[int] = field(default_factory=lambda: [0])
    unfit: list[int] = field(default_factory=lambda: [0])
    """How many groups before each may not be dropped: open ones, or without calls."""
    apart: list[int] = field(default_factory=lambda: [0])
    """How many groups before each do not adjoin the one before them."""
    stops: list[int] = field(default_factory=list)
    """Groups that do not adjoin the one before them, or in whose last message there are words of
    the user as well."""
    called: list[tuple[str, ...]] = field(default_factory=list)
    """The tool of each call of each group."""
    marked: list[int] = field(default_factory=lambda: [0])
    """How many items of the groups before each carry a cache breakpoint, on them or within."""
    chars: list[int] = field(default_factory=lambda: [0])

    def first(self, number: int, groups: Sequence[Group]) -> Rows:
        """The same of the first so many of these groups."""
        at, more = dict(self.at), number + 1
        for group in groups[number:]:
            for place in group.places:
                at.pop((place.message, place.index), None)
        ended = groups[number - 1].last + 1 if number else 0
        return Rows(
            refs=self.refs[: self.first_ref[number]],
            items=self.items[: self.first_item[number]],
            at=at,
            tools=self.tools[:number],
            called=self.called[:number],
            talk=self.talk[: bisect_left(self.talk, number)],
            stops=self.stops[: bisect_left(self.stops, number)],
            partial=self.partial[: bisect_left(self.partial, ended)],
            first_ref=self.first_ref[:more],
            first_item=self.first_item[:more],
            unfit=self.unfit[:more],
            apart=self.apart[:more],
            marked=self.marked[:more],
            chars=self.chars[:more],
        )

    def add(self, transcript: Transcript, number: int) -> None:
        """Go on with the next group."""
        group, depth = transcript.groups[number], len(transcript.base) + 1
        names = called(transcript, group)
        self.tools.append(tuple(dict.fromkeys(filter(None, (
            place.block.tool or names.get(place.block.call_id or "") for place in group.places
        )))))  # fmt: skip
        self.refs += map(transcript.ref, group.places)
        self.items += group.items
        self.at.update(((place.message, place.index), number) for place in group.places)
        if not group.has_calls:
            self.talk.append(number)
        whole = {item[-1] for item in group.items if len(item) == depth}
        self.partial += [n for n in range(group.first, group.last + 1) if n not in whole]
        before = transcript.groups[number - 1] if number else None
        apart = before is not None and not transcript.adjoin(before, group)
        self.first_ref.append(len(self.refs))
        self.first_item.append(len(self.items))
        self.unfit.append(self.unfit[-1] + (not (group.closed and group.has_calls)))
        self.apart.append(self.apart[-1] + apart)
        if before is not None and (apart or mixed(transcript, before)):
            self.stops.append(number)
        self.called.append(tuple(
            call.tool for message in transcript.messages[group.first : group.last + 1]
            for call in message.calls
        ))  # fmt: skip
        told = transcript.messages
        marks = (told[int(item[depth - 1])].marks_in(item[depth:]) for item in group.items)
        self.marked.append(self.marked[-1] + sum(map(bool, marks)))
        self.chars.append(self.chars[-1] + sum(len(place.block.text) for place in group.places))


class Index:
    """One transcript's; ``before``: of one that may begin it."""

    def __init__(self, transcript: Transcript, before: Index | None) -> None:
        self.transcript = transcript
        goes_on = before is not None and begins(before.transcript, transcript)
        self._before = before if goes_on else None

    def settled(self) -> Index:
        """The same, all of it worked out, without what it goes on from."""
        done = Index(replace(self.transcript, before=None), None)
        done.groups, done.names, done.rows, done.said = (
            self.groups, self.names, self.rows, self.said
        )  # fmt: skip
        return done

    @cached_property
    def names(self) -> Names:
        """A ref is a block's digest plus its ordinal among equal ones, oldest first."""
        old, transcript = self._before, self.transcript
        seen, places, refs = old.names if old else Names({}, {}, {})
        seen, places, refs = dict(seen), dict(places), dict(refs)
        for number in range(-1 if old is None else old.count, self.count):
            for place in transcript.places_in(number):
                digest = place.block.digest
                ordinal = seen.get(digest, 0)
                seen[digest] = ordinal + 1
                ref = refs[number, place.index] = f"{digest}.{ordinal}"
                places[ref] = place
        return Names(seen, places, refs)

    @property
    def count(self) -> int:
        """How many messages there are."""
        return len(self.transcript.messages)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The groups, in order."""
        return self.transcript.groups

    @property
    def old(self) -> int:
        """How many of the messages are those of the transcript before."""
        return 0 if self._before is None else self._before.count

    @cached_property
    def over(self) -> tuple[Group, ...]:
        """Groups of the transcript before that nothing behind them can change, where a group ends
        with the message before one that is not of it."""
        old = self._before
        if old is None:
            return ()
        groups = old.groups
        end = len(groups)
        while end and groups[end - 1].last >= old.count - 1:
            end -= 1
        return groups[:end]

    @cached_property
    def rows(self) -> Rows:
        """About the groups, in order."""
        old, transcript, same = self._before, self.transcript, 0
        rows = Rows()
        if old is not None:
            same = shared(old.groups, transcript.groups)
            rows = old.rows.first(same, old.groups)
        for number in range(same, len(transcript.groups)):
            rows.add(transcript, number)
        return rows

    @cached_property
    def said(self) -> list[int]:
        """Messages of the system, and those with words of the user."""
        old, messages = self._before, self.transcript.messages
        found = [] if old is None else list(old.said)
        for number in range(0 if old is None else old.count, len(messages)):
            message = messages[number]
            words = message.role == "user" and any(b.kind == "text" for b in message.blocks)
            if words or message.role == "system":
                found.append(number)
        return found

    def targets(self, first: int, last: int) -> tuple[str, ...]:
        """The refs of every block of groups[first:last + 1]."""
        rows = self.rows
        return tuple(rows.refs[rows.first_ref[first] : rows.first_ref[last + 1]])

    def items(self, first: int, last: int) -> list[Path]:
        """What a drop of these groups deletes."""
        rows = self.rows
        return rows.items[rows.first_item[first] : rows.first_item[last + 1]]

    def tools(self, first: int, last: int) -> list[str]:
        """Their tools, each once."""
        return list(dict.fromkeys(chain.from_iterable(self.rows.tools[first : last + 1])))

    def span(self, targets: tuple[str, ...]) -> tuple[int, int] | None:
        """The first and last of the groups whose blocks these are, all of them and in order."""
        rows, place = self.rows, self.names.places.get(targets[0]) if targets else None
        first = None if place is None else rows.at.get((place.message, place.index))
        if first is None:
            return None
        start = rows.first_ref[first]
        end = start + len(targets)
        last = bisect_left(rows.first_ref, end) - 1
        return (first, last) if tuple(rows.refs[start:end]) == targets and last >= first and (
            last + 1 < len(rows.first_ref) and rows.first_ref[last + 1] == end
        ) else None  # fmt: skip

    def droppable(self, first: int, last: int) -> bool:
        """Whether groups[first:last + 1] are closed, have calls, and nothing stands between."""
        unfit, apart = self.rows.unfit, self.rows.apart
        return unfit[last + 1] == unfit[first] and apart[last + 1] == apart[first + 1]


def called(transcript: Transcript, group: Group) -> dict[str, str]:
    """Call id → tool, of the calls of a group."""
    messages = transcript.messages[group.first : group.last + 1]
    return {part.id: part.tool for message in messages for part in message.calls}


def mixed(transcript: Transcript, group: Group) -> bool:
    """Whether the last message of a group carries words of the user beside the results."""
    last = transcript.messages[group.last]
    return group.last > group.first and last.role == "user" and bool(last.other_parts)


def shared(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many of the first are the same objects."""
    return next(compress(count(), map(is_not, one, other)), min(len(one), len(other)))


def goes_on(now: tuple[Message, ...], then: tuple[Message, ...]) -> bool:
    """Whether the first of these messages are the others, the very same objects."""
    origin = getattr(then, "origin", None)
    if origin is not None and origin is getattr(now, "origin", None):
        return len(then) <= len(now)
    return now is then or (len(then) <= len(now) and now[: len(then)] == then)


def walked(messages: Sequence[Message], walk: type[AnyWalk]) -> AnyWalk:
    """What this walk through these messages comes to.

    A pass looks forward only, so that through a line which goes on it is gone on with, and comes
    to what one from the first message would: read it before more messages are walked through.
    """
    walks = messages.begun().walks if isinstance(messages, Line) else {}
    known = walks.pop(walk, None)  # one thread's at a time, and no longer one's if a step raises
    done = known if isinstance(known, walk) and known.count <= len(messages) else walk()
    if known is not None and done is not known:
        walks.setdefault(walk, known)
    for number, message in enumerate(messages[done.count :], done.count):
        done.add(number, message)
    done.count = len(messages)
    walks.setdefault(walk, done)
    return done


def begins(before: Transcript, transcript: Transcript) -> bool:
    """Whether nothing but messages behind the last one is new."""
    return (
        len(before.messages) > 0
        and goes_on(transcript.messages, before.messages)
        and transcript.head == before.head
        and transcript.format is before.format
        and transcript.base == before.base
        and transcript.facts == before.facts
    )
