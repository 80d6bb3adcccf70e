"""The repair of most formats for results without a call: remove them and leave a note.

A note keeps its place while the conversation grows, so that the sent prefix does not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from trimtab.jsontext import paths
from trimtab.jsontext.paths import Delete, Insert, Path, PathOp
from trimtab.rules.base import Finding, Repair
from trimtab.rules.pairing import LocatedPart, path_of_part
from trimtab.transcript.model import Message
from trimtab.transcript.transcript import MessagePass, Transcript


def remove_orphan_results(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Take results out that answer nothing; a note names them, their text stays recallable."""
    by_end: dict[int, list[LocatedPart]] = {}
    turn_range = range(0)  # in which all have the same end
    for finding in findings:
        located = finding.data
        end = number = located.message
        if not located.part.path:
            if number not in turn_range:
                turn_range = range(number, _run_end(transcript, number))
            end = turn_range.stop
        by_end.setdefault(end, []).append(located)
    for end, orphans in by_end.items():
        chars = _chars(transcript, orphans)
        for index, located in enumerate(orphans):
            where = path_of_part(transcript, located)
            ops: list[PathOp] = [Delete(where)]
            if index == len(orphans) - 1:
                ops.append(_note(transcript, tree, orphans, end))
            yield Repair(where, _taken(located, chars.get(where, 0)), tuple(ops), (where,))


def _run_end(transcript: Transcript, number: int) -> int:
    """The place of a note about a result that is a message: behind the run of results.

    In a history of items it is behind the model's whole step, because reasoning needs the items
    after it and calls their results.  It is not behind the turn, which grows and would move it.
    """
    messages, before = transcript.messages, number - 1
    while before >= 0 and messages[before].role in ("tool", "system"):
        before -= 1
    within = before >= 0 and messages[before].role == "assistant" and messages[before].type != ""
    roles = ("tool", "assistant", "system") if within else ("tool",)
    while number < len(messages) and messages[number].role in roles:
        if within and messages[number].role != "tool" and _step_ends(transcript, number):
            break
        number += 1
    return number


def _step_ends(transcript: Transcript, number: int) -> bool:
    """Whether the model's step (one response) ends before this item.

    Clients put results between the calls of one response.  If the model reasoned, only new
    reasoning shows that the next response begins.
    """
    before = transcript.passed(_Steps).behind[number - 1]
    is_new = _reasons(transcript.messages[number]) or not before.has_reasoned
    return is_new and not before.reasons and not before.is_waiting


class _Behind(NamedTuple):
    """The state after an item: whether a call waits for its result, whether the model's last item
    is reasoning, and whether it has reasoned since the user's last message."""

    is_waiting: bool
    reasons: bool
    has_reasoned: bool


class _Steps(MessagePass):
    """Computes the state after each item, by which ``_step_ends`` decides."""

    def __init__(self) -> None:
        self.behind: list[_Behind] = []
        self._waiting: set[str] = set()
        self._last = _Behind(False, False, False)

    def add(self, number: int, message: Message) -> None:
        """Add an item: calls wait for their results; a message of the user resets reasoning."""
        self._waiting.update(message.call_ids)
        self._waiting.difference_update(message.result_ids)
        reasons, has_reasoned = self._last.reasons, self._last.has_reasoned
        if message.role == "user":
            reasons = has_reasoned = False
        elif message.role == "assistant":
            reasons = _reasons(message)
            has_reasoned = has_reasoned or reasons
        self._last = _Behind(bool(self._waiting), reasons, has_reasoned)
        self.behind.append(self._last)


def _reasons(message: Message) -> bool:
    """Whether this item is reasoning."""
    return any(part.kind == "reasoning" for part in message.parts)


def _note(transcript: Transcript, tree: Any, orphans: Sequence[LocatedPart], end: int) -> PathOp:
    """Insert the note, which names the removed results without quoting them and keeps their cache
    breakpoint."""
    marked = [located for located in orphans if located.part.marked]
    mark = None
    if marked:
        mark = transcript.format.mark_of(paths.get(tree, path_of_part(transcript, marked[-1])))
    format, base = transcript.format, transcript.base
    name = f" of {orphans[0].part.tool}" if len(orphans) == 1 and orphans[0].part.tool else ""
    what = f"A tool result{name} was" if len(orphans) == 1 else f"{len(orphans)} tool results were"
    text = f"[{what} taken out: no call of this conversation asked for it.]"
    if not orphans[-1].part.path:
        return Insert((*base, end), format.text_message("user", text, marked=mark))
    at = transcript.messages[end].width
    return Insert((*base, end, format.content_key, at), format.text_part(text, marked=mark))


def _taken(located: LocatedPart, chars: int) -> str:
    what = located.part.tool or located.part.id or "without id"
    return f"a tool result ({what}, {chars:,} chars) without its call was taken out"


def _chars(transcript: Transcript, orphans: Sequence[LocatedPart]) -> dict[Path, int]:
    """Characters of each of these results, by path."""
    chars: dict[Path, int] = {}
    depths_by_message: dict[int, set[int]] = {}
    for located in orphans:
        depths_by_message.setdefault(located.message, set()).add(len(located.part.path))
    for number, depths in depths_by_message.items():
        for block in transcript.messages[number].blocks:
            for depth in depths:
                key = (*transcript.base, number, *block.item[:depth])
                chars[key] = chars.get(key, 0) + len(block.text)
    return chars
