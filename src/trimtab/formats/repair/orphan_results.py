"""The repair of most formats for results without a call: they are taken out, and nothing is said in
their place.

A note would stand where the user speaks and be read as the user's words; the report and the log
name what was taken out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.formats.engine.rule import Finding, Repair
from trimtab.formats.repair.content import PLACEHOLDER
from trimtab.formats.repair.pairing import LocatedPart, path_of_part
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Delete, Path, PathOp, Set
from trimtab.transcript.transcript import Transcript


def remove_orphan_results(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Take results out that answer nothing; their text stays recallable.

    A message that held nothing else keeps its place, with a placeholder that says nothing: else the
    messages around it would join, and part again when the conversation goes on.
    """
    by_message: dict[int, list[LocatedPart]] = {}
    for finding in findings:
        by_message.setdefault(finding.data.message, []).append(finding.data)
    chars = _chars(transcript, [finding.data for finding in findings])
    for number, orphans in by_message.items():
        message = transcript.messages[number]
        emptied = bool(orphans[0].part.path) and len(orphans) == len(message.parts)
        for index, located in enumerate(orphans):
            where = path_of_part(transcript, located)
            op: PathOp = Delete(where)
            if emptied and index == len(orphans) - 1:
                mark = transcript.format.mark_of(paths.get(tree, where))
                op = Set(where, transcript.format.text_part(PLACEHOLDER, marked=mark))
            yield Repair(where, _taken(located, chars.get(where, 0)), (op,), (where,))


def _taken(located: LocatedPart, chars: int) -> str:
    what = located.part.tool or located.part.id or "without id"
    return f"a tool result ({what}, {chars:,} chars) without its call was taken out"


def _chars(transcript: Transcript, orphans: Sequence[LocatedPart]) -> dict[Path, int]:
    """Characters of each of these results, by path."""
    chars: dict[Path, int] = {}
    depths_by_message: dict[int, set[int]] = {}
    for located in orphans:
        depths_by_message.setdefault(located.message, set()).add(len(located.part.path))
    for number, depths in depths_by_message.items():
        for block in transcript.messages[number].blocks:
            for depth in depths:
                key = (*transcript.base, number, *block.item[:depth])
                chars[key] = chars.get(key, 0) + len(block.text)
    return chars
