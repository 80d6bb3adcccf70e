"""What is recalled is what was given, also where repair changed it before it was taken out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from soak.recalls import Values, run

import trimtab


def long_text(seed: int) -> str:
    return "".join(f"row {n}: value_{n * 7919 + seed} of {n * 31 ^ seed}\n" for n in range(150))


LONG = long_text(1)


def called(call_id: Any, *, text: str | None = None, name: str = "read") -> dict[str, Any]:
    call = {"type": "tool_use", "id": call_id, "name": name, "input": {"path": f"{call_id}.py"}}
    words = [] if text is None else [{"type": "text", "text": text}]
    return {"role": "assistant", "content": [*words, call]}


def answered(call_id: Any, text: str) -> dict[str, Any]:
    part = {"type": "tool_result", "tool_use_id": call_id, "content": text}
    return {"role": "user", "content": [part]}


ASKED: dict[str, Any] = {"role": "user", "content": "Please look."}
REST = [
    step for n in range(6) for step in (called(f"r{n}"), answered(f"r{n}", long_text(1_000 * n)))
]
ANTHROPIC = {
    "an empty part": [ASKED, called("a", text=""), answered("a", LONG), *REST],
    "odd ids": [ASKED, called("a.b/c"), answered("a.b/c", LONG), *REST],
    "no result": [ASKED, called("a"), called("b"), answered("b", LONG), *REST],
    "a result that comes late": [
        ASKED, called("a"), called("b"), answered("b", LONG), answered("a", LONG), *REST,
    ],
    "an id that came twice": [
        ASKED, called("a"), answered("a", LONG), called("a"), answered("a", LONG[9:]), *REST,
    ],
    "a message in two": [
        ASKED, {"role": "assistant", "content": [{"type": "text", "text": "I look."}]},
        called("a"), answered("a", LONG), *REST,
    ],
}  # fmt: skip


def item(kind: str, number: int) -> dict[str, Any]:
    return {"type": kind, "id": f"{kind[:2]}_{number}", "call_id": f"call_{number}"}


def reasoned(number: int, *, alone: bool = False) -> list[dict[str, Any]]:
    thought = {"type": "reasoning", "id": f"rs_{number}", "summary": []}
    call = {
        **item("function_call", number),
        "name": "read",
        "arguments": json.dumps({"path": number}),
    }
    output = {**item("function_call_output", number), "output": long_text(number)}
    return [thought, call, output] if not alone else [call, output]


RESPONSES = {
    "a neighbour's id": [
        {"role": "user", "content": "Please look."},
        *reasoned(0)[:1],
        {"role": "user", "content": "And now?"},
        *(one for n in range(1, 8) for one in reasoned(n, alone=n == 2)),
    ],
}
CASES = [("anthropic", name) for name in ANTHROPIC] + [("openai-responses", n) for n in RESPONSES]


@pytest.mark.parametrize(("format", "name"), CASES)
@pytest.mark.parametrize("as_bytes", [False, True])
def test_each_recalled_value_stands_in_the_request_as_it_was_given(
    format: str, name: str, as_bytes: bool
) -> None:
    if format == "anthropic":
        body: dict[str, Any] = {"model": "claude-opus-4-5", "max_tokens": 100}
        body["messages"] = ANTHROPIC[name]
    else:
        body = {"model": "gpt-5.2", "input": RESPONSES[name]}
    given = Values(body)
    request: Any = json.dumps(body, indent=1).encode() if as_bytes else body
    fitted = trimtab.fit(request, format=format, window=6_000, reserve=0)
    handles = [edit.handle for edit in fitted.report.edits if edit.op != "insert"]
    assert "fold" in {edit.kind for edit in fitted.report.edits}
    for handle in handles:
        assert given.lacks(fitted.recall(handle)) == ""
        if as_bytes and fitted.recall(handle)[:2] == "[{":
            assert "\n" in fitted.recall(handle)  # as it was spelled


def test_two_hundred_recalls_over_generated_histories_are_all_exact() -> None:
    tally = run(200, seed=9_000)
    assert tally.count >= 200
    assert tally.faults == []
