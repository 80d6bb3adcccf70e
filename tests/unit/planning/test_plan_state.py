"""The sums of a plan: work grows with the conversation, not with its square."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import trimtab
from trimtab.journal.journal import Journal
from trimtab.planning import runs
from trimtab.planning.plan_state import PlanState
from trimtab.planning.runs import targets
from trimtab.reducers import Offer
from trimtab.request.pipeline import prepare
from trimtab.request.planned import planner_for, reduce
from trimtab.request.received import TurnInputs
from trimtab.transcript.model import Edit
from trimtab.transcript.transcript import GroupTable, Transcript


def steps(count: int) -> list[dict[str, Any]]:
    """A question, and so many steps of one call each."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
    for n in range(count):
        call = {"name": "read", "arguments": f'{{"path": "src/a{n}.py"}}'}
        messages += [
            {"role": "assistant", "content": None,
             "tool_calls": [{"id": f"c{n}", "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"value {n}\n" * 9},
        ]  # fmt: skip
    return messages


def test_what_cannot_fit_looks_at_each_call_a_few_times_however_long_the_conversation_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked, called_tools = [0], GroupTable.called_tools

    def counted(table: GroupTable, first: int, last: int) -> Any:
        looked[0] += last - first + 1
        return called_tools(table, first, last)

    monkeypatch.setattr(GroupTable, "called_tools", counted)
    with pytest.raises(trimtab.CannotFit):
        trimtab.fit({"model": "gpt-5", "messages": steps(300)}, window=60, reserve=10)
    assert 300 <= looked[0] <= 10 * 300


def test_what_cannot_fit_names_each_block_a_few_times_where_the_model_can_recall(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The handle of a run is made of all its blocks; a run grows step by step."""
    named = [0]

    def counted(transcript: Transcript, run: runs.Run) -> tuple[str, ...]:
        named[0] += run.last - run.first + 1
        return targets(transcript, run)

    monkeypatch.setattr(runs, "targets", counted)
    with pytest.raises(trimtab.CannotFit):
        trimtab.fit({"messages": steps(300)}, window=30, reserve=0, recall=True)
    assert 300 <= named[0] <= 10 * 300


def state_of(count: int, journal: Journal | None = None, **limits: int) -> PlanState:
    """The state of a plan in which nothing new is reduced yet."""
    request = {"model": "gpt-5", "messages": steps(count)}
    settings = trimtab.Settings(window=400, **limits)  # type: ignore[arg-type]
    measured = prepare(request, TurnInputs(settings, journal or Journal()))
    return planner_for(measured, reduce(measured)).state


def sums(state: PlanState) -> tuple[object, ...]:
    gone = [(number in state.dropped, number in state.drops) for number in range(13)]
    runs = [(run.first, run.last, run.tokens) for run in state.runs]
    return state.tokens, state.bytes_saved, runs, gone


def test_a_run_that_grew_in_any_order_has_the_handle_of_its_blocks() -> None:
    for order in ((2, 3, 4, 5), (5, 4, 3, 2), (2, 4, 5, 3), (3, 5, 2, 4)):
        state = state_of(12, recall=True)
        for number in order:
            state.drop(number, number)
        (run,) = state.runs
        assert state.handle(run) in run.note, order


def test_neighbours_dropped_one_after_the_other_are_as_if_dropped_at_once() -> None:
    at_once, state = state_of(12), state_of(12)
    at_once.drop(2, 8)
    for first, last in ((2, 3), (7, 8), (4, 6)):
        saving, before = state.drop_saving(first, last), state.tokens
        state.drop(first, last)
        assert state.tokens == before - saving < before
    assert sums(state) == sums(at_once)


@pytest.mark.parametrize("limits", [{}, {"request_bytes": 2_000}], ids=["tokens", "bytes"])
def test_a_run_taken_back_and_put_back_leaves_the_sums_as_they_were(
    limits: dict[str, int],
) -> None:
    state = state_of(12, **limits)
    whole = sums(state)
    state.drop(2, 3)
    state.drop(6, 8)
    dropped, runs = sums(state), state.runs
    assert [(run.first, run.last) for run in runs] == [(2, 3), (6, 8)]
    assert [number for number in range(13) if number in state.drops] == [2, 3, 6, 7, 8]
    for run in runs:
        state.reopen(run)
    assert sums(state) == whole
    for run in reversed(runs):
        state.put_back(run)
    assert sums(state) == dropped


def test_where_bytes_are_limited_those_of_dropped_steps_are_counted() -> None:
    state, messages = state_of(12, request_bytes=2_000), steps(12)
    state.drop(1, 4)
    gone = messages[3:11]  # group 0 is the first step, behind the question
    size = len(json.dumps(gone, separators=(",", ":"))) - 1
    (run,) = state.runs
    assert size - 2 * len(run.note) < state.bytes_saved < size


def test_drops_of_the_journal_are_the_sums_of_the_turn_that_made_them() -> None:
    state = state_of(12, request_bytes=2_000)
    state.drop(2, 3)
    state.drop(6, 8)
    edits = [
        Edit("drop", targets(state.transcript, run.run), run.note, "drop", "why")
        for run in state.runs
    ]
    assert sums(state_of(12, Journal(tuple(edits)), request_bytes=2_000)) == sums(state)


@pytest.mark.parametrize(
    ("spare", "bytes_free", "back"),
    [(0, 10_000, []), (1, 10_000, [8]), (2, 10_000, [6, 8]), (9, 10_000, [2, 4, 6, 8]),
     (9, 0, []), (9, 1, [8])],
    ids=str,
)  # fmt: skip
def test_the_newest_moves_are_taken_back_as_far_as_tokens_and_bytes_have_room(
    spare: int, bytes_free: int, back: list[int]
) -> None:
    """``spare``, ``bytes_free``: so many results fit below the goal, and below the limit."""
    request = {"model": "gpt-5", "messages": steps(4)}
    settings = trimtab.Settings(window=400, request_bytes=1)
    measured = prepare(request, TurnInputs(settings))
    planner = planner_for(measured, reduce(measured))
    results = [place for place in planner.transcript.places() if place.block.kind == "result"]
    whole, size = planner.state.cost(results[0]), len(results[0].block.text)
    for place in results:
        planner.show(place, Offer("replace", "[cut]", 0.9, "marker", "why"))
    state, cost = planner.state, planner.state.cost(results[0])
    assert len({planner.state.whole(place) for place in results}) == 1
    limit = planner.body_bytes - state.bytes_saved + round(bytes_free * 1.2 * size)
    planner.bounds = replace(planner.bounds, body_bytes=limit)
    planner.revert(state.tokens + spare * (whole - cost))
    assert [place.message for place in results if (place.message, 0) not in state.shown] == back
