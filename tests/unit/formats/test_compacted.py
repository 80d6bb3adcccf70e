"""Compaction blocks that a provider made: read, counted as it counts them, left where they are.

Knows the shapes of Anthropic's blocks (on demand and by threshold) and of OpenAI's items.
"""

from __future__ import annotations

import copy
import json
import time

import pytest

import trimtab
from trimtab_lab.testing import StrictProvider

FILE = "".join(f"src/mod.py:{n}: token {n * 7919} alpha beta\n" for n in range(400))
SUMMARY = "The user wants the parser mended. Read so far: mod_1 and mod_2."
SIGNED = {"type": "compaction", "content": SUMMARY, "signature": "c2ln" * 60,
          "encrypted_content": "ZW5j" * 400, "tool_changes": []}  # fmt: skip
BY_THRESHOLD = {"type": "compaction", "content": SUMMARY, "encrypted_content": "ZW5j" * 400}
ITEM = {"type": "compaction", "id": "cmp_1", "encrypted_content": "ZW5j" * 400}
TRIGGER = {"edits": [{"type": "compact_20260112",
                      "trigger": {"type": "input_tokens", "value": 50_000}}]}  # fmt: skip


def steps(first, count, lines=FILE):
    """Anthropic turns: a call and its result each."""
    found = []
    for n in range(first, first + count):
        call = {"type": "tool_use", "id": f"toolu_{n}", "name": "read", "input": {"path": f"{n}"}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": f"{n}\n{lines}"}
        found += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return found


def claude(messages, **more):
    tools = [{"name": "read", "input_schema": {"type": "object"}}]
    return {"model": "claude-opus-4-6", "max_tokens": 500, "tools": tools, "messages": messages,
            **more}  # fmt: skip


def on_demand(count=2):
    """The signed block stands first, in place of what it summarizes."""
    first = {"role": "assistant", "content": [SIGNED]}
    return claude([first, {"role": "user", "content": "Go on."}, *steps(10, count)])


def by_threshold(before=14, after=2):
    """The client appends the block, and goes on sending what stands before it."""
    question = {"role": "user", "content": "Mend the parser."}
    block = {"role": "assistant", "content": [BY_THRESHOLD, {"type": "text", "text": "I go on."}]}
    asked = {"role": "user", "content": "Yes, do."}
    old = [question, *steps(10, before)]
    return claude([*old, block, asked, *steps(50, after)], context_management=TRIGGER)


def responses(before=14, after=2):
    def items(first, count):
        found = []
        for n in range(first, first + count):
            call = {"type": "function_call", "call_id": f"call_{n}", "name": "read",
                    "arguments": "{}"}  # fmt: skip
            found += [call, {"type": "function_call_output", "call_id": f"call_{n}",
                             "output": f"{n}\n{FILE}"}]  # fmt: skip
        return found

    question = {"type": "message", "role": "user", "content": "Mend the parser."}
    return {"model": "gpt-5.5", "input": [question, *items(10, before), ITEM, *items(50, after)]}


def block_of(request):
    """Every compaction in a request, with what stands before it."""
    messages = request.get("messages") or request["input"]
    for number, message in enumerate(messages):
        content = message.get("content")
        for part in content if isinstance(content, list) else [message]:
            if part.get("type") == "compaction":
                yield number, part


REQUESTS = {"on demand": on_demand, "by threshold": by_threshold, "item": responses}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_legal_request_with_a_compaction_leaves_as_it_came(name):
    request = REQUESTS[name]()
    assert trimtab.check(request) == ()
    assert trimtab.fit(request, window=200_000).request is request
    assert trimtab.repair(request).request is request


@pytest.mark.parametrize("name", ["by threshold", "item"])
def test_what_a_compaction_replaced_is_not_counted(name):
    whole, live = REQUESTS[name](), REQUESTS[name](before=0)
    counted, alone = (trimtab.measure(one, counter="o200k").total for one in (whole, live))
    assert abs(counted - alone) <= 30
    assert (
        trimtab.fit(
            whole, window=alone + 1_000, reserve=0, settings=trimtab.Settings(counter="o200k")
        ).request
        is whole
    )


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("preset", ["balanced", "in-place"])
def test_what_stands_behind_is_fitted_and_the_rest_stays_to_the_letter(name, preset):
    request = REQUESTS[name](**({"after": 12} if name != "on demand" else {"count": 12}))
    before, kept = list(block_of(request)), copy.deepcopy(request)
    fitted = trimtab.fit(request, window=40_000, preset=preset)
    assert fitted.changed
    assert request == kept
    assert trimtab.check(fitted.request) == ()
    assert list(block_of(fitted.request)) == before
    number = before[0][0]
    key = "input" if name == "item" else "messages"
    assert fitted.request[key][: number + 1] == request[key][: number + 1]
    assert trimtab.measure(fitted.request).total <= 40_000
    again = trimtab.fit(fitted.request, window=40_000, preset=preset)
    assert again.request == fitted.request


def test_a_session_goes_on_over_a_compaction_and_keeps_it():
    session, messages = trimtab.Session(window=30_000), [{"role": "user", "content": "Mend it."}]
    for n in range(24):
        messages += steps(n, 1)
        if n in (9, 17):
            messages.append({"role": "assistant", "content": [BY_THRESHOLD]})
            messages.append({"role": "user", "content": f"Go on with {n}."})
        sent = session.fit(claude(list(messages), context_management=TRIGGER)).request
        assert trimtab.check(sent) == ()
        assert [part for _, part in block_of(sent)] == [BY_THRESHOLD] * ((n >= 9) + (n >= 17))


def test_a_failed_compaction_is_passed_over_and_an_empty_one_is_repaired():
    request = by_threshold(before=3)
    failed = copy.deepcopy(request)
    number, part = next(block_of(failed))
    part["content"] = None
    assert trimtab.check(failed) == ()
    assert trimtab.measure(failed).total > 2 * trimtab.measure(request).total
    part["content"] = ""
    assert [v.rule for v in trimtab.check(failed)] == ["compaction_empty"]
    assert trimtab.check(trimtab.repair(failed).request) == ()
    assert number


def test_a_signed_block_behind_others_is_put_first_and_what_it_replaced_is_recallable():
    request = on_demand()
    old = [{"role": "user", "content": "Mend the parser."}, *steps(1, 2)]
    request["messages"] = [*old, *request["messages"]]
    assert [v.rule for v in trimtab.check(request)] == ["compaction_misplaced"]
    repaired = trimtab.repair(request)
    assert repaired.request["messages"] == request["messages"][len(old) :]
    assert trimtab.check(repaired.request) == ()
    (repair,) = repaired.report.repairs
    assert [json.loads(repaired.recall(handle)) for handle in repair.handles] == old
    assert repair.handle in repair.handles
    assert repair.as_dict()["handles"] == list(repair.handles)


def test_of_several_signed_blocks_the_newest_is_sent():
    request = on_demand()
    newer = {**SIGNED, "content": "Newer.", "signature": "bmV3" * 60}
    request["messages"] += [{"role": "assistant", "content": [newer]},
                            {"role": "user", "content": "And now?"}]  # fmt: skip
    assert [v.rule for v in trimtab.check(request)] == ["compaction_ambiguous",
                                                        "compaction_misplaced"]  # fmt: skip
    repaired = trimtab.repair(request).request
    assert [part for _, part in block_of(repaired)] == [newer]
    assert trimtab.check(repaired) == ()


def test_a_signed_block_in_a_system_message_is_put_first():
    request = on_demand()
    request["messages"][0]["role"] = "system"
    assert [v.rule for v in trimtab.check(request)] == ["compaction_misplaced"]
    repaired = trimtab.repair(request).request
    assert repaired["messages"][0] == {"role": "assistant", "content": [SIGNED]}
    assert trimtab.check(repaired) == ()


def test_a_request_to_compact_may_end_with_a_finished_turn():
    done = {"role": "assistant", "content": "Both are read."}
    request = claude([{"role": "user", "content": "Read."}, *steps(1, 1), done],
                     compaction={"type": "summarize"})  # fmt: skip
    assert trimtab.check(request) == ()


def test_a_result_whose_call_stands_before_the_compaction_is_no_orphan():
    request = responses(before=2, after=1)
    call = {"type": "function_call", "call_id": "call_z", "name": "read", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "call_z", "output": "z"}
    at = request["input"].index(ITEM)
    request["input"] = [*request["input"][:at], call, ITEM, result, *request["input"][at + 1 :]]
    assert trimtab.check(request) == ()
    assert trimtab.fit(request, window=100_000).request is request


def test_the_strict_provider_counts_what_is_live():
    provider = StrictProvider(window=20_000)
    body = json.dumps(by_threshold()).encode()
    assert provider.respond("POST", "/v1/messages", "", {}, body).status == 200
    assert provider.requests[0].tokens < 20_000


def test_thousands_of_blocks_in_one_message_take_less_than_a_second():
    blocks = [{"type": "compaction", "content": f"{n}"} for n in range(8_000)]
    request = claude([{"role": "assistant", "content": blocks}, {"role": "user", "content": "Go."}])
    started = time.process_time()
    assert not trimtab.check(request)
    assert time.process_time() - started < 1
