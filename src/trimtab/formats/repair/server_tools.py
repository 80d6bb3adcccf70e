"""Scans and repairs for tools that the provider runs, and for blocks that load tools.

A server's call and its result are paired by id over the whole conversation: while code of the
server's waits for a tool of the client, or a turn was paused, the result stands in a later message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.formats.engine.grouping import ADDED
from trimtab.formats.engine.rule import Finding, Repair, Scan, reports
from trimtab.formats.repair.content import remove_parts
from trimtab.formats.repair.pairing import LocatedPart
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Delete, Path, PathOp, Set
from trimtab.transcript.model import Message
from trimtab.transcript.transcript import MessagePass, Transcript


class _ServerPairs(MessagePass):
    """Pairs the server's calls and results by id, a result with the nearest call before it."""

    def __init__(self) -> None:
        self.lone: list[LocatedPart] = []
        """Results without a call before them."""
        self.open: dict[str, LocatedPart] = {}
        """Calls without a result, by id."""
        self._called: set[str] = set()

    def add(self, number: int, message: Message) -> None:
        if not message.is_linked:
            return
        for part in message.parts:
            if part.kind == "server-call" and part.id:
                self._called.add(part.id)
                self.open[part.id] = LocatedPart(number, part)
            elif part.kind == "server-result":
                self.open.pop(part.id, None)
                if part.id and part.id not in self._called:
                    self.lone.append(LocatedPart(number, part))


def scan_server_results(called: str, except_tool: str | None = None) -> Scan:
    """A scan for results of server tools without their call anywhere before them.

    ``called``: the provider's name of such a call; ``except_tool``: a tool whose results need no
    call.
    """

    @reports("server_orphan")
    def scan(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
        for number, part in transcript.passed(_ServerPairs).lone:
            if part.tool != except_tool:
                path = (*transcript.base, number, *part.path)
                detail = f"no {called} {part.id} before this result"
                yield Finding("server_orphan", path, detail, (number, part))

    scan_function: Scan = scan
    return scan_function


@reports("server_unanswered", "container_missing")
def scan_pending(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """Findings server_unanswered (the turn of the call is over: the user spoke), and
    container_missing (code waits for a result and the request names no container)."""
    facts, messages = transcript.facts, transcript.messages
    pending = transcript.passed(_ServerPairs).open
    for number, part in pending.values():
        data = (number, part)
        path = (*transcript.base, number, *part.path)
        spoken = any(m.role == "user" and m.other_parts for m in messages[number + 1 :])
        by_model = part.tool == "server_tool_use" and not part.refers
        if spoken and by_model:
            yield Finding("server_unanswered", path, f"{part.id} has no result", data)
        waits = any(part.id in p.refers for m in messages[number:] for p in m.parts)
        if waits and not (facts.bare or facts.extra.get("container")):
            detail = f"the code of {part.id} waits, and no container is named"
            yield Finding("container_missing", path, detail, data)


def abandon_pending(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Take out the server's call that can't go on; the calls that its code made are direct ones."""
    yield from remove_parts(transcript, tree, findings)
    ids = {finding.data[1].id for finding in findings}
    for number, message in enumerate(transcript.messages):
        for part in message.parts:
            if not ids.isdisjoint(part.refers) and part.kind != "other":
                path = (*transcript.base, number, *part.path, "caller")
                yield Repair(path, "a call of the server's code made direct", (Delete(path),), ())


# --- tools that a block names ------------------------------------------------------------------


@reports("tool_reference_unknown")
def scan_references(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """Findings tool_reference_unknown: a reference to a tool that is not declared.  Where no tools
    are given, or some that can't be told, only a refusal says so."""
    facts = transcript.facts
    doubt = facts.tools is None or facts.extra.get("more_tools")
    if doubt and "tool_reference_unknown" not in facts.refused:
        return
    declared = set(facts.tools or ())
    for number, message in enumerate(transcript.messages):
        for inner, name in message.tool_state:
            # What a tool_addition names may be defined by a message.
            if name and name not in declared and inner[-1] != ADDED:
                path = (*transcript.base, number, *inner)
                yield Finding("tool_reference_unknown", path, f"no tool {name} is declared", name)


def remove_references(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Take out references to tools that are not there; a result of nothing else says so."""
    paths_by_holder: dict[Path, list[Path]] = {}
    for finding in findings:
        paths_by_holder.setdefault(finding.path[:-1], []).append(finding.path)
    for finding in findings:
        holder = finding.path[:-1]
        op: PathOp = Delete(finding.path)
        emptied = len(paths_by_holder[holder]) == len(paths.get(tree, holder))
        if emptied and holder[-1] == "content" and finding.path == paths_by_holder[holder][0]:
            text = f"[The tool {finding.data} is no longer available.]"
            op = Set(finding.path, transcript.format.text_part(text))
        done = f"a reference to the tool {finding.data}, which is not declared, was taken out"
        yield Repair(finding.path, done, (op,), (finding.path,))
