"""Calls and their results: the scan and the repairs that both kinds of format share.

Two layouts exist: results are messages of their own right after the call (OpenAI Chat), or the
first parts of the next user message (Anthropic).  Knows these two; knows no provider's keys.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from trimtab import paths
from trimtab.model import Message, Part, Path, Transcript
from trimtab.paths import Delete, Insert, PathOp, Set
from trimtab.rules.base import Finding, Mend, resumes
from trimtab.rules.runs import Runs, last_run, runs

INTERRUPTED = "[No result: this call was interrupted. It may have run in part.]"
"""The synthetic result of a call that has none; what ran is never thrown away."""


class Spot(NamedTuple):
    """A part and the index of the message it stands in."""

    message: int
    part: Part


class Turn(NamedTuple):
    """A model turn: its calls, and the results found where they are expected.

    ``end`` is the index of the first message after the model's; ``stop`` of the first after the
    run of messages in which results may stand.  ``late`` are results in that run that do not
    stand first.
    """

    calls: tuple[Spot, ...]
    results: tuple[Spot, ...]
    late: tuple[Spot, ...]
    end: int
    stop: int


def turns(transcript: Transcript) -> Iterator[Turn]:
    """Every run with calls or results in it, looked at closely."""
    for run in runs(transcript):
        turn = _turn(transcript.messages, run)
        if turn.calls or turn.results or turn.late:
            yield turn


def _turn(messages: Sequence[Message], run: Runs) -> Turn:
    calls = [Spot(i, part) for i in range(run.first, run.end) for part in messages[i].calls]
    open_ = True
    leading: list[Spot] = []
    late: list[Spot] = []
    for i in range(run.end, run.stop):
        for part in messages[i].parts:
            if part.kind != "result":
                open_ = False
            elif open_:
                leading.append(Spot(i, part))
            else:
                late.append(Spot(i, part))
    return Turn(tuple(calls), tuple(leading), tuple(late), run.end, run.stop)


def _sound(messages: Sequence[Message], run: Runs) -> bool:
    """The usual case, told quickly: the same ids on both sides, in order, results first."""
    if run.end - run.first == 1 == run.stop - run.end:
        model, user = messages[run.first], messages[run.end]
        calls = model.call_ids
        if calls != user.result_ids:
            return False
        return not calls or (user.results_first and _differ(calls))
    calls = tuple([i for m in messages[run.first : run.end] for i in m.call_ids])
    bearing = [i for i in range(run.end, run.stop) if messages[i].result_ids]
    if calls != tuple([i for n in bearing for i in messages[n].result_ids]):
        return False
    return not calls or (
        _differ(calls)
        and bearing == list(range(run.end, run.end + len(bearing)))
        and all(messages[i].results_first for i in bearing)
        and all(not messages[i].other_parts for i in bearing[:-1])
    )


def _differ(ids: Sequence[str]) -> bool:
    return bool(ids[0]) if len(ids) == 1 else all(ids) and len(set(ids)) == len(ids)


def absolute(transcript: Transcript, spot: Spot) -> Path:
    """The path of a part in the request."""
    return (*transcript.base, spot.message, *spot.part.path)


@resumes(last_run)
def scan(transcript: Transcript, open_tail: bool, first: int = 0) -> Iterator[Finding]:
    """Findings call_unanswered, result_late, orphan_result, duplicate_result, duplicate_call."""
    for run in runs(transcript, first):
        if _sound(transcript.messages, run):
            continue
        turn = _turn(transcript.messages, run)
        waiting = [spot.part.id for spot in turn.calls]
        if not _differ(waiting):
            yield from _duplicate_calls(transcript, turn)
        known = set(waiting)
        for spot in (*turn.results, *turn.late):
            if spot.part.id in waiting:
                waiting.remove(spot.part.id)
                if spot in turn.late:
                    yield Finding(
                        "result_late", absolute(transcript, spot),
                        f"the result of {spot.part.id} does not stand first", turn,
                    )  # fmt: skip
            elif spot.part.id in known:
                yield Finding(
                    "duplicate_result", absolute(transcript, spot),
                    f"a second result for call {spot.part.id}", spot,
                )  # fmt: skip
            elif not transcript.facts.server_state:
                yield Finding(
                    "orphan_result", absolute(transcript, spot),
                    f"no call {spot.part.id or '(without id)'} stands right before this result",
                    spot,
                )  # fmt: skip
        if waiting and not (open_tail and turn.stop == len(transcript.messages)):
            for spot in turn.calls:
                if spot.part.id in waiting:
                    waiting.remove(spot.part.id)
                    yield Finding(
                        "call_unanswered", absolute(transcript, spot),
                        f"call {spot.part.id} has no result", turn,
                    )  # fmt: skip


def _duplicate_calls(transcript: Transcript, turn: Turn) -> Iterator[Finding]:
    seen: set[str] = set()
    for spot in turn.calls:
        if spot.part.id in seen or not spot.part.id:
            detail = f"call id {spot.part.id or '(none)'} does not tell its call apart"
            yield Finding("duplicate_call", absolute(transcript, spot), detail, turn)
        seen.add(spot.part.id)


# --- repairs ---------------------------------------------------------------------------------


def answer_calls(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """Pull results next to their call; synthesise one for a call that has none."""
    strays, called = _strays(transcript), _called(transcript)
    for turn in _turns_of(found):
        have = [spot.part.id for spot in turn.results]
        missing: list[Part] = []
        moved = list[tuple[Spot, Any]]()
        late = list(turn.late)
        for call in turn.calls:
            if call.part.id in have:
                have.remove(call.part.id)
                continue
            spot = _take(late, call.part.id) or _take_stray(strays, called, call, turn.stop)
            if spot is None:
                missing.append(call.part)
            else:
                moved.append((spot, paths.get(tree, absolute(transcript, spot))))
        yield _place(transcript, turn, moved, missing)


def _turns_of(found: Sequence[Finding]) -> list[Turn]:
    return list({(turn.end, turn.stop): turn for turn in (f.data for f in found)}.values())


def _take(spots: list[Spot], call_id: str) -> Spot | None:
    for index, spot in enumerate(spots):
        if spot.part.id == call_id:
            return spots.pop(index)
    return None


def _strays(transcript: Transcript) -> dict[str, list[Spot]]:
    """Results that answer no call where they stand, by id, oldest first."""
    strays: dict[str, list[Spot]] = {}
    for turn in turns(transcript):
        waiting = [spot.part.id for spot in turn.calls]
        for spot in (*turn.results, *turn.late):
            if spot.part.id in waiting:
                waiting.remove(spot.part.id)
            elif spot.part.id:
                strays.setdefault(spot.part.id, []).append(spot)
    return strays


def _called(transcript: Transcript) -> dict[str, list[int]]:
    """In which messages each id is called: a result belongs to the last call before it."""
    called: dict[str, list[int]] = {}
    for number, message in enumerate(transcript.messages):
        for part in message.calls:
            called.setdefault(part.id, []).append(number)
    return called


def _take_stray(
    strays: dict[str, list[Spot]], called: dict[str, list[int]], call: Spot, after: int
) -> Spot | None:
    """The next stray result of this call: behind it, and before its id is called again."""
    messages = called[call.part.id]
    later = bisect_right(messages, call.message)
    again = messages[later] if later < len(messages) else None
    spots = strays.get(call.part.id, [])
    index = bisect_left(spots, after, key=lambda spot: spot.message)
    if index < len(spots) and (again is None or spots[index].message < again):
        return spots.pop(index)
    return None


def _place(
    transcript: Transcript,
    turn: Turn,
    moved: Sequence[tuple[Spot, Any]],
    missing: Sequence[Part],
) -> Mend:
    format, base = transcript.format, transcript.base
    new = [_whole(format, *found) for found in moved]
    new += format.result_parts(missing, INTERRUPTED)
    ops: list[PathOp] = [
        op for spot, _ in moved for op in _delete(transcript, spot, [s for s, _ in moved])
    ]
    if not format.results_in_user:
        # Right after the results that already stand there, before any words beside them.
        mixed = (i for i in range(turn.end, turn.stop) if transcript.messages[i].other_parts)
        behind = turn.results[-1].message + 1 if turn.results else turn.end
        at = min(next(mixed, behind), behind)
        ops += [Insert((*base, at), message) for message in new]
    elif turn.results:
        # Behind the results that stand there already; else in a message of their own, so that
        # what was sent for an interrupted tip stays as it is when the client goes on.
        number, last = turn.results[-1]
        at = int(last.path[-1]) + 1
        ops += [Insert((*base, number, format.content_key, at), part) for part in new]
    else:
        ops.append(Insert((*base, turn.end), format.results_message(new)))
    where = absolute(transcript, turn.calls[0])
    names = ", ".join(sorted({part.tool for part in missing if part.tool}))
    done = []
    if moved:
        done.append(f"{len(moved)} result(s) pulled next to their call")
    if missing:
        done.append(f"{len(missing)} interrupted call(s) answered ({names or 'no name'})")
    return Mend(where, "; ".join(done), tuple(ops))


def _whole(format: Any, spot: Spot, value: Any) -> Any:
    """A result as what it is moved as: a part, or a message where results are messages."""
    return (
        value if format.results_in_user or not spot.part.path else format.results_message([value])
    )


def _delete(transcript: Transcript, spot: Spot, gone: Sequence[Spot]) -> list[PathOp]:
    """Take a part out of its message; the whole message with its last part."""
    message = transcript.messages[spot.message]
    own = [s for s in gone if s.message == spot.message]
    if spot.part.path and len(own) == len(message.parts):
        return [Delete((*transcript.base, spot.message))] if spot == own[0] else []
    return [Delete(absolute(transcript, spot))]


def take_out(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """Take results out that answer nothing; a note names them, their text stays recallable."""
    runs: dict[int, list[Spot]] = {}
    for finding in found:
        spot = finding.data
        end = spot.message if spot.part.path else _run_end(transcript, spot.message)
        runs.setdefault(end, []).append(spot)
    for end, spots in runs.items():
        chars = _chars(transcript, spots)
        for index, spot in enumerate(spots):
            where = absolute(transcript, spot)
            ops: list[PathOp] = [Delete(where)]
            if index == len(spots) - 1:
                ops.append(_note(transcript, tree, spots, end))
            yield Mend(where, _taken(spot, chars.get(where, 0)), tuple(ops), (where,))


def _run_end(transcript: Transcript, number: int) -> int:
    """Where a note about a result that is a message can stand: behind the run.

    Behind the whole turn where a history consists of items: reasoning needs those behind it,
    whatever the system says between them.
    """
    messages, before = transcript.messages, number - 1
    while before >= 0 and messages[before].role in ("tool", "system"):
        before -= 1
    within = before >= 0 and messages[before].role == "assistant" and messages[before].type != ""
    roles = ("tool", "assistant", "system") if within else ("tool",)
    while number < len(messages) and messages[number].role in roles:
        number += 1
    return number


def _note(transcript: Transcript, tree: Any, spots: Sequence[Spot], end: int) -> PathOp:
    """The note that names what was taken out, never quoting it; it carries its breakpoint on."""
    marked = [spot for spot in spots if spot.part.marked]
    mark = None
    if marked:
        mark = transcript.format.mark_of(paths.get(tree, absolute(transcript, marked[-1])))
    format, base = transcript.format, transcript.base
    name = f" of {spots[0].part.tool}" if len(spots) == 1 and spots[0].part.tool else ""
    what = f"A tool result{name} was" if len(spots) == 1 else f"{len(spots)} tool results were"
    text = f"[{what} taken out: no call of this conversation asked for it.]"
    if not spots[-1].part.path:
        return Insert((*base, end), format.text_message("user", text, marked=mark))
    at = transcript.messages[end].width
    return Insert((*base, end, format.content_key, at), format.text_part(text, marked=mark))


def _taken(spot: Spot, chars: int) -> str:
    what = spot.part.tool or spot.part.id or "without id"
    return f"a tool result ({what}, {chars:,} chars) without its call was taken out"


def _chars(transcript: Transcript, spots: Sequence[Spot]) -> dict[Path, int]:
    """Characters of each of these results, by path."""
    chars: dict[Path, int] = {}
    for number in {spot.message for spot in spots}:
        depths = {len(spot.part.path) for spot in spots if spot.message == number}
        for block in transcript.messages[number].blocks:
            for depth in depths:
                key = (*transcript.base, number, *block.item[:depth])
                chars[key] = chars.get(key, 0) + len(block.text)
    return chars


def rename_calls(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """Give the second of two equal call ids in one turn, and its result, an id of its own."""
    for turn in _turns_of(found):
        ops: list[PathOp] = []
        seen: dict[str, int] = {}
        results = [*turn.results, *turn.late]
        taken = {spot.part.id for spot in (*turn.calls, *results)}
        for call in turn.calls:
            count = seen[call.part.id] = seen.get(call.part.id, 0) + 1
            answer = _take(results, call.part.id)
            if (count == 1 and call.part.id) or not call.part.id_path:
                continue
            new = _fresh(call.part.id or "call", count, taken)
            ops.append(Set(_id_of(transcript, call), new))
            if answer is not None:
                ops.append(Set(_id_of(transcript, answer), new))
        if ops:
            yield Mend(absolute(transcript, turn.calls[0]), "equal call ids told apart", tuple(ops))


def _fresh(call_id: str, count: int, taken: set[str]) -> str:
    new = f"{call_id}_{count}"
    while new in taken:
        count += 1
        new = f"{call_id}_{count}"
    taken.add(new)
    return new


def rename_all(transcript: Transcript, new: dict[str, str]) -> list[PathOp]:
    """Operations that rename call ids everywhere, calls and results alike."""
    return [
        Set((*transcript.base, number, *part.id_path), new[part.id])
        for number, message in enumerate(transcript.messages)
        for part in message.parts
        if part.kind in ("call", "result") and part.id in new and part.id_path
    ]


def _id_of(transcript: Transcript, spot: Spot) -> Path:
    return (*transcript.base, spot.message, *spot.part.id_path)
