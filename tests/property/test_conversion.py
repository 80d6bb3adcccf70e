"""Laws of conversion over made-up conversations, from each format to each other.

The stories (stories.py) and what they say (atoms.py) are spelled without the library.
"""

from __future__ import annotations

import json
import time
from itertools import permutations

import pytest
from chat_messages import USER, answer, called, chat
from conversions import assert_nothing_is_missing, assert_same_again
from effort import examples
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st
from stories import FORMATS, stories, written

import trimtab
from trimtab.conversion import convert

PAIRS = list(permutations(FORMATS, 2))


@pytest.mark.parametrize(("source", "to"), PAIRS)
@examples(0.3, suppress_health_check=list(HealthCheck))
@given(story=stories())
def test_every_word_id_and_flag_arrives_and_comes_back(source, to, story):
    request = written(story, source)
    assert trimtab.check(request, format=source) == ()
    kept = json.dumps(request)
    there = convert(request, to, format=source)
    assert json.dumps(request) == kept
    assert trimtab.check(there.request, format=to) == ()
    assert_nothing_is_missing(there, request)
    back = convert(there.request, source, format=to)
    assert trimtab.check(back.request, format=source) == ()
    assert_nothing_is_missing(back, there.request)
    assert_same_again(there, back, request)
    json.dumps(there.as_dict())


@pytest.mark.parametrize(("source", "to"), PAIRS)
@examples(0.2, suppress_health_check=list(HealthCheck))
@given(story=stories())
def test_the_output_is_recognised_for_what_it_is(source, to, story):
    out = convert(written(story, source), to, format=source).request
    if any(step.answers for step in story.steps):  # words alone look alike in two formats
        assert convert(out, source).source == to


@given(st.text(max_size=40), st.sampled_from(FORMATS[:4]))
def test_an_id_is_always_respelled_in_the_same_way(call_id, to):
    assume(call_id)
    request = chat(USER, called((call_id, "f", "{}")), answer(call_id, "x"))
    first = convert(request, to, format="openai-chat") if to != "openai-chat" else None
    assume(first and call_id in first.ids)  # one that the source refuses is repaired before
    more = chat(USER, called(("zz", "f", "{}")), answer("zz", "x"), *request["messages"])
    assert convert(more, to, format="openai-chat").ids[call_id] == first.ids[call_id]


def test_a_conversation_of_200k_tokens_converts_within_100_ms():
    text = "The build failed in src/app.py line 42: NameError. " * 40  # some 500 tokens
    request = [USER]
    for number in range(200):
        call = called((f"call_{number}", "read", '{"path": "src/app.py"}'), content=text)
        request += [call, answer(f"call_{number}", text)]
    for to in FORMATS[1:]:
        best = 9.0
        for _ in range(5):
            start = time.process_time()  # other processes share the machine
            convert({"messages": request}, to)
            best = min(best, time.process_time() - start)
        assert best < 0.1, to
