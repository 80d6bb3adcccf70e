"""What goes to the model beside the messages: its name, the system text, tools, output limit.

Knows how LangChain's models tell these, and which body suits which provider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from trimtab.integrations.langchain.anthropic_view import AnthropicView
from trimtab.integrations.langchain.chat_view import ChatView
from trimtab.integrations.langchain.views import View


@dataclass(frozen=True)
class Head:
    """``window``: what the model's profile says it takes; None where it says nothing."""

    provider: str = ""
    model: str = ""
    window: int | None = None
    max_tokens: int | None = None
    system: SystemMessage | None = None
    tools: Sequence[Any] = field(default_factory=tuple)

    @classmethod
    def of(cls, request: Any) -> Head:
        """The head of a ``ModelRequest``."""
        told, profile = _told(request.model), getattr(request.model, "profile", None) or {}
        settings = request.model_settings or {}
        asked = settings.get("max_tokens") or told.get("ls_max_tokens")
        return cls(
            str(told.get("ls_provider") or ""),
            str(settings.get("model") or told.get("ls_model_name") or ""),
            profile.get("max_input_tokens"),
            asked if type(asked) is int else None,
            request.system_message,
            tuple(request.tools),
        )

    @classmethod
    def from_history(cls, messages: Sequence[BaseMessage]) -> Head:
        """What the newest answer says of its model; the rest is not known before a first call."""
        for message in reversed(messages):
            if isinstance(message, AIMessage) and message.response_metadata:
                told = message.response_metadata
                name = told.get("model_name") or told.get("model") or ""
                return cls(str(told.get("model_provider") or ""), str(name))
        return cls()

    def view(self, messages: Sequence[Any]) -> View:
        """The messages with this head, as the body that suits the provider."""
        schemas = [_schema(tool) for tool in self.tools]
        head: dict[str, Any] = {"max_tokens": self.max_tokens} if self.max_tokens else {}
        if self.model:
            head["model"] = self.model
        if self._is_claude:
            if self.system is not None:
                head["system"] = _anthropic_system(self.system)
            if schemas:
                head["tools"] = [_anthropic_tool(schema) for schema in schemas]
            return AnthropicView(messages, head, self.system)
        if schemas:
            head["tools"] = schemas
        return ChatView(messages, head, self.system)

    @property
    def _is_claude(self) -> bool:
        return self.provider == "anthropic" or "claude" in self.model.lower()


def _told(model: Any) -> Mapping[str, Any]:
    """Provider, name and output limit as the model tells them to its tracer."""
    try:
        found = model._get_ls_params()
    except Exception:  # not every model has it; what it says only helps
        return {}
    return found if isinstance(found, Mapping) else {}


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
