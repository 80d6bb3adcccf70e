"""One answer for the client out of several rounds, as a generator without I/O.

    run = steps(rounds, frames)
    step = next(run)
    while True:                                        # a StopIteration ends the answer
        match step:
            case Read():       reply = the next bytes of this round's answer, None at its end
            case Compute():       reply = step.call()     # may take long: in a thread, if async
            case NextRound():  reply = None, or the provider's refusal of it as an AnswerError
            case Show():       reply = None            # bytes for the client
            case Broken():     reply = None            # the last step; see there
        step = run.send(reply)

The client's answer begins with the first ``Show``.  The driver sends requests and closes answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from trimtab.formats.engine.answers import AnswerError
from trimtab.formats.engine.rewriter import AnswerRewriter, dumped
from trimtab.formats.engine.stream_events import EventReader, StreamEvent
from trimtab.rounds.recall_rounds import RecallRounds
from trimtab.telemetry import fault

T = TypeVar("T")


class Read:
    """Reply with the next bytes of this round's answer, decoded; None at its end."""


@dataclass(frozen=True, slots=True)
class Compute:
    """Reply with what ``call`` returns."""

    call: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class NextRound:
    """Send the next round; reply with the refusal, None if there is none."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Show:
    """Bytes for the client."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Broken:
    """The provider refused a later round.  If the client has nothing yet it gets that refusal as
    it is, else ``event``: an error in a stream of its format, the last thing in it."""

    event: bytes


Step = Read | Compute | NextRound | Show | Broken
Steps = Generator[Step, Any, None]


def steps(rounds: RecallRounds, frames: Callable[[], EventReader] | None) -> Steps:
    """The steps of one answer.  ``frames`` cuts a stream into events; None: a whole answer."""
    data, held = b"", list[bytes]()
    while True:
        rewriter = rounds.rewriter
        rewriter.begin()
        if frames is not None and rounds.only_last:
            held = yield from _held(_stream(rewriter, frames()))
        elif frames is not None:
            yield from _stream(rewriter, frames())
        else:
            data = yield Read()
            tree = _object(data)
            if tree is None and rounds.rounds == 1:  # nothing that could be rewritten
                yield Show(data)
                return
            guarded(partial(rewriter.take_full_response, tree or {}))
        body = yield Compute(lambda: guarded(rounds.follow))
        if body is None:
            break
        refusal = yield NextRound(body)
        if refusal is not None:
            yield Broken(rewriter.failed(refusal))
            return
        guarded(rounds.next_begins)
    # Before the end is shown: many clients read nothing behind it and send their next request.
    yield Compute(lambda: guarded(rounds.remember))
    if frames is not None:
        yield Show(b"".join(held) + (guarded(rewriter.end) or b""))
    else:
        changed = rewriter.recalls or rounds.rounds > 1
        answer = guarded(lambda: dumped(rewriter.answer())) if changed else None
        yield Show(data if answer is None else answer)


def _stream(rewriter: AnswerRewriter, reader: EventReader) -> Steps:
    """One round of a stream, event by event, without its end."""
    while (part := (yield Read())) is not None:
        for event in reader.feed(part):
            if shown := rewritten(rewriter, event):
                yield Show(shown)
    if rest := reader.rest():
        yield Show(rest)


def _held(run: Steps) -> Generator[Step, Any, list[bytes]]:
    """The steps of a round without what they show, which is returned at its end."""
    held, reply = list[bytes](), None
    while True:
        try:
            step = run.send(reply)
        except StopIteration:
            return held
        if isinstance(step, Show):
            held.append(step.data)
            reply = None
        else:
            reply = yield step


def _object(data: bytes) -> Any:
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return tree if isinstance(tree, dict) else None


def rewritten(rewriter: AnswerRewriter, event: StreamEvent) -> bytes:
    """What the client gets for an event; the event itself if rewriting raises."""
    try:
        return rewriter.event(event)
    except Exception as error:
        fault("recall", error)
        return event.raw


def guarded(work: Callable[[], T]) -> T | None:
    """The result of ``work``; None if it raises, which is logged as a fault of ours."""
    try:
        return work()
    except Exception as error:
        fault("recall", error)
        return None


__all__ = [
    "AnswerError",
    "Broken",
    "Compute",
    "NextRound",
    "Read",
    "Show",
    "Step",
    "Steps",
    "steps",
]
