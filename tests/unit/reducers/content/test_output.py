"""Seven recorded command outputs: their facts stay at 55 % of the tokens, the rest is recalled."""

from __future__ import annotations

import random
import re

import pytest
from blocks import block
from output_facts import FACTS, NAMES, output
from sizes import o200k

import trimtab
from trimtab.reducers import Config, levels

SHARE = 0.55


@pytest.mark.parametrize("name", NAMES)
def test_the_output_is_as_long_as_it_must_be_and_has_its_facts(name: str) -> None:
    text = output(name)
    assert text.count("\n") >= 400
    assert len(text.encode()) < 100_000
    assert len(FACTS[name]) >= 15
    assert all(fact and fact in text for fact in FACTS[name])


@pytest.mark.parametrize("name", NAMES)
def test_all_facts_are_kept_at_55_percent_of_the_tokens(name: str) -> None:
    count, text = o200k(), output(name)
    room = SHARE * count(text)
    shown = next(o for o in levels(block(text), Config(count)) if count(o.text) <= room)
    assert [fact for fact in FACTS[name] if fact not in shown.text] == []


@pytest.mark.parametrize("name", NAMES)
def test_what_is_shown_are_lines_of_the_output_and_notes_that_add_up(name: str) -> None:
    text = output(name)
    lines = {line.rstrip() for line in text.split("\n")}  # as the lossless step leaves them
    for offer in levels(block(text), Config(o200k())):
        if not offer.kind.endswith("-digest"):
            continue
        shown, gone = 0, 0
        for line in offer.text.split("\n"):
            note = re.fullmatch(r"\[(\d[\d,]*) lines? left out[^]]*\]", line)
            if note and line not in lines:
                gone += int(note[1].replace(",", ""))
            else:
                shown += 1
                head, cut, _ = line.partition("[... ")
                whole = line in lines or (cut and any(each.startswith(head) for each in lines))
                assert whole, line
        assert shown + gone == text.count("\n") + 1


@pytest.mark.parametrize("name", NAMES)
def test_lines_that_were_left_out_are_found_in_the_original(name: str) -> None:
    text = output(name)
    request = [
        {"role": "user", "content": "Run it."},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": text},
        {"role": "user", "content": "What came of it?"},
    ]  # fmt: skip
    window = int(o200k()(text) * SHARE)
    fitted = trimtab.fit(
        request, window=window, reserve=0, settings=trimtab.Settings(counter="o200k")
    )
    (edit,) = fitted.report.edits
    whole = fitted.recall(edit.handle)
    gone = [
        line
        for line in text.split("\n")
        if line.strip() and line not in fitted.request[2]["content"]
    ]
    wanted = random.Random(name).sample(gone, 20)
    assert whole == text
    assert all(line in whole.split("\n") for line in wanted)


@pytest.mark.parametrize("share", [0.9, 0.6, 0.4])
@pytest.mark.parametrize("name", NAMES)
def test_a_digest_takes_the_room_that_there_is(name: str, share: float) -> None:
    request = [
        {"role": "user", "content": "Run it."},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": output(name)},
        {"role": "user", "content": "What came of it?"},
    ]  # fmt: skip
    window = int(trimtab.measure(request, counter="o200k").total * share)
    report = trimtab.fit(
        request, window=window, reserve=0, settings=trimtab.Settings(counter="o200k")
    ).report
    (edit,) = report.edits
    assert edit.kind.endswith("-digest")
    goal = report.limits["target_tokens"]
    assert goal is not None
    assert 0.88 * goal <= report.tokens_after <= goal
