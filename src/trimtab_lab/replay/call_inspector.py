"""One model call under one policy, for debugging: what would be sent, and what is lost."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trimtab.errors import InvalidSetting
from trimtab.logs.recording import Recording
from trimtab_lab.replay import policy_run
from trimtab_lab.replay.message_views import MessageView
from trimtab_lab.replay.metric import CallMetrics, Judge, LostIdentifier, PolicyAnswer
from trimtab_lab.replay.policies import find
from trimtab_lab.replay.recording_index import RecordingIndex

CONTEXT_LINES = 2
_PAINT = {"-": "31", "+": "32", "@": "36", "!": "33"}


@dataclass(frozen=True)
class InspectedCall:
    """One call: the full request and the one sent, as views; its row and its losses."""

    recording: Recording
    policy: str
    window: int
    turn: int
    full: Sequence[MessageView]
    sent: Sequence[MessageView]
    answer: PolicyAnswer
    row: CallMetrics
    losses: Sequence[LostIdentifier]


def inspect_call(recording: Recording, policy: str, window: int, turn: int) -> InspectedCall:
    """Replay up to ``turn``.  Raises InvalidSetting if the recording has no such turn."""
    chosen_policy = find(policy)
    index = RecordingIndex(
        policy_run.converted(recording, chosen_policy.format or recording.format)
    )
    if not 0 <= turn < len(index.turns):
        raise InvalidSetting(
            f"turn {turn}: {recording.id} has the turns 0 … {len(index.turns) - 1}"
        )
    room = index.room(window)
    step, judge = chosen_policy.start(index, room), Judge(index, room)
    for number in range(turn + 1):
        answer = policy_run.ask(step, index, number)
        sent = judge.turn(number, answer)
    full = index.views[: index.turns[turn].sent]
    losses = judge.done.losses.get(turn, [])
    return InspectedCall(
        recording, policy, window, turn, full, sent, answer, judge.done.rows[-1], losses
    )  # fmt: skip


def request_diff(call: InspectedCall, *, colour: bool = False) -> str:
    """A diff of the full request and the one sent, and the reason of each change."""
    row = call.row
    lines = [
        f"{call.recording.id}, call {call.turn}, {call.policy} at {call.window:,}: "
        f"{row.full:,} tokens, {row.tokens:,} sent"
    ]
    if call.answer.error:
        lines.append(f"! raised {call.answer.error}; the whole request is judged")
    sent = call.answer.sent
    lines += [f"! {place}: {why}" for place, why in (sent.notes if sent is not None else ())]
    before, after = list(as_lines(call.full)), list(as_lines(call.sent))
    lines += difflib.unified_diff(
        before, after, "the whole request", "what is sent", lineterm="", n=CONTEXT_LINES
    )
    return "\n".join(_painted(line) if colour else line for line in lines)


def as_lines(views: Sequence[MessageView]) -> Iterator[str]:
    """Messages as text for people: a heading with the speaker and the calls, then what it says."""
    for view in views:
        tools = ", ".join(call.tool for call in view.message.calls)
        yield f"── {view.message.role}{f' calls {tools}' if tools else ''}"
        for block in view.message.blocks:
            if block.text or block.label:
                label = f"{block.label} " if block.label else ""
                yield from f"{label}{block.text}".splitlines() or [""]
            else:
                yield f"({block.media or 'sealed'} {block.kind})"


def _painted(line: str) -> str:
    code = _PAINT.get(line[:1])
    return f"\x1b[{code}m{line}\x1b[0m" if code else line


def lost_identifiers(call: InspectedCall) -> str:
    """Identifiers that the agent wrote in this turn and that were missing in the request, each with
    the place where it occurred last."""
    if not call.losses:
        return "nothing the agent wrote in this turn was missing"
    lines = [f"{len(call.losses)} of {call.row.need} identifiers written in this turn were missing"]
    for loss in call.losses:
        where = f"message {loss.message}, {f'{loss.tool} {loss.kind}'.strip()}"
        lines.append(f"{loss.identifier}\n    last stood in {where}: {loss.line}")
        lines.append(f"    there now: {loss.now or 'nothing'}")
    return "\n".join(lines)
