"""LangChain's messages as request bodies and back: nothing is lost, what comes back is legal.

Real clients send what comes back to the strict provider.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import langchain_agents as lc
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

import trimtab
from trimtab.clients.langchain.adapter import MessageAdapter
from trimtab.clients.langchain.request_head import RequestHead
from trimtab_lab.testing import StrictProvider

HEADS = {
    "openai-chat": RequestHead(
        "openai", "gpt-5.1", max_tokens=100, system=SystemMessage("Be brief.")
    ),
    "anthropic": RequestHead(
        "anthropic", "claude-sonnet-5-5", max_tokens=100, system=SystemMessage("Be brief.")
    ),
}
FORMATS = pytest.mark.parametrize("format", list(HEADS))
LONG = "\n".join(f"line {n} sets value_{n * 31}" for n in range(300))
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"

BLOCKS: list[Any] = [
    {"type": "text", "text": "Look.", "annotations": [{"type": "citation", "url": "u"}]},
    {"type": "image", "base64": PNG, "mime_type": "image/png", "id": "lc_1"},
    {"type": "image_url", "image_url": {"url": "https://ex.org/a.png"}},
    {"type": "file", "base64": "JVBERi0=", "mime_type": "application/pdf"},
    {"type": "audio", "base64": "UklGRg==", "mime_type": "audio/wav"},
    {"type": "video", "url": "https://ex.org/v.mp4"},
    {"type": "non_standard", "value": {"whatever": [1, 2.50, None]}},
    {"type": "invented_tomorrow", "data": {"deep": ["ä", {"x": True}]}},
    "a string among the blocks",
]
SAID: list[Any] = [
    {"type": "reasoning", "reasoning": "Hm.", "extras": {"signature": "abc="}},
    {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
    {"type": "redacted_thinking", "data": "xyz"},
    {"type": "server_tool_call", "id": "srv", "name": "web_search", "args": {"q": 1}},
    {"type": "text", "text": "I look.", "phase": "commentary"},
    {"type": "invented_tomorrow", "data": 1},
]


def made(id: str, name: str = "read", **args: Any) -> Any:
    return {"name": name, "args": args, "id": id, "type": "tool_call"}


def rebuilt(view: MessageAdapter) -> Sequence[Any]:
    """What comes back where every message is another object, though nothing was done to it."""
    trees = [{**tree} for tree in view.body["messages"]]
    return view.back({**view.body, "messages": trees})


def odd_history() -> list[AnyMessage]:
    """Every kind of block, a call that blocks repeat, a long result in the middle."""
    return [
        HumanMessage(BLOCKS, id="h1", name="ann"),
        AIMessage(
            [*SAID, {"type": "tool_use", "id": "c1", "name": "read", "input": {},
                     "partial_json": '{"path": "a"}'}],
            id="a1", tool_calls=[made("c1", path="a"), made("c2", path="b")],
            additional_kwargs={"reasoning_content": "Hm.", "mine": {"x": 1}},
        ),
        ToolMessage(LONG, tool_call_id="c1", id="t1", name="read", artifact=object),
        ToolMessage(
            [{"type": "text", "text": "no"}, BLOCKS[1], BLOCKS[7]],
            tool_call_id="c2", id="t2", status="error",
        ),
        AIMessage("Done.", id="a2"),
        HumanMessage("Thanks. And?", id="h2"),
    ]  # fmt: skip


@FORMATS
def test_what_was_not_changed_is_the_very_same(format: str) -> None:
    messages = odd_history()
    view = HEADS[format].adapter(messages)
    assert view.format == format
    back = view.back(dict(view.body))
    assert all(a is b for a, b in zip(back, messages, strict=True))
    assert view.parted(view.body)[0] is HEADS[format].system


@FORMATS
def test_every_block_comes_back_through_a_message_that_was_rebuilt(format: str) -> None:
    messages = odd_history()
    assert list(rebuilt(HEADS[format].adapter(messages))) == messages


@FORMATS
def test_unknown_blocks_stay_where_something_else_is_shrunk(format: str) -> None:
    messages = odd_history()
    view = HEADS[format].adapter(messages)
    limits = trimtab.Settings(window=10**6, result_chars=1_000)
    fitted = trimtab.fit(view.body, format=format, settings=limits)
    back = {message.id: message for message in view.back(fitted.request)}
    assert fitted.report.edits
    assert len(back["t1"].text) < len(LONG)
    assert back["h1"].content[: len(BLOCKS)] == BLOCKS
    assert back["t2"].content == messages[3].content
    assert [block for block in back["a1"].content if block in SAID] == SAID
    assert back["a1"].tool_calls == messages[1].tool_calls  # type: ignore[union-attr]


def test_a_call_whose_arguments_are_shrunk_says_so_in_every_place_it_stands() -> None:
    long = {"content": LONG * 4, "path": "a"}
    for block in (
        {"type": "tool_use", "id": "c1", "name": "write", "input": long},
        {"type": "tool_call", "id": "c1", "name": "write", "args": long},
        {"type": "function_call", "call_id": "c1", "name": "write", "arguments": json.dumps(long)},
    ):
        messages: list[AnyMessage] = [
            HumanMessage("Write."),
            AIMessage([{"type": "text", "text": "So."}, block],
                      tool_calls=[made("c1", "write", **long)],
                      additional_kwargs={"tool_calls": [{"id": "c1", "raw": LONG}]}),
            ToolMessage("written", tool_call_id="c1"),
            *(m for n in range(6) for m in (
                AIMessage("", tool_calls=[made(f"d{n}")]),
                ToolMessage("ok", tool_call_id=f"d{n}"),
            )),
        ]  # fmt: skip
        for head in HEADS.values():
            view = head.adapter(messages)
            fitted = trimtab.fit(view.body, window=2_500, format=view.format, preset="in-place")
            (back,) = [
                m for m in view.back(fitted.request)
                if isinstance(m, AIMessage) and any(c["id"] == "c1" for c in m.tool_calls)
            ]  # fmt: skip
            (call,) = back.tool_calls
            assert len(json.dumps(call["args"])) < len(LONG)
            assert LONG[:2_000] not in json.dumps(back.content)
            assert "tool_calls" not in back.additional_kwargs


# ---------------------------------------------------------------- any history


@st.composite
def histories(draw: Any) -> list[AnyMessage]:
    """Turns with parallel calls; some interrupted, some results without a call, some in lists."""
    found: list[AnyMessage] = [HumanMessage("Find the flag.", id="task")]
    for n in range(draw(st.integers(1, 6))):
        calls = [made(f"c{n}_{k}", path=f"f{k}") for k in range(draw(st.integers(0, 3)))]
        text = f"Step {n}."
        listed = draw(st.booleans())
        content: Any = [{"type": "text", "text": text}] if listed else text
        if listed and draw(st.booleans()):
            content += [{"type": "tool_use", "id": c["id"], "name": "read", "input": c["args"]}
                        for c in calls]  # fmt: skip
        found.append(AIMessage(content, id=f"a{n}", tool_calls=calls))
        if draw(st.integers(0, 9)) == 0:
            calls = [*calls, made(f"never_{n}")]
        for call in calls:
            if draw(st.integers(0, 9)) == 0:
                continue
            words = f"{call['id']}: " + LONG[: draw(st.sampled_from([40, 900, 8_000]))]
            result: Any = [{"type": "text", "text": words}] if draw(st.booleans()) else words
            found.append(ToolMessage(result, tool_call_id=call["id"], id=f"t{call['id']}"))
        if not calls or draw(st.integers(0, 3)) == 0:
            found.append(HumanMessage(f"And {n}?", id=f"h{n}"))
    return found


@pytest.fixture(scope="module")
def provider() -> Any:
    with StrictProvider() as found:
        yield found


@FORMATS
@examples(0.4)
@given(messages=histories(), window=st.sampled_from([900, 2_500, 10**6]))
def test_what_comes_back_is_accepted_by_the_provider_and_keeps_the_user_s_words(
    format: str, provider: StrictProvider, messages: list[AnyMessage], window: int
) -> None:
    head = HEADS[format]
    view = head.adapter(messages)
    fitted = trimtab.fit(view.body, window=window, format=format, reserve=100)
    back = list(view.back(fitted.request))
    ids = [message.id for message in back]
    assert None not in ids
    assert len(set(ids)) == len(ids)
    said = [str(m.content) for m in messages if isinstance(m, HumanMessage)]
    left = "\n".join(str(m.content) for m in back if isinstance(m, HumanMessage))
    assert all(words in left for words in said)
    again = head.adapter(back).body
    assert trimtab.check(again, format=format) == ()
    assert trimtab.fit(again, window=window, format=format, reserve=100).request is again
    model = lc.openai_chat(provider.url) if format == "openai-chat" else lc.claude(provider.url)
    assert head.system is not None
    assert model.invoke([head.system, *back]).text == "OK"
