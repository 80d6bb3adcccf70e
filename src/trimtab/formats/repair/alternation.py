"""Roles that must alternate, and turns in which text and tool parts must not mix.

Neighbouring messages of one role are merged; a mixed message is split in two with a filler of the
other role between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trimtab.formats.engine.rule import Finding, Repair, RepairFunction, Scan, reports
from trimtab.formats.repair.content import BEGIN, GO_ON
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Delete, Insert, PathOp, Set
from trimtab.transcript.model import Facts, Message, Part
from trimtab.transcript.transcript import Transcript

_FILLER = {"user": ("assistant", BEGIN), "assistant": ("user", GO_ON)}
"""Role → the filler between two messages of this role: (the other role, its text)."""


def scan_alternation(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """Findings roles_alternate: the second of two messages of one role."""
    messages = transcript.messages
    for number in range(1, len(messages)):
        role = messages[number].role
        if role in _FILLER and role == messages[number - 1].role:
            detail = f"two messages of the {role} in a row"
            yield Finding("roles_alternate", (*transcript.base, number), detail, number)


def merge_neighbours(apart: Callable[[Facts], bool]) -> RepairFunction:
    """A repair that merges neighbours of one role.  If text and tool parts must not mix (``apart``)
    and each message has one kind only, a filler is put between them instead."""

    def make_repairs(
        transcript: Transcript, tree: Any, findings: Sequence[Finding]
    ) -> Iterator[Repair]:
        """Neighbours of one role merged, or a filler of the other put between."""
        base, messages, format = transcript.base, transcript.messages, transcript.format
        splits, host, held, last = apart(transcript.facts), 0, list[Part](), -1
        for number in sorted(finding.data for finding in findings):
            if _interrupted(messages, number):
                continue  # the answer that its calls get comes between
            message, path = messages[number], (*base, number)
            if number - 1 != last:  # a new run
                host, held = number - 1, list(messages[number - 1].parts)
            last = number
            if splits and _clean_cut(message.role, held, message.parts):
                role, text = _FILLER[message.role]
                filler = Insert(path, format.text_message(role, text))
                yield Repair(path, f"a message of the {role} was put between", (filler,))
                host, held = number, list(message.parts)
                continue
            items = paths.get(tree, (*path, format.content_key))
            end = (*base, host, format.content_key, messages[host].width)
            ops: list[PathOp] = [Insert(end, item) for item in items]
            held += message.parts
            yield Repair(
                path, f"merged into the message of the {message.role} before it",
                (*ops, Delete(path)),
            )  # fmt: skip

    return make_repairs


def _interrupted(messages: Sequence[Message], number: int) -> bool:
    """Whether the message before has calls that nothing answers, and the model went on in words:
    no result stands behind the run of its messages."""
    behind = number
    while behind < len(messages) and messages[behind].role == "assistant":
        if messages[behind].calls:
            return False
        behind += 1
    answers = behind < len(messages) and messages[behind].results
    return behind > number and bool(messages[number - 1].calls) and not answers


def _clean_cut(role: str, before: Sequence[Part], after: Sequence[Part]) -> bool:
    """Whether a filler here keeps pairs together: between results and text, or text and calls."""
    if role == "user":
        return _all(before, "result") and not any(part.kind == "result" for part in after)
    return _all(after, "call") and not any(part.kind == "call" for part in before)


def _all(parts: Sequence[Part], kind: str) -> bool:
    return bool(parts) and all(part.kind == kind for part in parts)


# --- mixed turns -----------------------------------------------------------------------------


def scan_mixed_turns(rule: str, apart: Callable[[Part], bool]) -> Scan:
    """A scan for messages with both tool parts and parts for which ``apart`` is true."""

    @reports(rule)
    def scan(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
        for number, message in enumerate(transcript.messages):
            tools = message.calls if message.role == "assistant" else message.results
            if not tools or len(tools) == len(message.parts) or message.role not in _FILLER:
                continue
            kind = "call" if message.role == "assistant" else "result"
            rest = [part for part in message.parts if part.kind != kind and apart(part)]
            if rest:
                path = (*transcript.base, number, *rest[0].path)
                yield Finding(rule, path, f"{rest[0].kind} next to tool {kind}s", number)

    scan_function: Scan = scan
    return scan_function


def split_mixed_turns(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Two messages of one mixed: words before calls, results before words; a filler between."""
    format = transcript.format
    for finding in findings:
        number, message = finding.data, transcript.messages[finding.data]
        path = (*transcript.base, number)
        source = paths.get(tree, path)
        tools, rest = _sorted(message, source[format.content_key])
        words = {**source, format.content_key: rest}
        role, text = _FILLER[message.role]
        filler = format.text_message(role, text)
        if message.role == "assistant":
            ops: list[PathOp] = [Insert(path, words), Insert(path, filler)]
        else:
            behind = (*transcript.base, number + 1)
            ops = [Insert(behind, filler), Insert(behind, words)]
        kept = Set((*path, format.content_key), tools)
        done = f"words and tool parts told apart, a message of the {role} between them"
        yield Repair(finding.path, done, (kept, *ops))


def _sorted(message: Message, items: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """(tool parts, all others); a cache breakpoint stays behind the part it followed."""
    ours = message.calls if message.role == "assistant" else message.results
    tools, rest = list[Any](), list[Any]()
    places = {part.path[-1] for part in ours}
    marks = {mark.path[-1] for mark in message.marks}
    last = rest
    for index, item in enumerate(items):
        if index not in marks:
            last = tools if index in places else rest
        last.append(item)
    return tools, rest
