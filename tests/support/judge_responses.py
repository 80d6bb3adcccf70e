"""An independent judge of OpenAI Responses: would the provider accept it, and how big is it.

Written from the item types and the quoted refusals alone; nothing of the library under test is
imported, so that both can only agree by being right.  Sizes follow sizes.py: o200k tokens of each
string that the model reads, + 4 a message, + 10 a call or result; a call, a result or a reasoning
is an item of its own and no message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import unreadable
from sizes import IMAGE_TOKENS, MESSAGE_TOKENS, PAIR_TOKENS, compact, o200k, request_bytes

__all__ = ["images", "o200k", "problems", "request_bytes", "result_chars", "tokens"]

CALLS = {
    *("function_call", "custom_tool_call", "shell_call", "local_shell_call"),
    *("apply_patch_call", "computer_call", "program", "tool_search_call"),
}
OUTPUTS = {
    *("function_call_output", "custom_tool_call_output", "shell_call_output"),
    *("local_shell_call_output", "apply_patch_call_output", "computer_call_output"),
    *("program_output", "tool_search_output"),
}
SERVER_RUN = {
    *("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"),
    "mcp_call",
}
BY_MODEL = CALLS | SERVER_RUN | {"item_reference", "mcp_list_tools", "mcp_approval_request"}
KNOWN = (
    BY_MODEL
    | OUTPUTS
    | {
        *("message", "reasoning", "compaction", "compaction_trigger", "additional_tools"),
        "mcp_approval_response",
    }
)
PREFIXES = {"message": "msg", "function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs"}
OPTIONAL_ID = {
    *("message", "function_call", "custom_tool_call", "tool_search_call", "shell_call"),
    "apply_patch_call",
}
"""Items the model makes that may be sent without their id."""


def problems(request: Any, model: str | None = None) -> list[str]:
    """Each reason for which the provider would refuse; [] when it would accept."""
    if found := unreadable.problems(request):
        return found
    body = request if isinstance(request, dict) else {"input": request}
    held = body.get("previous_response_id") or body.get("conversation")
    items = body.get("input")
    if isinstance(items, str) and items:
        return []
    if not items:
        return [] if held or body.get("prompt") else ["input: empty"]
    deepseek = "deepseek" in str(body.get("model") or model or "").lower()
    found = [f"{n}: not an item" for n, item in enumerate(items) if not isinstance(item, dict)]
    if found:
        return found
    found += _pairing(items, bool(held))
    for number, item in enumerate(items):
        found += [f"{number}: {what}" for what in _shape(item)]
        if not deepseek:
            found += [f"{number}: {what}" for what in _id(item)]
    found += _doubles(items)
    found += _adjacent(items) if deepseek else _thoughts(items)
    return found


def kind_of(item: dict[str, Any]) -> str:
    return item.get("type") or ("message" if "role" in item else "")


# --- calls and outputs ----------------------------------------------------------------------------


def _link(item: dict[str, Any]) -> str:
    return item.get("call_id") or (item.get("id") if "local_shell" in kind_of(item) else "") or ""


def _client_side(item: dict[str, Any]) -> bool:
    """Not a tool search that the server ran itself."""
    search = kind_of(item).startswith("tool_search")
    return not search or (item.get("execution") != "server" and bool(item.get("call_id")))


def _is_call(item: dict[str, Any]) -> bool:
    return kind_of(item) in CALLS and _client_side(item)


def _is_output(item: dict[str, Any]) -> bool:
    return kind_of(item) in OUTPUTS and _client_side(item)


def _pairing(items: list[Any], held: bool) -> Iterator[str]:
    called: dict[str, int] = {}
    answered: set[str] = set()
    given: set[str] = set()
    aliases = {item.get("id"): _link(item) for item in items if kind_of(item) == "local_shell_call"}
    references = any(
        kind_of(item) == "item_reference" and not str(item.get("id")).startswith(("rs_", "msg_"))
        for item in items
    )
    for number, item in enumerate(items):
        link = _link(item)
        if _is_call(item):
            if not link:
                yield f"{number}: call without call_id"
            elif link in called:
                yield f"{number}: second call {link}"
            called[link] = number
        elif _is_output(item):
            link = link if link in called else aliases.get(link, link)
            if link not in called:
                stored = (held or references) and link
                if not stored and kind_of(item) != "tool_search_output":
                    yield f"{number}: output without its call {link!r}"
            else:
                answered.add(link)
            if link in given:
                yield f"{number}: second output for {link}"
            given.add(link)
    for link, number in called.items():
        going_on = kind_of(items[number]) == "program" and not any(
            item.get("role") == "user" for item in items[number:]
        )
        if link not in answered and not going_on:
            yield f"{number}: call without output {link}"


def _adjacent(items: list[Any]) -> Iterator[str]:
    """DeepSeek: nothing may stand between a run of calls and the run of their outputs."""
    number = 0
    while number < len(items):
        asked, given = set[str](), set[str]()
        while number < len(items) and _is_call(items[number]):
            asked.add(_link(items[number]))
            number += 1
        while asked and number < len(items) and _is_output(items[number]):
            given.add(_link(items[number]))
            number += 1
        if asked - given:
            yield f"{number}: outputs not right behind their calls {sorted(asked - given)}"
        number += not asked


# --- single items ---------------------------------------------------------------------------------


def _shape(item: dict[str, Any]) -> Iterator[str]:
    kind, sealed = kind_of(item), item.get("encrypted_content")
    if kind == "message":
        content = item.get("content")
        if not isinstance(content, (str, list)):
            yield "content is neither string nor list"
        for part in content if isinstance(content, list) else []:
            if item.get("role") == "assistant" and part.get("type") == "input_text":
                yield "input_text of the assistant"
    if kind in CALLS | OUTPUTS and len(_link(item)) > 64:
        yield "call_id of more than 64 characters"
    if kind == "function_call" and not isinstance(item.get("arguments"), str):
        yield "arguments are not a string"
    if kind == "custom_tool_call" and not isinstance(item.get("input"), str):
        yield "input is not a string"
    output = item.get("output")
    if kind in ("function_call_output", "custom_tool_call_output"):
        if not isinstance(output, (str, list)):
            yield "output is neither string nor list"
    elif kind == "shell_call_output" and not isinstance(output, list):
        yield "output is not a list"
    elif kind == "local_shell_call_output" and not isinstance(output, str):
        yield "output is not a string"
    for key, inner in (("shell_call", "commands"), ("local_shell_call", "command")):
        if kind == key and not isinstance((item.get("action") or {}).get(inner, []), list):
            yield f"action.{inner} is not a list"
    if sealed and not re.fullmatch(r"[A-Za-z0-9+/=_-]+", sealed):
        yield "encrypted content could not be decrypted or parsed"


def _id(item: dict[str, Any]) -> Iterator[str]:
    value = item.get("id")
    kind = kind_of(item)
    if value is None or "local_shell" in kind or kind not in KNOWN:
        return
    if not re.fullmatch(r"[A-Za-z0-9_-]+", value):
        yield f"item id {value!r}"
    if len(value) > 64:
        yield "item id of more than 64 characters"
    if not value.startswith(PREFIXES.get(kind, "")):
        yield f"item id {value} has not its type's prefix"


def _doubles(items: list[Any]) -> Iterator[str]:
    seen: set[str] = set()
    for number, item in enumerate(items):
        value = item.get("id")
        if value and "local_shell" not in kind_of(item):
            if value in seen:
                yield f"{number}: duplicate item {value}"
            seen.add(value)


def _thoughts(items: list[Any]) -> Iterator[str]:
    """A reasoning item and what was made with it refer to each other by id, or not at all."""
    nameless = False
    for number, item in enumerate(items):
        kind = kind_of(item)
        if kind == "reasoning":
            nameless = not item.get("id")
            behind = next((i for i in items[number:] if kind_of(i) != "reasoning"), None)
            if not nameless and not _may_follow(behind):
                yield f"{number}: reasoning without its following item"
        elif item.get("role") == "user":
            nameless = False
        elif nameless and _made_by_model(item) and kind in OPTIONAL_ID and item.get("id"):
            yield f"{number}: {kind} without its required reasoning item"


def _made_by_model(item: dict[str, Any]) -> bool:
    kind = kind_of(item)
    return kind in BY_MODEL or (kind == "message" and item.get("role") == "assistant")


def _may_follow(item: dict[str, Any] | None) -> bool:
    if item is None or kind_of(item) in OUTPUTS:
        return False
    return kind_of(item) != "message" or item.get("role") == "assistant"


def thought_problems(original: Any, sent: Any) -> list[str]:
    """How ``sent`` breaks what ``original`` shows to belong together.

    Reasoning that stays is unchanged save for what no provider reads, and an item that stays with
    its id still has the reasoning that stood before it.
    """
    old, new = _items(original), _items(sent)
    kept = [item for item in new if isinstance(item, dict) and kind_of(item) == "reasoning"]
    known = [item for item in old if isinstance(item, dict) and kind_of(item) == "reasoning"]
    known += [unreadable.all_as_sent(item) for item in known]
    found = ["a reasoning item was changed" for item in kept if item not in known]
    ids = {item.get("id") for item in kept}
    needed: dict[str, set[str]] = {}  # two items of one id may stand behind different reasoning
    for name, reasoning in _requirements(old):
        needed.setdefault(name, set()).add(reasoning)
    found += [
        f"{item['id']} lost its reasoning {', '.join(sorted(needed[item['id']]))}"
        for item in new
        if isinstance(item, dict) and item.get("id") in needed and not needed[item["id"]] & ids
    ]
    return found


def _requirements(items: list[Any]) -> Iterator[tuple[str, str]]:
    reasoning = None
    for item in items:
        if isinstance(item, dict) and kind_of(item) == "reasoning":
            reasoning = item.get("id")
        elif isinstance(item, dict) and item.get("role") == "user":
            reasoning = None
        elif reasoning and isinstance(item, dict) and _made_by_model(item) and item.get("id"):
            yield item["id"], reasoning


def _items(request: Any) -> list[Any]:
    items = request.get("input") if isinstance(request, dict) else request
    return items if isinstance(items, list) else []


# --- sizes ----------------------------------------------------------------------------------------

SILENT = {
    *("type", "id", "call_id", "role", "name", "status", "phase", "caller", "execution"),
    *("fingerprint", "created_by", "max_output_length", "acknowledged_safety_checks"),
    *("content", "summary", "encrypted_content", "arguments", "input", "action", "operation"),
    *("code", "output", "result"),
}
"""Keys of known items that are no text, or are read under their own name."""


def tokens(request: Any, count: Callable[[str], int] | None = None) -> int:
    """Tokens of every string the model reads, + 4 a message, + 10 a call or result."""
    count = count or o200k()
    return sum(count(part) if isinstance(part, str) else part for part in _read(request))


def _read(request: Any) -> Iterator[str | int]:
    body = request if isinstance(request, dict) else {"input": request}
    said = body.get("instructions")
    yield said if isinstance(said, str) else compact(said) if said else ""
    tools = body.get("tools") or []
    searches = _is_new(str(body.get("model") or "")) and {"type": "tool_search"} in [
        {"type": tool.get("type")} for tool in tools
    ]
    yield from (compact(_read_at_first(tool) if searches else tool) for tool in tools)
    yield compact(body["prompt"]) if body.get("prompt") else ""
    schema = (body.get("text") or {}).get("format") or {}
    yield compact(schema) if "schema" in schema else ""
    if isinstance(body.get("input"), str):
        yield MESSAGE_TOKENS
        yield body["input"]
    for item in _items(body):
        yield from _item(item) if isinstance(item, dict) else [compact(item)]


def _is_new(model: str) -> bool:
    """gpt-5.4 and later, which can search for tools."""
    _, gpt, rest = model.lower().rpartition("gpt-")
    numbers = [int(n) for n in rest.split("-")[0].split(".") if n.isdigit()]
    return bool(gpt) and numbers >= [5, 4]


def _read_at_first(tool: Any) -> Any:
    """A deferred function is read by name and description until a search finds it."""
    if isinstance(tool, dict) and tool.get("type") == "namespace":
        inner = [one for one in tool.get("tools") or [] if not one.get("defer_loading")]
        return {**tool, "tools": inner}
    if isinstance(tool, dict) and tool.get("defer_loading"):
        return {key: tool[key] for key in ("type", "name", "description") if key in tool}
    return tool


def _item(item: dict[str, Any]) -> Iterator[str | int]:
    kind = kind_of(item)
    if kind == "message":
        yield MESSAGE_TOKENS
        yield from _content(item.get("content"))
    elif kind == "reasoning":
        texts = [*(item.get("summary") or []), *(item.get("content") or [])]
        yield "\n".join(part["text"] for part in texts)
        yield len(item.get("encrypted_content") or "") // 5
    elif kind in CALLS:
        yield PAIR_TOKENS
        yield item.get("name") or ""
        keys = ("arguments", "input", "action", "operation", "code")
        yield from (_spelled(item[key]) for key in keys if item.get(key) is not None)
    elif kind in OUTPUTS:
        yield PAIR_TOKENS
        yield from _output(kind, item)
    else:
        yield from _whole(kind, item)
        return
    for key, value in item.items():
        searched = kind == "tool_search_output" and key == "tools"
        if key not in SILENT and not searched and value not in (None, [], {}, ""):
            yield compact(value) if not isinstance(value, bool) else ""


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else compact(value)


def _output(kind: str, item: dict[str, Any]) -> Iterator[str | int]:
    if kind == "computer_call_output":
        yield IMAGE_TOKENS
    elif kind in ("tool_search_output", "program_output"):
        yield _spelled(item.get("tools" if kind == "tool_search_output" else "result") or "")
    elif kind == "shell_call_output":
        for chunk in item.get("output") or []:
            yield chunk["stdout"]
            yield chunk["stderr"]
            yield compact(chunk["outcome"])
    else:
        yield from _content(item.get("output"))


def _content(content: Any) -> Iterator[str | int]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict):
        yield compact(content)
    for part in content if isinstance(content, list) else []:
        kind = part.get("type") if isinstance(part, dict) else ""
        yield compact(part["annotations"]) if kind and part.get("annotations") else ""
        if kind in ("input_text", "output_text", "text"):
            yield part["text"]
        elif kind == "refusal":
            yield part["refusal"]
        elif kind == "input_image":
            yield IMAGE_TOKENS
        elif kind in ("input_file", "input_audio"):
            yield max(IMAGE_TOKENS, len(compact(part)) // 20)
        else:
            yield compact(part)


def _whole(kind: str, item: dict[str, Any]) -> Iterator[str | int]:
    shown = item
    if kind in SERVER_RUN:
        yield PAIR_TOKENS
    if kind == "image_generation_call" and item.get("result"):
        yield IMAGE_TOKENS
        shown = {key: value for key, value in item.items() if key != "result"}
    if kind == "compaction":
        yield len(item.get("encrypted_content") or "") // 5
        shown = {key: value for key, value in item.items() if key not in SILENT}
    yield compact(shown) if shown else ""


def result_chars(request: Any) -> list[int]:
    """Characters of the text in each tool result, in order."""
    found = []
    for item in _items(request):
        kind, output = kind_of(item), item.get("output")
        if kind == "shell_call_output":
            found.append(sum(len(chunk["stdout"] + chunk["stderr"]) for chunk in output))
        elif kind in OUTPUTS - {"computer_call_output", "tool_search_output", "program_output"}:
            parts = output if isinstance(output, list) else [{"text": output or ""}]
            found.append(sum(len(part.get("text") or "") for part in parts))
    return found


def images(request: Any) -> int:
    """How many images and files stand in messages and results."""
    media = ("input_image", "input_file", "input_audio")
    return sum(
        isinstance(part, dict) and part.get("type") in media
        for item in _items(request)
        for key in ("content", "output")
        for part in (item.get(key) if isinstance(item.get(key), list) else [])
    )
