"""Groups each model turn with the results that follow it, and with what refers to it by an id; and
finds the blocks that load tools, whose group stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from trimtab.formats.engine.base import may_answer
from trimtab.jsontext.paths import Path
from trimtab.transcript.model import LINKED, Group
from trimtab.transcript.transcript import Transcript


def group_turns(transcript: Transcript, *, by_count: bool = False) -> tuple[Group, ...]:
    """Group model turns with their results, for formats whose items are messages.

    A turn is one assistant message (a run of them where the provider merges roles) and the
    results that follow it: separate messages, or the leading parts of the next user message.
    It is closed if each call's id has a result; with ``by_count``, if the numbers of calls and
    results agree.
    """
    messages, prefix = transcript.messages, transcript.prefix
    linked = any(message.is_linked or message.tool_state for message in messages)
    # What comes later may join groups that had ended.
    groups = prefix.ended_groups if prefix is not None and not linked else []
    index = groups[-1].last + 1 if groups else 0
    merges = transcript.format.merges_roles
    while index < len(messages):
        if messages[index].role != "assistant":
            index += 1
            continue
        first = index
        index += 1
        while merges and index < len(messages) and messages[index].role == "assistant":
            index += 1
        groups.append(_turn(transcript, first, index, by_count))
        index = max(groups[-1].last + 1, index)
    return join_linked(transcript, groups) if linked else tuple(groups)


def join_linked(
    transcript: Transcript, groups: Sequence[Group], *, server_answers: bool = True
) -> tuple[Group, ...]:
    """One group of those that refer to each other by an id, such as a server tool's call and its
    result in a later turn, with all between them.

    A group stays open where that can't be done (other messages stand between, or one of them is
    referred to from outside of all groups), where the server still owes a result, and where tools
    are loaded.  ``server_answers``: whether calls of the server's have results of their own.
    """
    joins, opened = _joins(transcript, groups)
    done: list[Group] = []
    first = 0
    while first < len(groups):
        last = max(first, joins.get(first, first))
        number = first
        while number < last:  # a group within may reach further
            number += 1
            last = max(last, joins.get(number, number))
        run = groups[first : last + 1]
        if len(run) == 1 or not _adjoin(run):
            done += [
                _opened(transcript, one)
                if number in opened or len(run) > 1 or (server_answers and _owes(transcript, one))
                else one
                for number, one in enumerate(run, first)
            ]
        else:
            whole = _joined(transcript, run)
            keeps = not opened.isdisjoint(range(first, last + 1)) or (
                server_answers and _owes(transcript, whole)
            )
            done.append(_opened(transcript, whole) if keeps else whole)
        first = last + 1
    return tuple(done)


def _joins(transcript: Transcript, groups: Sequence[Group]) -> tuple[dict[int, int], set[int]]:
    """(group → the last later group that refers to it, groups that have to stay).  Ids repeat, so
    the nearest before is meant."""
    group_of = {number: at for at, group in enumerate(groups) for number in group.numbers}
    joins, opened = dict[int, int](), _loading(transcript, group_of)
    named = dict[str, tuple[int, str]]()  # id → (group, type) of the newest part that has it
    for number, message in enumerate(transcript.messages):
        here = group_of.get(number, -1)
        for part in message.parts if message.is_linked else ():
            own = (part.id,) if part.id and part.kind in LINKED else ()
            label = part.tool or part.kind
            for id in (*own, *part.refers):
                before, other = named.get(id, (here, label))
                # Parts of one type with the same id are no pair: it names a session or a file.
                if before == here or other == label:
                    continue
                if min(before, here) < 0:
                    opened.add(max(before, here))
                else:
                    joins[before] = here
            ours = (*own, *part.refers) if part.kind == "other" else own
            named.update(dict.fromkeys(ours, (here, label)))
        ids = message.call_ids if message.id is None else (*message.call_ids, message.id)
        named.update(dict.fromkeys(ids, (here, "call")))
    return joins, opened


def _loading(transcript: Transcript, group_of: Mapping[int, int]) -> set[int]:
    """The groups that load or withdraw tools.

    A reference to a tool that such a group has loaded before loads nothing: a loaded tool stays
    loaded on later turns, until tools change or the provider itself takes old blocks out.
    """
    loading, loaded = set[int](), set[str]()
    for number, message in enumerate(transcript.messages):
        names = {name for _, name in message.tool_state}
        if transcript.facts.managed or "" in names:
            loaded.clear()
        if number in group_of and not names <= loaded:
            loading.add(group_of[number])
            loaded |= names - {""}
    return loading


def _adjoin(run: Sequence[Group]) -> bool:
    """Whether nothing stands between these groups that belongs to none of them."""
    if any(group.partial for group in run[:-1]):
        return False
    return all(one.last + 1 == after.first for one, after in pairwise(run))


def _joined(transcript: Transcript, run: Sequence[Group]) -> Group:
    numbers = range(run[0].first, run[-1].last + 1)
    return Group(
        transcript.messages, transcript.base, numbers, closed=all(group.closed for group in run),
        has_calls=any(group.has_calls for group in run), partial=run[-1].partial,
    )  # fmt: skip


def _opened(transcript: Transcript, group: Group) -> Group:
    return Group(
        transcript.messages, transcript.base, group.numbers, closed=False,
        has_calls=group.has_calls, partial=group.partial,
    )  # fmt: skip


def _owes(transcript: Transcript, group: Group) -> bool:
    """Whether a call of the server's in this group has no result in it."""
    messages, owed = transcript.messages, list[str]()
    for number in group.numbers:
        for part in messages[number].parts:
            if part.kind == "server-call" and part.id:
                owed.append(part.id)
            elif part.kind == "server-result" and part.id in owed:
                owed.remove(part.id)
    return bool(owed)


def _turn(transcript: Transcript, first: int, end: int, by_count: bool) -> Group:
    """The group whose model part is messages[first:end]."""
    messages = transcript.messages
    waiting = [id for message in messages[first:end] for id in message.call_ids]
    has_calls, partial, index = bool(waiting), False, end
    unanswered = len(waiting)
    role = "user" if transcript.format.results_in_user else "tool"
    while has_calls and not partial and index < len(messages):
        message = messages[index]
        if not (message.results and may_answer(message, role)):
            break
        unanswered -= len(message.results)
        for id in message.result_ids:
            if id in waiting:
                waiting.remove(id)
        partial = len(message.results) < len(message.parts)
        index += 1
    # What the provider ran itself is a step too: its results are talk, and large.
    parts = [part for message in messages[first:end] for part in message.parts]
    has_calls = has_calls or any(part.kind == "server-call" for part in parts)
    # The turn with the provider's compaction is never dropped: it replaces all before it.
    may_go = not any(message.compaction for message in messages[first:end])
    return Group(
        messages, transcript.base, range(first, index),
        closed=not (unanswered if by_count else waiting), has_calls=has_calls and may_go,
        partial=partial,
    )  # fmt: skip


# --- blocks that load tools ---

_CHANGES = ("mcp_tool_listing", "tool_addition", "tool_removal")
ADDED = "tool"
"""The key under which a ``tool_addition`` has its reference (anthropic 2.14:
``BetaRequestToolAdditionBlockParam``)."""


def tool_state(content: Any, path: Path = ("content",)) -> Iterator[tuple[Path, str]]:
    """(path, name of the tool that it loads, else "") of each block in a message's content that
    loads or withdraws tools (Anthropic's, also in chat messages), also inside results, those of a
    tool search, and what a compaction says of the turns that it replaced.

    They are no talk: without them a tool that is called later is not loaded.
    """
    for index, item in enumerate(content if isinstance(content, list) else ()):
        kind = item.get("type") if isinstance(item, dict) else None
        if kind == "tool_reference":
            name = item.get("tool_name")
            yield (*path, index), name if isinstance(name, str) else ""
        elif kind == "tool_addition" and (name := _name_of_added(item.get(ADDED))):
            yield (*path, index, ADDED), name
        elif kind in _CHANGES:
            yield (*path, index), ""
        elif kind == "compaction":
            yield from tool_state(item.get("tool_changes"), (*path, index, "tool_changes"))
        elif kind == "tool_result":
            yield from tool_state(item.get("content"), (*path, index, "content"))
        elif kind == "tool_search_tool_result" and isinstance(item.get("content"), dict):
            found = item["content"].get("tool_references")
            yield from tool_state(found, (*path, index, "content", "tool_references"))


def _name_of_added(tool: Any) -> str:
    """The name in a reference to a declared tool; "" for an MCP tool, a toolset or a definition."""
    if isinstance(tool, dict) and tool.get("type") == "tool_reference":
        return str(tool.get("name") or "")
    return ""
