"""The row that all formats share for a result whose id differs from its call's by case alone.

Clients and gateways change the case of ids.  A provider treats such a result as one without a call;
if exactly one call matches, the result is its answer, not an orphan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from trimtab.formats.engine.rule import Finding, Repair, Rule, RuleTable, reports
from trimtab.formats.repair.content import UNREADABLE
from trimtab.jsontext.paths import Set
from trimtab.transcript.model import Part
from trimtab.transcript.transcript import Transcript

NAME = "result_id_case"
ORPHAN = "orphan_result"


@reports(NAME)
def scan_id_case(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """Findings result_id_case."""
    messages = transcript.messages
    called = {call_id for message in messages for call_id in message.call_ids}
    answered = {result_id for message in messages for result_id in message.result_ids}
    if answered <= called or transcript.facts.server_state:
        return
    calls, folded = Counter(p.id.casefold() for m in messages for p in m.calls), dict[str, str]()
    for call_id in called - answered:
        folded[call_id.casefold()] = call_id
    for number, message in enumerate(messages):
        for part in message.results:
            fold = part.id.casefold()
            if part.id not in called and calls[fold] == 1 and fold in folded and part.id_path:
                path = (*transcript.base, number, *part.path)
                meant = folded.pop(fold)  # a second result of this call is not matched
                yield Finding(NAME, path, f"{part.id} is the call {meant}", (number, part, meant))


def rename_results(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """The result gets the id of the one call that differs by case alone."""
    for finding in findings:
        number: int
        part: Part
        number, part, meant = finding.data
        where = (*transcript.base, number, *part.id_path)
        yield Repair(finding.path, f"id {part.id} is {meant}", (Set(where, meant),))


def with_id_case(table: RuleTable) -> RuleTable:
    """The table with this row, using the error text of its row ``orphan_result``.

    The new row comes second: the first row must be the one for unreadable text.  Raises ValueError
    if it is not, or if there is no ``orphan_result``.
    """
    orphan = next((row for row in table.rows if row.name == ORPHAN), None)
    if orphan is None or table.rows[0].name != UNREADABLE:
        names = ", ".join(row.name for row in table.rows)
        raise ValueError(
            f"{UNREADABLE} must be the first row and {ORPHAN} one of them; there are {names}"
        )
    row = Rule(NAME, orphan.error_text, orphan.source, rename_results, sure=orphan.sure)
    unreadable, *rest = table.rows
    return replace(table, rows=(unreadable, row, *rest), scans=(scan_id_case, *table.scans))
