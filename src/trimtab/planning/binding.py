"""Reasoning that is signed over what stands before it: what an edit costs there.

Knows where a batch changes the request.  Which models bind reasoning, and how the API is asked
to drop it, stands in ``rules``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trimtab import rules
from trimtab.model import Edit, Message, Path
from trimtab.planning.edits import Applied, note_host, operations
from trimtab.planning.plan import Planner
from trimtab.rules import Mend
from trimtab.turns.work import Work

DROP_BLOCK = "drop-block"
"""The kind of edit that asks the API to drop reasoning."""


def unbind(work: Work, plan: Planner) -> None:
    """Reasoning behind the first change of this call goes too, unless the API is asked to."""
    if _binds(work) and not _asks(work):
        spots = _positions(work, plan)
        if spots:
            plan.unbind(min(spots))


def _binds(work: Work) -> bool:
    return rules.binds_reasoning(work.transcript.format.name, work.transcript.facts)


def _asks(work: Work) -> bool:
    """Whether the API is asked to drop what no longer fits: only where thinking is on at all."""
    facts = work.transcript.facts
    wanted = work.settings.thinking == "drop_block" and not facts.bare
    return wanted and facts.thinking != "disabled"


def _positions(work: Work, plan: Planner) -> list[tuple[int, int]]:
    """Where this call changes the request, as (message, index of block)."""
    board = plan.board
    spots = [key for key, shown in board.shown.items() if shown.edit is None]
    for run in board.runs:
        if run.edit is None:
            groups = board.groups(run)
            host = note_host(work.transcript, groups, board.dropped)
            spots.append((groups[0].first, -1) if host is None else (host, 10**9))
    spots += (spot for mend in work.new_mends for spot in _mended(mend, work.transcript.base))
    return spots


def _mended(mend: Mend, base: Path) -> Iterator[tuple[int, int]]:
    """Where a repair changes the request: at its operations, or at its beginning where these are
    not on messages.  What stands behind the message that broke the rule saw something else there
    than we do; the message itself did not."""
    depth = len(base)
    for op in mend.ops:
        number = op.path[depth] if op.path[:depth] == base and len(op.path) > depth else 0
        yield (number, -1) if isinstance(number, int) else (0, -1)
    if mend.path[:depth] == base and len(mend.path) > depth:
        number = mend.path[depth]
        yield (number, 10**9) if isinstance(number, int) else (0, -1)


def with_option(work: Work, edits: Sequence[Edit]) -> list[Applied]:
    """The operations of these edits, with the request's own option to let the API drop reasoning
    that no longer fits, where that is wanted and there is any."""
    transcript = work.transcript
    applied = operations(transcript, work.repaired.tree, edits)
    changed = bool(edits) or work.mends is not None
    if not (changed and _asks(work) and _binds(work)):
        return applied
    if not _thinks(transcript.messages):
        return applied
    ops = rules.drop_block_ops(transcript.format.name, work.repaired.tree)
    if ops:
        why = "asks the API to drop thinking that an edit unbound"
        edit = Edit("insert", (), "", DROP_BLOCK, why)
        applied.append(Applied(edit, tuple(op.path for op in ops), ops))
    return applied


def asks_more(work: Work, applied: Sequence[Applied], new: Sequence[Message]) -> bool:
    """Whether ``with_option`` would now ask for what these edits did not: the first reasoning
    comes with new messages."""
    asked = any(one.edit.kind == DROP_BLOCK for one in applied)
    return not asked and _thinks(new) and _asks(work) and _binds(work)


def _thinks(messages: Sequence[Message]) -> bool:
    return any(block.kind == "reasoning" for message in messages for block in message.blocks)
