"""Pair tool calls with their results, and decide whether and how a call failed.

A result without an error flag counts as failed if it matches an error text of a well-known tool.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Literal

from trimtab.transcript.call_arguments import CallArguments, is_shell, read_call
from trimtab.transcript.model import Block, Group, Message
from trimtab.transcript.transcript import Transcript

Key = tuple[int, int]
"""(message, index) of a block."""


@dataclass(frozen=True, slots=True)
class Output:
    """One tool result as read: its blocks' indices and texts, and whether one is flagged as an
    error."""

    id: str
    tool: str
    indices: tuple[int, ...]
    texts: tuple[str, ...]
    flagged: bool
    lines: int
    chars: int


@dataclass(slots=True)
class ToolCall:
    """One call with its results.  ``failed``: the category of its error, "" for success;
    ``flagged``: a flag says so, not the text; ``number``: the number of calls before it."""

    arguments: CallArguments
    tool: str
    turn: int
    closed: bool
    inputs: list[Key] = field(default_factory=list)
    outputs: list[Key] = field(default_factory=list)
    texts: tuple[str, ...] = ()
    failed: str = ""
    flagged: bool = False
    lines: int = 0
    chars: int = 0
    number: int = 0

    @property
    def answered(self) -> bool:
        """Whether it has a result and every other call of its turn has one too."""
        return self.closed and bool(self.texts)


class CallReader:
    """Reads calls and results, once for each message, and caches them."""

    def __init__(self) -> None:
        self._calls: dict[Message, tuple[tuple[int, CallArguments], ...]] = {}
        self._outputs: dict[Message, tuple[Output, ...]] = {}
        self._failed: dict[tuple[Output, str, str], str] = {}

    def __len__(self) -> int:
        return max(len(self._calls), len(self._outputs))

    def keep_only(self, messages: Container[Message]) -> None:
        """Forget the calls and results of all other messages."""
        self._calls = {m: calls for m, calls in self._calls.items() if m in messages}
        self._outputs = {m: outputs for m, outputs in self._outputs.items() if m in messages}
        self._failed = {}

    def calls(self, message: Message) -> tuple[tuple[int, CallArguments], ...]:
        """Every call of a message, as (index of its block, arguments)."""
        calls = self._calls.get(message)
        if calls is None:
            calls = self._calls[message] = tuple(
                (index, read_call(block.tool or "", block.text, free=block.spelling == "string"))
                for index, block in enumerate(message.blocks)
                if block.kind == "call"
            )
        return calls

    def outputs(self, message: Message) -> tuple[Output, ...]:
        """The tool results of a message."""
        outputs = self._outputs.get(message)
        if outputs is None:
            outputs = self._outputs[message] = tuple(_outputs(message)) if message.results else ()
        return outputs

    def failed(self, output: Output, tool: str, call: CallArguments) -> str:
        """The category of a failed result, known by its flag or text; "" if the call succeeded."""
        key = (output, tool, call.signature)
        if key not in self._failed:
            text = next(filter(None, output.texts), "")
            quoted = is_shell(tool) and _may_quote(call, text)
            error = output.flagged or (not quoted and says_failed(tool, text))
            self._failed[key] = category(text) if error else ""
        return self._failed[key]


def _outputs(message: Message) -> Iterator[Output]:
    """Each result with the blocks whose item lies within its part."""
    blocks: dict[tuple[str | int, ...], list[int]] = {part.path: [] for part in message.results}
    depths = sorted({len(path) for path in blocks}, reverse=True)
    for index, block in enumerate(message.blocks):
        home = next((at for d in depths if (at := block.item[:d]) in blocks), None)
        if home is not None:
            blocks[home].append(index)
    for part in message.results:
        parts_blocks = [message.blocks[index] for index in blocks[part.path]]
        texts = tuple(map(_said, parts_blocks))
        yield Output(
            part.id,
            part.tool or next((block.tool for block in parts_blocks if block.tool), ""),
            tuple(blocks[part.path]),
            texts,
            any(block.error for block in parts_blocks),
            sum(text.count("\n") + 1 for text in texts),
            sum(map(len, texts)),
        )


def _said(block: Block) -> str:
    """A block's text; for one without text its identity, else a unique value."""
    if block.text or block.kind == "result":
        return block.text
    return f"\0{block.identity or id(block)}"


def calls_of(transcript: Transcript, reader: CallReader, group: Group, turn: int) -> list[ToolCall]:
    """The calls of one turn with their results, paired by id, or in order where ids are missing
    or repeated."""
    calls: list[ToolCall] = []
    waiting: dict[tuple[str, str], deque[ToolCall]] = {}
    for number in range(group.first, group.last + 1):
        message = transcript.messages[number]
        for index, call in reader.calls(message):
            block = message.blocks[index]
            made = ToolCall(call, block.tool or "", turn, group.closed, [(number, index)])
            calls.append(made)
            key = (block.call_id or "", "" if block.call_id else made.tool)
            waiting.setdefault(key, deque()).append(made)
    for number in range(group.first, group.last + 1):
        for output in reader.outputs(transcript.messages[number]):
            queue = waiting.get((output.id, "" if output.id else output.tool))
            if queue:
                _answer(reader, queue.popleft(), output, number)
    return calls


def _answer(reader: CallReader, made: ToolCall, output: Output, number: int) -> None:
    made.outputs += [(number, index) for index in output.indices]
    made.texts = output.texts
    made.failed = reader.failed(output, made.tool, made.arguments)
    made.flagged = output.flagged
    made.lines, made.chars = output.lines, output.chars


# --- error texts ---

Category = Literal["permission", "file system", "validation", "network", "parse", "state", "other"]

LONGEST_CHARS = 2_000
"""Longest error text; a longer text that begins with the same words is a file or a log."""
LONGEST_LINES = 25

_ANY = r"|".join(
    (
        r"The user rejected permission to use this specific tool call",
        r"The user doesn't want to (?:proceed with|take) this (?:tool use|action)",
        r"The user has blocked you from ",
        r"Tool execution aborted",
        r"<tool_use_error>",
        r"Error executing tool\b",
        r"Error: (?:Tool|Unknown tool|No such tool)\b",
        r"InputValidationError: ",
    )
)
_OF_TOOL: tuple[tuple[str, str], ...] = (
    (
        r"edit|replace",
        r"oldString not found in content|oldString and newString must be different"
        r"|Found multiple matches for oldString|File [^\n]{1,400} not found"
        r"|Could not find the exact text in |String to replace not found in file"
        r"|No replacement was performed\b",
    ),
    (r"write|create", r"File [^\n]{1,400} is not in the current working directory"),
    (
        r"read|view|open",
        r"File not found|Cannot read binary file|The user has blocked you from reading"
        r"|File does not exist\.?\s*\Z",
    ),
    (
        r"bash|shell|exec|terminal|command",
        r"Command terminated after exceeding timeout|Command aborted by user",
    ),
    (r"grep|search|glob", r"pattern is required|ripgrep failed"),
    (r"patch", r"Failed to parse patch|Failed to find context|No files were modified"
     r"|apply_patch verification failed"),
)  # fmt: skip
_EVERYWHERE = re.compile(rf"\s*(?:{_ANY})")
_PER_TOOL = tuple(
    (re.compile(tools, re.IGNORECASE), re.compile(rf"\s*(?:Error: )?(?:{texts})"))
    for tools, texts in _OF_TOOL
)


def says_failed(tool: str, text: str) -> bool:
    """Whether a result is one of the known error texts of this tool.

    The result must begin with it and be short, so that a file or a log that quotes it is ignored.
    """
    if len(text) > LONGEST_CHARS or text.count("\n") >= LONGEST_LINES:
        return False
    if _EVERYWHERE.match(text):
        return True
    return any(tools.search(tool) and texts.match(text) for tools, texts in _PER_TOOL)


def _may_quote(call: CallArguments, text: str) -> bool:
    """Whether a command's output may merely quote an error text: more lines follow, the command
    prints files, or the command itself contains the text."""
    line, _, rest = text.strip().partition("\n")
    words = " ".join(line.split()[:3])
    return bool(rest) or call.action in ("read", "look") or words in call.signature


_CATEGORIES: tuple[tuple[Category, str], ...] = (
    ("permission", r"permission|not permitted|not allowed|denied|rejected|blocked you|forbidden"
     r"|unauthori[sz]ed|EACCES|EPERM|doesn't want to|requires approval|\b40[13]\b"),
    ("state", r"modified since|been modified|changed since|not been read yet|read it first"
     r"|doom loop|no files were modified|sibling tool call|already (?:exists|running|in progress)"
     r"|aborted|interrupted|exceeding timeout|temporarily unavailable|conflict"),
    ("parse", r"fail(?:ed|ure) to parse|parse error|cannot parse|could not parse|syntax ?error"
     r"|unexpected (?:token|end|eof)|malformed|JSONDecodeError|invalid json"),
    ("validation", r"(?:string|text|context|pattern)[^\n]{0,60} not found|multiple matches"
     r"|must be|is required|required (?:parameter|property|argument|field)|missing \d? ?(?:required"
     r"|parameter|argument)|invalid|validation|unknown (?:tool|skill|command|option|argument)"
     r"|exact text|failed to find context|no replacement"),
    ("file system", r"no such file|file[^\n]{0,400} not found|not found: |does not exist|ENOENT"
     r"|EISDIR|ENOTDIR|EEXIST|ENOSPC|is a directory|not a directory|binary file|no space left"
     r"|current working directory|exceeds maximum|(?<!response )too large"),
    ("network", r"ECONN|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|getaddrinfo|connection (?:refused|reset"
     r"|timed out|error|aborted)|network|could not resolve|fetch failed|\b50[234]\b|\b429\b|ssl\b"
     r"|certificate|dns\b|request failed|response too large|timed out|timeout"),
)  # fmt: skip
_COMPILED = tuple((name, re.compile(words, re.IGNORECASE)) for name, words in _CATEGORIES)
_HEAD = 600


def category(text: str) -> Category:
    """The category of an error, from the first 600 chars of its text; "other" if none matches."""
    head = text[:_HEAD]
    return next((name for name, words in _COMPILED if words.search(head)), "other")
