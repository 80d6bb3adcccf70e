"""Which result answers which call, and how it ended.

Knows groups, call ids and results without ids.  Does not know what anything is used for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from trimtab.model import Block, Group, Message, Transcript
from trimtab.reading.calls import Call, read_call
from trimtab.reading.failures import category, says_failed

Key = tuple[int, int]
"""(message, index) of a block."""


@dataclass(frozen=True, slots=True)
class Output:
    """One tool result as it was read: where, what, and whether it is flagged as an error."""

    id: str
    tool: str
    indices: tuple[int, ...]
    texts: tuple[str, ...]
    flagged: bool
    lines: int
    chars: int


@dataclass(slots=True)
class Exchange:
    """One call and what came back.  ``failed``: the category of its error, "" for success;
    ``number``: how many calls came before it."""

    call: Call
    tool: str
    turn: int
    closed: bool
    inputs: list[Key] = field(default_factory=list)
    outputs: list[Key] = field(default_factory=list)
    texts: tuple[str, ...] = ()
    failed: str = ""
    lines: int = 0
    chars: int = 0
    number: int = 0

    @property
    def told(self) -> bool:
        """Whether something came back, and nothing of its turn is still running."""
        return self.closed and bool(self.texts)


class Reader:
    """Calls and results, read once per message for as long as it stays."""

    def __init__(self) -> None:
        self._calls: dict[Message, tuple[tuple[int, Call], ...]] = {}
        self._outputs: dict[Message, tuple[Output, ...]] = {}
        self._failed: dict[tuple[Output, str], str] = {}

    def keep(self, messages: tuple[Message, ...]) -> None:
        """Forget what is not of these messages, once that is the larger part."""
        if len(self._calls) + len(self._outputs) > 4 * len(messages) + 64:
            self._calls = {m: self._calls[m] for m in messages if m in self._calls}
            self._outputs = {m: self._outputs[m] for m in messages if m in self._outputs}
            self._failed = {}

    def calls(self, message: Message) -> tuple[tuple[int, Call], ...]:
        """(index of the block, the call) of every call of a message."""
        found = self._calls.get(message)
        if found is None:
            found = self._calls[message] = tuple(
                (index, read_call(block.tool or "", block.text, free=block.spelling == "string"))
                for index, block in enumerate(message.blocks)
                if block.kind == "call"
            )
        return found

    def outputs(self, message: Message) -> tuple[Output, ...]:
        """The tool results of a message."""
        found = self._outputs.get(message)
        if found is None:
            found = self._outputs[message] = tuple(_outputs(message)) if message.results else ()
        return found

    def failed(self, output: Output, tool: str) -> str:
        """The category of an error, by its flag or its text; "" where the call succeeded."""
        key = (output, tool)
        if key not in self._failed:
            text = next(filter(None, output.texts), "")
            error = output.flagged or says_failed(tool, text)
            self._failed[key] = category(text) if error else ""
        return self._failed[key]


def _outputs(message: Message) -> Iterator[Output]:
    """Results with their blocks: those whose item lies within the result's part."""
    blocks: dict[tuple[str | int, ...], list[int]] = {part.path: [] for part in message.results}
    depths = sorted({len(path) for path in blocks}, reverse=True)
    for index, block in enumerate(message.blocks):
        home = next((at for d in depths if (at := block.item[:d]) in blocks), None)
        if home is not None:
            blocks[home].append(index)
    for part in message.results:
        found = [message.blocks[index] for index in blocks[part.path]]
        texts = tuple(map(_said, found))
        yield Output(
            part.id,
            part.tool or next((block.tool for block in found if block.tool), ""),
            tuple(blocks[part.path]),
            texts,
            any(block.error for block in found),
            sum(text.count("\n") + 1 for text in texts),
            sum(map(len, texts)),
        )


def _said(block: Block) -> str:
    """The text; for what has none, what tells it apart from others (or from everything)."""
    if block.text or block.kind == "result":
        return block.text
    return f"\0{block.identity or id(block)}"


def of_group(transcript: Transcript, reader: Reader, group: Group, turn: int) -> list[Exchange]:
    """Calls and results of one turn: by id, and in order where ids are missing or repeated."""
    found: list[Exchange] = []
    waiting: dict[tuple[str, str], deque[Exchange]] = {}
    for number in range(group.first, group.last + 1):
        message = transcript.messages[number]
        for index, call in reader.calls(message):
            block = message.blocks[index]
            exchange = Exchange(call, block.tool or "", turn, group.closed, [(number, index)])
            found.append(exchange)
            key = (block.call_id or "", "" if block.call_id else exchange.tool)
            waiting.setdefault(key, deque()).append(exchange)
    for number in range(group.first, group.last + 1):
        for output in reader.outputs(transcript.messages[number]):
            queue = waiting.get((output.id, "" if output.id else output.tool))
            if queue:
                _answer(reader, queue.popleft(), output, number)
    return found


def _answer(reader: Reader, exchange: Exchange, output: Output, number: int) -> None:
    exchange.outputs += [(number, index) for index in output.indices]
    exchange.texts = output.texts
    exchange.failed = reader.failed(output, exchange.tool)
    exchange.lines, exchange.chars = output.lines, output.chars
