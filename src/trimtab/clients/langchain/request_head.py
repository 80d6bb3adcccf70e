"""The parts of a request besides messages: the model's name, system text, tools, output limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from trimtab.clients.langchain.adapter import MessageAdapter
from trimtab.clients.langchain.anthropic_adapter import AnthropicAdapter
from trimtab.clients.langchain.chat_adapter import ChatAdapter


@dataclass(frozen=True)
class RequestHead:
    """``window``: the maximal input tokens in the model's profile; None if it has none."""

    provider: str = ""
    model: str = ""
    window: int | None = None
    max_tokens: int | None = None
    system: SystemMessage | None = None
    tools: Sequence[Any] = field(default_factory=tuple)

    @classmethod
    def of(cls, request: Any) -> RequestHead:
        """The head of a ``ModelRequest``."""
        profile = getattr(request.model, "profile", None) or {}
        settings = request.model_settings or {}
        max_tokens = settings.get("max_tokens") or _first(request.model, _MAX_TOKENS)
        return cls(
            _provider(request.model),
            str(settings.get("model") or _first(request.model, _MODEL) or ""),
            profile.get("max_input_tokens"),
            max_tokens if type(max_tokens) is int else None,
            request.system_message,
            tuple(request.tools),
        )

    @classmethod
    def from_history(cls, messages: Sequence[BaseMessage]) -> RequestHead:
        """A head with the model that the newest answer names; the rest is not known yet."""
        for message in reversed(messages):
            if isinstance(message, AIMessage) and message.response_metadata:
                metadata = message.response_metadata
                name = metadata.get("model_name") or metadata.get("model") or ""
                return cls(str(metadata.get("model_provider") or ""), str(name))
        return cls()

    def adapter(self, messages: Sequence[Any]) -> MessageAdapter:
        """An adapter whose body has this head and ``messages``, in the provider's format."""
        schemas = [_schema(tool) for tool in self.tools]
        head: dict[str, Any] = {"max_tokens": self.max_tokens} if self.max_tokens else {}
        if self.model:
            head["model"] = self.model
        if self._is_claude:
            if self.system is not None:
                head["system"] = _anthropic_system(self.system)
            if schemas:
                head["tools"] = [_anthropic_tool(schema) for schema in schemas]
            return AnthropicAdapter(messages, head, self.system)
        if schemas:
            head["tools"] = schemas
        return ChatAdapter(messages, head, self.system)

    @property
    def _is_claude(self) -> bool:
        return self.provider == "anthropic" or "claude" in self.model.lower()


_MODEL = ("model_name", "model", "model_id")
_MAX_TOKENS = ("max_tokens", "max_output_tokens", "max_completion_tokens")
"""Fields of chat models with their name and output limit."""


def _first(model: Any, names: Sequence[str]) -> Any:
    return next((value for name in names if (value := getattr(model, name, None))), None)


def _provider(model: Any) -> str:
    """The provider by the package of the model's class or its bases: ``anthropic`` for a class in
    ``langchain_anthropic``."""
    roots = [base.__module__.partition(".")[0] for base in type(model).__mro__]
    partners = [root.partition("_")[2] for root in roots if root.startswith("langchain_")]
    return next((name for name in partners if name not in ("core", "")), "")


def _schema(tool: Any) -> Any:
    if isinstance(tool, Mapping) and not isinstance(tool, BaseTool):
        return dict(tool)
    return convert_to_openai_tool(tool)


def _anthropic_tool(schema: Mapping[str, Any]) -> Any:
    function = schema.get("function")
    if not isinstance(function, Mapping):
        return schema
    return {
        "name": function.get("name", ""), "description": function.get("description", ""),
        "input_schema": function.get("parameters") or {"type": "object", "properties": {}},
    }  # fmt: skip


def _anthropic_system(message: SystemMessage) -> Any:
    if isinstance(message.content, str):
        return message.content
    return [{"type": "text", "text": b} if isinstance(b, str) else b for b in message.content]
