"""What ``convert`` returns is acceptable, whatever came in: repaired and told, or an error.

Knows the public API and the wire formats.
"""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
from shapes import FORMATS, items_of, session

import trimtab
from trimtab.conversion import convert
from trimtab.errors import NotAccepted

PAIRS = [(a, b) for a, b in itertools.product(FORMATS, FORMATS) if a != b]


def broken(format: str, how: str) -> dict[str, Any]:
    """A small session with one fault."""
    body = session(format, steps=3, lines=2)
    items = items_of(body)
    is_item = format == "openai-responses"
    step = 3 if is_item else 2
    if how == "a result without its call":
        del items[1 : step if is_item else 2]
    elif how == "a call without its result":
        del items[step]
    elif how == "results alone":
        kept = [items[0], copy.deepcopy(items[step])]
        items[:] = kept
    elif how == "a lone half of a character":
        items[0] = {**items[0], "x": "\ud83d"} if is_item else items[0]
        body["metadata"] = {"a": "\ud83d"}
    return body


@pytest.mark.parametrize(
    "how",
    ["a result without its call", "a call without its result", "results alone",
     "a lone half of a character"],
)  # fmt: skip
@pytest.mark.parametrize(("source", "to"), PAIRS)
def test_what_comes_out_is_acceptable_and_what_was_repaired_is_told(
    source: str, to: str, how: str
) -> None:
    body = broken(source, how)
    assert trimtab.check(body, format=source)
    before = copy.deepcopy(body)
    converted = trimtab.convert(body, to, format=source)
    assert trimtab.check(converted.request, format=to) == ()
    assert any(note.startswith(f"{source}: ") for note in converted.notes)
    assert "unknown_tool" not in str(converted.request)
    assert body == before


@pytest.mark.parametrize("format", FORMATS)
def test_into_the_format_it_is_in_a_broken_request_is_repaired_and_a_legal_one_is_the_very_same(
    format: str,
) -> None:
    body = session(format, steps=3, lines=2)
    assert trimtab.convert(body, format, format=format).request is body
    converted = trimtab.convert(broken(format, "a call without its result"), format, format=format)
    assert trimtab.check(converted.request, format=format) == ()
    assert converted.notes


def test_calls_that_are_just_being_run_stay_open_where_the_caller_says_so() -> None:
    body = session("openai-chat", steps=1, lines=2)
    del body["messages"][2:]
    converted = trimtab.convert(body, "anthropic", open_tail=True)
    assert trimtab.check(converted.request, format="anthropic", open_tail=True) == ()
    assert "interrupted" not in str(converted.request)
    assert "interrupted" in str(trimtab.convert(body, "anthropic").request)


def test_what_repair_cannot_repair_is_an_error_never_a_body_that_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from trimtab.formats import rules

    broken_body = broken("openai-chat", "a call without its result")
    real = rules.repair
    monkeypatch.setattr(
        rules, "repair", lambda tree, format, read, **k: real(tree, format, read, open_tail=True)
    )
    del broken_body["messages"][2:]
    with pytest.raises(NotAccepted, match="correct the request"):
        trimtab.convert(broken_body, "anthropic")


ODD = ("call/1", "über id", "a.b:c", "x" * 40, "-", "tt-", "🚀")


@pytest.mark.row("E9")
@pytest.mark.parametrize("to", ["anthropic", "bedrock", "openai-responses", "gemini"])
def test_odd_ids_come_back_without_being_handed_the_map(to: str) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for call_id in ODD:
        call = {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call_id, "content": "done"},
        ]
    body = {"model": "gpt-5.1", "messages": messages}
    if found := trimtab.check(body):
        raise AssertionError(found)
    converted = trimtab.convert(body, to, format="openai-chat")
    assert [converted.original_ids[converted.ids[i]] for i in ODD] == list(ODD)
    back = trimtab.convert(converted.request, "openai-chat", format=to).request["messages"]
    assert [m["tool_call_id"] for m in back if m["role"] == "tool"] == list(ODD)
    calls = [c["id"] for m in back for c in m.get("tool_calls") or ()]
    assert calls == list(ODD)


@pytest.mark.parametrize("to", ["openai-chat", "bedrock", "gemini"])
def test_a_loss_is_named_at_its_place_before_repair(to: str) -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}
    said = [{"type": "text", "text": "\n"}, thinking, {"type": "text", "text": "Done."}]
    messages = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": said}]
    messages.append({"role": "user", "content": "Thanks."})
    request = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages}
    losses = convert(request, to, format="anthropic", model="other").losses
    assert ("messages", 1, "content", 1) in {loss.path[:4] for loss in losses}
    assert ("messages", 1, "content", 2) not in {loss.path[:4] for loss in losses}
