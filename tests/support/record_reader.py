"""An independent reader of records in notes, and a judge of whether they are true.

It reads what is sent and compares it with what the history did, step by step.  Nothing of the
library under test is imported here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from edited_files import Done, History
from judge_speakers import by_speaker

TITLE = re.compile(
    r"\[([\d,]+) earlier (?:step|message)s?, of which this record is left, true after the last of"
    r' them(?:; recall\("(\w+)", steps="3"\) has step 3 whole)?\]\Z'
)
HEAD = re.compile(r"(\d+) (\S+)(?: (.*))? → (.*)\Z")
TOGETHER = re.compile(r"(\d+)(?:–(\d+))?: (.*)\Z")
LATER = re.compile(r", edited in step (\d+)\Z")
OURS = re.compile(r"\[.*\]\Z")
"""What we say ourselves in a text of the model's."""


@dataclass
class Section:
    """One step of a record, or several that are one line."""

    first: int
    last: int
    tool: str = ""
    outcome: str = ""
    rows: list[str] = field(default_factory=list)


@dataclass
class Note:
    """One record: how many steps it stands for, its handle and its sections."""

    steps: int
    handle: str
    sections: list[Section]


def notes_of(sent: Any) -> Iterator[Note]:
    """The records in what is sent, in order."""
    for text in by_speaker(sent)["tool"]:
        title, _, rest = text.partition("\n")
        if match := TITLE.match(title):
            sections = list(_sections(rest))
            yield Note(int(match[1].replace(",", "")), match[2] or "", sections)


def _sections(text: str) -> Iterator[Section]:
    section = None
    for row in text.split("\n"):
        if row[:1] in (" ", "+", "-") and section is not None and not section.first < section.last:
            section.rows.append(row)
            continue
        if section is not None:
            yield section
        if match := HEAD.match(row):
            section = Section(int(match[1]), int(match[1]), match[2], match[4])
        elif match := TOGETHER.match(row):
            section = Section(int(match[1]), int(match[2] or match[1]))
        else:
            raise AssertionError(f"neither a step nor a line of one: {row!r}")
    if section is not None:
        yield section


def untrue(history: History, sent: Any, recall: Callable[..., str]) -> list[str]:
    """What is not true in the records of ``sent``; ``recall(handle, steps=…)`` gives originals."""
    found, places = list[str](), _places(history)
    for note in notes_of(sent):
        steps = {number: places[place] for number, place in _steps(note, recall).items()}
        end = history.after[max(steps.values(), default=-1)]
        found += list(_numbering(note, steps))
        for section in note.sections:
            if section.tool:
                number = steps.get(section.first)
                if number is None:
                    found.append(f"no call in step {section.first}")
                else:
                    found += _of_step(history.done[number], section, end)
                    found += _later(history, section, steps)
    return found


def not_the_models(history: History, sent: Any) -> list[str]:
    """The rows in the model's own texts that the model never said."""
    return [
        row
        for text in _words(sent)
        for row in text.split("\n")
        if row.strip() and row not in history.said and not OURS.match(row)
    ]


def _words(sent: Any) -> Iterator[str]:
    """The model's texts, without calls, results and reasoning."""
    for item in sent.get("messages") or sent.get("input") or sent.get("contents"):
        if item.get("role") not in ("assistant", "model"):
            continue
        content = item.get("content", item.get("parts"))
        if isinstance(content, str):
            yield content
        for part in content if isinstance(content, list) else ():
            if part.get("type", "text") in ("text", "output_text") and "text" in part:
                yield part["text"]


def _steps(note: Note, recall: Callable[..., str]) -> dict[int, int]:
    """The number of a step in the record → the place in the script of what is recalled for it."""
    steps = {}
    for number in range(1, note.steps + 1):
        try:
            text = recall(note.handle, steps=str(number))
        except ValueError:
            break
        ids = sorted(set(re.findall(r"call(\d{3})x0", text)))
        if len(ids) > 1:
            raise AssertionError(f"step {number} is several: {ids}")
        if ids:
            steps[number] = int(ids[0])
    return steps


def _places(history: History) -> dict[int, int]:
    """The number in a call's id (its place in the script) → the number of the call."""
    places = [n for n, said in enumerate(history.script) if not isinstance(said, str)]
    return {place: number for number, place in enumerate(places)}


def _numbering(note: Note, steps: dict[int, int]) -> Iterator[str]:
    told = [n for section in note.sections for n in range(section.first, section.last + 1)]
    if told != sorted(set(told)):
        yield f"steps out of order or told twice: {told}"
    if missing := set(steps) - set(told):
        yield f"steps that are not told: {sorted(missing)}"


def _of_step(done: Done, section: Section, end: dict[str, frozenset[str]]) -> Iterator[str]:
    """What is untrue in one section, given what its step did and the files at the end."""
    if section.tool != done.tool:
        yield f"step {section.first} called {done.tool}, not {section.tool}"
    if done.failed != section.outcome.startswith("error"):
        yield f"step {section.first} failed: {done.failed}, told: {section.outcome}"
    result, given = set(done.result.split("\n")), set(done.given.split("\n"))
    for row in section.rows:
        sign, line = row[0], row[1:]
        if row == " …":
            continue
        if sign == "+" and (done.failed or line not in done.new or line in done.old):
            yield f"step {section.first} did not write {line!r}"
        if sign == "-" and (done.failed or line not in done.old or line in done.new):
            yield f"step {section.first} did not replace {line!r}"
        if sign == " " and line not in (result if done.kind == "read" else result | given):
            yield f"step {section.first} has no line {line!r}"
        changed = done.kind in ("read", "edit", "write") and not done.failed
        if sign != "-" and changed and line not in end[done.path]:
            yield f"{line!r} of step {section.first} is no longer in {done.path}"


def _later(history: History, section: Section, steps: dict[int, int]) -> Iterator[str]:
    """Whether a read names the next step that changed its file."""
    own = steps[section.first]
    path, kind = history.done[own].path, history.done[own].kind
    changes = [
        number
        for number, at in steps.items()
        if at > own and _changes(history.done[at]) and history.done[at].path == path
    ]
    match = LATER.search(section.outcome)
    told = int(match[1]) if match else 0
    due = min(changes, default=0) if kind == "read" else 0
    if told != due:
        yield f"step {section.first} was changed in step {due}, told: {told}"


def _changes(done: Done) -> bool:
    return done.kind in ("edit", "write") and not done.failed
