"""Where Bedrock Converse has its parts: content blocks, each under the key of its type."""

from __future__ import annotations

from trimtab.formats.engine.parts import PartRow, PartTable, Rows, ToolTable

_CALL_PATHS = (("toolUse", "toolUseId"), ("toolUse", "name"), ("toolUse", "input"))
_RESULT_PATHS = (("toolResult", "toolUseId"), (), ("toolResult", "content"))
_CALL = PartRow("call", *_CALL_PATHS, speaker="assistant")
_RESULT = PartRow(
    "result", *_RESULT_PATHS, error=("toolResult", "status"), failed=("error",), speaker="user",
    text=("toolResult", "content", 0, "text"),
)  # fmt: skip
CONTENT: Rows = {
    "text": PartRow("text", payload=("text",)),
    "toolUse": (
        PartRow("server-call", *_CALL_PATHS, speaker="assistant",
                when=(("toolUse", "type"), "server_tool_use")),
        _CALL,
    ),
    "toolResult": (
        _RESULT,
        PartRow("server-result", *_RESULT_PATHS, speaker="assistant"),
    ),
    "reasoningContent": PartRow(
        "reasoning", payload=("reasoningContent", "reasoningText", "text"),
        seal=("reasoningContent", "reasoningText", "signature"), speaker="assistant",
    ),
    "image": PartRow("media", payload=("image", "source"), medium="image"),
    "document": PartRow("media", payload=("document", "source"), medium="document"),
    "video": PartRow("media", payload=("video", "source"), medium="video"),
    "audio": PartRow("media", payload=("audio", "source"), medium="audio"),
    "cachePoint": PartRow("other"),
}  # fmt: skip

PARTS = PartTable(
    messages="messages",
    roles={"user": "user", "assistant": "assistant", "system": "system"},
    parts={"content": CONTENT},
    by_key=True,
    call=("toolUse", _CALL),
    result=("toolResult", _RESULT),
    tools=ToolTable(
        ("toolConfig", "tools"), within=("toolSpec",), schema=("inputSchema", "json"),
        choice=("toolConfig", "toolChoice"),
    ),
    mark="cachePoint",
)  # fmt: skip
