"""What reducers offered is worked out once per transcript, and that changes nothing.

Knows the public API.  Does not know how the memo is kept.
"""

from __future__ import annotations

from collections import Counter

import pytest
from settings_words import as_keywords

import trimtab
from trimtab import CannotFit
from trimtab.planning.offers import OfferCache
from trimtab.reducers import Offer


def history(steps=12):
    """Steps of one call each, with long results that all differ."""
    messages = [{"role": "user", "content": "Look at every file."}]
    for number in range(steps):
        call = {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": "read", "arguments": f'{{"path": "f{number}.py"}}'},
        }
        text = "\n".join(f"line {line} of file {number}" for line in range(60))
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": text})
    return {"model": "gpt-5.1", "messages": messages}


def counting(asked):
    """A reducer that notes which texts it was asked about."""

    def halves(block, config):
        if block.kind == "result":
            asked[block.text] += 1
            yield Offer("replace", block.text[: len(block.text) // 2], 0.4, "half", "the first")

    return halves


def minimum_of(request, **settings):
    with pytest.raises(CannotFit) as refused:
        trimtab.fit(request, **as_keywords(window=1, reserve=0, **settings))
    return refused.value.minimum


def test_one_fit_asks_a_reducer_about_a_block_at_most_twice():
    asked, request = Counter(), history()
    settings = {"extra_reducers": (counting(asked),)}
    minimum = minimum_of(request, **settings)
    assert set(asked.values()) == {1}
    asked.clear()
    trimtab.fit(request, **as_keywords(window=minimum, reserve=0, **settings))
    assert asked
    assert set(asked.values()) <= {1, 2}  # 2: once more without those that always lose something


def test_a_failing_reducer_is_named_in_each_answer():
    def broken(block, config):
        raise ValueError("no luck")
        yield

    request, settings = history(), {"extra_reducers": (broken,)}
    minimum = minimum_of(request, **settings)
    fitted = trimtab.fit(request, **as_keywords(window=minimum + 50, reserve=0, **settings))
    assert [text for text in fitted.report.warnings if "broken: ValueError: no luck" in text]


def test_what_was_read_before_a_refusal_changes_no_byte():
    request = history()
    minimum = minimum_of(request)
    after_refusal = trimtab.fit(request, window=minimum + 400, reserve=0)
    fresh = trimtab.Session(window=minimum + 400, reserve=0).fit(history())
    assert after_refusal.request == fresh.request


def test_a_repair_is_not_made_twice_for_the_very_same_request():
    request = history()
    del request["messages"][5]  # a call that is never answered
    one = trimtab.fit(request, window=100_000)
    two = trimtab.fit(request, window=100_000)
    assert one.request == two.request
    assert one.report.repairs == two.report.repairs
    del request["messages"][3]  # changed in place: it has to be seen
    three = trimtab.fit(request, window=100_000)
    assert len(three.report.repairs) == 2 * len(one.report.repairs)
    assert trimtab.check(three.request) == ()


def test_who_reads_the_levels_of_a_block_again_gets_the_same_ones():
    offers = [Offer("replace", text, 0.1, "kind", "why") for text in ("a", "b", "c")]
    cache, key = OfferCache(), (0, 0, "all", 1)
    first = cache.levels(key, lambda failures: iter(offers), [])
    assert next(first) is offers[0]
    assert list(cache.levels(key, lambda failures: iter(()), [])) == offers
    assert list(first) == offers[1:]
