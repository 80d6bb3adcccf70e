"""Input items of OpenAI Responses and two tables of them: what is refused, what is accepted.

Knows the item types and the error catalogue's kinds.  Does not know trimtab.
"""

from __future__ import annotations

from typing import Any

Items = list[Any]


def user(text: str = "Go on.") -> Any:
    return {
        "type": "message", "role": "user", "content": [{"type": "input_text", "text": text}],
    }  # fmt: skip


def said(text: str = "Well.", **more: Any) -> Any:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "role": "assistant", "content": content, **more}


def call(call_id: str = "c1", **more: Any) -> Any:
    base = {"type": "function_call", "call_id": call_id, "name": "read", "arguments": "{}"}
    return {**base, **more}


def output(call_id: str = "c1", text: Any = "done", **more: Any) -> Any:
    return {"type": "function_call_output", "call_id": call_id, "output": text} | more


def thought(name: str | None = "rs_1", **more: Any) -> Any:
    base = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAAbc" * 40, **more}
    return base if name is None else {**base, "id": name}


DEEPSEEK = {"model": "deepseek-v4-flash"}
COMPUTER = {
    "type": "computer_call", "id": "cu_1", "call_id": "c1", "status": "completed",
    "pending_safety_checks": [], "action": {"type": "screenshot"},
}  # fmt: skip
PATCH = {
    "type": "apply_patch_call", "call_id": "c1", "status": "completed",
    "operation": {"type": "delete_file", "path": "a.py"},
}  # fmt: skip
SHELL = {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}}
LOCAL = {"type": "local_shell_call", "id": "lsh_1", "call_id": "c1", "status": "completed",
         "action": {"type": "exec", "command": ["ls"], "env": {}}}  # fmt: skip
SEARCH = {"type": "tool_search_call", "call_id": "c1", "execution": "client",
          "arguments": {"query": "x"}, "status": "completed"}  # fmt: skip
CUSTOM = {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "*** Begin"}
SCREEN = {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}
CHUNK = {"stdout": "a.py", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
PROGRAM = {"type": "program", "id": "prg_1", "call_id": "c1", "code": "f()", "fingerprint": "x"}

# --- what a provider refuses: one request, one rule, one repair -----------------------------------

BROKEN: list[tuple[str, str, Items, dict[str, Any]]] = [
    # (kind of the error catalogue or what is odd, the rule, input, rest of the body)
    ("orphan_result", "orphan_result", [user(), output("call_uelf")], {}),
    ("orphan_result, of a shell", "orphan_result",
     [user(), {"type": "shell_call_output", "call_id": "x", "output": [CHUNK]}], {}),
    ("orphan_result, without id", "orphan_result",
     [user(), {"type": "function_call_output", "output": "x"}], {}),
    ("orphan_result, without id though the server holds state", "orphan_result",
     [{"type": "function_call_output", "output": "x"}, user()], {"previous_response_id": "r"}),
    ("missing_result", "call_unanswered", [user(), call(), user()], {}),
    ("missing_result, at the end", "call_unanswered", [user(), call()], {}),
    ("missing_result, one of two", "call_unanswered",
     [user(), call("a"), call("b"), output("b"), user()], {}),
    ("missing_result, the output stands first", "call_unanswered",
     [user(), output("c1"), call("c1"), user()], {}),
    ("missing_result, a custom tool", "call_unanswered", [user(), CUSTOM, user()], {}),
    ("missing_result, a shell", "call_unanswered", [user(), SHELL, user()], {}),
    ("missing_result, a local shell", "call_unanswered", [user(), LOCAL, user()], {}),
    ("missing_result, a patch", "call_unanswered", [user(), PATCH, user()], {}),
    ("missing_result, a computer", "call_unanswered", [user(), COMPUTER, user()], {}),
    ("missing_result, a program the user interrupted", "call_unanswered",
     [user(), PROGRAM, user()], {}),
    ("missing_result, a client's tool search", "call_unanswered", [user(), SEARCH, user()], {}),
    ("bad_order", "calls_interleaved",
     [user(), call("a"), said(), call("b"), output("a"), output("b"), user()], DEEPSEEK),
    ("bad_order, a developer's word between", "calls_interleaved",
     [user(), call(), {"role": "developer", "content": "hook"}, output(), user()], DEEPSEEK),
    ("duplicate_id", "duplicate_item", [user(), said(id="msg_1"), user(), said(id="msg_1")], {}),
    ("duplicate_id, other items", "duplicate_item",
     [user(), said("a", id="msg_1"), user(), said("b", id="msg_1")], {}),
    ("duplicate_id, a call id in two steps", "duplicate_call",
     [user(), call("t:0"), output("t:0"), call("t:0"), output("t:0", "other")], {}),
    ("duplicate_id, a second output", "duplicate_result",
     [user(), call(), output(), output("c1", "again")], {}),
    ("empty_content, no input", "no_input", [], {}),
    ("empty_content, null", "null_content", [user(), {"role": "assistant", "content": None}], {}),
    ("empty_content, null of the user", "null_content", [{"role": "user", "content": None}], {}),
    ("reasoning_item, nothing follows", "reasoning_alone", [user(), thought(), user()], {}),
    ("reasoning_item, at the end", "reasoning_alone", [user(), thought()], {}),
    ("reasoning_item, of a function_call", "reasoning_missing",
     [user(), thought(None), call(id="fc_1"), output()], {}),
    ("reasoning_item, of a message", "reasoning_missing",
     [user(), thought(None), said(id="msg_1"), user()], {}),
    ("thinking_signature", "encrypted_content",
     [user(), thought(encrypted_content="gAAA...DQ=="), call(id="fc_1"), output()], {}),
    ("thinking_signature, of a compaction", "encrypted_content",
     [{"type": "compaction", "id": "cmp_1", "encrypted_content": "gA…"}, user()], {}),
    ("id_format, call_id", "call_id_too_long", [user(), call("c" * 116), output("c" * 116)], {}),
    ("id_format, no call_id", "call_id_missing",
     [user(), {"type": "function_call", "name": "f", "arguments": "{}"}, output("")], {}),
    ("id_format, item id", "item_id_prefix", [user(), call(id="msg_1"), output()], {}),
    ("id_format, of a thought", "item_id_prefix",
     [user(), thought("item_1"), call(id="fc_1"), output()], {}),
    ("id_format, empty item id", "item_id_chars", [user(), said(id=""), user()], {}),
    ("id_format, long item id", "item_id_too_long",
     [user(), thought("rs_" + "x" * 413), said(id="msg_1"), user()], {}),
    ("id_format, of a search", "item_id_too_long",
     [user(), {"type": "web_search_call", "id": "ws_" + "x" * 80, "status": "completed"}], {}),
    ("an output that is an object", "output_type", [user(), call(), output(text={"a": 1})], {}),
    ("an output that is null", "output_type", [user(), call(), output(text=None)], {}),
    ("an output of a shell that is a text", "output_type",
     [user(), SHELL, {"type": "shell_call_output", "call_id": "c1", "output": "x"}], {}),
    ("arguments that are an object", "arguments_not_string",
     [user(), call(arguments={"path": "a"}), output()], {}),
    ("input_text of the model", "part_of_speaker",
     [user(), {**user(), "role": "assistant"}, user()], {}),
    ("a bare text among the items", "not_an_item", ["hello", user()], {}),
    ("null among the items", "not_an_item", [None, user()], {}),
]  # fmt: skip

ACCEPTED: list[tuple[str, Items | str, dict[str, Any]]] = [
    ("a text as the whole input", "Hello", {}),
    ("an output under previous_response_id", [output()], {"previous_response_id": "resp_1"}),
    ("an output in a conversation", [output()], {"conversation": "conv_1"}),
    ("nothing but server-held state", [], {"previous_response_id": "resp_1"}),
    ("a stored prompt", [], {"prompt": {"id": "pmpt_1"}}),
    ("an output of a call by reference",
     [{"type": "item_reference", "id": "fc_1"}, output()], {}),
    ("a server's tool search without output",
     [user(), {**SEARCH, "execution": "server", "call_id": None}, said()], {}),
    ("a function's output for a tool search", [user(), SEARCH, output()], {}),
    ("an item id without any reasoning", [user(), call(id="fc_1"), output()], {}),
    ("reasoning without id before items without", [user(), thought(None), call(), output()], {}),
    ("an empty text of the model", [user(), {"role": "assistant", "content": ""}, user()], {}),
    ("outputs later than other items",
     [user(), call("a"), said(), call("b"), user(), output("b"), output("a")], {}),
    ("a program that still waits", [user(), PROGRAM, call("c2"), output("c2")], {}),
    ("a local shell answered by the call's id",
     [user(), LOCAL, {"type": "local_shell_call_output", "id": "c1", "output": "x"}], {}),
    ("a local shell answered by the item's id",
     [user(), LOCAL, {"type": "local_shell_call_output", "id": "lsh_1", "output": "x"}], {}),
    ("the six pairs",
     [user(), {**call("f"), "id": "fc_f"}, output("f"), {**CUSTOM, "call_id": "u"},
      {"type": "custom_tool_call_output", "call_id": "u", "output": "x"},
      {**SHELL, "call_id": "s"}, {"type": "shell_call_output", "call_id": "s", "output": [CHUNK]},
      {**PATCH, "call_id": "p"},
      {"type": "apply_patch_call_output", "call_id": "p", "status": "completed"},
      {**COMPUTER, "call_id": "k"},
      {"type": "computer_call_output", "call_id": "k", "output": SCREEN},
      {**PROGRAM, "call_id": "g"},
      {"type": "program_output", "id": "po", "call_id": "g", "result": "1", "status": "completed"},
     ], {}),
    ("DeepSeek: calls together, then their outputs",
     [user(), call("a"), call("b"), output("b"), output("a"), user()], DEEPSEEK),
    ("DeepSeek: reasoning under an id of its own", [user(), thought("76f8"), call(), output()],
     DEEPSEEK),
    ("items nobody knows", [user(), {"type": "dream", "id": "dr 1", "call_id": None}], {}),
]  # fmt: skip
