"""LangChain messages as the body of Anthropic Messages, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage, ToolMessage

from trimtab.clients.langchain import content_blocks
from trimtab.clients.langchain.adapter import TAG, MessageAdapter, Tree, new_message, role_of


class AnthropicAdapter(MessageAdapter):
    """Anthropic Messages: results are parts of a user message, calls of the model's message."""

    format = "anthropic"
    _KINDS: ClassVar = {kind: to for kind, to in content_blocks.MEDIA.items() if kind != to}

    def _written(self, messages: Sequence[AnyMessage]) -> list[Tree]:
        trees: list[Tree] = []
        self._results: dict[str, list[ToolMessage]] = {}
        for message in messages:
            if isinstance(message, ToolMessage):
                self._results.setdefault(message.tool_call_id, []).append(message)
                if not trees or not _holds_results(trees[-1]):
                    trees.append({"role": "user", "content": []})
                trees[-1]["content"].append(self._result(message))
                continue
            role = role_of(message)
            role = role if role in ("assistant", "system") else "user"
            content = self._call_parts(message) if role == "assistant" else self._content(message)
            trees.append(self._tagged({"role": role, "content": content}, message))
        return trees

    def back(self, request: Mapping[str, Any]) -> Sequence[BaseMessage]:
        self._waiting = {id: list(results) for id, results in self._results.items()}
        return super().back(request)

    def _system_of(self, request: Mapping[str, Any]) -> SystemMessage | None:
        system = request.get("system")
        if self._system is None or system is self.body.get("system"):
            return self._system
        return self._system.model_copy(update={"content": system})

    def _content(self, message: BaseMessage) -> Any:
        if isinstance(message.content, str):
            return message.content
        return [self._part(block, self._KINDS) for block in content_blocks.blocks(message)]

    def _call_parts(self, message: BaseMessage) -> Any:
        """Text and thinking in place, and each call once: where a block repeats it, else last."""
        calls = {id: (name, args) for id, name, args in content_blocks.calls(message)}
        if not calls:
            return self._content(message)
        parts = []
        for block in content_blocks.blocks(message):
            name, args = calls.pop(content_blocks.call_id(block), ("", None))
            if args is None:
                parts.append(self._part(block, self._KINDS))
            else:
                parts.append(
                    self._part_origins.put(
                        _tool_use(content_blocks.call_id(block), name, args), block
                    )
                )
        return [*parts, *(_tool_use(id, name, args) for id, (name, args) in calls.items())]

    def _result(self, message: ToolMessage) -> Tree:
        content = self._content(message)
        tree = {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": content}
        if message.status == "error":
            tree["is_error"] = True
        return self._part_origins.put(tree, message)  # type: ignore[no-any-return]

    def _read(self, tree: Tree) -> Iterator[BaseMessage]:
        origin, same = self._origin(tree)
        if origin is not None and same:
            yield origin
            return
        content = tree["content"]
        if tree["role"] == "assistant":
            yield self._assistant(origin, content)
            return
        words: list[Any] = []
        for part in content if isinstance(content, list) else ():
            if isinstance(part, Mapping) and part.get("type") == "tool_result":
                yield from self._words(origin, tree, words)
                words = []
                yield self._tool(part)
            else:
                words.append(part)
        if words or isinstance(content, str):
            yield from self._words(origin, tree, content if isinstance(content, str) else words)

    def _words(self, origin: BaseMessage | None, tree: Tree, content: Any) -> Iterator[BaseMessage]:
        if not content:
            return
        new_content = content if isinstance(content, str) else self._originals(content)
        if origin is None:
            yield new_message({"role": tree["role"]}, new_content, [])
        else:
            yield origin.model_copy(update={"content": new_content})

    def _tool(self, part: Mapping[str, Any]) -> BaseMessage:
        origin = self._part_origins.original(part)
        if isinstance(origin, ToolMessage):  # as it was
            waiting = self._waiting[origin.tool_call_id]
            self._waiting[origin.tool_call_id] = [m for m in waiting if m is not origin]
            return origin
        content = part.get("content") or ""
        content = self._originals(content) if isinstance(content, list) else content
        if unanswered := self._waiting.get(part["tool_use_id"]):
            return unanswered.pop(0).model_copy(update={"content": content})
        status = "error" if part.get("is_error") else "success"
        return ToolMessage(content, tool_call_id=part["tool_use_id"], status=status)

    def _assistant(self, origin: BaseMessage | None, content: Any) -> BaseMessage:
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        uses = [p for p in parts if isinstance(p, Mapping) and p.get("type") == "tool_use"]
        calls = [(p["id"], p["name"], p["input"]) for p in uses]
        if not isinstance(origin, AIMessage):
            texts = [p for p in parts if p not in uses]
            return new_message({"role": "assistant"}, self._originals(texts), calls)
        if isinstance(origin.content, str):
            words = [str(p.get("text", "")) for p in parts if p not in uses]
            return content_blocks.with_calls(origin, "\n\n".join(words), calls)
        repeated = {content_blocks.call_id(block) for block in content_blocks.blocks(origin)}
        conversation = []
        for part in parts:
            block = self._part_origins.original(part)
            if block is part and part in uses and part["id"] not in repeated:
                continue  # it was in tool_calls alone
            conversation.append(block)
        return content_blocks.with_calls(origin, conversation, calls)


def _tool_use(id: str, name: str, args: Any) -> Tree:
    return {"type": "tool_use", "id": id, "name": name, "input": args}


def _holds_results(tree: Tree) -> bool:
    content = tree["content"]
    return (
        tree["role"] == "user" and isinstance(content, list)
        and not any(key.startswith(TAG) for key in tree)
    )  # fmt: skip
