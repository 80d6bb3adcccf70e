"""compact-audit and ctxdrift: what a compacted transcript no longer says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import ctxdrift
from compact_audit.audit import audit
from compact_audit.extract import CATEGORIES, extract

from kits.sessions import Message, Session, fits, texts, tokens
from kits.tables import table

Outputs = Sequence[tuple[str, Sequence[list[Message]]]]
"""(library, what it sent of each session)."""
RULES = {"CD04": "files", "CD05": "decisions", "CD06": "commands", "CD09": "keys"}
"""Of ctxdrift, those that ask what is left.  CD02 asks the same as CD04 here; CD01, CD07, CD08 and
CD10 ask about the compactions, CD03 what an agent did afterwards."""


def _lines(messages: Sequence[Message]) -> list[str]:
    return [
        line
        for message in messages
        for text in texts(message)
        for line in text.splitlines()
        if line.strip()
    ]


def dropped_lines(found: Sequence[Session], outputs: Outputs) -> str:
    """compact-audit: lines of each kind that are still there, word for word."""
    rows = list[Sequence[object]]()
    extractions = [extract(_lines(session.messages)) for session in found]
    for name, sent in outputs:
        counts, verdicts = Counter[tuple[str, str]](), Counter[str]()
        for extraction, messages in zip(extractions, sent, strict=True):
            report = audit(extraction, "\n".join(_lines(messages)))
            verdicts[report["verdict"]] += 1
            for category, totals in report["totals"].items():
                counts.update({(category, key): number for key, number in totals.items()})
        rows.append((
            name, *_sizes(sent),
            *(_share(counts[one, "kept"], counts[one, "dropped"]) for one in CATEGORIES),
            ", ".join(f"{number} {verdict}" for verdict, number in sorted(verdicts.items())),
        ))  # fmt: skip
    return table(("library", *SIZES, *CATEGORIES, "verdicts"), rows)


def _share(kept: int, dropped: int) -> str:
    return f"{100 * kept / (kept + dropped):.0f} % of {kept + dropped:,}" if kept + dropped else "–"


def _records(messages: Sequence[Message]) -> Iterator[dict[str, Any]]:
    """Messages as Claude Code logs them: a record for each block."""
    for message in messages:
        role, content = message["role"], "\n".join(_parts(message.get("content")))
        if role == "tool":
            block = {"type": "tool_result", "content": content}
            yield {"message": {"role": "user", "content": [block]}}
        elif content:
            yield {"message": {"role": role, "content": content}}
        for call in message.get("tool_calls") or ():
            function = call["function"]
            used = json.loads(function["arguments"] or "{}")
            block = {"type": "tool_use", "name": function["name"], "input": used}
            yield {"message": {"role": role, "content": [block]}}


def _parts(content: Any) -> Iterator[str]:
    if isinstance(content, list):
        yield from (str(part.get("text") or "") for part in content)
    else:
        yield str(content or "")


def _missing(session: Session, sent: Sequence[Message]) -> Counter[str]:
    """rule → how much of it ctxdrift misses: the session, a compaction, then what was sent."""
    before, after = list(_records(session.messages)), list(_records(sent))
    boundary = ctxdrift.Event("user", "[COMPACTION]")
    at = ctxdrift.Compaction(line_no=len(before) + 1, ts="", marker="[COMPACTION]")
    findings = ctxdrift.analyze([*before, boundary, *after], [at])
    return Counter({
        one.rule: int(one.message.split()[0]) for one in findings if one.rule in RULES
    })  # fmt: skip


def missing(found: Sequence[Session], outputs: Outputs) -> str:
    """ctxdrift: what of the session is not in what was sent."""
    every = _sum(found, [[]] * len(found))
    rows = [(name, *_sizes(sent), *_cells(_sum(found, sent), every)) for name, sent in outputs]
    missed = (f"{what} missing ({rule})" for rule, what in RULES.items())
    return table(("library", *SIZES, *missed), rows)


SIZES = ("within the window", "tokens sent")


def _sizes(sent: Sequence[Sequence[Message]]) -> tuple[str, str]:
    sizes = [tokens(messages) for messages in sent]
    return f"{sum(map(fits, sent))} of {len(sizes)}", f"{sum(sizes):,}"


def _sum(found: Sequence[Session], outputs: Sequence[Sequence[Message]]) -> Counter[str]:
    total = Counter[str]()
    for session, sent in zip(found, outputs, strict=True):
        total += _missing(session, sent)
    return total


def _cells(counts: Counter[str], every: Counter[str]) -> list[str]:
    """Against an empty conversation, in which everything is missing."""
    return [f"{counts[rule]:,} of {every[rule]:,}" for rule in RULES]
