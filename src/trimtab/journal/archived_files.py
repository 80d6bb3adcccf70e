"""What was taken out of one file: its newest reading, and the edits after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from trimtab.journal.archive import ArchivedStep
from trimtab.planning.record import Entry
from trimtab.transcript.call_arguments import slashed
from trimtab.transcript.file_edits import FileEdit

MAX_NAMES = 20


class NoReading(str):
    """Why there is no reading of a file."""


@dataclass
class FileReading:
    """``text``: the file as a call read or wrote it, ``later``: the edits since, oldest first."""

    path: str
    step: ArchivedStep
    entry: Entry
    text: str
    later: list[tuple[ArchivedStep, FileEdit]] = field(default_factory=list)

    @property
    def head(self) -> str:
        """Which reading it is, and that later steps may have changed the file."""
        how = "written" if self.entry.call.arguments.action == "write" else "read"
        first = self.entry.call.arguments.first
        part = f", from line {first}" if first > 1 else ""
        count = len(self.later)
        since = f"; {count} later edit{'s' * (count > 1)} below" if count else ""
        return (
            f"[{self.path} as it was {how} in {self.step.name}{part}{since}. Steps that were not "
            "left out may have changed it since.]"
        )

    def edits(self, most: int) -> Iterator[str]:
        """The later edits, of at most so many characters."""
        for number, (step, edit) in enumerate(self.later):
            known = edit.old or edit.new
            how = ":]" if known else "; recall this step to see how]"
            rows = [f"[{step.name} edited it{how}"]
            rows += [f"-{line}" for line in edit.old.splitlines()]
            rows += [f"+{line}" for line in edit.new.splitlines()]
            most -= sum(map(len, rows)) + len(rows)
            if most < 0:
                left = ", ".join(one.name for one, _ in self.later[number:][:MAX_NAMES])
                yield f"[edits not shown: {left}]"
                return
            yield "\n".join(rows)


def file_reading(steps: Iterable[ArchivedStep], wanted: str) -> FileReading | NoReading:
    """The newest reading of a file in these steps, which come newest first."""
    path, names, later = slashed(wanted), dict[str, None](), list[tuple[ArchivedStep, FileEdit]]()
    naming = dict[str, None]()
    for step in steps:
        for entry in reversed(step.entries):
            names.update(dict.fromkeys(entry.files))
            own = [name for name in entry.files if is_same(name, path)]
            if own:
                naming[step.name] = None
            if not own or entry.call.failed:
                continue
            if (text := _text(entry, own[0])) is not None:
                return FileReading(own[0], step, entry, text, later[::-1])
            later += [(step, edit) for edit in _edits(entry, own[0], path)]
    if naming:
        steps_with = ", ".join(list(naming)[:MAX_NAMES])
        return NoReading(
            f"no call that was left out is known to read {wanted[:200]!r} or to write it whole; "
            f"these name it: {steps_with}"
        )
    known = ", ".join(list(names)[:MAX_NAMES]) or "none"
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return NoReading(f"no reading of {wanted[:200]!r} was left out; files there: {known}{more}")


def is_same(path: str, wanted: str) -> bool:
    """Whether two spellings can be of one file: equal, or one ends like the other."""
    return path == wanted or path.endswith(f"/{wanted}") or wanted.endswith(f"/{path}")


def _edits(entry: Entry, name: str, path: str) -> list[FileEdit]:
    """The call's edits of the file, newest first; an empty one of an edit whose arguments we
    cannot read."""
    known = [edit for edit in reversed(entry.edits) if is_same(edit.path, path)]
    is_unread = entry.call.arguments.action == "edit" and not entry.edits
    return [FileEdit(name, "", "")] if is_unread else known


def _text(entry: Entry, path: str) -> str | None:
    """The file's text, where a call read it or wrote it whole."""
    if entry.call.arguments.action == "read":
        return "\n".join(entry.call.texts) if entry.call.texts else None
    return next((edit.new for edit in entry.edits if edit.whole and edit.path == path), None)
