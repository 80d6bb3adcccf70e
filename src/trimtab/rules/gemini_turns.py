"""Calls and function responses of Gemini: how they are matched, and how a breach is mended.

This provider counts: as many responses in the next content as calls in the model's turn.  Ids are
optional and may be given on one side only.  Knows nothing of signatures or empty parts, and no
provider's words (those are rows in gemini.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from trimtab import paths
from trimtab.formats import gemini
from trimtab.model import Message, Part, Path, Transcript
from trimtab.paths import Delete, Insert, PathOp, Set
from trimtab.rules.base import Finding, Mend, resumes
from trimtab.rules.pairing import INTERRUPTED, Spot, absolute
from trimtab.rules.runs import Runs, last_run, runs


class Turn(NamedTuple):
    """A model turn with calls: ``first`` are the responses in the content right after it, where
    all must stand; ``late`` those further on in the user's contents.  ``open`` are calls without
    any response, ``extra`` responses without any call."""

    run: Runs
    calls: tuple[Spot, ...]
    first: tuple[Spot, ...]
    late: tuple[Spot, ...]
    open: tuple[Spot, ...]
    extra: tuple[Spot, ...]


def spots_of(messages: Sequence[Message], first: int, end: int, kind: str) -> tuple[Spot, ...]:
    return tuple(
        Spot(number, part)
        for number in range(first, end)
        for part in messages[number].parts
        if part.kind == kind
    )


def _turn(messages: Sequence[Message], run: Runs) -> Turn:
    calls = spots_of(messages, run.first, run.end, "call")
    first = spots_of(messages, run.end, min(run.end + 1, run.stop), "result")
    late = spots_of(messages, run.end + 1, run.stop, "result")
    open_, extra = _unmatched(calls, (*first, *late))
    return Turn(run, calls, first, late, open_, extra)


def _unmatched(
    calls: Sequence[Spot], results: Sequence[Spot]
) -> tuple[tuple[Spot, ...], tuple[Spot, ...]]:
    """Calls and results left over: matched by id, else by name, else in order.

    A given id on both sides must agree; where one side has none the other's says nothing.
    """
    left, over = list(calls), list(results)
    for tie in (_same_id, _same_name, _may_pair):
        for result in tuple(over):
            call = next((c for c in left if tie(c.part, result.part)), None)
            if call is not None:
                left.remove(call)
                over.remove(result)
    return tuple(left), tuple(over)


def _same_id(call: Part, result: Part) -> bool:
    return bool(call.id_path and result.id_path) and call.id == result.id


def _may_pair(call: Part, result: Part) -> bool:
    return not (call.id_path and result.id_path)


def _same_name(call: Part, result: Part) -> bool:
    return call.tool == result.tool and _may_pair(call, result)


def _sound(messages: Sequence[Message], run: Runs) -> bool:
    """The usual case, told quickly: equal ids in one content right behind."""
    calls = [part.id for i in range(run.first, run.end) for part in messages[i].calls]
    answer = messages[run.end].results if run.end < run.stop else ()
    if any(messages[i].results for i in range(run.end + 1, run.stop)):
        return False
    return calls == [part.id for part in answer]


@resumes(last_run)
def pairing(transcript: Transcript, open_tail: bool, start: int = 0) -> Iterator[Finding]:
    """Findings call_unanswered, result_late, orphan_result, extra_result, mixed_response."""
    messages = transcript.messages
    for run in runs(transcript, start):
        for number in range(run.end, run.stop):
            if messages[number].results and messages[number].other_parts:
                path = (*transcript.base, number)
                yield Finding("mixed_response", path, "responses and other parts in one content")
        if _sound(messages, run):
            continue
        turn = _turn(messages, run)
        # What cached content holds comes before the first content sent.
        cached = transcript.facts.server_state and run.first == 0 and not turn.calls
        for spot in turn.extra if not cached else ():
            rule = "extra_result" if turn.calls else "orphan_result"
            yield _finding(transcript, spot, rule, "answers no call before it", spot)
        for spot in turn.late:
            if spot not in turn.extra:
                detail = "does not stand in the content right after its call"
                yield _finding(transcript, spot, "result_late", detail, turn)
        if not (open_tail and run.stop == len(messages)):
            for spot in turn.open:
                yield _finding(transcript, spot, "call_unanswered", "has no response", turn)


def _finding(transcript: Transcript, spot: Spot, rule: str, detail: str, data: Any) -> Finding:
    name = spot.part.id or "(without name)"
    return Finding(rule, absolute(transcript, spot), f"{spot.part.kind} {name} {detail}", data)


def answer(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """All responses of a turn into the content right after it; synthetic ones where none is."""
    turns = {f.data.run: f.data for f in found}.values()
    strays = _strays(transcript)
    moves: list[tuple[Turn, list[Spot], list[Spot]]] = []
    for turn in turns:
        moved = [spot for spot in turn.late if spot not in turn.extra]
        missing = []
        for call in turn.open:
            stray = next((s for s in strays if s.message >= turn.run.stop
                          and _same_id(call.part, s.part)), None)  # fmt: skip
            if stray is None:
                missing.append(call)
            else:
                strays.remove(stray)
                moved.append(stray)
        moves.append((turn, moved, missing))
    gone = [spot for _, moved, _ in moves for spot in moved]
    for turn, moved, missing in moves:
        parts = [paths.get(tree, absolute(transcript, spot)) for spot in moved]
        parts += [_synthetic(transcript, tree, call) for call in missing]
        ops = [op for spot in moved for op in _delete(transcript, spot, gone)]
        ops += _placed(transcript, turn, parts)
        names = ", ".join(sorted({call.part.tool for call in missing if call.part.tool}))
        done = [f"{len(moved)} response(s) moved next to their call"] if moved else []
        if missing:
            done.append(f"{len(missing)} interrupted call(s) answered ({names or 'no name'})")
        yield Mend(absolute(transcript, turn.calls[0]), "; ".join(done), tuple(ops))


def _strays(transcript: Transcript) -> list[Spot]:
    """Responses that answer nothing where they stand, oldest first."""
    return [
        spot
        for run in runs(transcript)
        if not _sound(transcript.messages, run)
        for spot in _turn(transcript.messages, run).extra
    ]


def _synthetic(transcript: Transcript, tree: Any, call: Spot) -> Any:
    snake = "function_call" in paths.get(tree, absolute(transcript, call))
    return gemini.result_part(call.part, INTERRUPTED, snake_case=snake)


def _delete(transcript: Transcript, spot: Spot, gone: Sequence[Spot]) -> list[PathOp]:
    """Take a part out of its content; the whole content with its last part."""
    own = [other for other in gone if other.message == spot.message]
    if len(own) == len(transcript.messages[spot.message].parts):
        return [Delete((*transcript.base, spot.message))] if spot == own[0] else []
    return [Delete(absolute(transcript, spot))]


def _placed(transcript: Transcript, turn: Turn, parts: list[Any]) -> list[PathOp]:
    """Behind the responses that stand right after the turn, or in a content of their own."""
    if not turn.first:
        where: Path = (*transcript.base, turn.run.end)
        return [Insert(where, gemini.results_message(parts))]
    *path, last = absolute(transcript, turn.first[-1])
    assert isinstance(last, int)
    return [Insert((*path, last + 1), part) for part in parts]


def take_out(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """Take responses out that answer nothing; a note names them, their text stays recallable.

    The note is a content of its own: a content with responses takes no text.
    """
    by_message: dict[int, list[Spot]] = {}
    for finding in found:
        by_message.setdefault(finding.data.message, []).append(finding.data)
    for number, spots in by_message.items():
        here = (*transcript.base, number)
        whole = len(spots) == len(transcript.messages[number].parts)
        note = gemini.text_message("user", _note(spots))
        for index, spot in enumerate(spots):
            where = absolute(transcript, spot)
            ops: list[PathOp] = [] if whole else [Delete(where)]
            if index == len(spots) - 1:
                after = (*transcript.base, number + 1)
                ops.append(Set(here, note) if whole else Insert(after, note))
            what = f"a response of {spot.part.tool or 'no name'} without its call was taken out"
            yield Mend(where, what, tuple(ops), (where,))


def _note(spots: Sequence[Spot]) -> str:
    """Names what was taken out, never quoting it."""
    if len(spots) > 1:
        return (
            f"[{len(spots)} tool results were taken out: their calls are not in this conversation.]"
        )
    name = f" of {spots[0].part.tool}" if spots[0].part.tool else ""
    return f"[A tool result{name} was taken out: its call is not in this conversation.]"
