"""Where OpenAI Responses has its parts: in messages by their ``type``, or as items of their own."""

from __future__ import annotations

from typing import Any

from trimtab.formats.engine.parts import PartRow, PartTable, Rows, ToolTable

_TEXT = PartRow("text", payload=("text",))
CONTENT: dict[str, PartRow] = {
    "input_text": _TEXT,
    "output_text": _TEXT,
    "text": _TEXT,
    "summary_text": _TEXT,
    "reasoning_text": _TEXT,
    "refusal": PartRow("text", payload=("refusal",)),
    "input_image": PartRow("media", medium="image"),
    "input_file": PartRow("media", medium="document"),
    "input_audio": PartRow("media", medium="audio"),
}


def _call(payload: str, spelling: Any = "json", named: str = "", **more: Any) -> PartRow:
    return PartRow(
        "call", ("call_id",), ("name",), (payload,), spelling, named=named, speaker="assistant",
        **more,
    )  # fmt: skip


def _result(payload: str = "output") -> PartRow:
    return PartRow(
        "result", ("call_id",), payload=(payload,), error=("status",),
        failed=("failed", "incomplete"), written=("id", "payload"),
    )  # fmt: skip


def _server(payload: str = "", id: str = "id", **more: Any) -> PartRow:
    return PartRow(
        "server-call", (id,), payload=(payload,) if payload else (), speaker="assistant", **more
    )


_FUNCTION, _OUTPUT = _call("arguments", "json-string"), _result()
_BY_SERVER = (("execution",), "server")
ITEMS: Rows = {
    "reasoning": PartRow(
        "reasoning", payload=("summary",), seal=("encrypted_content",), speaker="assistant"
    ),
    "function_call": _FUNCTION,
    "custom_tool_call": _call("input", "string"),
    "shell_call": _call("action", named="shell"),
    "local_shell_call": _call("action", named="local_shell"),
    "apply_patch_call": _call("operation", named="apply_patch"),
    "computer_call": _call("action", named="computer"),
    "program": _call("code", named="program"),
    "tool_search_call": (
        _server("arguments", "call_id", named="tool_search", when=_BY_SERVER),
        _call("arguments", named="tool_search"),
    ),
    "function_call_output": _OUTPUT,
    "custom_tool_call_output": _result(),
    "shell_call_output": _result(),
    "local_shell_call_output": _result(),
    "apply_patch_call_output": _result(),
    "computer_call_output": _result(),
    "program_output": _result("result"),
    "tool_search_output": (
        PartRow("server-result", ("call_id",), payload=("tools",), when=_BY_SERVER),
        _result("tools"),
    ),
    "web_search_call": _server(),
    "file_search_call": _server(),
    "code_interpreter_call": _server(),
    "image_generation_call": _server("result"),
    "mcp_call": _server("output"),
    "compaction": PartRow("compaction", seal=("encrypted_content",)),
    "item_reference": PartRow("other", speaker="assistant"),
    "mcp_list_tools": PartRow("other", speaker="assistant"),
    "mcp_approval_request": PartRow("other", speaker="assistant"),
    "compaction_trigger": PartRow("other"),
    "configuration_update": PartRow("other"),
    "additional_tools": PartRow("other"),
    "mcp_approval_response": PartRow("other"),
}
"""Every item beside messages that is read; items of other types are sent unchanged."""

PARTS = PartTable(
    messages="input",
    roles={"system": "system", "developer": "system", "user": "user", "assistant": "assistant"},
    parts={"content": CONTENT},
    items=ITEMS,
    call=("function_call", _FUNCTION),
    result=("function_call_output", _OUTPUT),
    tools=ToolTable(outer={"type": "function"}, after={"strict": False}),
    mark="prompt_cache_breakpoint",
)
