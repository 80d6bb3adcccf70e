"""Judges what stands in the place of recorded steps: whose each line is, and whether it says so.

A line belongs to the files that the nearest line above it names which names a file or a tool; the
lines before the first such belong to the call that stayed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from trimtab.transcript.model import Block, Message
from truth.history import MIN_CHARS, History, Origin

_HEAD = re.compile(r"(?:#+ ?|\[?(?:step )?\d+(?:[–-]\d+)?[.:)]? )\s*(\S+)", re.IGNORECASE)
_TURNS = re.compile(r"\[([\d,]+) earlier steps?\b")
IN_WORDS = "edits whose new lines are in the model's text"
CALLS = "call-like rows in the model's text"
_OURS = re.compile(r"^\[.*\]$|^…$|^\.\.\.$")


class Judge:
    """The verdicts on the requests of one session, each note once; ``tally`` has the counts."""

    def __init__(self, history: History) -> None:
        self.history, self.tally = history, Counter[str]()
        self._seen: set[tuple[str, str]] = set()
        self._results = {text for step in history.steps for text in step.results}

    def read(self, sent: Sequence[Message], arrived: int) -> None:
        """Judge one request as it was sent, of which ``arrived`` messages came."""
        there = self._there(sent, arrived)
        for message in sent:
            for block in message.blocks:
                if block.kind == "result" and block.text not in self._results:
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
        if not owners or ("note", block.text) in self._seen:
            return
        self._seen.add(("note", block.text))
        anchor = owners[-1]
        first = max((n for n in there if n < anchor), default=-1) + 1
        end = min((n for n in there if n > anchor), default=self.history.before(arrived))
        end = self._end(block.text, first, end)
        if end - first < 2:
            return  # one result, shortened
        self.tally["notes"] += 1
        self._lines(block.text, anchor, range(first, end), arrived)

    def _end(self, text: str, first: int, end: int) -> int:
        """The step behind those that a note stands for, where it says how many turns they are:
        what is gone behind them may have been taken out by itself."""
        match = _TURNS.match(text)
        turns = list(dict.fromkeys(self.history.steps[n].message for n in range(first, end)))
        if match is None or len(turns) <= (said := int(match[1].replace(",", ""))):
            return end
        return next(n for n in range(first, end) if self.history.steps[n].message == turns[said])

    def _lines(self, text: str, anchor: int, steps: range, arrived: int) -> None:
        files, shown, named = frozenset(self.history.steps[anchor].files), set[int](), set[str]()
        headed = False
        for row in text.split("\n"):
            head = _HEAD.match(row) if not row.startswith((" ", "+", "-")) else None
            if head and head[1].rstrip(":,") in self.history.tools:
                files, headed = self.history.named_files(row), True
                named |= files
                continue
            if not headed and _OURS.match(row):
                continue
            alone = row.startswith(" ") and row.endswith(":") and " " not in row.strip()
            if alone and (own := self.history.named_files(row)):
                files, named = own, named | own
                continue
            origins, sign = self._origins(row, arrived)
            self.tally["lines"] += bool(origins)
            written = [one for one in origins if one.kind == "new" and one.step in steps]
            elsewhere = [one for one in origins if one.kind != "old" and one not in written]
            if not written or elsewhere or sign == "-":
                if origins and all(one.kind == "old" for one in origins) and sign != "-":
                    self.tally["old text without a sign"] += 1
                continue
            self._written(row, sign, written, files, steps, shown)
        self._silence(steps, shown, named)

    def _origins(self, row: str, arrived: int) -> tuple[list[Origin], str]:
        """Where a row may come from, and the sign before it."""
        sign = row[:1] if row[:1] in ("+", "-") else ""
        found = self.history.find(row[1:] if sign else row) or (
            self.history.find(row) if sign else []
        )
        return [one for one in found if one.message < arrived], sign

    def _written(
        self, row: str, sign: str, written: Sequence[Origin], files: frozenset[str],
        steps: range, shown: set[int],
    ) -> None:  # fmt: skip
        line = (row[1:] if sign else row).strip()
        edits = [
            (one.step, edit)
            for one in written
            for edit in self.history.steps[one.step].edits
            if line in edit.new
        ]
        own = {edit.file for _, edit in edits}
        self.tally["edited lines"] += 1
        where = (
            "under their file" if files & own else "under another file" if files else "under none"
        )
        self.tally[where] += 1
        self.tally["without a sign"] += sign != "+"
        shown.update(step for step, _ in edits)
        if edits and all(self._is_stale(line, step, edit.file, steps) for step, edit in edits):
            self.tally["stale"] += 1

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

    def _silence(self, steps: range, shown: set[int], named: set[str]) -> None:
        for number in steps:
            step = self.history.steps[number]
            lines = {line for edit in step.edits for line in edit.added() if len(line) >= MIN_CHARS}
            if step.failed or not lines:
                continue
            self.tally["edits"] += 1
            self.tally["edits that show new lines"] += number in shown
            if number in shown and ("edit", str(number)) not in self._seen:
                self._seen.add(("edit", str(number)))
                self.tally["edits that ever did"] += 1
            self.tally["edits whose file is named"] += bool(set(step.files) & named)

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
            called = (head := _HEAD.match(row)) and head[1] in self.history.tools
            self.tally[CALLS] += bool(called or (origins and not said))
            for one in () if said else origins:
                if one.kind == "new" and ("edit", str(one.step)) not in self._seen:
                    self._seen.add(("edit", str(one.step)))
                    self.tally[IN_WORDS] += 1


def pooled(tallies: Iterator[Counter[str]]) -> Counter[str]:
    """All counts together."""
    whole = Counter[str]()
    for one in tallies:
        whole.update(one)
    return whole
