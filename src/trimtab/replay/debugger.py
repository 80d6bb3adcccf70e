"""One model call under one policy, seen closely: what would be sent, and what is lost.

Knows how a request is shown to a person.  Does not know how it is judged.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trimtab.errors import InvalidSetting
from trimtab.replay import case
from trimtab.replay.index import Index
from trimtab.replay.judge import Answer, Judge, Loss, Row
from trimtab.replay.policies import find
from trimtab.replay.recording import Recording
from trimtab.replay.views import View

CONTEXT_LINES = 2
_PAINT = {"-": "31", "+": "32", "@": "36", "!": "33"}


@dataclass(frozen=True)
class Look:
    """One call: the full request and the one sent, as views; its row and its losses."""

    recording: Recording
    policy: str
    window: int
    turn: int
    full: Sequence[View]
    sent: Sequence[View]
    answer: Answer
    row: Row
    losses: Sequence[Loss]


def look(recording: Recording, policy: str, window: int, turn: int) -> Look:
    """Replay up to a turn.  Raises InvalidSetting where the recording has no such turn."""
    found = find(policy)
    index = Index(case.converted(recording, found.format or recording.format))
    if not 0 <= turn < len(index.turns):
        raise InvalidSetting(
            f"turn {turn}: {recording.id} has the turns 0 … {len(index.turns) - 1}"
        )
    step, judge = found.start(index, window), Judge(index, window)
    for number in range(turn + 1):
        answer = case.ask(step, index, number)
        sent = judge.turn(number, answer)
    full = index.views[: index.turns[turn].sent]
    losses = judge.done.losses.get(turn, [])
    return Look(
        recording, policy, window, turn, full, sent, answer, judge.done.rows[-1], losses
    )  # fmt: skip


def shown(look: Look, *, colour: bool = False) -> str:
    """The full request against the one sent, and the reason of each change."""
    row = look.row
    lines = [
        f"{look.recording.id}, call {look.turn}, {look.policy} at {look.window:,}: "
        f"{row.full:,} tokens, {row.tokens:,} sent"
    ]
    if look.answer.error:
        lines.append(f"! raised {look.answer.error}; the whole request is judged")
    sent = look.answer.sent
    lines += [f"! {place}: {why}" for place, why in (sent.notes if sent is not None else ())]
    before, after = list(_text(look.full)), list(_text(look.sent))
    lines += difflib.unified_diff(
        before, after, "the whole request", "what is sent", lineterm="", n=CONTEXT_LINES
    )
    return "\n".join(_painted(line) if colour else line for line in lines)


def _text(views: Sequence[View]) -> Iterator[str]:
    for view in views:
        tools = ", ".join(call.tool for call in view.message.calls)
        yield f"── {view.message.role}{f' calls {tools}' if tools else ''}"
        for block in view.message.blocks:
            if block.text or block.label:
                head = f"{block.label} " if block.label else ""
                yield from f"{head}{block.text}".splitlines() or [""]
            else:
                yield f"({block.media or 'sealed'} {block.kind})"


def _painted(line: str) -> str:
    code = _PAINT.get(line[:1])
    return f"\x1b[{code}m{line}\x1b[0m" if code else line


def lost(look: Look) -> str:
    """What the agent wrote in this turn and the request no longer held, and where it stood."""
    if not look.losses:
        return "nothing the agent wrote in this turn was missing"
    lines = [f"{len(look.losses)} of {look.row.need} identifiers written in this turn were missing"]
    for loss in look.losses:
        where = f"message {loss.message}, {f'{loss.tool} {loss.kind}'.strip()}"
        lines.append(f"{loss.atom}\n    last stood in {where}: {loss.line}")
        lines.append(f"    there now: {loss.now or 'nothing'}")
    return "\n".join(lines)
