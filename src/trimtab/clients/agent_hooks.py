"""Hooks of agent frameworks before a model call: OpenAI Agents' input filter, Google ADK's plugin.

Unlike a wrapped client, they serve every model of the framework (LiteLLM's, another provider's),
and the framework's traces show what was sent.  They only fit; retrying after a refusal needs a
wrapped client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Unpack

from trimtab.clients.guard import Guard, WrapKeywords, guard_of
from trimtab.clients.wrapped_clients import register
from trimtab.errors import MissingExtra, TrimtabError
from trimtab.formats.openai_responses.parts import PARTS
from trimtab.formats.registry import FormatName
from trimtab.request.fitted import Fitted
from trimtab.telemetry import logger


def call_model_input_filter(**keywords: Unpack[WrapKeywords]) -> Callable[[Any], Any]:
    """For ``RunConfig(call_model_input_filter=…)`` of the OpenAI Agents SDK.

    Keywords are those of ``wrap``.  The session's items stay whole; only the model's input is
    fitted.  Items that continue a history kept by OpenAI's server are left alone.
    """
    shared = guard_of("call_model_input_filter", keywords, answers=False)

    def filtered(data: Any) -> Any:
        given, agent = data.model_data, data.agent
        if _goes_on(given.input):
            return given
        body = {
            "model": _model(agent), "instructions": given.instructions or "",
            "tools": [_function(tool) for tool in getattr(agent, "tools", None) or ()],
            "input": given.input,
        }  # fmt: skip
        fitted = _fitted(shared, body, "openai-responses")
        return given if fitted is None else replace(given, input=fitted.request["input"])

    return register(filtered, shared.fits)


def adk_plugin(**keywords: Unpack[WrapKeywords]) -> Any:
    """For ``Runner(plugins=[…])`` or ``App(plugins=[…])`` of Google's ADK.

    Keywords are those of ``wrap``.  The session's events stay whole; only the model's input is
    fitted.  Raises MissingExtra.
    """
    import asyncio

    try:
        from google.adk.plugins.base_plugin import BasePlugin
    except ImportError:
        raise MissingExtra("the plugin needs Google's ADK: pip install google-adk") from None
    shared = guard_of("adk_plugin", keywords, answers=False)

    class TrimtabPlugin(BasePlugin):  # type: ignore[misc]  # the package may not be installed
        """Fits the contents of each request."""

        async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
            """Put the fitted contents into ``llm_request``; None lets the call proceed."""
            config = llm_request.config
            system = getattr(config, "system_instruction", None)
            body = {"model": llm_request.model, "contents": llm_request.contents}
            if isinstance(system, str) and system:
                body["systemInstruction"] = {"parts": [{"text": system}]}
            if tools := getattr(config, "tools", None):
                body["tools"] = tools
            fitted = await asyncio.to_thread(_fitted, shared, body, "gemini")
            if fitted is not None:
                llm_request.contents = fitted.request["contents"]

    return register(TrimtabPlugin(name="trimtab"), shared.fits)


def _fitted(guard: Guard, body: Mapping[str, Any], format: FormatName) -> Fitted | None:
    """The fitted ``body``; None if nothing changed or it can't fit: then it is sent unchanged.

    Raises our errors if ``strict`` was given."""
    try:
        fitted = guard.fit(body, format=format)
        guard.stats.count(fitted, answered=True)
    except TrimtabError as error:
        if guard.strict:
            raise
        logger().warning("sent unchanged: %s", error)
        return None
    return fitted if fitted.changed else None


def _goes_on(items: Any) -> bool:
    """Whether ``items`` has a result without its call: then the server keeps the call."""
    parts = [part for item in items for part in PARTS.read(item)]
    calls = {part.id for part in parts if part.kind == "call"}
    return any(part.kind == "result" and part.id not in calls for part in parts)


def _model(agent: Any) -> str:
    """The model's name; ``agent.model`` is the name or an object that has it."""
    model = getattr(agent, "model", None)
    return model if isinstance(model, str) else str(getattr(model, "model", "") or "")


def _function(tool: Any) -> dict[str, Any]:
    """A tool's definition in the format's form, so that its tokens are counted."""
    schema = getattr(tool, "params_json_schema", None) or {"type": "object"}
    about = getattr(tool, "description", "") or ""
    return {"type": "function", "name": tool.name, "description": about, "parameters": schema}
