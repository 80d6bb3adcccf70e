"""What a conversation has taught us: messages read, texts counted, the body parsed last.

A memo: it changes no result, only time.  Knows nothing of what was decided.
"""

from __future__ import annotations

from typing import Any

from trimtab.exchanges import Reader
from trimtab.formats import Memo
from trimtab.lines import Lines, lines_of
from trimtab.model import Block
from trimtab.source import Source
from trimtab.tokens import counter_for
from trimtab.usage import Usage

KNOWN_BLOCKS = 20_000
"""Blocks whose lines are remembered at once."""


class Known:
    """What one conversation has taught us: messages read and counted, by position."""

    def __init__(self) -> None:
        self.arrived, self.sent = Memo(), Memo()
        self._lines: dict[Block, Lines] = {}
        self.calls = Reader()
        self._usage: Usage | None = None
        self._asked: tuple[Any, ...] = ()
        self._parsed: Source | None = None
        self.last: Any = None
        """What ``continuing`` remembers of the last turn."""

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

    def source(self, request: Any) -> Source:
        """The parsed request; text that came before is not parsed again."""
        if isinstance(request, Source):
            return self._again(request)
        if not isinstance(request, (bytes, str)):
            return Source.of(request)
        last = self._parsed
        if last is not None and type(last.given) is type(request) and last.given == request:
            return Source(request, last.tree, last.text)
        self._parsed = Source.of(request)
        return self._parsed

    def _again(self, parsed: Source) -> Source:
        """What was parsed already; the tree of the same text before, which is known by now."""
        if parsed.text is None:
            return parsed
        last, self._parsed = self._parsed, parsed
        if last is None or last.text != parsed.text:
            return parsed
        self._parsed = Source(parsed.given, last.tree, parsed.text)
        return self._parsed
