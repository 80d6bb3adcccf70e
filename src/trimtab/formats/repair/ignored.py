"""Leaves out what the provider ignores because it compacted it: the content before its newest
compaction.

That breaks no rule, so it stays as the client sent it; but its bytes count where the body is too
large.  Leaving it out changes nothing that the provider reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from trimtab.formats.engine.compacted import ignored_paths
from trimtab.formats.engine.rule import Finding, Repair, Rule, RuleTable
from trimtab.jsontext.paths import Delete
from trimtab.transcript.transcript import Transcript

RULE = "ignored_content"


def _scan(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    for path in ignored_paths(transcript):
        yield Finding(RULE, path, "the provider ignores it")


def _leave_out(transcript: Transcript, tree: Any, findings: Sequence[Finding]) -> Iterator[Repair]:
    """What the provider ignores is left out."""
    for finding in findings:
        done = "left out of a body that was too large: the provider compacted it and ignores it"
        yield Repair(finding.path, done, (Delete(finding.path),), (finding.path,))


_ROW = Rule(
    RULE,
    "Request Entity Too Large",
    "Anthropic, build-with-claude/compaction: the API ignores everything before the block; OpenAI, "
    "guides/compaction: items before the latest compaction item may be dropped",
    _leave_out,
    sure="certain",
)


def with_ignored(table: RuleTable) -> RuleTable:
    """The table with a first row by which ``repair`` leaves out what the provider ignores."""
    return replace(table, rows=(_ROW, *table.rows), scans=(_scan, *table.scans))
