"""Scans and repairs for the parts and the head of a Converse request.

Calls and results are in ``repair/pairing.py``, the provider's error texts in ``rules.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.formats.engine.rule import Finding, Repair, reports
from trimtab.formats.repair.content import PLACEHOLDER
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Delete, Insert, Path, PathOp, Set
from trimtab.transcript.model import Part
from trimtab.transcript.transcript import Transcript

CLAUDE = frozenset({"bedrock-anthropic"})
MAX_MARKS = 4
SEE_DOCUMENT = "(See the document.)"
_TOOLS = ("call", "result", "server-call", "server-result")

# --- scans -----------------------------------------------------------------------------------


def scan_marks(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """Findings stray_mark and too_many_marks."""
    beside: tuple[Path, ...] = transcript.facts.extra.get("marked_head", ())
    sound: list[Path] = []
    for number, message in enumerate(transcript.messages):
        for mark in message.marks:
            path = (*transcript.base, number, *mark.path)
            stray = mark.flaw and (
                mark.flaw != "after-document" or transcript.facts.dialect in CLAUDE
            )
            if stray:
                yield Finding("stray_mark", path, f"cache point {mark.flaw}")
            else:
                sound.append(path)
    spare = len(beside) + len(sound) - MAX_MARKS
    for path in (*sound, *beside)[: max(spare, 0)]:
        yield Finding("too_many_marks", path, f"{len(beside) + len(sound)} cache points")


@reports("nested_mark", "mark_order")
def scan_mark_order(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """Findings nested_mark and mark_order."""
    for number, message in enumerate(transcript.messages):
        for block in message.blocks if message.results else ():
            if block.kind == "other" and block.text.startswith('{"cachePoint"'):
                path = (*transcript.base, number, *block.item)
                yield Finding("nested_mark", path, "a cache point inside a tool result")
    for path in transcript.facts.extra.get("late_hours", ()):
        yield Finding("mark_order", path, "one hour behind five minutes")


def scan_documents(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """Findings document_without_text."""
    for number, message in enumerate(transcript.messages):
        kinds = [part.kind for part in message.parts]
        if "media" not in kinds or "text" in kinds:
            continue
        if any(part.kind == "media" and part.tool == "document" for part in message.parts):
            path = (*transcript.base, number)
            yield Finding("document_without_text", path, "a document and no text", number)


def is_file(part: Part) -> bool:
    """A video, or a document other than PDF."""
    return part.flaw == "file"


def scan_head(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """Findings empty_system, toolconfig_missing and toolconfig_empty."""
    facts = transcript.facts
    for path in facts.extra.get("empty_system", ()):
        yield Finding("empty_system", path, "an empty system text")
    if facts.bare or facts.tools:
        return
    if any(p.kind in _TOOLS for message in transcript.messages for p in message.parts):
        yield Finding("toolconfig_missing", ("toolConfig",), "tool blocks, but no tools declared")
    elif facts.tools is not None:
        yield Finding("toolconfig_empty", ("toolConfig",), "no tools in toolConfig")


# --- repairs ---------------------------------------------------------------------------------


def remove_marks(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Cache points off."""
    for finding in findings:
        yield Repair(finding.path, "a cache point was taken off", (Delete(finding.path),))


def lift_marks(transcript: Transcript, tree: Any, findings: Sequence[Finding]) -> Iterator[Repair]:
    """A cache point inside a tool result is put behind that result."""
    depth = len(transcript.base) + 3  # messages, number, content, index of the result
    for finding in findings:
        *place, index = finding.path[:depth]
        assert isinstance(index, int)
        point = paths.get(tree, finding.path)
        ops = (Delete(finding.path), Insert((*place, index + 1), point))
        yield Repair(finding.path, "a cache point was put behind its tool result", ops)


def shorten_marks(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Later cache points last five minutes, as the one before them does."""
    for finding in findings:
        path = (*finding.path, "cachePoint", "ttl")
        yield Repair(path, "a cache point lasts five minutes", (Set(path, "5m"),))


def make_content_list(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Content as a list of blocks: of the text that stood there, else of a placeholder."""
    for finding in findings:
        number, _ = finding.data
        message = paths.get(tree, (*transcript.base, number))
        text = message.get("content")
        text = text if isinstance(text, str) and text.strip() else PLACEHOLDER
        yield Repair(finding.path, "content made a list", (Set(finding.path, [{"text": text}]),))


def make_result_list(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """The content of a result as a list; a placeholder where there is none."""
    for finding in findings:
        path = (*finding.path, "toolResult", "content")
        content = paths.get(tree, finding.path)["toolResult"].get("content")
        text = content if isinstance(content, str) and content else PLACEHOLDER
        yield Repair(path, "content of a tool result filled in", (Set(path, [{"text": text}]),))


def json_as_text(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """JSON items of a result that are no objects, as text."""
    for finding in findings:
        path = (*finding.path, "toolResult", "content")
        ops: list[PathOp] = []
        for index, item in enumerate(paths.get(tree, path)):
            if isinstance(item, dict) and "json" in item and not isinstance(item["json"], dict):
                ops.append(Set((*path, index), {"text": paths.dump(item["json"])}))
        yield Repair(path, "JSON that is no object written as text", tuple(ops))


def declare_tools(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Declare the tools that the history calls, with a schema that takes any object."""
    parts = [part for message in transcript.messages for part in message.parts]
    ours = dict.fromkeys(part.tool for part in parts if part.kind == "call")
    theirs = dict.fromkeys(part.tool for part in parts if part.kind == "server-call")
    tools: list[Any] = [
        {"toolSpec": {"name": tool, "inputSchema": {"json": {"type": "object"}}}} for tool in ours
    ]
    tools += [{"systemTool": {"name": tool}} for tool in theirs]
    config = tree.get("toolConfig")
    rest = config if isinstance(config, dict) else {}
    done = f"declared the tools that the history calls, with an open schema: {', '.join(ours)}"
    yield Repair(("toolConfig",), done, (Set(("toolConfig",), {**rest, "tools": tools}),))


def remove_value(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """What the finding names, taken out."""
    for finding in findings:
        yield Repair(finding.path, f"taken out: {finding.detail}", (Delete(finding.path),))


def add_document_text(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """A short text at the end of a message that holds a document and no text."""
    for finding in findings:
        end = (*finding.path, "content", transcript.messages[finding.data].width)
        yield Repair(
            end, "a text was put beside a document", (Insert(end, {"text": SEE_DOCUMENT}),)
        )


def disable_thinking(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Thinking off, under the key with which it was asked for."""
    key = transcript.facts.extra.get("thinking_key", "thinking")
    path: Path = ("additionalModelRequestFields", key)
    done = "thinking switched off: the open turn has none"
    yield Repair(path, done, (Set(path, {"type": "disabled"}),))
