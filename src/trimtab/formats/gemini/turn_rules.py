"""Gemini's function calls and responses: the scan for a mismatch, and its repair.

Gemini requires as many responses in the next content as calls in the model's turn.  Calls and
responses are matched by ids and names (``engine/pairs.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import Any, NamedTuple

from trimtab.amounts import many
from trimtab.formats.engine.pairs import PairKey, paired
from trimtab.formats.engine.rule import Finding, Repair
from trimtab.formats.gemini import format as gemini
from trimtab.formats.repair.content import PLACEHOLDER
from trimtab.formats.repair.pairing import (
    INTERRUPTED,
    LocatedPart,
    TurnRange,
    named_by_unknown,
    path_of_part,
    removal_ops,
    turn_ranges,
)
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Delete, Insert, Path, PathOp, Set
from trimtab.transcript.model import Message, Part
from trimtab.transcript.transcript import Transcript


class GeminiTurn(NamedTuple):
    """A model turn with calls.  ``first``: responses in the content right after it, where all must
    be; ``late``: those in later contents of the user; ``open``: calls without a response;
    ``extra``: responses without a call."""

    turn_range: TurnRange
    calls: tuple[LocatedPart, ...]
    first: tuple[LocatedPart, ...]
    late: tuple[LocatedPart, ...]
    open: tuple[LocatedPart, ...]
    extra: tuple[LocatedPart, ...]


def located_parts(
    messages: Sequence[Message], first: int, end: int, kind: str
) -> tuple[LocatedPart, ...]:
    return tuple(
        LocatedPart(number, part)
        for number in range(first, end)
        for part in messages[number].parts
        if part.kind == kind
    )


def _turn_at(messages: Sequence[Message], turn_range: TurnRange) -> GeminiTurn:
    calls = located_parts(messages, turn_range.first, turn_range.end, "call")
    first = located_parts(
        messages, turn_range.end, min(turn_range.end + 1, turn_range.stop), "result"
    )
    late = located_parts(messages, turn_range.end + 1, turn_range.stop, "result")
    open_, extra = _unmatched(calls, (*first, *late))
    return GeminiTurn(turn_range, calls, first, late, open_, extra)


def _unmatched(
    calls: Sequence[LocatedPart], results: Sequence[LocatedPart]
) -> tuple[tuple[LocatedPart, ...], tuple[LocatedPart, ...]]:
    """(calls without a result, results without a call)."""
    pairs = paired(
        [_pair_key(call.part) for call in calls], [_pair_key(result.part) for result in results]
    )
    answered = set(pairs)
    return (
        tuple(call for index, call in enumerate(calls) if index not in answered),
        tuple(result for result, index in zip(results, pairs, strict=True) if index is None),
    )


def _pair_key(part: Part) -> PairKey:
    return PairKey(part.id if part.id_path else "", part.tool)


def _same_id(call: Part, result: Part) -> bool:
    return bool(call.id_path and result.id_path) and call.id == result.id


def _answered_in_order(messages: Sequence[Message], turn_range: TurnRange) -> bool:
    """A quick check for the usual case: equal ids, given or made of names, in the next content."""
    calls = [part.id for i in range(turn_range.first, turn_range.end) for part in messages[i].calls]
    replies = messages[turn_range.end].results if turn_range.end < turn_range.stop else ()
    if any(messages[i].results for i in range(turn_range.end + 1, turn_range.stop)):
        return False
    return calls == [part.id for part in replies]


def scan_pairing(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """Findings call_unanswered, result_late, orphan_result, extra_result, mixed_response."""
    messages = transcript.messages
    for turn_range in turn_ranges(transcript):
        for number in range(turn_range.end, turn_range.stop):
            if messages[number].results and messages[number].other_parts:
                path = (*transcript.base, number)
                yield Finding("mixed_response", path, "responses and other parts in one content")
        if _answered_in_order(messages, turn_range):
            continue
        turn = _turn_at(messages, turn_range)
        # What cached content holds comes before the first content sent.
        cached = transcript.facts.server_state and turn_range.first == 0 and not turn.calls
        for located in turn.extra if not cached else ():
            rule = "extra_result" if turn.calls else "orphan_result"
            yield _finding(transcript, located, rule, "answers no call before it", located)
        for located in turn.late:
            if located not in turn.extra:
                detail = "does not stand in the content right after its call"
                yield _finding(transcript, located, "result_late", detail, turn)
        if not (open_tail and turn_range.stop == len(messages)):
            named = named_by_unknown(transcript, turn_range.end) if turn.open else set()
            for located in (call for call in turn.open if call.part.id not in named):
                yield _finding(transcript, located, "call_unanswered", "has no response", turn)


def _finding(
    transcript: Transcript, located: LocatedPart, rule: str, detail: str, data: Any
) -> Finding:
    name = located.part.id or "(without name)"
    return Finding(
        rule, path_of_part(transcript, located), f"{located.part.kind} {name} {detail}", data
    )


def answer_calls(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """All responses of a turn into the content right after it; synthetic ones where none is."""
    turns = {f.data.turn_range: f.data for f in findings}.values()
    stray_responses = _stray_responses(transcript)
    moves: list[tuple[GeminiTurn, list[LocatedPart], list[LocatedPart]]] = []
    early: dict[LocatedPart, LocatedPart] = {}
    for turn in turns:
        moved = [located for located in turn.late if located not in turn.extra]
        missing = []
        for call in turn.open:
            stray = next((s for s in stray_responses if s.message >= turn.turn_range.stop
                          and _same_id(call.part, s.part)), None)  # fmt: skip
            if stray is None and (stray := _early(transcript, stray_responses, call)):
                early[call] = stray
            if stray is None:
                missing.append(call)
            else:
                stray_responses.remove(stray)
                moved.append(stray)
        moves.append((turn, moved, missing))
    removed = [located for _, moved, _ in moves for located in moved]
    for turn, moved, missing in moves:
        own = _in_between(turn, {*early, *missing})
        between = [call for calls in own.values() for call in calls]
        said = {
            call: paths.get(tree, path_of_part(transcript, early[call]))
            if call in early
            else _synthetic(transcript, tree, call)
            for call in (*between, *missing)
        }
        placed = [early[call] for call in between if call in early]
        parts = [
            paths.get(tree, path_of_part(transcript, located))
            for located in moved
            if located not in placed
        ]
        parts += [said[call] for call in missing if call not in between]
        ops = [op for located in moved for op in removal_ops(transcript, located, removed)]
        for number, calls in own.items():
            message = transcript.format.results_message([said[call] for call in calls])
            ops.append(Insert((*transcript.base, number + 1), message))
        ops += _placed(transcript, turn, parts) if parts else []
        names = ", ".join(sorted({call.part.tool for call in missing if call.part.tool}))
        done = [f"{many(len(moved), 'response')} moved next to the call"] if moved else []
        if missing:
            done.append(f"{many(len(missing), 'interrupted call')} answered ({names or 'no name'})")
        yield Repair(path_of_part(transcript, turn.calls[0]), "; ".join(done), tuple(ops))


def _stray_responses(transcript: Transcript) -> list[LocatedPart]:
    """Responses that answer no call at their place, oldest first."""
    return [
        located
        for turn_range in turn_ranges(transcript)
        if not _answered_in_order(transcript.messages, turn_range)
        for located in _turn_at(transcript.messages, turn_range).extra
    ]


def _early(
    transcript: Transcript, stray_responses: Sequence[LocatedPart], call: LocatedPart
) -> LocatedPart | None:
    """The newest response that is before its call: by id, or by name if no such tool was called
    before it."""
    for located in reversed(stray_responses):
        if located.message >= call.message:
            continue
        if _same_id(call.part, located.part):
            return located
        bare = not (call.part.id_path and located.part.id_path)
        named = (p.tool for m in transcript.messages[: located.message] for p in m.calls)
        if bare and located.part.tool == call.part.tool and call.part.tool not in set(named):
            return located
    return None


def _in_between(
    turn: GeminiTurn, open_calls: AbstractSet[LocatedPart]
) -> dict[int, list[LocatedPart]]:
    """Content of a turn → its calls, where none of them has a response behind it and the model's
    next content follows at once.  A response between the two makes two steps of what would be one.

    Not where the next one's call is a parallel call of the same step: it has no signature.
    """
    found: dict[int, list[LocatedPart]] = {}
    for number, after in pairwise(sorted({call.message for call in turn.calls})):
        calls = [call for call in turn.calls if call.message == number]
        next_call = next(call for call in turn.calls if call.message == after)
        is_parallel = calls[0].part.flaw != "unsigned" and next_call.part.flaw == "unsigned"
        if is_parallel or not open_calls >= set(calls):
            break
        found[number] = calls
    return found


def _synthetic(transcript: Transcript, tree: Any, call: LocatedPart) -> Any:
    snake = "function_call" in paths.get(tree, path_of_part(transcript, call))
    return gemini.result_part(call.part, INTERRUPTED, snake_case=snake)


def _placed(transcript: Transcript, turn: GeminiTurn, parts: list[Any]) -> list[PathOp]:
    """Insert ``parts`` after the responses right behind the turn, or as a content of their own
    right behind the calls, before what the model said later."""
    if not turn.first:
        where: Path = (*transcript.base, turn.calls[-1].message + 1)
        return [Insert(where, transcript.format.results_message(parts))]
    *path, last = path_of_part(transcript, turn.first[-1])
    assert isinstance(last, int)
    return [Insert((*path, last + 1), part) for part in parts]


def remove_orphan_responses(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Take responses out that answer nothing; their text stays recallable.

    A content that held nothing else keeps its place, with a placeholder that says nothing.
    """
    by_message: dict[int, list[LocatedPart]] = {}
    for finding in findings:
        by_message.setdefault(finding.data.message, []).append(finding.data)
    for number, orphans in by_message.items():
        here = (*transcript.base, number)
        whole = len(orphans) == len(transcript.messages[number].parts)
        for index, located in enumerate(orphans):
            where = path_of_part(transcript, located)
            ops: list[PathOp] = [] if whole else [Delete(where)]
            if whole and index == len(orphans) - 1:
                ops.append(Set(here, gemini.text_message("user", PLACEHOLDER)))
            what = f"a response of {located.part.tool or 'no name'} without its call was taken out"
            yield Repair(where, what, tuple(ops), (where,))
