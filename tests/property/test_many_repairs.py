"""A request from which a repair takes thousands of things is read once, not once for each."""

from __future__ import annotations

import json

import pytest

import trimtab
from trimtab.jsontext import parsing, splicing

USER = {"role": "user", "content": "Go on."}
TOOLS = [{"type": "function", "function": {"name": f"t{n}", "parameters": {}}} for n in range(600)]
ORPHANS = [{"role": "tool", "tool_call_id": f"c{n}", "content": "No."} for n in range(600)]
RESULTS = [{"type": "tool_result", "tool_use_id": f"c{n}", "content": "No."} for n in range(600)]
REQUESTS = {
    "tools": ("openai-chat", {"model": "gpt-5.1", "messages": [USER], "tools": TOOLS}),
    "messages": ("openai-chat", {"model": "gpt-5.1", "messages": [USER, *ORPHANS, USER]}),
    "parts": ("anthropic", {
        "model": "claude-sonnet-4-5", "max_tokens": 9,
        "messages": [USER, {"role": "assistant", "content": "Yes."},
                     {"role": "user", "content": [*RESULTS, {"type": "text", "text": "Go on."}]}],
    }),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_what_repairs_take_is_found_in_one_reading(name, monkeypatch):
    format, request = REQUESTS[name]
    body, chars = json.dumps(request).encode(), []

    def counting(text, wanted):
        chars.append(len(text))
        return parsing.layout(text, wanted)

    monkeypatch.setattr(splicing, "layout", counting)
    session = trimtab.Session()
    fitted = session.fit(body, format=format)
    assert len(fitted.report.repairs) > 400
    assert sum(chars) < 6 * len(body)
    handles = [repair.handle for repair in fitted.report.repairs if repair.handle]
    assert len(handles) > 400
    assert all(map(fitted.recall, handles))
