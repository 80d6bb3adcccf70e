"""Calls and their results: the scan and the repairs that all formats with call ids share.

Gemini counts calls and responses, and need not give ids: its ``turn_rules.py`` has them.

Two layouts exist: results are messages of their own right after the call (OpenAI Chat), or the
first parts of the next user message (Anthropic).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from trimtab.amounts import many
from trimtab.formats.engine.base import may_answer
from trimtab.formats.engine.rule import Finding, Repair
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Delete, Insert, Path, PathOp, Set
from trimtab.transcript.model import Message, Part
from trimtab.transcript.transcript import Transcript

INTERRUPTED = "[No result: this call was interrupted. It may have run in part.]"
"""The synthetic result of a call without one; the call itself is never removed."""


class LocatedPart(NamedTuple):
    """A part and the index of its message."""

    message: int
    part: Part


class CallTurn(NamedTuple):
    """A model turn: its calls, and the results at the expected places.

    ``end``: index of the first message after the model's; ``stop``: of the first after the run of
    messages that may have results.  ``late``: results in that run that are not at its beginning.
    """

    calls: tuple[LocatedPart, ...]
    results: tuple[LocatedPart, ...]
    late: tuple[LocatedPart, ...]
    end: int
    stop: int


def call_turns(transcript: Transcript) -> Iterator[CallTurn]:
    """Every model turn that has calls or results."""
    for turn_range in turn_ranges(transcript):
        turn = _turn_at(transcript.messages, turn_range)
        if turn.calls or turn.results or turn.late:
            yield turn


def _turn_at(messages: Sequence[Message], turn_range: TurnRange) -> CallTurn:
    calls = [
        LocatedPart(i, part)
        for i in range(turn_range.first, turn_range.end)
        for part in messages[i].calls
    ]
    open_ = True
    leading: list[LocatedPart] = []
    late: list[LocatedPart] = []
    for i in range(turn_range.end, turn_range.stop):
        for part in messages[i].parts:
            if part.kind != "result":
                open_ = False
            elif open_:
                leading.append(LocatedPart(i, part))
            else:
                late.append(LocatedPart(i, part))
    return CallTurn(tuple(calls), tuple(leading), tuple(late), turn_range.end, turn_range.stop)


def _answered_in_order(messages: Sequence[Message], turn_range: TurnRange) -> bool:
    """A quick check for the usual case: the same ids on both sides, in order, results first."""
    if turn_range.end - turn_range.first == 1 == turn_range.stop - turn_range.end:
        model, user = messages[turn_range.first], messages[turn_range.end]
        calls = model.call_ids
        if calls != user.result_ids:
            return False
        return not calls or (user.results_first and _differ(calls))
    calls = tuple([i for m in messages[turn_range.first : turn_range.end] for i in m.call_ids])
    bearing = [i for i in range(turn_range.end, turn_range.stop) if messages[i].result_ids]
    if calls != tuple([i for n in bearing for i in messages[n].result_ids]):
        return False
    return not calls or (
        _differ(calls)
        and bearing == list(range(turn_range.end, turn_range.end + len(bearing)))
        and all(messages[i].results_first for i in bearing)
        and all(not messages[i].other_parts for i in bearing[:-1])
    )


def _differ(ids: Sequence[str]) -> bool:
    return bool(ids[0]) if len(ids) == 1 else all(ids) and len(set(ids)) == len(ids)


def path_of_part(transcript: Transcript, located: LocatedPart) -> Path:
    """The path of a part in the request."""
    return (*transcript.base, located.message, *located.part.path)


def scan_pairing(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """Findings call_unanswered, result_late, orphan_result, duplicate_result, duplicate_call."""
    lone: set[str] = set()
    for turn_range in turn_ranges(transcript):
        if _answered_in_order(transcript.messages, turn_range):
            continue
        turn = _turn_at(transcript.messages, turn_range)
        waiting = [located.part.id for located in turn.calls]
        if not _differ(waiting):
            yield from _duplicate_calls(transcript, turn)
        call_ids = set(waiting)
        for located in (*turn.results, *turn.late):
            if located.part.id in waiting:
                waiting.remove(located.part.id)
                if located in turn.late:
                    yield Finding(
                        "result_late", path_of_part(transcript, located),
                        f"the result of {located.part.id} does not stand first", turn,
                    )  # fmt: skip
            elif located.part.id in call_ids:
                yield Finding(
                    "duplicate_result", path_of_part(transcript, located),
                    f"a second result for call {located.part.id}", located,
                )  # fmt: skip
            elif not transcript.facts.server_state:
                lone.add(located.part.id)
                yield Finding(
                    "orphan_result", path_of_part(transcript, located),
                    f"no call {located.part.id or '(without id)'} is right before this result",
                    located,
                )  # fmt: skip
        if waiting and open_tail and turn.stop == len(transcript.messages):
            # Calls that are just being run; but not one whose result stands before it.
            earlier_ids = {id for m in transcript.messages[: turn_range.first] for id in m.call_ids}
            early = [
                c for c in turn.calls if c.part.id in (lone - earlier_ids).intersection(waiting)
            ]
            waiting = [located.part.id for located in early]
            turn = turn._replace(calls=tuple(early))
        if waiting and (answered := named_by_unknown(transcript, turn.end)):
            waiting = [id for id in waiting if id not in answered]
        if waiting:
            for located in turn.calls:
                if located.part.id in waiting:
                    waiting.remove(located.part.id)
                    yield Finding(
                        "call_unanswered", path_of_part(transcript, located),
                        f"call {located.part.id} has no result", turn,
                    )  # fmt: skip


def named_by_unknown(transcript: Transcript, start: int) -> set[str]:
    """Ids in what we don't know (a part, an item, a message of an unknown role) from ``start``, the
    end of a model turn, to the model's next message: it may be the result, so none is invented.

    Empty once a refusal has named the row: then it is known to be none.
    """
    ids = set[str]()
    if "call_unanswered" in transcript.facts.refused:
        return ids
    for message in islice(transcript.messages, start, None):
        if message.role == "assistant":
            break
        for part in message.parts:
            if part.kind == "other":
                ids.update(part.refers)
            elif part.kind == "result" and message.role == "other":
                ids.add(part.id)
    return ids


def _duplicate_calls(transcript: Transcript, turn: CallTurn) -> Iterator[Finding]:
    seen: set[str] = set()
    for located in turn.calls:
        if located.part.id in seen or not located.part.id:
            detail = f"call id {located.part.id or '(none)'} does not tell its call apart"
            yield Finding("duplicate_call", path_of_part(transcript, located), detail, turn)
        seen.add(located.part.id)


# --- repairs ---------------------------------------------------------------------------------


def answer_calls(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Pull results next to their call; synthesise one for a call that has none."""
    stray_results, called = _stray_results(transcript), _called(transcript)
    for turn in _turns_of(findings):
        have = [located.part.id for located in turn.results]
        missing: list[Part] = []
        moved = list[tuple[LocatedPart, Any]]()
        late = list(turn.late)
        for call in turn.calls:
            if call.part.id in have:
                have.remove(call.part.id)
                continue
            located = _pop_by_id(late, call.part.id) or _pop_stray(
                stray_results, called, call, turn.stop
            )
            if located is None:
                missing.append(call.part)
            else:
                moved.append((located, paths.get(tree, path_of_part(transcript, located))))
        yield _insert_results(transcript, turn, moved, missing)


def _turns_of(findings: Sequence[Finding]) -> list[CallTurn]:
    return list({(turn.end, turn.stop): turn for turn in (f.data for f in findings)}.values())


def _pop_by_id(candidates: list[LocatedPart], call_id: str) -> LocatedPart | None:
    for index, located in enumerate(candidates):
        if located.part.id == call_id:
            return candidates.pop(index)
    return None


def _stray_results(transcript: Transcript) -> dict[str, list[LocatedPart]]:
    """Results that answer no call at their place, by id, oldest first; also those in a message of
    the model, where none may be."""
    stray = [
        LocatedPart(number, part)
        for number, message in transcript.suspects
        for part in message.parts
        if part.flaw == "misplaced" and part.tool == transcript.format.table.result[0]
    ]
    for turn in call_turns(transcript):
        waiting = [located.part.id for located in turn.calls]
        for located in (*turn.results, *turn.late):
            if located.part.id in waiting:
                waiting.remove(located.part.id)
            else:
                stray.append(located)
    stray_results: dict[str, list[LocatedPart]] = {}
    for located in sorted(stray, key=lambda located: located.message):
        if located.part.id:
            stray_results.setdefault(located.part.id, []).append(located)
    return stray_results


def _called(transcript: Transcript) -> dict[str, list[int]]:
    """Call id → messages that call it; a result belongs to the last call before it."""
    called: dict[str, list[int]] = {}
    for number, message in enumerate(transcript.messages):
        for part in message.calls:
            called.setdefault(part.id, []).append(number)
    return called


def _pop_stray(
    stray_results: dict[str, list[LocatedPart]],
    called: dict[str, list[int]],
    call: LocatedPart,
    after: int,
) -> LocatedPart | None:
    """Remove and return the next stray result of ``call``: after it, and before its id is called
    again; of the first call of its id else one before it, the newest."""
    messages = called[call.part.id]
    later = bisect_right(messages, call.message)
    again = messages[later] if later < len(messages) else None
    candidates = stray_results.get(call.part.id, [])
    index = bisect_left(candidates, after, key=lambda located: located.message)
    if index < len(candidates) and (again is None or candidates[index].message < again):
        return candidates.pop(index)
    if call.message > messages[0]:
        return None
    early = bisect_right(candidates, call.message, key=lambda located: located.message)
    return candidates.pop(early - 1) if early else None


def _insert_results(
    transcript: Transcript,
    turn: CallTurn,
    moved: Sequence[tuple[LocatedPart, Any]],
    missing: Sequence[Part],
) -> Repair:
    format, base = transcript.format, transcript.base
    new = [_whole(format, *each) for each in moved]
    new += format.result_parts(missing, INTERRUPTED)
    ops: list[PathOp] = [
        op for located, _ in moved for op in removal_ops(transcript, located, [s for s, _ in moved])
    ]
    if not format.results_in_user:
        # Right after the results that already stand there, before any words beside them.
        mixed = (i for i in range(turn.end, turn.stop) if transcript.messages[i].other_parts)
        behind = (turn.results or turn.calls)[-1].message + 1
        at = min(next(mixed, behind), behind)
        ops += [Insert((*base, at), message) for message in new]
    elif turn.results:
        # Behind the results that are there already; else in a message of their own, so that
        # what was sent for an interrupted tip stays as it is when the client goes on.
        number, last = turn.results[-1]
        at = int(last.path[-1]) + 1
        ops += [Insert((*base, number, format.content_key, at), part) for part in new]
    else:
        at = turn.calls[-1].message + 1
        ops.append(Insert((*base, at), format.results_message(new)))
    where = path_of_part(transcript, turn.calls[0])
    names = ", ".join(sorted({part.tool for part in missing if part.tool}))
    done = []
    if moved:
        done.append(f"{many(len(moved), 'result')} pulled next to the call")
    if missing:
        done.append(f"{many(len(missing), 'interrupted call')} answered ({names or 'no name'})")
    return Repair(where, "; ".join(done), tuple(ops))


def _whole(format: Any, located: LocatedPart, value: Any) -> Any:
    """A result in the form in which it is moved: a part, or a message if results are messages."""
    return (
        value
        if format.results_in_user or not located.part.path
        else format.results_message([value])
    )


def removal_ops(
    transcript: Transcript, located: LocatedPart, removed: Sequence[LocatedPart]
) -> list[PathOp]:
    """Operations that remove a part from its message, or the message if all its parts go."""
    message = transcript.messages[located.message]
    own = [s for s in removed if s.message == located.message]
    if located.part.path and len(own) == len(message.parts):
        return [Delete((*transcript.base, located.message))] if located == own[0] else []
    return [Delete(path_of_part(transcript, located))]


def rename_calls(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Give the second of two equal call ids in one turn, and its result, an id of its own."""
    for turn in _turns_of(findings):
        ops: list[PathOp] = []
        seen: dict[str, int] = {}
        results = [*turn.results, *turn.late]
        used_ids = {located.part.id for located in (*turn.calls, *results)}
        for call in turn.calls:
            count = seen[call.part.id] = seen.get(call.part.id, 0) + 1
            answer = _pop_by_id(results, call.part.id)
            if (count == 1 and call.part.id) or not call.part.id_path:
                continue
            new = _fresh(call.part.id or "call", count, used_ids)
            ops.append(Set(_id_of(transcript, call), new))
            if answer is not None:
                ops.append(Set(_id_of(transcript, answer), new))
        if ops:
            yield Repair(
                path_of_part(transcript, turn.calls[0]), "equal call ids told apart", tuple(ops)
            )


def _fresh(call_id: str, count: int, used_ids: set[str]) -> str:
    new = f"{call_id}_{count}"
    while new in used_ids:
        count += 1
        new = f"{call_id}_{count}"
    used_ids.add(new)
    return new


def rename_all(transcript: Transcript, new: dict[str, str]) -> list[PathOp]:
    """Operations that rename call ids everywhere, calls and results alike."""
    return [
        Set((*transcript.base, number, *part.id_path), new[part.id])
        for number, message in enumerate(transcript.messages)
        for part in message.parts
        if part.kind in ("call", "result") and part.id in new and part.id_path
    ]


def _id_of(transcript: Transcript, located: LocatedPart) -> Path:
    return (*transcript.base, located.message, *located.part.id_path)


# --- where a model turn begins and ends, and how far the results of its calls may reach ---


class TurnRange(NamedTuple):
    """Indices of a model turn: messages[first:end] are the model's, [end:stop] may hold results."""

    first: int
    end: int
    stop: int


def turn_ranges(transcript: Transcript, start: int = 0) -> Iterator[TurnRange]:
    """Every model turn, and every run of results without a model turn before it, from message
    ``start`` on, which must begin a run."""
    messages, merges = transcript.messages, transcript.format.merges_roles
    role = "user" if transcript.format.results_in_user else "tool"
    index, count = start, len(messages)
    while index < count:
        first = index
        while index < count and messages[index].role == "assistant":
            index += 1
            if not merges:
                break
        end = index
        while index < count and may_answer(messages[index], role):
            index += 1
        if index == first:
            index += 1
        else:
            yield TurnRange(first, end, index)


def last_turn_start(transcript: Transcript, count: int) -> int:
    """The first message of the last model turn among the first ``count`` messages.  Everything
    before it belongs to finished turns, whatever follows."""
    messages, merges = transcript.messages, transcript.format.merges_roles
    number = count - 1
    while number > 0:
        opens = messages[number].role == "assistant"
        if opens and not (merges and messages[number - 1].role == "assistant"):
            return number
        number -= 1
    return 0
