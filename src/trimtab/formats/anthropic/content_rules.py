"""Scans and repairs for the parts of a Messages request: cache breakpoints, compactions, empty
last words, and what a new version of the API refuses.

The provider's error texts are in ``rules.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trimtab.formats.engine.rule import Finding, Repair, Scan, reports
from trimtab.formats.repair.content import scan_flaws
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Delete, Insert, Path, PathOp, Set
from trimtab.transcript.transcript import Transcript

MAX_MARKS = 4


def scan_marks(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    base = transcript.base
    marks: list[Path] = []
    for number, message in enumerate(transcript.messages):
        if not (message.marked or message.inner_marks):
            continue
        marks += [
            (*base, number, *part.path) for part in message.marked if part.flaw != "empty-marked"
        ]
        marks += [(*base, number, *path) for path in message.inner_marks]
    # The oldest of the messages go first; those of tools and system, where they are too many.
    marks += list(transcript.facts.extra.get("marked_head", ()))
    for path in marks[: max(len(marks) - MAX_MARKS, 0)]:
        yield Finding("too_many_marks", path, f"{len(marks)} blocks carry cache_control")


def remove_marks(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """The oldest cache breakpoints of the messages taken off."""
    for finding in findings:
        path = (*finding.path, "cache_control")
        yield Repair(path, "the oldest cache breakpoint was taken off", (Delete(path),))


@reports("sampling_refused")
def scan_sampling(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    for key in transcript.facts.extra.get("sampling", ()):
        yield Finding("sampling_refused", (key,), f"{key} is set")


def remove_key(transcript: Transcript, tree: Any, findings: Sequence[Finding]) -> Iterator[Repair]:
    """The parameter is taken out."""
    for finding in findings:
        done = f"{finding.path[0]} was taken out: this version of the API refuses it"
        yield Repair(finding.path, done, (Delete(finding.path),), (finding.path,))


def remove_citations(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Citations are taken off a text of the user; the text stays."""
    for finding in findings:
        path = (*finding.path, "citations")
        yield Repair(path, "citations were taken off a text", (Delete(path),), (path,))


@reports("mark_order")
def scan_mark_order(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    for path in transcript.facts.extra.get("late_hours", ()):
        yield Finding("mark_order", path, "one hour behind five minutes")


def shorten_marks(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Later cache breakpoints last five minutes, as the one before them does."""
    for finding in findings:
        path = (*finding.path, "cache_control", "ttl")
        yield Repair(path, "a cache breakpoint lasts five minutes", (Set(path, "5m"),))


def scan_but_last_words(names: Mapping[str, str]) -> Scan:
    """``scan_flaws`` without the model's last words: "except for the optional final assistant
    message", which may be empty where a prefill is taken."""
    scan = scan_flaws(names)

    def find(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
        last, messages = len(transcript.messages) - 1, transcript.messages
        spared = messages and messages[last].role == "assistant"
        for finding in scan(transcript, open_tail):
            number, part = finding.data
            if not (spared and number == last and part.path == ("content",)
                    and part.flaw in ("empty", "no-parts")):  # fmt: skip
                yield finding

    return find


def scan_compactions(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """A signed compaction must be first and alone; one made by threshold may be anywhere."""
    end, base = transcript.compaction, transcript.base
    if end is None:
        return
    if end.message > 0 or end.part.path != ("content", 0):
        yield Finding("compaction_behind", (*base, end.message, *end.part.path), "it is not first")
    signed = [(number, part) for number, part in (*end.earlier, end[:2]) if part.tool == "signed"]
    if len(signed) > 1:
        path = (*base, signed[0][0], *signed[0][1].path)
        yield Finding("compaction_ambiguous", path, f"{len(signed)} compaction blocks with content")
    for number, part in signed[-1:]:
        system = transcript.messages[number].role == "system"
        if number > 0 or system or part.path != ("content", 0):
            yield Finding("compaction_misplaced", (*base, number, *part.path), "it is not first")


def put_compaction_first(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """What the newest compaction block replaced is taken out, so that it is first."""
    end, base = transcript.compaction, transcript.base
    if end is None:
        return
    message = transcript.messages[end.message]
    whole = [(*base, number) for number in range(end.message)]
    place: Path = (*base, end.message)
    if message.role == "system":
        block = paths.get(tree, (*place, *end.part.path))
        moved = Insert((*place[:-1], 0), {"role": "assistant", "content": [block]})
        out = place if len(message.parts) == 1 else (*place, *end.part.path)
        yield Repair(place, "the compaction block was put first", (moved, Delete(out)))
        return
    index = end.part.path[-1]
    assert isinstance(index, int)
    replaced_paths = [*whole, *((*place, "content", number) for number in range(index))]
    ops: tuple[PathOp, ...] = tuple(Delete(path) for path in replaced_paths)
    yield Repair(
        place, "what the compaction block replaced was taken out", ops, tuple(replaced_paths)
    )
