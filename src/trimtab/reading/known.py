"""What a conversation has taught us: messages read, texts counted, the body parsed last.

A memo: it changes no result, only time.  Knows nothing of what was decided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from trimtab import formats
from trimtab.errors import InvalidRequest
from trimtab.formats import Format, Memo
from trimtab.index import Index, goes_on
from trimtab.model import Block, Message, Transcript
from trimtab.planning.lines import Lines, lines_of
from trimtab.planning.offered import Offered
from trimtab.planning.remains import Remains, remains_of
from trimtab.planning.weights import Weights
from trimtab.reading.exchanges import Reader
from trimtab.reading.mended import Mended
from trimtab.reading.past import Past
from trimtab.reading.sound import Sound
from trimtab.reading.source import Source
from trimtab.reading.usage import Usage
from trimtab.tokens import counter_for

T = TypeVar("T")
KNOWN_BLOCKS = 20_000
"""Blocks whose lines are remembered at once."""


class Reading(NamedTuple):
    """A request as it was read: what was asked for, why this format, and all but its messages."""

    wanted: str | None
    format: Format
    reason: str
    rest: Any
    transcript: Transcript


class _Views(Memo):
    """A memo that has been asked already."""

    def __init__(self, memo: Memo, views: tuple[Message, ...]) -> None:
        self._memo, self._seen = memo, views

    def read_head(self, format: Format, tree: Any) -> tuple[Block, ...]:
        return self._memo.read_head(format, tree)

    def read(self, format: Format, messages: list[Any]) -> tuple[Message, ...]:
        return self._seen


class Known:
    """What one conversation has taught us: messages read and counted, by position."""

    def __init__(self) -> None:
        self.arrived, self.sent = Memo(), Memo()
        self._lines: dict[Block, Lines] = {}
        self._weights = Weights()
        self._remains = Remains()
        self.past = Past(Reader())
        self._usage: Usage | None = None
        self._asked: tuple[Any, ...] = ()
        self._parsed: Source | None = None
        self._read: Reading | None = None
        self._index: Index | None = None
        """Of the newest transcript that was looked at."""
        self.sound, self.sound_sent = Sound(), Sound()
        """In which no rule was broken last, of what arrived and of what was sent."""
        self._offered: tuple[tuple[Any, ...], Offered] | None = None
        self._mended: tuple[Any, Transcript, Any, Any] | None = None
        self.mending = Mended()
        self.last: Any = None
        """What ``continuing`` remembers of the last turn."""

    def read(self, source: Source, wanted: str | None, model: str | None) -> Reading:
        """A request as messages; where nothing is new, the very transcript of before.

        Raises what ``formats.find`` and ``formats.read`` raise.
        """
        before, memo, tree = self._read, self.arrived, source.tree
        memo.own = source.private
        rest = _rest(tree, before.format) if before else None
        views = self._views(before, tree, wanted, rest) if before else None
        if before is None or views is None:
            format, reason = formats.find(tree, wanted)
            rest = _rest(tree, format)
        else:
            format, reason, memo = before.format, before.reason, _Views(self.arrived, views)
        transcript = formats.read(tree, format, model=model, memo=memo)
        if before is not None and _equal(transcript, before.transcript):
            transcript = before.transcript
        elif before is not None:
            transcript = replace(transcript, before=self._indexed(before.transcript))
        kept = before.rest if before and before.rest == rest else deepcopy(rest)
        self._read = Reading(wanted, format, reason, kept, transcript)
        return self._read

    def _indexed(self, last: Transcript) -> Index | None:
        """Of the newest transcript that was looked at: of ``last`` if it was."""
        if "index" in vars(last):
            self._index = last.index.settled()
        return self._index

    def _views(
        self, before: Reading, tree: Any, wanted: str | None, rest: Any
    ) -> tuple[Message, ...] | None:
        """The messages, where the request is sure to be of the same format as before: only
        messages behind the last one are new, and they are of it by themselves."""
        messages = _messages(tree, before.format)
        if before.wanted != wanted or before.rest != rest or not isinstance(messages, list):
            return None
        known = before.transcript.messages
        try:
            if self.arrived.read_head(before.format, tree) is not before.transcript.head:
                return None
            views = self.arrived.read(before.format, messages)
            if wanted is not None or views is known:
                return views
            if not known or not goes_on(views, known):
                return None
            new = messages[len(known) :]
            base = before.format.base(tree)
            found, _ = formats.find({**tree, base[0]: new} if base else new)
        except (InvalidRequest, TypeError, AttributeError, KeyError, IndexError):
            return None
        return views if found is before.format else None

    def transcript(self, source: Source, format: Format, model: str | None) -> Transcript:
        """What arrived, once more, after something was mended in it."""
        self.arrived.own = source.private
        return formats.read(source.tree, format, model=model, memo=self.arrived)

    def as_sent(self, source: Source, format: Format, model: str | None) -> Transcript:
        """What is sent as messages; those that arrived so are the very same."""
        self.sent.own, self.sent.other = source.private, self.arrived
        return formats.read(source.tree, format, model=model, memo=self.sent)

    def usage(self, counter: Any, model: str | None, format: str) -> Usage:
        """Sizes with this counter; counted anew where another is asked for."""
        asked = (counter, model, format)
        if self._usage is None or self._asked != asked:
            self._usage = Usage(counter_for(counter, model=model, format=format))
            self._asked = asked
        return self._usage

    def lines(self, block: Block) -> Lines:
        """The lines of a block, read once for as long as the block stays."""
        found = self._lines.get(block)
        if found is None:
            if len(self._lines) >= KNOWN_BLOCKS:
                self._lines.clear()
            found = self._lines[block] = lines_of(block)
        return found

    def weights(self, transcript: Transcript) -> Mapping[str, float]:
        """The weights of a transcript's identifiers; what is known of them is not read again."""
        if not self._weights.go_on(transcript.messages, self.lines):
            self._weights = Weights()
            self._weights.go_on(transcript.messages, self.lines)
        return self._weights.weights

    def remains(self, transcript: Transcript, end: int) -> Remains:
        """Where the lines of the first ``end`` messages stand, read on where it ended."""
        known, messages = self._remains, transcript.messages[:end]
        if not known.go_on(messages, self.lines):
            known = self._remains = remains_of(transcript, end, self.lines)
        return known

    def offered(self, *about: Any) -> Offered:
        """What strategies offered for the blocks of this very transcript, the first of ``about``,
        while all else they can know is the same."""
        last = self._offered
        if last is None or last[0][0] is not about[0] or last[0][1:] != about[1:]:
            last = self._offered = about, Offered()
        return last[1]

    def forget_offered(self) -> None:
        """Let go of it: the next turn asks about another transcript."""
        self._offered = None

    def mended(self, source: Source, given: Transcript, asked: Any, mend: Callable[[], T]) -> T:
        """What ``mend`` made of this very request before, with equal options; made anew of a
        caller's own objects: it was handed out, and both may have been changed since."""
        last, tree = self._mended, source.tree
        if not source.private:
            return mend()
        if last is None or last[0] is not tree or last[1] is not given or last[2] != asked:
            last = self._mended = tree, given, asked, mend()
        return last[3]

    def source(self, request: Any) -> Source:
        """The parsed request; text that came before is not parsed again."""
        if isinstance(request, Source):
            return self._again(request)
        if not isinstance(request, (bytes, str)):
            return Source.of(request)
        last = self._parsed
        if last is not None and type(last.given) is type(request) and last.given == request:
            return replace(last, given=request)
        self._parsed = Source.of(request)
        return self._parsed

    def _again(self, parsed: Source) -> Source:
        """What was parsed already; the tree of the same text before, which is known by now."""
        if parsed.written is None:
            return parsed
        last, self._parsed = self._parsed, parsed
        if last is None or last.written != parsed.written:
            return parsed
        self._parsed = replace(parsed, tree=last.tree)
        return self._parsed


def _messages(tree: Any, format: Format) -> Any:
    base = format.base(tree)
    if not base:
        return tree
    return tree.get(base[0]) if isinstance(tree, dict) else None


def _rest(tree: Any, format: Format) -> Any:
    """What stands beside messages and head, and the names of all keys in order."""
    if not isinstance(tree, dict):
        return type(tree).__name__
    known = {*format.head_keys, *format.base(tree)[:1]}
    return [(key, None if key in known else value) for key, value in tree.items()]


def _equal(one: Transcript, other: Transcript) -> bool:
    return (
        one.messages is other.messages
        and one.head is other.head
        and one.format is other.format
        and one.base == other.base
        and one.facts == other.facts
    )
