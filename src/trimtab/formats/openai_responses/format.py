"""OpenAI Responses: reads input items into blocks and writes edits back.

It pairs calls with results and forms steps of the model's items; ``responses_items`` reads a
single item.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from trimtab.formats.engine.base import compact, other_block, text_or_none
from trimtab.formats.engine.grouping import join_linked
from trimtab.formats.openai_responses.items import MARK, TYPES, output_item, read_message
from trimtab.jsontext.paths import Path
from trimtab.transcript.model import Block, Facts, Group, Message, Part, Place
from trimtab.transcript.tokens import MESSAGE_TOKENS
from trimtab.transcript.transcript import MessagePass, Transcript

HEAD_KEYS = ("instructions", "tools", "prompt", "text", "model")

__all__ = ["output_item", "read_message"]

_PARTS = ("input_text", "output_text", "input_image", "input_file")
_STATE = ("previous_response_id", "conversation")
_DIALECTS = ("deepseek",)
_GPT = re.compile(r"\bgpt-(\d{1,3})(?:\.(\d{1,3}))?(?!\d)")
_UNTOUCHED = frozenset(("item_reference", "mcp_list_tools", "mcp_approval_request"))
"""Items that others may refer to, or that define tools: their step is never dropped."""
_OWN_ID = frozenset({
    "message", "function_call", "custom_tool_call",
    "tool_search_call", "shell_call", "apply_patch_call",
})  # fmt: skip
"""Items made by the model that may be sent without their ``id`` (it is optional in the API's item
types, or Codex leaves it out and its requests are accepted)."""


def detect(tree: Any) -> str | None:
    """Detect an ``input`` or server-held state; in a bare list, an item only this format has."""
    if isinstance(tree, dict):
        if "messages" in tree or "contents" in tree:
            return None
        if isinstance(tree.get("input"), (list, str)):
            return "the body has input"
        own_key = next((key for key in _STATE if tree.get(key) is not None), None)
        return f"the body has {own_key}" if own_key else None
    for item in tree:
        if isinstance(item, dict):
            if item.get("type") in TYPES:
                return f"an item is of type {item['type']}"
            content = item.get("content")
            for part in content if isinstance(content, list) else ():
                if isinstance(part, dict) and part.get("type") in _PARTS:
                    return f"a message has a part of type {part['type']}"
    return None


def is_own(message: Mapping[str, Any]) -> bool:
    """A call or the output of one."""
    kind = str(message.get("type"))
    if message.get("role") is not None:
        return False
    return kind.endswith("_call_output") or (kind == "function_call" and "call_id" in message)


def read_head(tree: Any) -> tuple[Block, ...]:
    """Instructions, tool definitions, stored prompt, answer schema; ``input`` if it is a text."""
    if not isinstance(tree, dict):
        return ()
    blocks = []
    prompt = tree.get("instructions")
    if isinstance(prompt, str):
        blocks.append(Block("system", ("instructions",), ("instructions",), prompt))
    elif prompt:
        blocks.append(other_block(prompt, ("instructions",)))
    tools = tree.get("tools")
    searched = _defers(tree.get("model"), tools)
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        path: Path = ("tools", index)
        definition = compact(_read_at_first(tool) if searched else tool)
        blocks.append(Block("tools", path, path, definition, sealed=True))
    if tree.get("prompt"):
        blocks.append(other_block(tree["prompt"], ("prompt",)))
    text = tree.get("text")
    schema = text.get("format") if isinstance(text, dict) else None
    if isinstance(schema, dict) and "schema" in schema:
        path = ("text", "format")
        blocks.append(Block("tools", path, path, compact(schema), sealed=True))
    if isinstance(tree.get("input"), str):  # equals one user message
        path = ("input",)
        blocks.append(Block("text", path, path, tree["input"], fixed_tokens=MESSAGE_TOKENS))
    return tuple(blocks)


def _defers(model: Any, tools: Any) -> bool:
    """Whether the model searches for deferred tools: from gpt-5.4 on, with a ``tool_search``."""
    version = _GPT.search(str(model or "").lower())
    if version is None or (int(version[1]), int(version[2] or 0)) < (5, 4):
        return False
    tools = tools if isinstance(tools, list) else []
    return any(isinstance(tool, dict) and tool.get("type") == "tool_search" for tool in tools)


def _read_at_first(tool: Any) -> Any:
    """What the model reads of a definition before a search has found it: of a deferred function
    name and description, in a namespace nothing.  What a search finds is in its own item.
    (https://developers.openai.com/api/docs/guides/tools-tool-search)"""
    if not isinstance(tool, dict):
        return tool
    if tool.get("defer_loading") is True and tool.get("type") in ("function", "custom"):
        return {key: tool[key] for key in ("type", "name", "description") if key in tool}
    if tool.get("type") == "namespace" and isinstance(tool.get("tools"), list):
        inner = (one for one in tool["tools"] if isinstance(one, dict))
        return {**tool, "tools": [one for one in inner if one.get("defer_loading") is not True]}
    return tool


def read_facts(tree: Any, model: str | None) -> Facts:
    """Model and its dialect, ``max_output_tokens``, tools, whether the server holds state."""
    if not isinstance(tree, dict):
        return Facts(model=model, dialect=_dialect(model), bare=True)
    tools = tree.get("tools")
    named = tools if isinstance(tools, list) else []
    model = model or text_or_none(tree.get("model"))
    return Facts(
        model=model,
        dialect=_dialect(model),
        max_output=tree.get("max_output_tokens"),
        tools=tuple(str(t.get("name") or t.get("type") or "") for t in named) if named else None,
        server_state=any(tree.get(key) is not None for key in _STATE),
        managed=bool(tree.get("context_management")) or tree.get("truncation") == "auto",
        extra={"asks": bool(tree.get("prompt") or tree.get("input"))},
    )


def _dialect(model: Any) -> str:
    low = str(model or "").lower()
    return next((dialect for dialect in _DIALECTS if dialect in low), "openai")


# --- pairs and steps -------------------------------------------------------------------------


class Pairs(MessagePass):
    """Calls and results of the whole input by their index, oldest first.

    A result answers the oldest open call before it that has the same id.
    """

    def __init__(self) -> None:
        self.answers: dict[int, int] = {}
        """Call → its result, in the order of results."""
        self.open: dict[int, None] = {}
        """Calls without a result."""
        self.lone: list[int] = []
        """Results without a call before them."""
        self.twice: list[int] = []
        """Calls that repeat an earlier call's id."""
        self.nameless: list[int] = []
        """Calls without an id."""
        self.names: set[str] = set()
        """The ids of calls."""
        self._waiting: dict[str, list[int]] = {}

    def add(self, number: int, message: Message) -> None:
        """Queue a call under its id (a local shell call also under the item's id); match a result
        with the first call queued under its id."""
        waiting = self._waiting
        if message.calls:
            call_id = message.calls[0].id
            if not call_id:
                self.nameless.append(number)
            elif call_id in self.names:
                self.twice.append(number)
            self.names.add(call_id)
            self.open[number] = None
            waiting.setdefault(call_id, []).append(number)
            if message.type == "local_shell_call" and message.id not in (None, "", call_id):
                waiting.setdefault(message.id or "", []).append(number)
        elif message.results:
            queue = waiting.get(message.results[0].id, [])
            while queue and queue[0] in self.answers:  # answered under its other id
                queue.pop(0)
            if queue:
                call = queue.pop(0)
                self.answers[call] = number
                del self.open[call]
            else:
                self.lone.append(number)


def companions(messages: Sequence[Message], number: int) -> Iterator[int]:
    """Indices of the model's items that may belong to the same response as this reasoning.

    That is all up to the next reasoning or user message: clients put results between the calls of
    one response, so its end is unknown.
    """
    for other in range(number + 1, len(messages)):
        message = messages[other]
        if message.role == "user" or message.type == "reasoning":
            return
        if message.role == "assistant":
            yield other


def may_lose_id(message: Message) -> bool:
    """Whether this item may be sent without its ``id``."""
    return message.type in _OWN_ID


def dependent_paths(transcript: Transcript, place: Place) -> tuple[Path, ...]:
    """Paths of the ids of items made with this reasoning: an item with an id demands it."""
    if place.block.kind != "reasoning" or place.message < 0:
        return ()
    messages = transcript.messages
    return tuple(
        (*transcript.base, number, "id")
        for number in companions(messages, place.message)
        if messages[number].id is not None and may_lose_id(messages[number])
    )


def groups(transcript: Transcript) -> tuple[Group, ...]:
    """Groups: each run of the model's items up to the last result of its calls; overlapping runs
    are merged."""
    pairs, in_use = transcript.passed(Pairs), transcript.passed(_Definitions).used
    steps = [_group(transcript, pairs, *step, in_use) for step in _steps(transcript, pairs)]
    return join_linked(transcript, steps, server_answers=False)


class _Definitions(MessagePass):
    """Index of each tool search output whose tool is called later → index of that call."""

    def __init__(self) -> None:
        self.used: dict[int, int] = {}
        self._found_by: dict[str, int] = {}

    def add(self, number: int, message: Message) -> None:
        if message.type == "tool_search_output":
            self._found_by.update(dict.fromkeys(message.parts[0].tool.split(), number))
        elif message.calls and message.calls[0].tool in self._found_by:
            self.used.setdefault(self._found_by[message.calls[0].tool], number)


def _steps(transcript: Transcript, pairs: Pairs) -> list[tuple[int, int]]:
    """The first and last item of each step."""
    messages, steps = transcript.messages, list[tuple[int, int]]()
    number = 0
    while number < len(messages):
        if messages[number].role != "assistant":
            number += 1
            continue
        first = number
        while number < len(messages) and messages[number].role == "assistant":
            number += 1
        last = max([number - 1, *(pairs.answers.get(n, n) for n in range(first, number))])
        end = number
        while steps and (first <= steps[-1][1] or _leans_back(messages, first, end, steps[-1])):
            before = steps.pop()  # the merged step may in turn need the one before it
            first, last = before[0], max(last, before[1])
            end = max(end, last + 1)
        steps.append((first, last))
    return steps


def _leans_back(messages: Sequence[Message], first: int, end: int, step: tuple[int, int]) -> bool:
    """Whether a run may need the previous step's reasoning, by an ``id`` that must stay."""
    own = next((n for n in range(first, end) if messages[n].type == "reasoning"), end)
    bound = any(messages[n].id and not may_lose_id(messages[n]) for n in range(first, own))
    between = range(step[1] + 1, first)
    return bound and not any(messages[n].role == "user" for n in between)


def _group(
    transcript: Transcript, pairs: Pairs, first: int, last: int, in_use: Container[int]
) -> Group:
    messages = transcript.messages
    ours = [n for n in range(first, last + 1) if messages[n].role in ("assistant", "tool")]
    calls = [n for n in ours if messages[n].calls]
    answers = {pairs.answers.get(n) for n in calls}
    closed = (
        None not in answers
        and all(n in answers for n in ours if messages[n].results)
        and not any(messages[n].type in _UNTOUCHED or n in in_use for n in ours)
    )
    # What the provider ran itself is a step too: its results are talk, and large.
    ran = any(part.kind == "other" for n in ours for part in messages[n].parts)
    return Group(messages, transcript.base, ours, closed=closed, has_calls=bool(calls) or ran)


# --- writing ---------------------------------------------------------------------------------


def text_part(text: str, *, marked: Any = None) -> Any:
    """``{"type": "input_text", "text": …}``, the part type of user messages and tool results."""
    return {"type": "input_text", "text": text} | ({MARK: marked} if marked else {})


def text_message(role: str, text: str, *, marked: Any = None) -> Any:
    """A message item of one text; with a breakpoint its content is a list of one part (the model's
    own texts can't carry one)."""
    listed = marked and role != "assistant"
    content = [text_part(text, marked=marked)] if listed else text
    return {"type": "message", "role": role, "content": content}


def result_parts(calls: Sequence[Part], text: str) -> list[Any]:
    """One ``function_call_output`` item for each call."""
    return [output_item("function_call", call.id, text) for call in calls]


def may_anchor(message: Message, part: Part) -> bool:
    """Whether it is a function or custom tool call, whose result is a text."""
    return message.type in ("function_call", "custom_tool_call")


TEXT_RESULTS = ("function_call_output", "custom_tool_call_output")
"""Types of the result items for such a call."""


def call_alone(message: Any, call: Any, words: str) -> list[Any]:
    """The call without its ``id``, which would demand its reasoning, after an item with ``words``
    if there are any."""
    item = {key: value for key, value in call.items() if key != "id"}
    return [text_message("assistant", words), item] if words else [item]


def answered(result: Any, text: str, *, marked: Any = None) -> Any:
    """The output item with ``text`` as its output."""
    kept = {key: value for key, value in result.items() if key not in ("id", "output")}
    return {**kept, "output": text}


def mark_of(part: Any) -> Any:
    """The ``prompt_cache_breakpoint`` of this part, or None."""
    return part.get(MARK) if isinstance(part, dict) else None
