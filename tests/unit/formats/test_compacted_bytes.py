"""A limit of bytes, with content in the body that the provider ignores or that no block reads.

A request within the limit is sent as it came.  Above it, what stands before a compaction is left
out first, since the provider does not read it; what can't be left out is named.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import trimtab
from trimtab.formats.body import RequestBody
from trimtab.jsontext.parsing import dump
from trimtab.retry.flow import Refused, flow

Body = dict[str, Any]


def anthropic(**more: Any) -> Body:
    old = [
        {"role": ("user", "assistant")[n % 2], "content": f"{n} of what was said. " * 50}
        for n in range(80)
    ]
    block = [{"type": "text", "text": "before it"}, {"type": "compaction", "content": "S"}]
    messages = [*old, {"role": "user", "content": "q"}, {"role": "assistant", "content": block}]
    messages.append({"role": "user", "content": "next"})
    return {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": messages, **more}


def responses(**more: Any) -> Body:
    items: list[Body] = [{"role": "user", "content": "go"}]
    for n in range(40):
        call = {"type": "function_call", "call_id": f"c{n}", "name": "bash", "arguments": "{}"}
        output = {"type": "function_call_output", "call_id": f"c{n}", "output": f"line {n} " * 100}
        items += [call, output]
    items += [{"type": "compaction", "id": "cmp_1", "encrypted_content": "x" * 500}]
    return {"model": "gpt-5.1", "input": [*items, {"role": "user", "content": "next"}], **more}


def limited(size: int) -> trimtab.Settings:
    return trimtab.Settings(request_bytes=size, window=1_000_000)


def messages_of(request: Body) -> list[Body]:
    return request.get("messages") or request["input"]


def live(request: Body) -> list[Body]:
    """What the provider reads."""
    last = messages_of(request)[-2:]
    if "messages" in request:
        last[0] = {**last[0], "content": last[0]["content"][1:]}
    return last


@pytest.mark.parametrize("make", [anthropic, responses])
def test_above_the_limit_what_the_provider_ignores_is_left_out(make: Any) -> None:
    request = make()
    size = len(dump(request))
    for limit in (size - 1, 20_000, 1_000):
        fitted = trimtab.fit(request, settings=limited(limit))
        assert len(dump(fitted.request)) <= limit
        assert messages_of(fitted.request) == live(request)
        assert not fitted.report.edits, "nothing that is read has changed"
        assert not trimtab.check(fitted.request)
        assert trimtab.fit(fitted.request, settings=limited(limit)).request is fitted.request
        data = json.dumps(request, separators=(",", ":")).encode()
        assert json.loads(trimtab.fit(data, settings=limited(limit)).request) == fitted.request


@pytest.mark.parametrize("make", [anthropic, responses])
def test_within_the_limit_all_is_sent_as_it_came(make: Any) -> None:
    request = make()
    assert trimtab.fit(request, settings=limited(len(dump(request)))).request is request
    assert trimtab.fit(request, window=1_000_000).request is request


@pytest.mark.parametrize("make", [anthropic, responses])
def test_what_was_left_out_is_recallable_and_stays_out(make: Any) -> None:
    request, session = make(), trimtab.Session()
    first = session.fit(request, settings=limited(20_000))
    gone = [repair for repair in first.report.repairs if repair.rule == "ignored_content"]
    assert len(gone) == 81 + (make is anthropic)
    assert json.loads(session.recall(gone[3].handle)) == messages_of(request)[3]
    more = {"role": "user", "content": "and more"}
    key = "messages" if make is anthropic else "input"
    second = session.fit({**request, key: [*request[key], more]}, settings=limited(10**6))
    assert messages_of(second.request) == [*messages_of(first.request), more]


def test_thinking_behind_the_compaction_stays() -> None:
    request = anthropic(model="claude-opus-5-1", thinking={"type": "adaptive"})
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln" * 60}
    said = {"role": "assistant", "content": [thought, {"type": "text", "text": "Yes."}]}
    request["messages"] += [said, {"role": "user", "content": "Go on."}]
    fitted = trimtab.fit(request, settings=limited(20_000))
    assert fitted.request["messages"][2:] == request["messages"][-2:]


@pytest.mark.parametrize("make", [anthropic, responses])
def test_a_gateway_that_takes_less_gets_less(make: Any) -> None:
    request = make()
    run = flow(request, trimtab.Session(window=1_000_000).fit)
    assert next(run).request is request
    again = run.send(Refused(413, b"Request Entity Too Large", {})).request
    assert messages_of(again) == live(request)


def test_history_that_the_server_keeps_is_never_pruned() -> None:
    request = responses(previous_response_id="resp_1")
    with pytest.raises(trimtab.CannotFit, match=r"input takes [\d,]+ of"):
        trimtab.fit(request, settings=limited(10_000))


def test_a_field_that_no_edit_changes_is_named() -> None:
    said = [{"role": "user", "content": "y" * 900_000}]
    request = {"model": "gpt-5.1", "metadata": {"note": "y" * 300_000}, "input": said}
    with pytest.raises(
        trimtab.CannotFit, match=r"metadata\.note takes 300,002 of 30\d,\d{3} bytes"
    ):
        trimtab.fit(request, settings=limited(100_000))


@pytest.mark.parametrize(
    "tree",
    [{}, [], [[]], {"": None}, [None, True, False] * 9, [-(2**31)] * 9, [2**64, -(2**4000)],
     [5e-324, -1.7976931348623157e308, float("nan"), float("-inf")] * 9, ["\x01" * 99, '"\\' * 99],
     ["\ud800" * 99, "ä" * 99, "\U0001f600" * 99], {"a": {"b": ["c", 1.5, {"d": False}]}},
     {7: 2, None: None, True: False}],
)  # fmt: skip
def test_the_bound_is_never_below_the_size(tree: Any) -> None:
    body = RequestBody.of({"x": tree})
    assert body.body_bytes <= body.max_bytes <= 6 * body.body_bytes + 99
