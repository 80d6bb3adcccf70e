"""Token sizes of every part of a transcript.

Adds the fixed overhead of messages, calls and results to what a counter (an argument) counts for
texts.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import NamedTuple

from trimtab import interruption
from trimtab.transcript.model import Block, Group, Message, Part, Place, is_of_result
from trimtab.transcript.tokens import MESSAGE_TOKENS, Counter
from trimtab.transcript.transcript import Transcript

_BY_ID = frozenset(("call", "result", "server-call", "server-result"))


SUMS = 3
"""Totals kept, one for each state of a turn's request: as received, after repair, as sent."""

LABELS = 1_000
"""Most tool names whose size is cached."""


class MessageSizes(NamedTuple):
    """Sizes of one message: tokens of each block, tokens in total, number of media blocks, upper
    bound of the blocks' bytes, tokens billed for signatures."""

    blocks: tuple[int, ...]
    total: int
    media: int
    byte_bound: int
    signed: int = 0


class GroupSums(NamedTuple):
    """Running sums over the groups before each of ``groups``: tokens freed by dropping them; for
    closed groups with calls, the tokens of their messages and the number of calls."""

    groups: tuple[Group, ...] = ()
    tokens: tuple[int, ...] = (0,)
    closed: tuple[int, ...] = (0,)
    calls: tuple[int, ...] = (0,)


class TokenSizes:
    """Token sizes by one counter; each message is counted once and cached."""

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self._frame, self._pair = counter.scaled(MESSAGE_TOKENS), counter.call_tokens
        self._known: dict[Message, MessageSizes] = {}
        self._head: dict[Block, int] = {}
        self._labels: dict[str, int] = {}
        self._runs = GroupSums()
        self._sums: list[tuple[tuple[Message, ...], MessageSizes]] = []

    def measure(self, transcript: Transcript) -> int:
        """Tokens of the whole request: head, messages and their overhead."""
        return self._sum(transcript.messages).total + self.head(transcript)

    def media(self, transcript: Transcript) -> int:
        """Number of media blocks in the messages."""
        return self._sum(transcript.messages).media

    def signed(self, transcript: Transcript) -> int:
        """Tokens of hidden thinking, billed with the blocks that carry its signatures."""
        return self._sum(transcript.messages).signed

    def bytes_bound(self, transcript: Transcript) -> int:
        """A cheap upper bound of the bytes of all blocks; not of the body, whose other fields and
        ignored messages have none."""
        head = sum(6 * len(block.text) + 300 for block in transcript.head)
        return 1000 + head + self._sum(transcript.messages).byte_bound

    def _sum(self, messages: tuple[Message, ...]) -> MessageSizes:
        """Totals over all messages."""
        for summed, total in self._sums:
            if summed is messages:
                return total
        tokens = media = size = signed = 0
        known = self._known.get  # most are, and there may be thousands
        for message in messages:
            sizes = known(message) or self.sizes(message)
            tokens += sizes.total
            media += sizes.media
            size += sizes.byte_bound
            signed += sizes.signed
        total = MessageSizes((), tokens, media, size, signed)
        self._sums = [*self._sums, (messages, total)][-SUMS:]
        return total

    def __len__(self) -> int:
        return len(self._known)

    def keep_only(self, messages: Container[Message]) -> None:
        """Forget the sizes of all other messages."""
        self._known = {m: sizes for m, sizes in self._known.items() if m in messages}

    def head(self, transcript: Transcript) -> int:
        """Tokens of system text and tool definitions outside the messages."""
        return sum(self._head_costs(transcript).values())

    def _head_costs(self, transcript: Transcript) -> dict[Block, int]:
        """Tokens of each block of the head.  Another thread may measure another request."""
        costs = self._head
        if any(block not in costs for block in transcript.head):
            costs = self._head = {block: self.block_cost(block) for block in transcript.head}
        absent = transcript.absent_tools
        return {b: 0 if b.deferred in absent else costs[b] for b in transcript.head}

    def sizes(self, message: Message) -> MessageSizes:
        """Sizes of one message, overhead included."""
        sizes = self._known.get(message)
        if sizes is None:
            interruption.check()
            sizes = self._known[message] = self._measured(message)
        return sizes

    def message(self, message: Message) -> int:
        """Tokens of one message, overhead included."""
        return self.sizes(message).total

    def group(self, transcript: Transcript, group: Group) -> int:
        """Tokens that dropping this group frees."""
        messages, whole = transcript.messages, group.numbers
        cost = 0
        if group.partial:  # of its last message only the results go
            whole, last = whole[:-1], messages[group.last]
            costs = zip(last.blocks, self.sizes(last).blocks, strict=True)
            cost = sum(tokens for block, tokens in costs if is_of_result(block))
            cost += self.pairs(last.results)
        return cost + sum([self.message(messages[number]) for number in whole])

    def runs(self, transcript: Transcript) -> GroupSums:
        """Running sums over the groups, from which sums over any run of groups follow."""
        known = self._runs
        if known.groups is transcript.groups:
            return known
        tokens, closed, calls = [0], [0], [0]
        for group in transcript.groups:
            span = transcript.messages[group.first : group.last + 1]
            counts = group.has_calls and group.closed
            tokens.append(tokens[-1] + self.group(transcript, group))
            closed.append(closed[-1] + (sum(map(self.message, span)) if counts else 0))
            calls.append(calls[-1] + (sum(len(m.calls) for m in span) if counts else 0))
        known = GroupSums(transcript.groups, tuple(tokens), tuple(closed), tuple(calls))
        self._runs = known  # one assignment: another thread may be making a report
        return known

    def block(self, transcript: Transcript, place: Place) -> int:
        """Tokens of one block at its place."""
        if place.message < 0:
            return self._head_costs(transcript)[place.block]
        return self.sizes(transcript.messages[place.message]).blocks[place.index]

    def block_cost(self, block: Block) -> int:
        """Tokens of a block, its label included."""
        cost = self.counter(block.text) if block.text else 0
        if block.label:
            cost += self._label(block.label)
        if block.signature_chars:
            cost += self.counter.signature(block.signature_chars)
        return cost + (self.counter.scaled(block.fixed_tokens) if block.fixed_tokens else 0)

    def _label(self, label: str) -> int:
        """Tokens of a tool's name, cached."""
        tokens = self._labels.get(label)
        if tokens is None:
            if len(self._labels) >= LABELS:
                self._labels.clear()
            tokens = self._labels[label] = self.counter(label)
        return tokens

    def overhead(self, message: Message) -> int:
        """Fixed tokens of a message: its frame, and the ids of calls and results."""
        return (self._frame if message.framed else 0) + self.pairs(message.parts)

    def pairs(self, parts: Iterable[Part]) -> int:
        """Fixed tokens of the calls and results among these parts."""
        count = 0
        for part in parts:
            if part.kind in _BY_ID:
                count += 1
        return count * self._pair

    def _measured(self, message: Message) -> MessageSizes:
        costs: list[int] = []
        signed = media = size = 0
        for block in message.blocks:
            costs.append(self.block_cost(block))
            size += 6 * (len(block.text) + block.signature_chars + block.payload_bytes)
            if block.media:
                media += 1
            else:
                size += 30 * block.fixed_tokens
            if block.signature_chars:
                signed += self.counter.signature(block.signature_chars)
        size += 300 * (1 + len(message.parts) + len(costs))
        total = sum(costs) + self.overhead(message)
        return MessageSizes(tuple(costs), total, media, size, signed)
