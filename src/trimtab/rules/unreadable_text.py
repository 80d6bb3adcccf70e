"""The row that all formats share for texts no provider reads: lone halves of characters, NUL,
bytes that are no UTF-8.  Looked for everywhere: words, arguments, results, names, keys, the head.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.jsontext import paths
from trimtab.jsontext.paths import Path, Set
from trimtab.jsontext.unreadable import count, readable
from trimtab.rules.base import Finding, Repair, Rule, reports
from trimtab.rules.content import remove_parts
from trimtab.transcript.model import Part
from trimtab.transcript.transcript import Transcript

NAME = "unreadable_text"


@reports(NAME)
def scan_unreadable(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """Findings unreadable_text."""
    detail = "a lone half of a character, NUL, or bytes that are no UTF-8"
    for path in transcript.unreadable_head:
        yield Finding(NAME, path, detail)
    for number, message in enumerate(transcript.messages):
        for inner in message.unreadable:
            path = (*transcript.base, number, *inner)
            yield Finding(NAME, path, detail, (number, _part(message.parts, inner)))


def _part(parts: Sequence[Part], inner: Path) -> Part | None:
    return next(
        (part for part in parts if part.path and part.path == inner[: len(part.path)]), None
    )


def put_stand_ins(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """U+FFFD for each such character; signed reasoning, which takes no edit, is taken out."""
    sealed = [finding for finding in findings if _is_sealed(transcript, tree, finding)]
    yield from remove_parts(transcript, tree, _one_a_part(sealed))
    for finding in findings:
        if finding not in sealed:
            value = paths.get(tree, finding.path)
            done = f"{count(value):,} unreadable character(s) replaced with U+FFFD"
            yield Repair(finding.path, done, (Set(finding.path, readable(value)),), (finding.path,))


def _one_a_part(findings: Sequence[Finding]) -> list[Finding]:
    return list({(number, part.path): f for f in findings for number, part in [f.data]}.values())


def _is_sealed(transcript: Transcript, tree: Any, finding: Finding) -> bool:
    number, part = finding.data or (0, None)
    if part is None or part.kind != "reasoning":
        return False
    value = paths.get(tree, (*transcript.base, number, *part.path))
    return isinstance(value, dict) and ("signature" in value or "reasoningContent" in value)


def unreadable_row(error_text: str, source: str) -> Rule:
    """The row in a provider's words."""
    return Rule(NAME, error_text, source, put_stand_ins)
