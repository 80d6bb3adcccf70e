"""The law suite that third parties inherit, on every format we have.

Knows one rich, acceptable request a format.  The laws are in trimtab_lab.testing.format_laws.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest

from trimtab.formats import FORMATS
from trimtab.transcript.model import Group
from trimtab_lab.testing import FormatLaws
from trimtab_lab.testing.http_apis import HTTP_APIS

IMAGE = "aGVsbG8="
LONG = "a line of the result\n" * 5


def chat() -> dict[str, Any]:
    calls = [
        {
            "id": f"c{n}",
            "type": "function",
            "function": {"name": "read", "arguments": '{"path":"a"}'},
        }
        for n in range(2)
    ]
    return {
        "model": "gpt-5.1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Read both."}]},
            {"role": "assistant", "content": "Both, then.", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "c0", "content": LONG},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": LONG}]},
            {"role": "assistant", "content": None, "tool_calls": calls[:1]},
            {"role": "tool", "tool_call_id": "c0", "content": "again"},
            {"role": "assistant", "content": "They are equal."},
            {"role": "user", "content": "Thanks."},
        ],
    }


def responses() -> dict[str, Any]:
    call = {"type": "function_call", "name": "read", "arguments": '{"path":"a"}'}
    output = {"type": "function_call_output"}
    return {
        "model": "gpt-5.1",
        "instructions": "Be brief.",
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "Read."}],
            },
            {**call, "call_id": "c0"},
            {**call, "call_id": "c1"},
            {**output, "call_id": "c0", "output": LONG},
            {**output, "call_id": "c1", "output": LONG},
            {"type": "message", "role": "assistant", "content": "Equal."},
            {"type": "message", "role": "user", "content": "Once more."},
            {**call, "call_id": "c2"},
            {**output, "call_id": "c2", "output": LONG},
        ],
    }


def claude() -> dict[str, Any]:
    def call(name: str) -> Any:
        return {"type": "tool_use", "id": name, "name": "read", "input": {"path": "a"}}

    def result(name: str, content: Any) -> Any:
        return {"type": "tool_result", "tool_use_id": name, "content": content}

    def text(words: str) -> Any:
        return {"type": "text", "text": words}

    image = {"type": "base64", "media_type": "image/png", "data": IMAGE}
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 99,
        "system": [{"type": "text", "text": "Be brief."}],
        "tools": [{"name": "read", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "Read both."},
            {"role": "assistant", "content": [text("Yes."), call("a"), call("b")]},
            {"role": "user", "content": [result("a", LONG), result("b", [text(LONG)])]},
            {"role": "assistant", "content": [call("c")]},
            {"role": "user", "content": [
                result("c", [{"type": "image", "source": image}]),
                text("And this?"),
            ]},
            {"role": "assistant", "content": "Equal."},
            {"role": "user", "content": "Thanks."},
        ],
    }  # fmt: skip


def bedrock() -> dict[str, Any]:
    def call(name: str) -> Any:
        return {"toolUse": {"toolUseId": name, "name": "read", "input": {"path": "a"}}}

    def result(name: str, item: Any) -> Any:
        return {"toolResult": {"toolUseId": name, "content": [item], "status": "success"}}

    return {
        "modelId": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "system": [{"text": "Be brief."}],
        "toolConfig": {"tools": [
            {"toolSpec": {"name": "read", "inputSchema": {"json": {"type": "object"}}}}
        ]},
        "messages": [
            {"role": "user", "content": [{"text": "Read both."}]},
            {"role": "assistant", "content": [{"text": "Yes."}, call("a"), call("b")]},
            {"role": "user", "content": [
                result("a", {"text": LONG}), result("b", {"json": {"x": LONG}}),
            ]},
            {"role": "assistant", "content": [call("c")]},
            {"role": "user", "content": [result("c", {"text": LONG}), {"text": "And this?"}]},
        ],
    }  # fmt: skip


def gemini() -> dict[str, Any]:
    def call(**more: Any) -> Any:
        return {"functionCall": {"name": "read", "args": {"path": "a"}}, **more}

    def result(text: str) -> Any:
        return {"functionResponse": {"name": "read", "response": {"result": text}}}

    return {
        "model": "gemini-3.5-pro",
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"functionDeclarations": [{"name": "read"}]}],
        "contents": [
            {"role": "user", "parts": [{"text": "Read both."}]},
            {"role": "model", "parts": [call(thoughtSignature="c2ln"), call()]},
            {"role": "user", "parts": [result(LONG), result(LONG)]},
            {"role": "model", "parts": [{"text": "Equal."}]},
            {"role": "user", "parts": [{"text": "Once more."}]},
            {"role": "model", "parts": [call(thoughtSignature="c2ln")]},
            {"role": "user", "parts": [result(LONG)]},
        ],
    }


def interactions() -> dict[str, Any]:
    def call(call_id: str) -> Any:
        return {"type": "function_call", "id": call_id, "name": "read", "arguments": {"path": "a"}}

    def result(call_id: str, value: Any) -> Any:
        return {"type": "function_result", "call_id": call_id, "name": "read", "result": value}

    def words(kind: str, *content: Any) -> Any:
        return {"type": kind, "content": list(content)}

    text = {"type": "text", "text": LONG}
    image = {"type": "image", "data": IMAGE, "mime_type": "image/png"}
    return {
        "model": "gemini-3.8-flash",
        "system_instruction": "Be brief.",
        "tools": [{"type": "function", "name": "read", "parameters": {"type": "object"}}],
        "generation_config": {"max_output_tokens": 500},
        "input": [
            words("user_input", {"type": "text", "text": "Read both."}, image),
            {"type": "thought", "signature": IMAGE, "summary": [text]},
            call("a"),
            call("b"),
            result("a", LONG),
            result("b", [text, image]),
            call("a"),
            {**result("a", {"error": "gone"}), "is_error": True},
            words("model_output", {"type": "text", "text": "Equal."}),
            words("user_input", {"type": "text", "text": "Once more."}),
        ],
    }


EXAMPLES = {
    "openai-chat": chat, "openai-responses": responses, "anthropic": claude, "bedrock": bedrock,
    "gemini": gemini, "gemini-interactions": interactions,
}  # fmt: skip


def laws_of(name: str) -> type[FormatLaws]:
    members = {"format": FORMATS[name], "examples": [EXAMPLES[name]()]}
    return type(f"Test{name.title().replace('-', '')}", (FormatLaws,), members)


TestOpenAIChat = laws_of("openai-chat")
TestOpenAIResponses = laws_of("openai-responses")
TestAnthropic = laws_of("anthropic")
TestBedrock = laws_of("bedrock")
TestGemini = laws_of("gemini")
TestGeminiInteractions = laws_of("gemini-interactions")


def test_every_format_is_held_to_the_laws_and_spoken_by_the_provider():
    assert set(FORMATS) == set(EXAMPLES) == set(HTTP_APIS)


# --- the laws can fail -----------------------------------------------------------------------


def _lost_results(parts: Any, text: str) -> list[Any]:
    return []


def _shared_groups(transcript: Any) -> Any:
    groups = FORMATS["openai-chat"].groups(transcript)
    return (*groups, groups[-1])


def _no_results(transcript: Any) -> Any:
    """Groups without the results of their calls."""
    return tuple(
        Group(
            transcript.messages, transcript.base, group.numbers[:1],
            closed=group.closed, has_calls=group.has_calls,
        )
        for group in FORMATS["openai-chat"].groups(transcript)
    )  # fmt: skip


def _elsewhere(message: Any) -> Any:
    """Blocks whose path leads nowhere."""
    read = FORMATS["openai-chat"].read_message(message)
    moved = tuple(replace(block, path=("nowhere",)) for block in read.blocks)
    return replace(read, blocks=moved)


WRONG = [
    ("test_what_the_format_writes_it_reads_again", {"result_parts": _lost_results}),
    ("test_groups_are_in_order_and_do_not_overlap", {"groups": _shared_groups}),
    ("test_each_closed_group_can_be_dropped_alone", {"groups": _no_results}),
    ("test_every_block_stands_where_it_says", {"read_message": _elsewhere}),
    ("test_examples_are_recognised_and_acceptable", {"detect": lambda tree: None}),
]


@pytest.mark.parametrize(("law", "wrong"), WRONG, ids=[law for law, _ in WRONG])
def test_a_format_that_breaks_a_law_is_found_out(law, wrong):
    class Laws(FormatLaws):
        format: ClassVar[Any] = replace(FORMATS["openai-chat"], **wrong)
        examples: ClassVar[Any] = [chat()]

    with pytest.raises((AssertionError, LookupError)):
        getattr(Laws(), law)()
