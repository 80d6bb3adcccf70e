"""Scans and repairs for item ids and reasoning of OpenAI Responses.

Reasoning and the items made with it refer to each other by id.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

from trimtab.formats.engine.rule import Finding, Repair
from trimtab.formats.openai_responses.format import companions, may_lose_id
from trimtab.formats.openai_responses.items import LONGEST_ID, TYPES
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Delete, Path, PathOp, Set
from trimtab.transcript.model import Message
from trimtab.transcript.transcript import MessagePass, Transcript

PREFIXES = {"message": "msg", "function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs"}
"""Item type → required prefix of its id, for types with a quoted refusal."""
_WRITTEN = re.compile(r"[A-Za-z0-9_-]+")
_ID_IS_THE_LINK = ("local_shell_call", "local_shell_call_output")
"""Items whose call and output may be linked by the item id, so that both have the same id."""


class _Named(MessagePass):
    """Finds items whose id an earlier item has."""

    def __init__(self) -> None:
        self.again: list[tuple[int, int]] = []
        """(the item, the first with its id)."""
        self._first: dict[str, int] = {}

    def add(self, number: int, message: Message) -> None:
        if message.id and message.type not in _ID_IS_THE_LINK:
            first = self._first.setdefault(message.id, number)
            if first != number:
                self.again.append((number, first))


class _ReasoningRuns(MessagePass):
    """Finds the item behind each run of reasoning."""

    def __init__(self) -> None:
        self.item: dict[int, int] = {}
        """Reasoning → the first item behind it that is none."""
        self._run: list[int] = []

    def add(self, number: int, message: Message) -> None:
        if message.type == "reasoning":
            self._run.append(number)
        elif self._run:
            self.item.update(dict.fromkeys(self._run, number))
            self._run = []


def scan_items(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """item_id_prefix, item_id_chars, item_id_too_long, duplicate_item, and reasoning rules."""
    for number, message in enumerate(transcript.messages):
        if message.type == "reasoning":
            yield from _reasoning(transcript, number)
        name = message.id
        if name is None or message.type in _ID_IS_THE_LINK or message.type not in TYPES:
            continue
        begin = PREFIXES.get(message.type, "")
        sound = name.isascii() and name.isidentifier() and len(name) <= LONGEST_ID
        if not sound or not name.startswith(begin):
            yield from _misnamed(transcript, number, name, begin)
    for number, before in transcript.passed(_Named).again:
        detail = f"a second item has the id {transcript.messages[number].id}"
        yield Finding("duplicate_item", (*transcript.base, number), detail, before)


def _misnamed(transcript: Transcript, number: int, name: str, begin: str) -> Iterator[Finding]:
    path: Path = (*transcript.base, number, "id")
    if not _WRITTEN.fullmatch(name):
        yield Finding("item_id_chars", path, f"item id {name!r}", number)
    elif len(name) > LONGEST_ID:
        yield Finding("item_id_too_long", path, f"{len(name)} chars", number)
    elif not name.startswith(begin):
        detail = f"{transcript.messages[number].type} id {name} does not begin with {begin}"
        yield Finding("item_id_prefix", path, detail, number)


def _reasoning(transcript: Transcript, number: int) -> Iterator[Finding]:
    messages, base = transcript.messages, transcript.base
    if messages[number].id is None:
        for other in companions(messages, number):
            if messages[other].id and may_lose_id(messages[other]):
                detail = f"the reasoning of {messages[other].id} has no id"
                yield Finding("reasoning_missing", (*base, other, "id"), detail, other)
        return
    following = transcript.passed(_ReasoningRuns).item.get(number, len(messages))
    behind = messages[following] if following < len(messages) else None
    if behind is None or behind.role in ("user", "system", "tool"):
        later = next((m.role for m in messages[following:] if m.role in ("user", "assistant")), "")
        if (
            later == "assistant"
        ):  # behind outputs of other calls: whether that is too far, who knows
            rule = "reasoning_parted"
            detail = f"the model's next item does not follow {messages[number].id} at once"
        else:
            rule = "reasoning_alone"
            detail = f"nothing of the model's follows reasoning {messages[number].id}"
        yield Finding(rule, (*base, number), detail, number)
    elif behind.id is None and may_lose_id(behind):
        detail = f"the item behind reasoning {messages[number].id} has no id"
        yield Finding("reasoning_unlinked", (*base, following), detail, number)


def unlink_ops(transcript: Transcript, number: int) -> list[PathOp]:
    """Deletes the ids by which this item, its reasoning and its siblings refer to each other."""
    messages, first = transcript.messages, number
    while first and messages[first].type != "reasoning" and messages[first].role != "user":
        first -= 1
    if messages[first].type != "reasoning":
        return []
    linked = [first, *companions(messages, first)]
    return [
        Delete((*transcript.base, n, "id"))
        for n in linked
        if n != number and messages[n].id is not None
        and (may_lose_id(messages[n]) or messages[n].type == "reasoning")
    ]  # fmt: skip


def remove_item_id(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Item ids taken off (with those that refer to them); respelled where an item must have one."""
    for finding in findings:
        message = transcript.messages[finding.data]
        if message.type in _NEEDS_ID:
            yield Repair(
                finding.path, "an item id respelled", (Set(finding.path, _respelled(message)),)
            )
            continue
        ops = (Delete(finding.path), *unlink_ops(transcript, finding.data))
        yield Repair(finding.path, "an item id taken off; the item stays", ops)


_NEEDS_ID = frozenset({
    "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call",
    "mcp_call", "mcp_list_tools", "mcp_approval_request", "computer_call", "program",
    "program_output", "item_reference",
})  # fmt: skip
"""Items for which the API's types require an ``id``."""


def _respelled(message: Message) -> str:
    old = message.id or ""
    digest = hashlib.blake2b(old.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    kept = "".join(_WRITTEN.findall(old))[: LONGEST_ID - 13]
    return f"{kept or message.type[:3]}_{digest}"


def remove_duplicate_item(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """A repeated item is taken out; another item under the same id loses its id.

    Of two copies the one that stands with its other half stays: an item behind its reasoning,
    reasoning before its item.  Reasoning is taken out, never changed, and what is behind the
    copy alone loses the id that demands it.  Where copies stand behind different reasoning, it
    can't be known whose they are: the reasoning goes too.
    """
    surplus = {_surplus(transcript, tree, finding) for finding in findings}
    for finding in findings:
        again, removed = finding.path[-1], _surplus(transcript, tree, finding)
        assert isinstance(again, int)
        if removed is not None:
            path: Path = (*transcript.base, removed)
            remaining = again if removed == finding.data else finding.data
            more = _disputed(transcript, removed, remaining, surplus)
            whole = tuple(op.path for op in more if len(op.path) == len(path))
            ops = (Delete(path), *_left_behind(transcript, removed, remaining, surplus), *more)
            yield Repair(path, "a repeated item was taken out", ops, (path, *whole))
        elif transcript.messages[again].type == "reasoning":
            ops = (Delete(finding.path), *unlink_ops(transcript, again))
            yield Repair(finding.path, "reasoning under a taken id taken out", ops, (finding.path,))
        elif transcript.messages[again].type in _NEEDS_ID:
            named = Finding(finding.rule, (*finding.path, "id"), "", again)
            yield from remove_item_id(transcript, tree, [named])
        else:
            thoughts = _right_before(transcript.messages, again)
            made = {n for first in thoughts for n in companions(transcript.messages, first)}
            ids = (Delete((*transcript.base, n, "id")) for n in sorted({*made, again})
                   if n == again or _loses_id(transcript.messages[n]))  # fmt: skip
            thought_paths = tuple((*transcript.base, n) for n in thoughts)
            ops = (*map(Delete, thought_paths), *ids)
            yield Repair(
                (*finding.path, "id"), "an item id taken off; the item stays", ops, thought_paths
            )


def _loses_id(message: Message) -> bool:
    return message.id is not None and may_lose_id(message)


def _right_before(messages: Sequence[Message], number: int) -> list[int]:
    """The reasoning items right before this item, which require it by its id."""
    first = number
    while first and messages[first - 1].type == "reasoning":
        first -= 1
    return list(range(first, number))


def _surplus(transcript: Transcript, tree: Any, finding: Finding) -> int | None:
    """Which of two items with one id is removed; None if they are not copies."""
    first, again = finding.data, finding.path[-1]
    assert isinstance(again, int)
    if paths.get(tree, finding.path) != paths.get(tree, (*transcript.base, first)):
        return None
    bare = _linked(transcript, again) and not _linked(transcript, first)
    return int(first) if bare else again


def _left_behind(
    transcript: Transcript, removed: int, remaining: int, surplus: Container[int | None]
) -> list[PathOp]:
    """Delete the ids of items that follow the removed copy of reasoning, but not the other."""
    messages = transcript.messages
    if messages[removed].type != "reasoning":
        return []

    def parted(other: int) -> bool:
        between = [messages[n] for n in range(remaining + 1, other) if n not in surplus]
        return other < remaining or any(m.role == "user" or m.type == "reasoning" for m in between)

    return [
        Delete((*transcript.base, other, "id"))
        for other in companions(messages, removed)
        if messages[other].id and may_lose_id(messages[other])
        and other not in surplus and parted(other)
    ]  # fmt: skip


def _disputed(
    transcript: Transcript, removed: int, remaining: int, surplus: Container[int | None]
) -> list[PathOp]:
    """Delete the reasoning of the remaining copy, with the ids that refer to it, if the removed
    copy followed different reasoning."""
    messages, base = transcript.messages, transcript.base
    own, other = _reasoning_of(messages, remaining), _reasoning_of(messages, removed)
    if messages[removed].type == "reasoning" or own is None or other is None:
        return []
    made = [n for n in companions(messages, own) if messages[n].id and n not in surplus]
    bound = own in surplus or not all(may_lose_id(messages[n]) for n in made)
    if bound or messages[own].id == messages[other].id:
        return []
    return [Delete((*base, own)), *(Delete((*base, n, "id")) for n in made)]


def _reasoning_of(messages: Sequence[Message], number: int) -> int | None:
    """The reasoning before this item, without a message of the user between them."""
    while number and messages[number].role != "user":
        number -= 1
        if messages[number].type == "reasoning":
            return number
    return None


def _linked(transcript: Transcript, number: int) -> bool:
    """Whether reasoning is followed by its item, or an item is preceded by its reasoning."""
    messages = transcript.messages
    if messages[number].type == "reasoning":
        behind = transcript.passed(_ReasoningRuns).item.get(number)
        return behind is not None and messages[behind].role == "assistant"
    return _reasoning_of(messages, number) is not None


_LINKED_BY_ID = frozenset({
    "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call",
    "mcp_call", "computer_call",
})  # fmt: skip
"""Items that must have an ``id``; by it the provider finds that their reasoning is missing."""


def _unlinked(transcript: Transcript, number: int) -> Iterator[PathOp]:
    """Other ids for the items that were made with this reasoning and must have one."""
    messages = transcript.messages
    of_reasoning = messages[number].type == "reasoning"  # a compaction is taken out, too
    for other in companions(messages, number) if of_reasoning else ():
        if messages[other].id and messages[other].type in _LINKED_BY_ID:
            yield Set((*transcript.base, other, "id"), _respelled(messages[other]))


def remove_reasoning(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Reasoning (or a compaction) taken out as a whole, with the ids that demand it."""
    for finding in findings:
        number = finding.data[0] if isinstance(finding.data, tuple) else finding.data
        place = next(transcript.places_in(number))
        ids: Iterable[Path] = transcript.format.dependent_paths(transcript, place)
        path = (*transcript.base, number)
        ops = (Delete(path), *(Delete(other) for other in ids), *_unlinked(transcript, number))
        yield Repair(path, f"a {transcript.messages[number].type} item was taken out", ops, (path,))
