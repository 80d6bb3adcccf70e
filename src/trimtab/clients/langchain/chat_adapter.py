"""LangChain messages as the body of OpenAI Chat Completions, and back.

LangChain keeps calls in ``tool_calls``, may repeat them as content blocks, and keeps reasoning in
``additional_kwargs``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage, ToolMessage

from trimtab.clients.langchain import content_blocks
from trimtab.clients.langchain.adapter import MessageAdapter, Tree, new_message, role_of

_SYSTEM = "trimtab/system"
"""A key that marks the system message, which LangChain keeps apart from the messages."""


class ChatAdapter(MessageAdapter):
    """OpenAI Chat Completions: results are messages of their own."""

    format = "openai-chat"
    _KINDS: ClassVar = {"audio": "input_audio", "video": "file", "media": "file"}

    def _written(self, messages: Sequence[AnyMessage]) -> list[Tree]:
        trees = [self._tagged(self._tree(message), message) for message in messages]
        if self._system is None:
            return trees
        self._first = {**self._tree(self._system), _SYSTEM: None}
        return [self._first, *trees]

    def _system_of(self, request: Mapping[str, Any]) -> SystemMessage | None:
        tree = next((tree for tree in request["messages"] if _SYSTEM in tree), None)
        if self._system is None or tree is None or tree is self._first:
            return self._system
        return self._system.model_copy(update={"content": self._originals_of(tree)})

    def _tree(self, message: BaseMessage) -> Tree:
        tree: Tree = {"role": role_of(message), "content": self._content(message)}
        if isinstance(message, ToolMessage):
            tree["tool_call_id"] = message.tool_call_id
            if message.status == "error":
                tree["status"] = "error"
        if message.name and not isinstance(message, AIMessage):
            tree["name"] = message.name
        if tool_calls := content_blocks.calls(message):
            tree["tool_calls"] = [
                {"id": id, "type": "function",
                 "function": {"name": name, "arguments": content_blocks.spelled(args)}}
                for id, name, args in tool_calls
            ]  # fmt: skip
        reasoning = message.additional_kwargs.get("reasoning_content")
        if isinstance(message, AIMessage) and isinstance(reasoning, str):
            tree["reasoning_content"] = reasoning
        return tree

    def _content(self, message: BaseMessage) -> Any:
        """The content without the blocks that repeat calls in ``tool_calls``."""
        if isinstance(message.content, str):
            return message.content
        repeats = _repeats(message)
        conversation = [
            self._part(b, self._KINDS) for b in content_blocks.blocks(message) if not repeats(b)
        ]
        return conversation or ""

    def _read(self, tree: Tree) -> Iterator[BaseMessage]:
        if _SYSTEM in tree:
            return
        origin, same = self._origin(tree)
        if origin is None:
            yield new_message(tree, self._originals_of(tree), _calls_of(tree))
        elif same:
            yield origin
        else:
            yield self._changed(origin, tree)

    def _originals_of(self, tree: Tree) -> Any:
        content = tree.get("content")
        return self._originals(content) if isinstance(content, list) else content or ""

    def _changed(self, origin: BaseMessage, tree: Tree) -> BaseMessage:
        content = self._originals_of(tree)
        if not isinstance(origin, AIMessage):
            more = {"tool_call_id": tree["tool_call_id"]} if "tool_call_id" in tree else {}
            return origin.model_copy(update={"content": content, **more})
        left = _calls_of(tree)
        old = {id: (name, args) for id, name, args in content_blocks.calls(origin)}
        left = [
            (id, name, old[id][1])
            if id in old and content_blocks.spelled(old[id][1]) == content_blocks.spelled(args)
            else (id, name, args)
            for id, name, args in left
        ]
        if not isinstance(origin.content, str):
            arguments = {
                id: None if args is old.get(id, ("", ""))[1] else args for id, _, args in left
            }
            content = _with_repeats(origin, content, arguments)
        changed = content_blocks.with_calls(origin, content, left)
        if "reasoning_content" not in tree and "reasoning_content" in changed.additional_kwargs:
            more = {k: v for k, v in changed.additional_kwargs.items() if k != "reasoning_content"}
            changed = changed.model_copy(update={"additional_kwargs": more})
        return changed


def _calls_of(tree: Tree) -> list[tuple[str, str, str | dict[str, Any]]]:
    calls: list[tuple[str, str, str | dict[str, Any]]] = []
    for call in tree.get("tool_calls") or ():
        function = call["function"]
        try:
            args = json.loads(function["arguments"])
        except ValueError:
            args = function["arguments"]
        args = args if isinstance(args, dict) else function["arguments"]
        calls.append((call["id"], function["name"], args))
    return calls


def _repeats(message: BaseMessage) -> Callable[[Any], bool]:
    """A function that says whether a block repeats one of the message's calls."""
    call_ids = {id for id, _, _ in content_blocks.calls(message) if id}
    return lambda block: content_blocks.call_id(block) in call_ids


def _with_repeats(origin: AIMessage, content: Any, left: Mapping[str, Any]) -> Any:
    """``content`` with the blocks that repeat the calls in ``left``, at their old places.

    ``left``: call id → new arguments, None if unchanged.
    """
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    whole, repeats = content_blocks.blocks(origin), _repeats(origin)
    others = [block for block in whole if not repeats(block)]
    in_place = iter(content) if len(others) == len(content) else None
    blocks, late = list[Any](), list[Any]()
    for block in whole:
        id = content_blocks.call_id(block)
        if not repeats(block):
            if in_place is not None:
                blocks.append(next(in_place))
        elif id in left:
            (blocks if in_place is not None else late).append(_repeat(block, left[id]))
    return [*(blocks if in_place is not None else content), *late]


def _repeat(block: Any, args: Any) -> Any:
    """A block that repeats a call, with the call's new arguments."""
    if args is None:
        return block
    key = {"tool_use": "input", "tool_call": "args"}.get(block["type"], "arguments")
    arguments = args if key != "arguments" else content_blocks.spelled(args)
    return {k: v for k, v in {**block, key: arguments}.items() if k != "partial_json"}
