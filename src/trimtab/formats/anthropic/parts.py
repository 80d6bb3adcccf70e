"""Where Anthropic Messages has its parts: content blocks with a ``type``."""

from __future__ import annotations

from trimtab.formats.engine.parts import PartRow, PartTable, Rows, ToolTable

_CALL = PartRow("call", ("id",), ("name",), ("input",), speaker="assistant")
_RESULT = PartRow(
    "result", ("tool_use_id",), payload=("content",), error=("is_error",), failed=(True,),
    speaker="user",
)  # fmt: skip
_SERVER_CALL = PartRow("server-call", ("id",), ("name",), ("input",))
CONTENT: Rows = {
    "text": PartRow("text", payload=("text",)),
    "tool_use": _CALL,
    "tool_result": _RESULT,
    "thinking": PartRow(
        "reasoning", payload=("thinking",), seal=("signature",), speaker="assistant"
    ),
    "redacted_thinking": PartRow("reasoning", seal=("data",), speaker="assistant"),
    "image": PartRow("media", payload=("source",), medium="image"),
    "document": PartRow("media", payload=("source",), medium="document"),
    "server_tool_use": _SERVER_CALL,
    "mcp_tool_use": _SERVER_CALL,
    "*_tool_result": PartRow("server-result", ("tool_use_id",), payload=("content",)),
    "compaction": PartRow("compaction", payload=("content",), seal=("signature",)),
}  # fmt: skip

PARTS = PartTable(
    messages="messages",
    roles={"system": "system", "user": "user", "assistant": "assistant"},
    parts={"content": CONTENT},
    call=("tool_use", _CALL),
    result=("tool_result", _RESULT),
    tools=ToolTable(schema=("input_schema",)),
    mark="cache_control",
)
