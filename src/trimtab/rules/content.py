"""Parts that are wrong by themselves, and the ends of the conversation: scans and repairs.

A format marks a part's flaw when it reads it; here flaws become findings and are mended.
Knows no provider's words (those are rows of the data files).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trimtab import paths
from trimtab.model import Path, Transcript
from trimtab.paths import Delete, Insert, PathOp, Set
from trimtab.rules.base import Finding, Mend, Scan, new_alone, resumes
from trimtab.rules.pairing import rename_all

PLACEHOLDER = "(no content)"
GO_ON = "Continue."
BEGIN = "(The conversation goes on.)"


def flaws(names: Mapping[str, str]) -> Scan:
    """A scan that turns each part's flaw into a finding of the row ``names[flaw]``."""

    @resumes(new_alone)
    def scan(transcript: Transcript, open_tail: bool, first: int = 0) -> Iterator[Finding]:
        for number, message in enumerate(transcript.messages[first:], first):
            for part in message.parts:
                if part.flaw and part.flaw in names:
                    path = (*transcript.base, number, *part.path)
                    yield Finding(names[part.flaw], path, f"{part.kind} part", (number, part))

    found: Scan = scan
    return found


def take_parts(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """Take the parts out; where a message would be left empty, one short text stands instead."""
    by_message: dict[int, list[Any]] = {}
    for finding in found:
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
            yield Mend(
                path, f"a {part.kind} part the provider refuses was taken out", (op,), (path,)
            )


def empty_items(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """Take empty texts out of a tool result (a result without content is accepted)."""
    for finding in found:
        number, part = finding.data
        ops = tuple(
            Delete((*transcript.base, number, *block.item))
            for block in transcript.messages[number].blocks
            if block.kind == "result" and block.item[: len(part.path)] == part.path
            and not block.text.strip()
        )  # fmt: skip
        yield Mend(finding.path, "an empty text was taken out of a tool result", ops)


def list_content(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """Put content that is one part, or no JSON list, into a list."""
    for finding in found:
        value = paths.get(tree, finding.path)
        listed = [value] if isinstance(value, dict) else list(value)
        yield Mend(finding.path, "content put into a list", (Set(finding.path, listed),))


def fill_nulls(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """Put an empty string where null is refused (a placeholder where the user speaks)."""
    for finding in found:
        number, part = finding.data
        nothing = transcript.messages[number].role == "assistant" and part.flaw == "null"
        text = "" if nothing else PLACEHOLDER
        yield Mend(finding.path, "null content replaced", (Set(finding.path, text),))


def open_arguments(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """Make call arguments what the format demands; text that is no object is kept inside one."""
    for finding in found:
        number, part = finding.data
        place = next(
            block
            for block in transcript.messages[number].blocks
            if block.kind == "call" and block.item == part.path
        )
        path = (*transcript.base, number, *place.path)
        try:
            value = paths.get(tree, path)
        except (KeyError, IndexError):
            value = None
        mended = _as_object(value)
        value = mended if place.spelling == "json" else paths.dump(mended)
        done = "arguments given the shape the provider demands"
        yield Mend(path, done, (Set(path, value),))


def _as_object(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else {}
        except ValueError:
            return {"text": value}
    if value is None:
        return {}
    return value if isinstance(value, dict) else {"value": value}


def clean_ids(allowed: re.Pattern[str], longest: int) -> Any:
    """A repair that maps ids outside of ``allowed`` to ones inside it, both sides alike."""

    def mend(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
        """Ids mapped to allowed ones, calls and results alike; equal ids stay equal."""
        new: dict[str, str] = {}
        for finding in found:
            old = finding.data[1].id
            digest = hashlib.blake2b(
                old.encode("utf-8", "surrogatepass"), digest_size=6
            ).hexdigest()
            kept = "".join(allowed.findall(old))[: longest - 13]
            new[old] = f"{kept}_{digest}" if kept else f"call_{digest}"
        yield Mend(
            found[0].path, f"{len(new)} call id(s) respelled", tuple(rename_all(transcript, new))
        )

    return mend


def ends(first_user: bool, last_user: Any) -> Scan:
    """Findings first_not_user, last_not_user and no_messages.

    ``last_user(facts)`` tells whether this model refuses a conversation that ends with its own
    words.
    """

    def scan(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
        base = transcript.base
        speaks = ("user", "assistant")
        spoken = next((i for i, m in enumerate(transcript.messages) if m.role in speaks), None)
        if not transcript.messages:
            yield Finding("no_messages", base, "there are no messages")
            return
        if first_user and spoken is not None and transcript.messages[spoken].role == "assistant":
            yield Finding("first_not_user", (*base, spoken), "the first message is the model's")
        if first_user and all(m.role == "system" for m in transcript.messages):
            end = len(transcript.messages)
            yield Finding("first_not_user", (*base, end), "nobody but the system speaks")
        last = len(transcript.messages) - 1
        message = transcript.messages[last]
        if last_user(transcript.facts) and message.role == "assistant" and not message.calls:
            yield Finding("last_not_user", (*base, last), "the last message is the model's")

    return scan


def begin_with_user(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """A short user message before the model's first."""
    for finding in found:
        message = transcript.format.text_message("user", BEGIN)
        path = finding.path if len(finding.path) > len(transcript.base) else (*finding.path, 0)
        yield Mend(path, "a first user message was added", (Insert(path, message),))


def end_with_user(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """A short user message behind the model's last."""
    for finding in found:
        end: Path = (*transcript.base, len(transcript.messages))
        message = transcript.format.text_message("user", GO_ON)
        yield Mend(finding.path, "a last user message was added", (Insert(end, message),))
