"""Judges what replaces recorded steps: whose each line is, and whether it says so.

A line belongs to the steps and files that the nearest line above it names which names a tool, or
numbers and a tool; the lines before the first such belong to the call that stayed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from trimtab.transcript.model import Block, Message
from trimtab_lab.replay.truth.history import MIN_CHARS, Origin, RecordedCall, RecordedHistory

_HEAD = re.compile(r"(?:#+ ?|\[?(?:step )?(\d+)(?:[–-]\d+)?[.:)]? )\s*(\S+)", re.IGNORECASE)
_RUN = re.compile(r"\d+(?:[–-]\d+)?: \d")
_TURNS = re.compile(r"\[([\d,]+) earlier steps?\b")
_MARKED = re.compile(r"\b(?:edited|changed|replaced|overwritten|deleted)\b", re.IGNORECASE)
"""Words by which a head says that what is below it was so before."""
_OURS = re.compile(r"^\[.*\]$|^…$|^\.\.\.$")

IN_WORDS = "edits whose new lines are in the model's text"
CALLS = "call-like rows in the model's text"
QUOTED, TRUE = "quoted lines", "true lines"
"""Lines whose source is known, and those of them of which nothing is wrong."""
NOTES = "notes"
EDITS, SHOWN = "edits", "edits that show new lines"
PLACED, EDITED = "under their file", "edited lines"
STALE = "stale"
ELSEWHERE = "under another step"
UNTRUE: dict[str, str] = {
    ELSEWHERE: "is under a step that it did not come from",
    "under another file": "is new text of an edit, and is under another file",
    "under none": "is new text of an edit, and is under no file",
    STALE: "was changed by a later step of the same note, and is shown as if it held",
    "old text without a sign": "is what an edit replaced, and is shown as if it held",
    CALLS: "looks like a call or a tool's result, and is in the model's words",
}
"""What is untrue (a key of the counts) → what is wrong with the line, for people."""


class UntrueLine(NamedTuple):
    """One line that says something untrue: where it stands, and which of UNTRUE it is.

    ``head``: the line that it is under; "" if none.  ``place``: the id of the call whose
    result it is in; "" in the model's words.  ``messages``: how many had arrived.
    """

    kind: str
    line: str
    head: str
    place: str
    messages: int


@dataclass
class _Under:
    """What the lines below one head belong to."""

    head: str
    calls: Sequence[RecordedCall]
    files: frozenset[str]

    @property
    def is_marked(self) -> bool:
        """Whether the head says that its lines were changed later."""
        return _MARKED.search(self.head.rpartition("→")[2]) is not None


@dataclass
class _Note:
    """One note while it is read: the turn that it numbers 1, the steps it stands for, and what has
    been seen in it."""

    turn: int
    steps: range
    place: str
    arrived: int
    under: _Under
    shown: set[int] = field(default_factory=set)
    named: set[str] = field(default_factory=set)


class NoteJudge:
    """The verdicts on the requests of one session, each note once.

    ``tally`` has the counts, ``untrue`` the lines that are wrong; a line counts once of a kind.
    """

    def __init__(self, history: RecordedHistory) -> None:
        self.history, self.tally = history, Counter[str]()
        self.untrue: list[UntrueLine] = []
        self._seen: set[tuple[str, str]] = set()
        self._results = {text for step in history.steps for text in step.results}

    def read(self, sent: Sequence[Message], arrived: int) -> None:
        """Judge one request as it was sent, of which ``arrived`` messages came."""
        there: list[int] | None = None
        for message in sent:
            for block in message.blocks:
                if block.kind == "result" and block.text not in self._results:
                    if ("note", block.text) not in self._seen:
                        there = self._there(sent, arrived) if there is None else there
                        self._note(block, there, arrived)
                elif block.kind != "text" or message.role != "assistant":
                    continue
                elif (message.role, block.text) not in self.history.texts:
                    self._words(block.text, arrived)

    def _there(self, sent: Sequence[Message], arrived: int) -> list[int]:
        """Numbers of the steps whose call is still in the request."""
        ids = (b.call_id or "" for m in sent for b in m.blocks if b.kind == "call")
        before = self.history.before(arrived)
        return sorted(n for id_ in ids for n in self.history.ids.get(id_, ()) if n < before)

    def _note(self, block: Block, there: Sequence[int], arrived: int) -> None:
        owners = [n for n in self.history.ids.get(block.call_id or "", ()) if n in there]
        if not owners:
            return
        self._seen.add(("note", block.text))
        anchor = owners[-1]
        first = max((n for n in there if n < anchor), default=-1) + 1
        end = min((n for n in there if n > anchor), default=self.history.before(arrived))
        if end - first < 2:
            return  # one result, shortened
        if self._is_own(block.text, anchor):
            return  # the same, beside steps that were dropped
        turn, steps = self._run(block.text, range(first, end), arrived)
        self.tally[NOTES] += 1
        own = self.history.steps[anchor]
        under = _Under("", [own], frozenset(own.files))
        self._lines(block.text, _Note(turn, steps, block.call_id or "", arrived, under))

    def _is_own(self, text: str, anchor: int) -> bool:
        """Whether all that a result shows are rows of the result that its call had."""
        own = {row for result in self.history.steps[anchor].results for row in result.split("\n")}
        return all(row in own or _OURS.match(row) for row in text.split("\n"))

    def _run(self, text: str, gap: range, arrived: int) -> tuple[int, range]:
        """(the turn that a note numbers 1, the steps it stands for) among those that are gone.

        A note may say how many turns it stands for; what is gone beside them may have been taken
        out by itself.  Of all runs of so many turns it is the one whose calls its heads name; in
        doubt, the one in which most of its lines are where they belong.
        """
        calls = [self.history.steps[n] for n in gap]
        first, last = calls[0].turn, calls[-1].turn
        match = _TURNS.match(text)
        count = int(match[1].replace(",", "")) if match else last - first + 1
        parts = list(self._parts(text, arrived))
        by_turn: dict[int, list[RecordedCall]] = {}
        for call in calls:
            by_turn.setdefault(call.turn, []).append(call)

        def fits(start: int) -> tuple[int, int]:
            heads = lines = 0
            for head, turns in parts:
                turn = start + int(head[1]) - 1
                heads += _is_head_of(head, by_turn.get(turn, ()))
                lines += sum(turn in own for own in turns)
            return heads, lines

        before = self.history.steps[gap.start - 1].turn if gap.start else -1
        whole = range(first, max(first, last - count + 1) + 1)
        start = max([*whole, *range(before + 1, last + 1)], key=fits)
        own = [call.number for call in calls if start <= call.turn < start + count]
        return start, range(min(own, default=gap.start), max(own, default=gap.stop - 1) + 1)

    def _parts(self, text: str, arrived: int) -> Iterator[tuple[re.Match[str], list[set[int]]]]:
        """Each numbered head of a note, with the turns that each line below it may come from."""
        head, turns = None, list[set[int]]()
        for row in text.split("\n"):
            if (found := _HEAD.match(row)) and found[1]:
                if head:
                    yield head, turns
                head, turns = found, []
            elif head and (origins := self._origins(row, arrived)[0]):
                turns.append({self.history.steps[o.step].turn for o in origins if o.step >= 0})
        if head:
            yield head, turns

    # --- one note -----------------------------------------------------------------------------

    def _lines(self, text: str, note: _Note) -> None:
        headed = False
        for row in text.split("\n"):
            if under := self._under(row, note):
                note.under, headed = under, True
                note.named |= under.files
                continue
            if not headed and _OURS.match(row):
                continue
            alone = row.startswith(" ") and row.endswith(":") and " " not in row.strip()
            if alone and (own := self.history.named_files(row)):
                note.under = _Under(note.under.head, note.under.calls, own)
                note.named |= own
                continue
            self._quoted(row, note)
        self._silence(note)

    def _under(self, row: str, note: _Note) -> _Under | None:
        """What the lines below a row belong to, if it is a head."""
        if row.startswith((" ", "+", "-")):
            return None
        head, files = _HEAD.match(row), self.history.named_files(row)
        if head and _tool(head) in self.history.tools:
            return _Under(row, self._named_calls(head, files, note), files)
        return _Under(row, (), files) if _RUN.match(row) else None

    def _named_calls(
        self, head: re.Match[str], files: frozenset[str], note: _Note
    ) -> Sequence[RecordedCall]:
        """The calls of the note that a head names: by number and tool, of parallel ones by what
        they were applied to; by tool and file where the numbered one is of another file."""
        calls = [self.history.steps[n] for n in note.steps]
        calls = [call for call in calls if call.tool == _tool(head)]
        number = int(head[1] or 0)
        numbered = [call for call in calls if not number or call.turn == note.turn + number - 1]
        if alike := [call for call in numbered if _is_head_of(head, [call])]:
            return alike
        named = [call for call in calls if files.intersection(call.files)]
        return named if named and all(call.files for call in numbered) else numbered

    def _quoted(self, row: str, note: _Note) -> None:
        """Judge one line below a head."""
        origins, sign = self._origins(row, note.arrived)
        if not origins:
            return
        self.tally[QUOTED] += 1
        wrong = len(self.untrue)
        if note.under.calls and not _is_of(note.under.calls, origins, row):
            self._wrong(ELSEWHERE, row, note)
        written = [one for one in origins if one.kind == "new" and one.step in note.steps]
        elsewhere = [one for one in origins if one.kind != "old" and one not in written]
        if written and not elsewhere and sign != "-":
            self._written(row, sign, written, note)
        elif all(one.kind == "old" for one in origins) and sign != "-":
            self._wrong("old text without a sign", row, note)
        elif sign != "-" and not note.under.is_marked and self._was_read(row, note):
            self._wrong(STALE, row, note)
        self.tally[TRUE] += len(self.untrue) == wrong

    def _origins(self, row: str, arrived: int) -> tuple[list[Origin], str]:
        """Where a row may come from, and the sign before it."""
        sign = row[:1] if row[:1] in ("+", "-") else ""
        if sign and len(row[1:].strip()) < MIN_CHARS:
            return [], sign
        found = self.history.find(row[1:] if sign else row) or (
            self.history.find(row) if sign else []
        )
        return [one for one in found if one.message < arrived], sign

    def _written(self, row: str, sign: str, written: Sequence[Origin], note: _Note) -> None:
        """Judge a line that only edits of the note have."""
        line = (row[1:] if sign else row).strip()
        edits = [
            (one.step, edit)
            for one in written
            for edit in self.history.steps[one.step].edits
            if line in edit.new
        ]
        own = {edit.file for _, edit in edits}
        self.tally[EDITED] += 1
        if note.under.files & own:
            self.tally[PLACED] += 1
        else:
            self._wrong("under another file" if note.under.files else "under none", row, note)
        self.tally["without a sign"] += sign != "+"
        note.shown.update(step for step, _ in edits)
        if edits and all(self._is_stale(line, n, edit.file, note.steps) for n, edit in edits):
            self._wrong(STALE, row, note)

    def _was_read(self, row: str, note: _Note) -> bool:
        """Whether the line was read once in a file that a later step of the note took it out of."""
        if not row.startswith(" "):
            return False
        line = row.strip()
        reads = [step for step in note.under.calls if step.reads and not step.failed]
        return bool(reads) and all(
            sum(line in text for text in "\n".join(step.results).split("\n")) == 1
            and self._is_stale(line, step.number, step.reads, note.steps)
            for step in reads
        )

    def _is_stale(self, line: str, step: int, file: str, steps: range) -> bool:
        """Whether a later step of the note took the line out of the file, and none put it back."""
        gone = False
        for number in range(step, steps.stop):
            later = self.history.steps[number]
            for edit in () if later.failed else later.edits:
                if edit.file == file:
                    if line in edit.new:
                        gone = False
                    elif number > step and edit.removes(line):
                        gone = True
        return gone

    def _silence(self, note: _Note) -> None:
        for number in note.steps:
            step = self.history.steps[number]
            lines = {line for edit in step.edits for line in edit.added() if len(line) >= MIN_CHARS}
            if step.failed or not lines:
                continue
            self.tally[EDITS] += 1
            self.tally[SHOWN] += number in note.shown
            if number in note.shown and ("edit", str(number)) not in self._seen:
                self._seen.add(("edit", str(number)))
                self.tally["edits that ever did"] += 1
            self.tally["edits whose file is named"] += bool(set(step.files) & note.named)

    def _wrong(self, kind: str, row: str, note: _Note) -> None:
        self._add(UntrueLine(kind, row.strip(), note.under.head, note.place, note.arrived))

    def _add(self, found: UntrueLine) -> None:
        self.tally[found.kind] += 1
        self.untrue.append(found)

    # --- the model's words --------------------------------------------------------------------

    def _words(self, text: str, arrived: int) -> None:
        """Rows in the model's text that the model never said: a call, or what a tool returned."""
        if ("words", text) in self._seen:
            return
        self._seen.add(("words", text))
        self.tally["texts of the model"] += 1
        for row in text.split("\n"):
            if _OURS.match(row.strip()) or not row.strip():
                continue
            origins, _ = self._origins(row, arrived)
            said = any(one.kind == "said" for one in origins)
            called = (head := _HEAD.match(row)) and head[2] in self.history.tools
            if (called or origins) and not said:
                self.tally[QUOTED] += 1
                self._add(UntrueLine(CALLS, row.strip(), "", "", arrived))
            for one in () if said else origins:
                if one.kind == "new" and ("edit", str(one.step)) not in self._seen:
                    self._seen.add(("edit", str(one.step)))
                    self.tally[IN_WORDS] += 1


def _is_of(calls: Sequence[RecordedCall], origins: Iterable[Origin], row: str) -> bool:
    """Whether a line, or a part of one, was said to or by one of these calls."""
    numbers = {call.number for call in calls}
    if any(one.step in numbers for one in origins):
        return True
    part = row.strip()
    return any(part in text for call in calls for text in (*call.results, *call.objects))


def _tool(head: re.Match[str]) -> str:
    return head[2].rstrip(":,")


def _is_head_of(head: re.Match[str], calls: Iterable[RecordedCall]) -> bool:
    """Whether a head names one of these calls: its tool and what it was applied to."""
    applied = head.string[head.end() :].partition(" → ")[0].strip().rstrip(" …").replace("\\", "/")
    return any(
        call.tool == _tool(head)
        and (not applied or any(_are_alike(applied, o) for o in call.objects))
        for call in calls
    )


def _are_alike(one: str, other: str) -> bool:
    """Whether the beginnings are equal: one may be cut off, or have more arguments behind it."""
    length = min(len(one), len(other))
    return one[:length] == other.replace("\\", "/")[:length]


def pooled(tallies: Iterator[Counter[str]]) -> Counter[str]:
    """All counts together."""
    whole = Counter[str]()
    for one in tallies:
        whole.update(one)
    return whole
