"""Where Chat Completions has its parts: content with a ``type``, calls and reasoning beside it,
results as messages, and the blocks of Anthropic that gateways accept."""

from __future__ import annotations

from trimtab.formats.engine.parts import PartRow, PartTable, Rows, ToolTable

_TEXT = PartRow("text", payload=("text",))
_IMAGE, _DOCUMENT = PartRow("media", medium="image"), PartRow("media", medium="document")
CONTENT: Rows = {
    "text": _TEXT,
    "input_text": _TEXT,
    "output_text": _TEXT,
    "refusal": PartRow("text", payload=("refusal",)),
    "image_url": PartRow("media", payload=("image_url",), medium="image"),
    "input_image": _IMAGE,
    "image": _IMAGE,
    "file": PartRow("media", payload=("file",), medium="document"),
    "document": _DOCUMENT,
    "input_audio": PartRow("media", payload=("input_audio",), medium="audio"),
    "tool_use": PartRow("call", ("id",), ("name",), ("input",)),
    "tool_result": PartRow(
        "result", ("tool_use_id",), payload=("content",), error=("is_error",), failed=(True,)
    ),
    "thinking": PartRow("reasoning", payload=("thinking",), seal=("signature",)),
    "redacted_thinking": PartRow("reasoning", seal=("data",)),
    "*_tool_use": PartRow("server-call", ("id",), ("name",), ("input",)),
    "*_tool_result": PartRow("server-result", ("tool_use_id",), payload=("content",)),
}
_FUNCTION = PartRow("call", ("id",), ("function", "name"), ("function", "arguments"), "json-string")
_RESULT = PartRow(
    "result", ("tool_call_id",), ("name",), ("content",), written=("id", "payload"),
    error=("status",), failed=("error",),  # as LangChain keeps it
)  # fmt: skip
CALLS: Rows = {
    "custom": PartRow("call", ("id",), ("custom", "name"), ("custom", "input"), "string"),
    "*": _FUNCTION,
}

PARTS = PartTable(
    messages="messages",
    roles={"system": "system", "developer": "system", "user": "user", "assistant": "assistant"},
    parts={
        "content": CONTENT,
        "reasoning_content": PartRow("reasoning"),
        "reasoning": PartRow("reasoning"),
        "reasoning_details": PartRow("reasoning"),
        "tool_calls": CALLS,
        "function_call": PartRow("call", (), ("name",), ("arguments",), "json-string"),
    },
    items={
        "tool": _RESULT,
        "function": PartRow("result", (), ("name",), ("content",)),
    },
    item_by="role",
    call=("function", _FUNCTION),
    result=("tool", _RESULT),
    tools=ToolTable(outer={"type": "function"}, within=("function",)),
    mark="cache_control",
)  # fmt: skip
