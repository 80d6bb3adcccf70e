"""Where Gemini Interactions has its parts: contents in steps by their ``type``, calls, results and
thoughts as steps of their own.  (google-genai 3.4: ``Step``, ``Content``)"""

from __future__ import annotations

from dataclasses import replace

from trimtab.formats.engine.parts import PartRow, PartTable, ToolTable

CONTENT: dict[str, PartRow] = {
    "text": PartRow("text", payload=("text",)),
    "image": PartRow("media", medium="image"),
    "document": PartRow("media", medium="document"),
    "audio": PartRow("media", medium="audio"),
    "video": PartRow("media", medium="video"),
}
SERVER_TOOLS = (
    *("code_execution", "file_search", "google_maps", "google_search", "mcp_server_tool"),
    *("processing", "retrieval", "tool_search", "url_context"),
)
"""Tools that Google runs: one answer contains both their ``…_call`` and ``…_result`` steps."""
_SERVER_CALL = PartRow("server-call", ("id",), payload=("arguments",), speaker="assistant")
_SERVER_RESULT = PartRow("server-result", ("call_id",), payload=("result",), speaker="assistant")
_CALL = PartRow("call", ("id",), ("name",), ("arguments",), speaker="assistant")
_RESULT = PartRow(
    "result", ("call_id",), ("name",), ("result",), error=("is_error",), failed=(True,),
    written=("id", "name", "payload", "error"),
)  # fmt: skip
STEPS: dict[str, PartRow] = {
    "function_call": _CALL,
    "function_result": _RESULT,
    "thought": PartRow("reasoning", payload=("summary",), seal=("signature",), speaker="assistant"),
    **{f"{tool}_call": _SERVER_CALL for tool in SERVER_TOOLS},
    **{f"{tool}_result": _SERVER_RESULT for tool in SERVER_TOOLS},
}

PARTS = PartTable(
    messages="input",
    roles={"user": "user", "model": "assistant", "user_input": "user", "model_output": "assistant"},
    parts={"content": CONTENT},
    call=("function_call", _CALL),
    result=("function_result", _RESULT),
    tools=ToolTable(outer={"type": "function"}, choice=("generation_config", "tool_choice")),
    items={**STEPS, **{kind: replace(row, speaker="user") for kind, row in CONTENT.items()}},
)
