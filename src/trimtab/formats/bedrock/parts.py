"""Where Bedrock Converse has its parts: content blocks, each under the key of its type."""

from __future__ import annotations

from trimtab.formats.engine.parts import PartRow, PartTable, Rows

_CALL = (("toolUse", "toolUseId"), ("toolUse", "name"), ("toolUse", "input"))
_RESULT = (("toolResult", "toolUseId"), (), ("toolResult", "content"))
CONTENT: Rows = {
    "text": PartRow("text", payload=("text",)),
    "toolUse": (
        PartRow("server-call", *_CALL, speaker="assistant",
                when=(("toolUse", "type"), "server_tool_use")),
        PartRow("call", *_CALL, speaker="assistant"),
    ),
    "toolResult": (
        PartRow("result", *_RESULT, error=("toolResult", "status"), failed=("error",),
                speaker="user"),
        PartRow("server-result", *_RESULT, speaker="assistant"),
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
    mark="cachePoint",
)
