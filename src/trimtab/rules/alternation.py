"""Roles that must alternate, and turns in which words and tool parts must not mix.

Knows how neighbouring messages of one role are merged, and how a mixed message is split in two
with a filler of the other role between.  Knows no provider's words nor which models ask for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trimtab import paths
from trimtab.model import Facts, Message, Part, Transcript
from trimtab.paths import Delete, Insert, PathOp, Set
from trimtab.rules.base import Finding, Mend, MendAll, Scan, new_alone, resumes
from trimtab.rules.content import BEGIN, GO_ON

_FILLER = {"user": ("assistant", BEGIN), "assistant": ("user", GO_ON)}
"""What may stand between two messages of this role: the other role and its words."""


@resumes(new_alone)
def neighbours(transcript: Transcript, open_tail: bool, first: int = 0) -> Iterator[Finding]:
    """Findings roles_alternate: the second of two messages of one role."""
    messages = transcript.messages
    for number in range(max(1, first), len(messages)):
        role = messages[number].role
        if role in _FILLER and role == messages[number - 1].role:
            detail = f"two messages of the {role} in a row"
            yield Finding("roles_alternate", (*transcript.base, number), detail, number)


def merge(apart: Callable[[Facts], bool]) -> MendAll:
    """Merge neighbours of one role.  Where words and tool parts may not mix (``apart``), and each
    message holds one kind only, a filler between them keeps both as they are."""

    def mend(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
        """Neighbours of one role merged, or a filler of the other put between."""
        base, messages, format = transcript.base, transcript.messages, transcript.format
        splits, host, held, last = apart(transcript.facts), 0, list[Part](), -1
        for number in sorted(finding.data for finding in found):
            message, path = messages[number], (*base, number)
            if number - 1 != last:  # a new run
                host, held = number - 1, list(messages[number - 1].parts)
            last = number
            if splits and _clean_cut(message.role, held, message.parts):
                role, text = _FILLER[message.role]
                filler = Insert(path, format.text_message(role, text))
                yield Mend(path, f"a message of the {role} was put between", (filler,))
                host, held = number, list(message.parts)
                continue
            items = paths.get(tree, (*path, format.content_key))
            end = (*base, host, format.content_key, messages[host].width)
            ops: list[PathOp] = [Insert(end, item) for item in items]
            held += message.parts
            yield Mend(
                path, f"merged into the message of the {message.role} before it",
                (*ops, Delete(path)),
            )  # fmt: skip

    return mend


def _clean_cut(role: str, before: Sequence[Part], after: Sequence[Part]) -> bool:
    """Whether a filler here leaves pairs together: results → words, or words → calls."""
    if role == "user":
        return _all(before, "result") and not any(part.kind == "result" for part in after)
    return _all(after, "call") and not any(part.kind == "call" for part in before)


def _all(parts: Sequence[Part], kind: str) -> bool:
    return bool(parts) and all(part.kind == kind for part in parts)


# --- mixed turns -----------------------------------------------------------------------------


def mixed(rule: str, apart: Callable[[Part], bool]) -> Scan:
    """A scan for messages in which tool parts stand beside parts that ``apart`` names."""

    @resumes(new_alone)
    def scan(transcript: Transcript, open_tail: bool, first: int = 0) -> Iterator[Finding]:
        for number, message in enumerate(transcript.messages[first:], first):
            tools = message.calls if message.role == "assistant" else message.results
            rest = [part for part in message.parts if part not in tools and apart(part)]
            if tools and rest and message.role in _FILLER:
                path = (*transcript.base, number, *rest[0].path)
                kind = "calls" if message.role == "assistant" else "results"
                yield Finding(rule, path, f"{rest[0].kind} beside tool {kind}", number)

    found: Scan = scan
    return found


def split(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """Two messages of one mixed: words before calls, results before words; a filler between."""
    format = transcript.format
    for finding in found:
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
        yield Mend(finding.path, done, (kept, *ops))


def _sorted(message: Message, items: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """(tool parts, all others); a cache breakpoint stays behind what it stood behind."""
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
