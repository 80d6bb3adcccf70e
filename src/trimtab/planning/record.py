"""The record of a run of steps: what was done, to what, with what outcome, step by step.

    1–4: 3 Read of 3 files, 1 Grep
    5 Bash python -m pytest -q → exit 1, 94 lines
     FAILED tests/test_clock.py::test_spelling
    6 Edit tally/clock.py → ok
    -hours = int(digits[:3])
    +hours = int(digits[:2])

A step begins with its number, from 1 in the run, as ``recall`` counts them.  Its lines follow:
a blank before what the tool said or was given, + and − before what an edit wrote and replaced.
Neighbouring steps of which nothing is shown are one line.  What a later step of the run is known to
have changed is not shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from trimtab.lazy import cached_property
from trimtab.planning.line_selection import CandidateLines
from trimtab.planning.lines import Lines, lines_of, only
from trimtab.reducers.base import error_line
from trimtab.reducers.text_boundaries import at_or_before
from trimtab.transcript.call_arguments import is_shell
from trimtab.transcript.file_edits import FileEdit, file_edits
from trimtab.transcript.model import Block
from trimtab.transcript.tool_calls import ToolCall

OBJECT_CHARS, OUTCOME_CHARS = 80, 60
"""The most chars of what a step was applied to, and of a result that is quoted as its outcome."""
HEAD_RATE = 0.35
"""About the tokens of one char of a head."""
MAX_FILES = 2
"""So many files are named in a line for several steps; of more, the number is."""
_WRAPPED = re.compile(
    r"(?:Chunk ID: |Wall time: |Process exited with code |Process running with session ID |"
    r"Original token count: |Output:$|Total output lines: |</?system-reminder>)"
)
"""Lines that agents put around what a command printed; they say nothing of it."""
_FOLDER = re.compile(r"cd [^\s&;]+ *(?:&&|;) *")
_EXIT = re.compile(r"\b[Ee]xit(?:ed)?\b.{0,40}?\b(?:code|status)\b\D{0,12}(-?\d+)")
_ROW = re.compile(r"(\d+) ")


@dataclass(eq=False)
class Entry:
    """One call of a step: ``header`` says tool and arguments; ``edits`` what it changed in files.

    ``listed``: whether the record names it even where none of its lines are shown.
    """

    step: int
    group: int
    call: ToolCall
    header: str
    edits: Sequence[FileEdit] = ()
    changed_in: int = 0
    """The next step that changed a file that this one read; 0 if none did."""
    listed: bool = False
    sources: list[CandidateLines] = field(default_factory=list)

    def within(self, steps: int) -> Entry:
        """The entry in a record of the first ``steps`` alone: it says nothing of later ones."""
        return self if self.changed_in <= steps else replace(self, changed_in=0)

    @property
    def is_shown(self) -> bool:
        """Whether it has a line of its own in the record."""
        return self.listed or any(source.kept for source in self.sources)

    @property
    def matters(self) -> bool:
        """Whether it changed a file or failed: such steps are told apart longest."""
        return bool(self.edits) or self.failed

    @property
    def failed(self) -> bool:
        """Whether its result is flagged, says that it failed, or names an exit code but 0."""
        return bool(self.call.failed or _exit_code(self.call))

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it read or changed."""
        edited = tuple(dict.fromkeys(edit.path for edit in self.edits))
        return edited or self.call.arguments.files

    @cached_property
    def head(self) -> str:
        """``6 Edit tally/clock.py → ok``."""
        what = self._object()
        later = f", edited in step {self.changed_in}" if self.changed_in else ""
        return f"{self.step} {self.header.partition(' ')[0]} {what} → {_outcome(self)}{later}"

    @cached_property
    def head_tokens(self) -> float:
        """About the tokens of its head."""
        return HEAD_RATE * len(self.head) + 1.0

    def _object(self) -> str:
        arguments = self.call.arguments
        names = arguments.action in ("read", "write", "edit") and arguments.files
        if self.edits or (names and not is_shell(self.call.tool)):
            shown = ", ".join(self.files[:3]) + (", …" if len(self.files) > 3 else "")
            if arguments.action == "read" and (arguments.first > 1 or arguments.last):
                shown += f" {arguments.first}–{arguments.last or 'end'}"
            return shown
        return _FOLDER.sub("", self.header.partition(" ")[2], count=1)

    def rows(self) -> Iterator[str]:
        """Its head and the chosen lines below it."""
        yield self.head
        paths = {edit.path for edit in self.edits}
        path = ""
        for source in self.sources:
            if source.kept and len(paths) > 1 and source.path != path and source.path:
                path = source.path
                yield f" {path}:"
            yield from source.rows()


def _exit_code(call: ToolCall) -> str:
    """The exit code that a result names at its beginning or end, unless it is 0."""
    for text in call.texts[:1]:
        for end in (text[:200], text[-200:]):
            if (match := _EXIT.search(end)) and match[1].strip("0"):
                return match[1]
    return ""


def _outcome(entry: Entry) -> str:
    """``ok``, ``error: …``, ``exit 1, 94 lines``, ``37 lines`` or a short result itself."""
    call = entry.call
    text = next(filter(None, call.texts), "")
    if not call.texts:
        return "no result"
    if call.failed:
        line = error_line(text)
        return f"error: {line[: at_or_before(line, OBJECT_CHARS)]}" if line else "error"
    code = _exit_code(call)
    size = f"{call.lines:,} lines"
    if code:
        return f"exit {code}, {size}" if call.lines > 1 else f"exit {code}"
    if entry.edits:
        return f"ok, {_changed(entry.edits)}"
    if not text.strip():
        return "no output"
    if text.startswith("\0"):
        return "media"
    if call.lines > 1:
        return size
    line = error_line(text)
    return line if len(text) <= OUTCOME_CHARS else f"{call.chars:,} chars"


def _changed(edits: Sequence[FileEdit]) -> str:
    """``+7 −1``: lines that the edits added and took out."""
    added = taken = 0
    for edit in edits:
        new, old = Counter(_rows(edit.new)), Counter(_rows(edit.old))
        added, taken = added + (new - old).total(), taken + (old - new).total()
    return f"+{added:,} −{taken:,}"


def _rows(text: str) -> list[str]:
    return text.split("\n") if text else []


class StepRecord:
    """The entries of one run, oldest first."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries

    def text(self) -> str:
        """The record with the lines that are chosen now; "" if no entry is shown."""
        return "\n".join(self.rows()) if any(entry.is_shown for entry in self.entries) else ""

    def rows(self) -> list[str]:
        """The rows of the record; one for all entries if none is shown."""
        rows, rest = list[str](), list[Entry]()
        for entry in self.entries:
            if not entry.is_shown:
                rest.append(entry)
                continue
            if rest:
                rows.append(_together(rest))
                rest = []
            rows += entry.rows()
        if rest:
            rows.append(_together(rest))
        return rows


def listed_first(entries: Sequence[Entry]) -> Iterator[Entry]:
    """The entries in the order in which they get a line: the newest, but of the older half those
    that changed or failed before those that looked."""
    half = len(entries) // 2
    yield from reversed(entries[half:])
    older = entries[:half]
    yield from (entry for entry in reversed(older) if entry.matters)
    yield from (entry for entry in reversed(older) if not entry.matters)


def _together(entries: Sequence[Entry]) -> str:
    """``1–180: 96 Read of 31 files, 40 Grep, 12 Edit of a.py, b.py`` for steps in a row."""
    if len(entries) == 1:
        return entries[0].head
    first, last = entries[0].step, entries[-1].step
    numbers = f"{first}" if first == last else f"{first}–{last}"
    tools: dict[str, list[Entry]] = {}
    for entry in entries:
        tools.setdefault(entry.header.partition(" ")[0], []).append(entry)
    rows = (_of_tool(tool, own) for tool, own in tools.items())
    return f"{numbers}: {', '.join(rows)}"


def _of_tool(tool: str, entries: Sequence[Entry]) -> str:
    failed = sum(entry.failed for entry in entries)
    files = tuple(dict.fromkeys(file for entry in entries for file in entry.files))
    of = ""
    if files:
        of = f" of {', '.join(files)}" if len(files) <= MAX_FILES else f" of {len(files):,} files"
    return f"{len(entries):,} {tool}{of}" + (f" ({failed:,} failed)" if failed else "")


# --- what is no longer true at the end of the run ---


@dataclass
class _FileState:
    """What later edits of the run did to a file, collected from the newest backwards."""

    gone: set[str] = field(default_factory=set)
    present: set[str] = field(default_factory=set)
    only: set[str] | None = None
    """All lines of the file, where a later step wrote it whole."""
    changed_in: int = 0

    def is_stale(self, line: str) -> bool:
        """Whether a line that was in the file earlier is known to be no longer in it."""
        text = line.strip()
        if not text or text in self.present:
            return False
        return text in self.gone or (self.only is not None and text not in self.only)

    def add(self, edit: FileEdit, step: int) -> None:
        """Take an edit into account that is older than all before it."""
        new, old = _stripped(edit.new), _stripped(edit.old)
        if edit.whole and self.only is None:
            self.only = {line for line in new if line not in self.gone} | self.present
        self.present |= {line for line in new if not self.is_stale(line)}
        self.gone |= old - new - self.present
        self.changed_in = step


def _stripped(text: str) -> set[str]:
    return set(filter(None, map(str.strip, text.split("\n"))))


Make = Callable[[Entry, str, Block, Lines], CandidateLines]
"""(entry, kind, block, its lines) → the source of these lines."""


def add_sources(
    entries: Sequence[Entry],
    blocks: Callable[[Entry], tuple[Block | None, Sequence[Block]]],
    make: Make,
    read: Callable[[Block], Lines],
    may_read: Callable[[Entry], bool],
) -> None:
    """Give each entry the lines that may be shown of it, without those that are no longer true.

    ``blocks``: the call's block (None where it is sent anyway) and its results' blocks; ``read``:
    the lines of a block; ``may_read``: whether an entry's lines are read at all.
    """
    files: dict[str, _FileState] = {}
    for entry in reversed(entries):
        succeeded = not entry.call.failed
        if entry.call.arguments.action == "read":  # before its head is written
            states = [files[name] for name in entry.files if name in files]
            entry.changed_in = min((state.changed_in for state in states), default=0)
        if may_read(entry):
            call, results = blocks(entry)
            entry.sources = [
                *(_of_call(entry, call, files, make, read) if call else ()),
                *_of_results(entry, results, files, make, read),
            ]
        if succeeded:
            for edit in reversed(entry.edits):
                files.setdefault(edit.path, _FileState()).add(edit, entry.step)


def _of_call(
    entry: Entry,
    call: Block,
    files: dict[str, _FileState],
    make: Make,
    read: Callable[[Block], Lines],
) -> Iterator[CandidateLines]:
    if entry.call.arguments.action == "read":
        return  # its head says file and lines
    if not entry.edits:
        yield make(entry, "call", call, _below_head(read(call), entry))
        return
    if entry.call.failed:
        return  # what it would have written is nowhere
    for number, edit in enumerate(entry.edits):
        state = _after(files.get(edit.path), entry.edits[number + 1 :], edit.path)
        new, old = _lines(edit.new), _lines(edit.old)
        was, now = set(old), set(new)
        stays = [n for n, line in enumerate(new) if not (state and state.is_stale(line))]
        left = [n for n, line in enumerate(old) if line not in now]
        written, replaced = only(new, stays), only(old, left)
        if was >= now:  # it only takes out: what is around that is not what it did
            written = only(new, [])
        if len(replaced):
            source = make(entry, "old", call, replaced)
            source.sign, source.path = "-", edit.path
            yield source
        if len(written):
            source = make(entry, "call", call, written)
            source.sign, source.path = "+", edit.path
            source.plain = frozenset(n for n, line in enumerate(written) if line in was)
            yield source


def _after(state: _FileState | None, rest: Sequence[FileEdit], path: str) -> _FileState | None:
    """The state of a file with the later edits of the same call."""
    own = [edit for edit in rest if edit.path == path]
    if not own:
        return state
    after = _FileState()
    if state is not None:
        after = _FileState(set(state.gone), set(state.present), state.only, state.changed_in)
    for edit in reversed(own):
        after.add(edit, 0)
    return after


def _lines(text: str) -> Lines:
    return lines_of(Block("text", (), (), text))


def _below_head(lines: Lines, entry: Entry) -> Lines:
    """The lines of a call's arguments that its head does not show."""
    shown = [n for n, line in enumerate(lines) if line.strip() and line.strip() not in entry.head]
    return only(lines, shown)


def _of_results(
    entry: Entry,
    results: Iterable[Block],
    files: dict[str, _FileState],
    make: Make,
    read: Callable[[Block], Lines],
) -> Iterator[CandidateLines]:
    states = [files[name] for name in entry.files if name in files]
    is_read = entry.call.arguments.action == "read"
    for block in results:
        source = make(entry, "result", block, read(block))
        if entry.edits and not entry.call.failed:
            continue  # "The file was updated": its head says so
        if len(source.lines) == 1 and source.lines[0].strip() in entry.head:
            continue
        rows = [n for n, line in enumerate(source.lines) if not _WRAPPED.match(line)]
        source.lines = only(source.lines, rows) if len(rows) < len(source.lines) else source.lines
        if is_read and states:
            lines = source.lines
            stays = [n for n, line in enumerate(lines) if not any(s.is_stale(line) for s in states)]
            source.lines = only(lines, stays)
        yield source


# --- notes of before ---


def quoted_rows(text: str) -> dict[int, set[str]]:
    """Step → the rows shown under it, without their signs, from the text of a record."""
    quoted: dict[int, set[str]] = {}
    step = 0
    for row in text.split("\n"):
        if row[:1] in (" ", "+", "-"):
            if step:
                quoted.setdefault(step, set()).add(row[1:])
        else:
            match = _ROW.match(row)
            step = int(match[1]) if match else 0
    return quoted


def edits_of(call: ToolCall, block: Block) -> list[FileEdit]:
    """What a call changed in files; nothing for a call that only looks."""
    action = call.arguments.action
    if action in ("read", "look"):
        return []
    free = block.spelling == "string"
    return file_edits(block.text, free=free, writes=action == "write")
