"""Converts LangChain messages to the body of a request, and back.

An unchanged message comes back as the same object; a changed one keeps id, name, artifact and
metadata.  ``chat_adapter`` and ``anthropic_adapter`` write the two kinds of bodies; only the latter
has rules for signed thinking.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from trimtab.clients.langchain import content_blocks
from trimtab.formats.registry import FormatName

TAG = "trimtab:"
"""Prefix of a key, put into a message of the body, that names its LangChain message; the value is
None and costs no tokens.  Our formats keep unknown keys."""

Tree = dict[str, Any]


class MessageAdapter(ABC):
    """``body`` is the request to fit; ``back`` turns the fitted body into messages."""

    format: FormatName

    def __init__(
        self,
        messages: Sequence[AnyMessage],
        head: Mapping[str, Any],
        system: SystemMessage | None = None,
    ) -> None:
        self._system = system
        self._part_origins = content_blocks.PartOrigins()
        self._origins: dict[str, BaseMessage] = {}
        self._trees: dict[str, Tree] = {}
        self._given = list(messages)
        self.body: Tree = {**head, "messages": self._written(messages)}

    def back(self, request: Mapping[str, Any]) -> Sequence[BaseMessage]:
        """The LangChain messages of ``request``, which was fitted from ``body``."""
        if request["messages"] is self.body["messages"]:
            return self._given
        ids = {m.id for m in self._given if m.id}
        used: set[str | None] = set()
        messages: list[BaseMessage] = []
        for tree in request["messages"]:
            for message in self._read(tree):
                has_id = message.id is not None or any(message is m for m in self._given)
                if not has_id or message.id in used:  # a note, or split off another message
                    identity = {"role": message.type, "content": message.content}
                    identity["call"] = getattr(message, "tool_call_id", "")
                    message = message.model_copy(
                        update={"id": content_blocks.fresh_id(identity, ids)}
                    )
                if message.id is not None:
                    used.add(message.id)
                messages.append(message)
        return messages

    def parted(
        self, request: Mapping[str, Any]
    ) -> tuple[SystemMessage | None, Sequence[BaseMessage]]:
        """(system message, other messages) of ``request``."""
        return self._system_of(request), self.back(request)

    @abstractmethod
    def _system_of(self, request: Mapping[str, Any]) -> SystemMessage | None:
        """The system message of ``request``; the very same object if it is unchanged."""

    @abstractmethod
    def _written(self, messages: Sequence[AnyMessage]) -> list[Tree]:
        """The messages of the body."""

    @abstractmethod
    def _read(self, tree: Tree) -> Iterator[BaseMessage]:
        """The LangChain messages of one message of the body; several if it has results."""

    def _tagged(self, tree: Tree, message: BaseMessage) -> Tree:
        key = f"{TAG}{message.id or len(self._origins)}"
        while key in self._origins:
            key += "'"
        self._origins[key] = message
        self._trees[key] = tree
        tree[key] = None
        return tree

    def _origin(self, tree: Tree) -> tuple[BaseMessage | None, bool]:
        """(LangChain message of ``tree``, whether it is unchanged)."""
        key = next((key for key in tree if key.startswith(TAG)), None)
        if key is None:
            return None, False
        return self._origins[key], self._trees[key] is tree

    def _part(self, block: Any, kinds: Mapping[str, str]) -> Any:
        """A content block as a part of the body."""
        if isinstance(block, str):
            return self._part_origins.put({"type": "text", "text": block}, block)
        kind = kinds.get(str(block.get("type"))) if isinstance(block, Mapping) else None
        if kind is None or kind == block["type"]:
            return block
        return self._part_origins.put({**block, "type": kind}, block)

    def _originals(self, parts: Sequence[Any]) -> list[Any]:
        return [self._part_origins.original(part) for part in parts]


def role_of(message: BaseMessage) -> str:
    if isinstance(message, ChatMessage):
        return message.role
    roles = {
        HumanMessage: "user", AIMessage: "assistant", ToolMessage: "tool",
        SystemMessage: "system", FunctionMessage: "function",
    }  # fmt: skip
    return next((role for kind, role in roles.items() if isinstance(message, kind)), "user")


def new_message(tree: Tree, content: Any, calls: Sequence[tuple[str, str, Any]]) -> BaseMessage:
    """A LangChain message for one that a repair or a note added."""
    role = tree["role"]
    if role == "assistant":
        return content_blocks.with_calls(AIMessage(content), content, calls)
    if role == "tool":
        return ToolMessage(content, tool_call_id=tree["tool_call_id"], status="error")
    return SystemMessage(content) if role == "system" else HumanMessage(content)
