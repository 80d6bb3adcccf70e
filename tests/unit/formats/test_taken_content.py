"""What a repair takes away has a handle, and comes back by it, in every format."""

from __future__ import annotations

import json
from typing import Any

import pytest

import trimtab

BLANK = " \n\n "
ASK, MORE = {"role": "user", "content": "Go."}, {"role": "user", "content": "And now?"}


def chat(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"model": "m", "messages": [ASK, *messages, MORE]}


def claude(*blocks: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": blocks[0] if len(blocks) == 1 else list(blocks)}
    return {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [ASK, said, MORE]}


def converse(*blocks: Any, role: str = "assistant") -> dict[str, Any]:
    ask, more = ({"role": "user", "content": [{"text": m["content"]}]} for m in (ASK, MORE))
    return {"messages": [ask, {"role": role, "content": list(blocks)}, more]}


CALL = {"id": "call_0001", "type": "function", "function": {"name": "f", "arguments": "{}"}}
USE = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
GONE: dict[str, tuple[str, dict[str, Any]]] = {
    "a model's blank text": ("anthropic", claude(BLANK)),
    "a model's blank block": ("anthropic", claude({"type": "text", "text": BLANK},
                                                  {"type": "text", "text": "Yes."})),
    "a model's only block, blank": ("anthropic", claude([{"type": "text", "text": BLANK}])),
    "blank space behind a prefill": ("anthropic", {
        "model": "claude-sonnet-4-5", "max_tokens": 9,
        "messages": [ASK, {"role": "assistant", "content": f"Yes.{BLANK}"}]}),
    "a blank text in a tool result": ("anthropic", {
        "model": "claude-sonnet-4-5", "max_tokens": 9,
        "messages": [ASK, {"role": "assistant", "content": [USE]},
                     {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1",
                      "content": [{"type": "text", "text": BLANK},
                                  {"type": "text", "text": "ok"}]}]}]}),
    "a blank text of Bedrock": ("bedrock", converse({"text": BLANK}, {"text": "Yes."})),
    "Bedrock's only text, blank": ("bedrock", converse({"text": BLANK})),
    "words beside calls": ("openai-chat:mistral-v3", chat(
        {"role": "assistant", "content": BLANK, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_0001", "content": "ok"})),
    "an orphan result": ("openai-chat", chat(
        {"role": "tool", "tool_call_id": "call_9", "content": f"ok{BLANK}"})),
}  # fmt: skip


REFUSED = {
    "a blank text in a tool result": "blank_result_text",
    "words beside calls": "content_and_calls",
}
"""Those that are repaired only after a refusal that names the rule."""


@pytest.mark.row("X4")
@pytest.mark.parametrize("name", GONE)
def test_what_a_repair_takes_away_comes_back_by_its_handle(name: str) -> None:
    format, body = GONE[name]
    assert json.dumps(BLANK)[1:-1] in json.dumps(body)
    session = trimtab.Session(window=10**6)
    fits = [session.fit(body, format=format, refused=[REFUSED.get(name, "")])]  # type: ignore[arg-type]
    if name not in REFUSED:
        fits.append(trimtab.repair(body, format=format))  # type: ignore[arg-type]
        fits.append(trimtab.fit(body, window=10**6, format=format))  # type: ignore[arg-type]
    for fitted in fits:
        assert json.dumps(BLANK)[1:-1] not in json.dumps(fitted.request)
        handles = [handle for row in fitted.report.repairs for handle in row.handles]
        assert any(BLANK in text or json.dumps(BLANK)[1:-1] in text
                   for text in map(fitted.recall, handles))  # fmt: skip


def test_an_empty_answer_that_was_given_a_text_has_its_handle_where_something_was_there() -> None:
    session = trimtab.Session(window=10**6, format="openai-chat:mistral")
    for content in ("", [{"type": "text", "text": ""}]):
        body = chat({"role": "assistant", "content": content})
        fitted = session.fit(body, refused=["empty_answer"])
        (row,) = [row for row in fitted.report.repairs if row.rule == "empty_answer"]
        assert row.handle
    bare = session.fit(chat({"role": "assistant"}), refused=["empty_answer"])
    assert bare.report.repairs
