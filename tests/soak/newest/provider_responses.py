"""What OpenAI's Responses API refuses, in its words; what it does not name passes.

Sources: developers.openai.com, the types of openai 3.57, and refusals quoted in public issues.
What the server remembers stands in the ids: ``fc_r_KEY`` was made after ``rs_KEY``.
Where no refusal is public the words are ours: programs, and approvals.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_PREFIX = {
    "function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs", "web_search_call": "ws",
    "image_generation_call": "ig", "mcp_call": "mcp", "mcp_list_tools": "mcpl",
}  # fmt: skip
_ANSWERED = (
    "function_call", "custom_tool_call", "shell_call", "apply_patch_call", "computer_call",
    "hologram_call",
)  # fmt: skip


def refusal(
    body: dict[str, Any], headers: dict[str, str] | None = None, dialect: str = ""
) -> str | None:
    """The provider's words, or None where it answers."""
    return next(_problems(body), None)


def _problems(body: dict[str, Any]) -> Iterator[str]:
    items = body.get("input")
    if isinstance(items, str) and items:
        return
    if not isinstance(items, list) or not items:
        yield "Invalid 'input': empty array. Expected an array with minimum length 1"
        return
    yield from _shapes(items)
    yield from _pairs(items)
    yield from _programs(items)
    yield from _reasoning(items, bool(body.get("store", True)))
    if len(re.findall(r'"prompt_cache_breakpoint"', json.dumps(body))) > 4:
        yield "At most 4 prompt_cache_breakpoint are allowed"


def _kind(item: dict[str, Any]) -> str:
    return str(item.get("type") or ("message" if "role" in item else ""))


def _shapes(items: list[Any]) -> Iterator[str]:
    ids: set[str] = set()
    for n, item in enumerate(items):
        kind, id = _kind(item), item.get("id")
        if not kind:
            yield f"Missing required parameter: 'input[{n}].type'."
        if isinstance(id, str) and kind != "local_shell_call_output":
            if id in ids:
                yield f"Duplicate item found with id {id}. Remove duplicate items from your input"
            ids.add(id)
            if len(id) > 64:
                yield f"Invalid 'input[{n}].id': string too long. maximum length 64"
            prefix = _PREFIX.get(kind)
            if kind == "message" and item.get("role") == "assistant":
                prefix = "msg"
            if prefix and not id.startswith(prefix):
                yield (
                    f"Invalid 'input[{n}].id': '{id}'. Expected an ID that begins with '{prefix}'."
                )
        if len(str(item.get("call_id") or "")) > 64:
            yield f"Invalid 'input[{n}].call_id': string too long. maximum length 64"
        if kind == "compaction_trigger" and n != len(items) - 1:
            yield "compaction_trigger must be the final input item"
        if kind == "message":
            yield from _message(n, item)
        if kind in ("function_call_output", "custom_tool_call_output") and "output" not in item:
            yield f"Missing required parameter: 'input[{n}].output'."


def _message(n: int, item: dict[str, Any]) -> Iterator[str]:
    content = item.get("content")
    if not isinstance(content, str | list):
        yield f"Invalid type for 'input[{n}].content'"
        return
    taken, refused = ("input_", ("output_text", "refusal"))
    if item.get("role") == "assistant":
        taken, refused = ("output_", ("input_text", "input_image"))
    for m, part in enumerate(content if isinstance(content, list) else ()):
        if part.get("type") in refused:
            yield (
                f"Invalid value: '{part['type']}'. Supported values begin with '{taken}'. "
                f"(input[{n}].content[{m}])"
            )


def _pairs(items: list[Any]) -> Iterator[str]:
    outputs = [item for item in items if _kind(item).endswith("_output")]
    answered = {(_kind(item), item.get("call_id")) for item in outputs}
    answered |= {("local_shell_call_output", item.get("id")) for item in outputs}
    open_searches, seen = 0, set[tuple[str, Any]]()
    for item in items:
        kind, call_id = _kind(item), item.get("call_id")
        key = (kind, item.get("id") if kind.startswith("local_shell") else call_id)
        if kind in _ANSWERED or kind == "local_shell_call":
            if (f"{kind}_output", key[1]) not in answered:
                words = {"function_call": "function call", "custom_tool_call": "custom tool call"}
                yield f"No tool output found for {words.get(kind, kind)} {key[1]}."
        elif kind == "tool_search_call":
            open_searches += 1
            if call_id and ("tool_search_output", call_id) not in answered:
                yield f"No tool output found for tool search call {call_id}."
        elif kind == "tool_search_output":
            open_searches -= 1
            if open_searches < 0 or (call_id and ("tool_search_call", call_id) not in seen):
                yield f"No tool call found for tool search output with call_id {call_id}."
        elif kind == "mcp_approval_response":
            if ("mcp_approval_request", item.get("approval_request_id")) not in seen:
                yield f"No approval request found with id {item.get('approval_request_id')}."
        elif kind.endswith("_output") and kind != "program_output":
            if (kind.removesuffix("_output"), key[1]) not in seen:
                yield f"No tool call found for function call output with call_id {key[1]}."
            if ("answered", key[1]) in seen:
                yield f"Duplicate tool output for call_id {key[1]}."
            seen.add(("answered", key[1]))
        seen.add(key)
        if kind == "mcp_approval_request":
            seen.add((kind, item.get("id")))
    if open_searches > 0 and _kind(items[-1]) != "tool_search_call":
        yield "No tool output found for tool search call None."


def _programs(items: list[Any]) -> Iterator[str]:
    """A program waits for outputs of the calls that it made, and for nothing else."""
    waiting: dict[Any, bool] = {}
    for item in items:
        kind, call_id = _kind(item), item.get("call_id")
        if kind == "program":
            waiting[call_id] = True
            continue
        caller = item.get("caller") or {}
        if caller.get("type") == "program" and caller.get("caller_id") not in waiting:
            yield f"No program found for tool call with caller_id {caller.get('caller_id')}."
        if kind == "program_output":
            if not waiting.pop(call_id, False):
                yield f"No program found for program output with call_id {call_id}."
        elif kind == "message" and item.get("role") == "user" and waiting:
            yield f"No program output found for program {next(iter(waiting))}."


def _reasoning(items: list[Any], stored: bool) -> Iterator[str]:
    present = {item.get("id") for item in items if _kind(item) == "reasoning"}
    for n, item in enumerate(items):
        kind, id = _kind(item), str(item.get("id") or "")
        if kind == "reasoning":
            after = items[n + 1] if n + 1 < len(items) else {}
            made = (
                _kind(after)
                and not _kind(after).endswith("_output")
                and (_kind(after) != "message" or after.get("role") == "assistant")
                and _kind(after) not in ("configuration_update", "additional_tools", "compaction")
            )
            if not made:
                yield (
                    f"Item '{id}' of type 'reasoning' was provided without its required following "
                    "item."
                )
            if not item.get("encrypted_content") and not stored:
                yield (
                    f"Item with id '{id}' not found. Items are not persisted when `store` is set "
                    "to false."
                )
        mark = re.fullmatch(r"[a-z]+_r_([a-z0-9]+)", id)
        if mark and f"rs_{mark[1]}" not in present:
            yield (
                f"Item '{id}' of type '{kind}' was provided without its required 'reasoning' "
                f"item: 'rs_{mark[1]}'."
            )


def channels(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(channel, text) of everything said."""
    items = body.get("input")
    for item in items if isinstance(items, list) else ():
        kind, text = _kind(item), json.dumps(item, ensure_ascii=False)
        if kind == "message":
            yield {"user": "user", "assistant": "model"}.get(item["role"], "system"), text
        elif kind in ("reasoning", "compaction"):
            yield "thinking", text
        elif kind.endswith("_output") or kind in ("mcp_list_tools", "additional_tools"):
            yield "tool", text
        elif kind in ("mcp_call", "code_interpreter_call", "file_search_call"):
            ran = {k: v for k, v in item.items() if k not in ("output", "outputs", "results")}
            yield "arguments", json.dumps(ran, ensure_ascii=False)
            for name in ("output", "outputs", "results"):
                yield "tool", json.dumps(item.get(name), ensure_ascii=False)
        elif kind.endswith("_call") or kind == "program":
            yield "arguments", text
        else:
            yield "model", text


def state(body: dict[str, Any]) -> set[str]:
    """Tools that the conversation has loaded, and settings that it has changed."""
    found: set[str] = set()
    items = body["input"] if isinstance(body.get("input"), list) else []
    for item in items:
        if _kind(item) in ("tool_search_output", "additional_tools", "mcp_list_tools"):
            found.update(f"{_kind(item)} {tool['name']}" for tool in item["tools"])
    updates = [i for i in items if _kind(i) == "configuration_update"]
    return found | {f"in effect: {json.dumps(updates[-1]['reasoning'])}"} if updates else found
