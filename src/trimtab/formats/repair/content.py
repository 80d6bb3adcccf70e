"""Scans and repairs for single invalid parts, for texts that no provider can read, and for the
first and last message.

A format notes a part's flaw when it reads the part; scans turn flaws into findings.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from trimtab.amounts import many
from trimtab.formats.engine.parts import value_at
from trimtab.formats.engine.rule import Finding, Repair, Rule, Scan, reports
from trimtab.formats.repair.pairing import rename_all
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Delete, Insert, Path, PathOp, Set
from trimtab.jsontext.unreadable import count, readable
from trimtab.transcript.model import Facts, Message, Part
from trimtab.transcript.transcript import Transcript

PLACEHOLDER = "(no content)"
GO_ON = "Continue."
BEGIN = "(The conversation goes on.)"


def scan_flaws(names: Mapping[str, str]) -> Scan:
    """A scan that turns each part's flaw into a finding of the row ``names[flaw]``."""

    def scan(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
        for number, message in transcript.suspects:
            for part in message.parts:
                if part.flaw and part.flaw in names:
                    path = (*transcript.base, number, *part.path)
                    yield Finding(names[part.flaw], path, f"{part.kind} part", (number, part))

    typed: Scan = scan
    return typed


def remove_parts(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Take the parts out; where a message would be left empty, one short text stands instead."""
    by_message: dict[int, list[Any]] = {}
    for finding in findings:
        number, part = finding.data
        by_message.setdefault(number, []).append(part)
    for number, parts in by_message.items():
        message = transcript.messages[number]
        empty = len(parts) == len(message.parts)
        for index, part in enumerate(parts):
            path = (*transcript.base, number, *part.path)
            op: PathOp
            if not message.listed:
                op = Set(path, PLACEHOLDER)
            elif empty and index == len(parts) - 1:
                op = Set(path, transcript.format.text_part(PLACEHOLDER))
            else:
                op = Delete(path)
            yield Repair(
                path, f"a {part.kind} part the provider refuses was taken out", (op,), (path,)
            )


def remove_reasoning_parts(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Take reasoning out; of the latest model turn all of it, as a provider refuses it in part."""
    whole = list(findings)
    if any(not is_earlier_turn(transcript, finding.data[0]) for finding in findings):
        seen = {finding.path for finding in findings}
        for number, message in enumerate(transcript.messages):
            if message.role != "assistant" or is_earlier_turn(transcript, number):
                continue
            for part in message.parts:
                path = (*transcript.base, number, *part.path)
                if part.kind == "reasoning" and path not in seen:
                    whole.append(
                        Finding(findings[0].rule, path, findings[0].detail, (number, part))
                    )
    return remove_parts(transcript, tree, whole)


def is_earlier_turn(transcript: Transcript, number: int) -> bool:
    """Whether the model speaks again after the turn with this message, with another's words
    between: then reasoning of this turn may go in part."""
    later = transcript.messages[number + 1 :]
    run = 0
    while run < len(later) and later[run].role == "assistant":
        run += 1
    return any(message.role == "assistant" for message in later[run:])


def remove_empty_texts(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Take empty texts out of a tool result (a result without content is accepted)."""
    for finding in findings:
        number, part = finding.data
        blank = [
            block for block in transcript.messages[number].blocks
            if block.kind == "result" and block.item[: len(part.path)] == part.path
            and not block.text.strip()
        ]  # fmt: skip
        base = (*transcript.base, number)
        ops = tuple(Delete((*base, *block.item)) for block in blank)
        taken = tuple((*base, *block.item) for block in blank if block.text)
        yield Repair(finding.path, "an empty text was taken out of a tool result", ops, taken)


def put_content_in_list(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Put content that is one part, or no JSON list, into a list."""
    for finding in findings:
        value = paths.get(tree, finding.path)
        listed = [value] if isinstance(value, dict) else list(value)
        yield Repair(finding.path, "content put into a list", (Set(finding.path, listed),))


def replace_null_content(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Put an empty string where null is refused (a placeholder where the user speaks)."""
    for finding in findings:
        number, part = finding.data
        nothing = transcript.messages[number].role == "assistant" and part.flaw == "null"
        text = "" if nothing else PLACEHOLDER
        yield Repair(finding.path, "null content replaced", (Set(finding.path, text),))


def make_arguments_object(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Make call arguments what the format demands; text that is no object is kept inside one."""
    for finding in findings:
        number, part = finding.data
        place = next(
            block
            for block in transcript.messages[number].blocks
            if block.kind == "call" and block.item == part.path
        )
        path = (*transcript.base, number, *place.path)
        try:
            value = paths.get(tree, path)
        except LookupError:
            value = None
        as_object = _as_object(value)
        value = as_object if place.spelling == "json" else paths.dump(as_object)
        done = "arguments given the shape the provider demands"
        yield Repair(path, done, (Set(path, value),))


def wrap_cut_arguments(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Arguments that were cut off, and so are no JSON, are kept as one text in an object."""
    for repair in make_arguments_object(transcript, tree, findings):
        yield repair._replace(taken=tuple(op.path for op in repair.ops if isinstance(op, Set)))


def _as_object(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else {}
        except ValueError:
            return {"text": value}
    if value is None:
        return {}
    return value if isinstance(value, dict) else {"value": value}


def respell_ids(allowed: re.Pattern[str], longest: int) -> Any:
    """A repair that maps ids outside of ``allowed`` to ones inside it, both sides alike."""

    def make_repairs(
        transcript: Transcript, tree: Any, findings: Sequence[Finding]
    ) -> Iterator[Repair]:
        """Ids mapped to allowed ones, calls and results alike; equal ids stay equal."""
        new: dict[str, str] = {}
        for finding in findings:
            old = finding.data[1].id
            digest = hashlib.blake2b(
                old.encode("utf-8", "surrogatepass"), digest_size=6
            ).hexdigest()
            kept = "".join(allowed.findall(old))[: longest - 13]
            new[old] = f"{kept}_{digest}" if kept else f"call_{digest}"
        yield Repair(
            findings[0].path,
            f"{many(len(new), 'call id')} respelled",
            tuple(rename_all(transcript, new)),
        )

    return make_repairs


def scan_ends(first_user: bool, last_user: Callable[[Facts], bool] | None = None) -> Scan:
    """Findings first_not_user, last_not_user and no_messages.

    ``last_user(facts)``: whether the model refuses a conversation that ends with its own message;
    None: no model does.
    """

    def scan(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
        base = transcript.base
        speaks = ("user", "assistant")
        spoken = next((i for i, m in enumerate(transcript.messages) if m.role in speaks), None)
        if not transcript.messages:
            yield Finding("no_messages", base, "there are no messages")
            return
        first = transcript.messages[spoken or 0]
        if first_user and first.role == "assistant" and not first.compaction:
            yield Finding(
                "first_not_user", (*base, spoken or 0), "the first message is the model's"
            )
        if first_user and all(m.role == "system" for m in transcript.messages):
            end = len(transcript.messages)
            yield Finding("first_not_user", (*base, end), "nobody but the system speaks")
        last = len(transcript.messages) - 1
        message = transcript.messages[last]
        if last_user is None or message.role != "assistant" or message.calls:
            return
        named = "last_not_user" in transcript.facts.refused
        if named or (last_user(transcript.facts) and not _is_paused(message)):
            yield Finding("last_not_user", (*base, last), "the last message is the model's")

    return scan


def _is_paused(message: Message) -> bool:
    """Whether the model's turn may have been paused: the server's tools go on where the client
    sends it back as it came (``pause_turn``)."""
    return any(part.kind in ("server-call", "server-result") for part in message.parts)


def insert_first_user(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """A short user message before the model's first."""
    for finding in findings:
        if not isinstance(value_at(tree, transcript.base), list):
            continue  # one text or object, or cached content: sent as it is
        message = transcript.format.text_message("user", BEGIN)
        path = finding.path if len(finding.path) > len(transcript.base) else (*finding.path, 0)
        yield Repair(path, "a first user message was added", (Insert(path, message),))


def append_user_message(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """A short user message behind the model's last."""
    for finding in findings:
        end: Path = (*transcript.base, len(transcript.messages))
        message = transcript.format.text_message("user", GO_ON)
        yield Repair(finding.path, "a last user message was added", (Insert(end, message),))


# --- calls without a tool name ----------------------------------------------------------------

STAND_IN = "unnamed_tool"


@reports("blank_tool_name")
def scan_blank_names(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """Findings blank_tool_name."""
    for number, message in transcript.suspects:
        for part in message.calls:
            if not part.tool.strip() and part.flaw != "arguments":
                path = (*transcript.base, number, *part.path)
                yield Finding("blank_tool_name", path, "call part", (number, part))


def name_unnamed_calls(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """A name where none is: the call stays, and with it the evidence that something ran."""
    table = transcript.format.table
    for finding in findings:
        number, part = finding.data
        message = (*transcript.base, number)
        call = next(one for one in table.read(paths.get(tree, message)) if one.path == part.path)
        done = f"a call without a name is called {STAND_IN}"
        path = (*message, *call.path_of(call.row.name))
        yield Repair(finding.path, done, (Set(path, STAND_IN),))


# --- texts no provider reads: lone halves of characters, NUL, bytes that are no UTF-8 ---

UNREADABLE = "unreadable_text"


@reports(UNREADABLE)
def scan_unreadable(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """Findings unreadable_text."""
    detail = "a lone half of a character, NUL, or bytes that are no UTF-8"
    for path in transcript.unreadable_head:
        yield Finding(UNREADABLE, path, detail)
    for number, message in transcript.suspects:
        for inner in message.unreadable:
            path = (*transcript.base, number, *inner)
            yield Finding(UNREADABLE, path, detail, (number, _part(message.parts, inner)))


def _part(parts: Sequence[Part], inner: Path) -> Part | None:
    return next(
        (part for part in parts if part.path and part.path == inner[: len(part.path)]), None
    )


def put_stand_ins(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """U+FFFD for each such character; signed reasoning, which takes no edit, is taken out."""
    sealed = [finding for finding in findings if _is_sealed(transcript, tree, finding)]
    yield from remove_reasoning_parts(transcript, tree, _one_a_part(sealed))
    for finding in findings:
        if finding not in sealed:
            value = paths.get(tree, finding.path)
            done = f"{many(count(value), 'unreadable character')} replaced with U+FFFD"
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
    """The row for unreadable text, which all formats have, with a provider's error text."""
    return Rule(UNREADABLE, error_text, source, put_stand_ins, sure="certain")
