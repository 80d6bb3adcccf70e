"""Chats in which the provider ran the tools itself fit any window above their newest turn."""

from __future__ import annotations

from typing import Any

import pytest

import trimtab

LONG = "A line of what the tool found, word for word. " * 40


def anthropic(turns: int, *, paused: bool = False) -> dict[str, Any]:
    messages: list[Any] = []
    for n in range(turns):
        call = {"type": "server_tool_use", "id": f"srvtoolu_{n}", "name": "web_search",
                "input": {"query": f"query {n}"}}  # fmt: skip
        found = {"type": "web_search_result", "url": f"https://example.com/{n}", "title": "A page",
                 "encrypted_content": LONG}  # fmt: skip
        result = {"type": "web_search_tool_result", "tool_use_id": call["id"], "content": [found]}
        words = {"type": "text", "text": f"Answer {n}."}
        parts = [[call], [result, words]] if paused else [[call, result, words]]
        messages.append({"role": "user", "content": f"Question {n}?"})
        messages += [{"role": "assistant", "content": content} for content in parts]
    messages.append({"role": "user", "content": "And now?"})
    return {"model": "claude-opus-4-8", "max_tokens": 500, "messages": messages}


def anthropic_paused(turns: int) -> dict[str, Any]:
    return anthropic(turns, paused=True)


def anthropic_mcp(turns: int) -> dict[str, Any]:
    messages: list[Any] = []
    for n in range(turns):
        call = {"type": "mcp_tool_use", "id": f"mcptoolu_{n}", "name": "find", "server_name": "s",
                "input": {}}  # fmt: skip
        result = {"type": "mcp_tool_result", "tool_use_id": call["id"], "is_error": False,
                  "content": [{"type": "text", "text": LONG}]}  # fmt: skip
        words = {"type": "text", "text": f"Answer {n}."}
        messages.append({"role": "user", "content": f"Question {n}?"})
        messages.append({"role": "assistant", "content": [call, result, words]})
    messages.append({"role": "user", "content": "And now?"})
    return {"model": "claude-opus-4-8", "max_tokens": 500, "messages": messages}


def responses_mcp(turns: int) -> dict[str, Any]:
    items: list[Any] = []
    for n in range(turns):
        items.append({"role": "user", "content": f"Question {n}?"})
        items.append({"type": "mcp_call", "id": f"mcp_{n}", "server_label": "s", "name": "find",
                      "arguments": "{}", "output": LONG})  # fmt: skip
        items.append({"role": "assistant", "content": f"Answer {n}."})
    items.append({"role": "user", "content": "And now?"})
    return {"model": "gpt-5.5", "max_output_tokens": 500, "input": items}


def tool_searches(turns: int) -> dict[str, Any]:
    """Each turn searches for the same tool, once by the server and once by the client."""
    found = {"type": "tool_reference", "tool_name": "query"}
    messages: list[Any] = [{"role": "user", "content": "Begin."}]
    for n in range(turns):
        results = {"type": "tool_search_tool_search_result", "tool_references": [found]}
        messages += [
            {"role": "assistant", "content": [
                {"type": "server_tool_use", "id": f"srvtoolu_{n}", "name": "tool_search_tool_bm25",
                 "input": {"query": f"query {n}"}},
                {"type": "tool_search_tool_result", "tool_use_id": f"srvtoolu_{n}",
                 "content": results},
                {"type": "tool_use", "id": f"toolu_{n}", "name": "find", "input": {"n": n}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": f"toolu_{n}",
                 "content": [{"type": "text", "text": LONG}, found]},
            ]},
        ]  # fmt: skip
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in ("query", "find")]
    messages += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "And now?"}]
    return {"model": "claude-opus-4-8", "max_tokens": 500, "tools": tools, "messages": messages}


CHATS = [anthropic, anthropic_paused, anthropic_mcp, responses_mcp, tool_searches]


@pytest.mark.parametrize("chat", CHATS)
def test_a_chat_with_server_tools_of_any_length_fits_a_small_window(chat: Any) -> None:
    for turns in (3, 12, 60):
        request = chat(turns)
        fitted = trimtab.fit(request, window=2_500, reserve=500)
        assert not trimtab.check(fitted.request)
        handles = [edit.handle for edit in fitted.report.edits if edit.handle]
        assert handles or turns < 60
        assert all(fitted.recall(handle) for handle in handles)


@pytest.mark.parametrize("chat", CHATS)
def test_its_minimum_does_not_grow_with_its_turns(chat: Any) -> None:
    few, many = (
        trimtab.fit(chat(turns), window=10**9, reserve=0).report.minimum for turns in (4, 40)
    )
    assert many <= few + 64
