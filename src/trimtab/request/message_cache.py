"""Values of one conversation's messages that are cached between turns; never decisions.

Each value belongs to one unchanging message or block: its parsed form, size, lines, calls.  The
cache changes no result, only the time it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from trimtab import formats
from trimtab.formats import Format
from trimtab.formats.body import RequestBody
from trimtab.formats.engine.reading import ConversationReader, SharedMessageReader
from trimtab.planning.lines import Lines, lines_of
from trimtab.transcript.model import Block, Message
from trimtab.transcript.token_sizes import TokenSizes
from trimtab.transcript.tokens import Counter, counter_for
from trimtab.transcript.tool_calls import CallReader
from trimtab.transcript.transcript import Prefix, Transcript

MAX_BYTES = 512_000_000
"""Above this nothing is cached.  It is compared with ``TokenSizes.bytes_bound``, about six times
the size of the text."""


class MessageCache:
    """The cache of one conversation; used by one turn at a time."""

    def __init__(self) -> None:
        self._arrived = ConversationReader()
        self._lines: dict[Block, Lines] = {}
        self._calls: CallReader | None = None
        self._sizes: TokenSizes | None = None
        self._counted_for: tuple[Any, ...] = ()
        self._prefix: Prefix | None = None
        self._edited: tuple[Format | None, dict[bytes, Message]] = (None, {})
        """The messages of the last request that were sent otherwise than they came."""
        self.logged: set[str] = set()
        """Warnings that were logged, which says nothing of messages."""

    def read(
        self, body: RequestBody, wanted: str | None, model: str | None
    ) -> tuple[Transcript, str]:
        """Read a request: its transcript, and the reason for its format.

        Raises what ``formats.find`` and ``formats.read`` raise.
        """
        format, reason = formats.find(body.tree, wanted)
        self._arrived.private = body.private
        read = formats.read(body.tree, format, model=model, reader=self._arrived)
        if self._prefix is not None and self._prefix.begins(read):
            read = replace(read, prefix=self._prefix)
        return read, reason

    def read_changed(self, body: RequestBody, before: RequestBody, read: Transcript) -> Transcript:
        """A request after operations on ``before``, of which ``read`` is the transcript: messages
        that are the same objects, or that were sent before with the same content, are not read
        again."""
        format, edited = self._edited
        known = edited if format is read.format else {}
        reader = SharedMessageReader(before.tree, read, known)
        after = formats.read(body.tree, read.format, model=read.facts.model, reader=reader)
        self._edited = read.format, reader.made
        return after

    def sizes(
        self, counter: str | Callable[[str], int] | Counter | None, model: str | None, format: str
    ) -> TokenSizes:
        """Token sizes by this counter; counted again if the counter changes."""
        asked = (counter, model, format)
        if self._sizes is None or self._counted_for != asked:
            self._sizes = TokenSizes(counter_for(counter, model=model, format=format))
            self._counted_for = asked
        return self._sizes

    @property
    def calls(self) -> CallReader:
        """Calls and results of messages."""
        if self._calls is None:
            self._calls = CallReader()
        return self._calls

    def lines(self, block: Block) -> Lines:
        block_lines = self._lines.get(block)
        if block_lines is None:
            block_lines = self._lines[block] = lines_of(block)
        return block_lines

    def keep_only(self, *transcripts: Transcript) -> None:
        """Forget values of messages that are in none of ``transcripts``, once they are the larger
        part; forget all if these exceed ``MAX_BYTES``.  The first is the request as received."""
        self._prefix = transcripts[0].as_prefix()
        sizes = self._sizes
        if sizes is not None and max(map(sizes.bytes_bound, transcripts)) > MAX_BYTES:
            self._arrived, self._lines, self._calls, self._sizes, self._prefix = (
                ConversationReader(), {}, None, None, None,
            )  # fmt: skip
            return
        enough = 64 + 4 * sum(len(one.messages) for one in transcripts)
        if max(len(self._lines), len(self._calls or ()), len(sizes or ())) <= enough:
            return
        messages = {message for one in transcripts for message in one.messages}
        blocks = {block for message in messages for block in message.blocks}
        self._lines = {block: lines for block, lines in self._lines.items() if block in blocks}
        if self._calls is not None:
            self._calls.keep_only(messages)
        if sizes is not None:
            sizes.keep_only(messages)
