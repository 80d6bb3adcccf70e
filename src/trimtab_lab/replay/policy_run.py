"""Runs one recording through policies, times them and judges what they send.

One call of ``run`` is the unit of work.
"""

from __future__ import annotations

import copy
import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import trimtab
from trimtab.errors import CannotFit
from trimtab.formats import FORMATS
from trimtab.logs.recording import Recording
from trimtab_lab.replay.metric import METRIC, CallMetrics, Judge, JudgedRecording, PolicyAnswer
from trimtab_lab.replay.policies import BUILT_IN, Policy, PolicyStep, find
from trimtab_lab.replay.recording_index import RecordingIndex

WORST_TURNS = 3
"""How many turns of a recording, those with most losses, are kept for the report."""
SHOWN_LOSSES = 8
CHANGED = "it changed the recorded messages in place"
FULL = "system text and tools, which the log does not hold, fill the window"


@dataclass(frozen=True)
class Task:
    """One policy at one window."""

    policy: str
    window: int

    def key(self, recording: Recording, version: str) -> str:
        """A digest of recording, policy, window and metric; equal keys mean equal results."""
        parts = (recording.digest, recording.id, self.policy, version, self.window, METRIC)
        return hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()


def run(recording: Recording, tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
    """The result of each task as a JSON-able dict (see ``result``)."""
    indexes: dict[str, RecordingIndex] = {}
    for task in tasks:
        policy = find(task.policy)
        wanted = policy.format or recording.format
        if task.policy.partition(":")[0] not in BUILT_IN:  # it may change what it is given
            copied = copy.deepcopy(converted(recording, wanted))
            judged = replay(index := RecordingIndex(copied), policy, task.window)
        else:
            if wanted not in indexes:
                indexes[wanted] = RecordingIndex(converted(recording, wanted))
            judged = replay(index := indexes[wanted], policy, task.window)
        yield result(recording, index, task, policy, judged)


def converted(recording: Recording, format: str) -> Recording:
    """The recording converted to ``format``; itself if it is in that format."""
    if recording.format == format:
        return recording
    body = recording.body(recording.messages)
    conversion = trimtab.convert(body, format, format=recording.format, model=recording.model)
    request = conversion.request
    key = FORMATS[format].messages_key
    return Recording(
        source=recording.source, id=recording.id, format=format, messages=request[key],
        params={k: v for k, v in request.items() if k not in (key, "tools")},
        tools=request.get("tools"), task=recording.task, origin=recording.origin,
    )  # fmt: skip


def replay(index: RecordingIndex, policy: Policy, window: int) -> JudgedRecording:
    """Run every model call of a recording through a policy and judge the results.

    ``window``: in the provider's tokens where the log says how it counts.
    """
    room = index.room(window)
    judge = Judge(index, room)
    step = policy.start(index, room) if room or policy.name == "none" else None
    for number in range(len(index.turns)):
        answer = ask(step, index, number) if step else PolicyAnswer(None, 0.0, FULL)
        judge.turn(number, answer)
    if not index.store.intact(index.recording.messages, index.views):
        # The policy changed the message objects themselves: nothing above can be trusted.
        judge.done.errors[CHANGED] = len(judge.done.rows)
        judge.done.rows = [row._replace(failed=1) for row in judge.done.rows]
    return judge.done


def ask(step: PolicyStep, index: RecordingIndex, number: int) -> PolicyAnswer:
    """The policy's answer for one turn; an exception becomes an answer with an error."""
    body = index.recording.request(index.turns[number])
    before = time.thread_time()
    try:
        sent = step(body)
    except Exception as error:  # any error of a policy is counted, not fatal
        return PolicyAnswer(None, time.thread_time() - before, _error_line(error))
    seconds = time.thread_time() - before
    return PolicyAnswer(sent, seconds if sent.seconds is None else sent.seconds)


def _error_line(error: Exception) -> str:
    """The error in one line, if possible without figures that differ from call to call."""
    if isinstance(error, CannotFit) and error.largest:
        what = error.largest[0][2]
        least = sum(size for _, size, kind in error.largest if kind == what)
        return (
            f"CannotFit: at least {least:,} tokens of {what} cannot shrink; "
            f"{error.limit} allows {error.allowed:,}"
        )
    return f"{type(error).__name__}: {error}".replace("\n", " ")[:120]


def result(
    recording: Recording, index: RecordingIndex, task: Task, policy: Policy, judged: JudgedRecording
) -> dict[str, Any]:
    """The result of one recording under one policy, for a report; JSON-able."""
    worst = sorted(judged.losses, key=lambda n: (-len(judged.losses[n]), n))[:WORST_TURNS]
    return {
        "key": task.key(recording, policy.version),
        "source": recording.source,
        "task": recording.task,
        "id": recording.id,
        "format": index.recording.format,
        "native": recording.format,
        "model": recording.model,
        "hour": recording.wrote_for_an_hour,
        "line": index.line and list(index.line),
        "tokens": index.tokens(index.turns[-1]) if index.turns else 0,
        "policy": policy.name,
        "version": policy.version,
        "window": task.window,
        "columns": list(CallMetrics._fields),
        "rows": [list(row) for row in judged.rows],
        "errors": dict(judged.errors),
        "worst": [
            {"turn": n, "losses": [list(loss) for loss in judged.losses[n][:SHOWN_LOSSES]]}
            for n in worst
        ],
    }
