"""Growth that would overflow: every request is fitted before it is sent, so none is foreseen late.

Knows a conversation that grows by articles, turn by turn, through one session.
"""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from retrieval_cases import QUESTION, articles

from trimtab import Session, Settings

WINDOW, TURNS = 20_000, 30


@cache
def grown(trigger: float, sentences: int, turns: int = TURNS) -> tuple[list[int], list[int]]:
    """(tokens sent, turns with a batch) of a conversation whose every turn adds one search."""
    session = Session(
        window=WINDOW,
        reserve=0,
        target=min(0.75, trigger),
        settings=Settings(trigger=trigger, counter="o200k"),
    )
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    sizes, batches = [], []
    for turn in range(turns):
        asked = {"name": "search", "arguments": json.dumps({"turn": turn})}
        call = {"id": f"call_{turn}", "type": "function", "function": asked}
        text = json.dumps({"articles": articles(4, sentences, seed=turn)})
        messages += [
            {"role": "assistant", "content": f"Search {turn}.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": text},
        ]
        fitted = session.fit({"model": "gpt-5.1", "messages": list(messages)})
        sizes.append(fitted.report.tokens_after)
        if any(edit.new for edit in fitted.report.edits):
            batches.append(turn)
    return sizes, batches


@pytest.mark.row("C14")
@pytest.mark.parametrize(("sentences", "turns"), [(10, TURNS), (30, 14), (60, 8)])
def test_a_step_that_jumps_over_the_window_is_met_before_it_is_sent(
    sentences: int, turns: int
) -> None:
    sizes, batches = grown(0.90, sentences, turns)
    assert max(sizes) <= WINDOW
    assert batches


@pytest.mark.row("C14")
def test_after_a_batch_there_is_room_to_grow_before_the_next() -> None:
    _, batches = grown(0.90, 10)
    gaps = [after - before for before, after in pairwise(batches)]
    assert len(gaps) >= 2
    assert min(gaps) >= 2  # no batch in two turns running


@pytest.mark.row("C14")
def test_cutting_earlier_is_a_setting_and_moves_the_cached_prefix_more_often() -> None:
    """Why growth is not guessed at by default: 17 batches instead of 3, and nothing gained."""
    _, late = grown(0.90, 10)
    _, early = grown(0.60, 10)
    assert early[0] < late[0]
    assert len(early) > 3 * len(late)
