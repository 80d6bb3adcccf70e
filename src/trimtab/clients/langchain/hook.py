"""``pre_model_hook`` for LangGraph's prebuilt agent: fits what is sent; the state keeps all of it.

The hook does not see the model, its tools or its prompt: leave room for them in the window, or use
TrimtabMiddleware.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Unpack

from trimtab.clients.langchain.middleware import failed
from trimtab.clients.langchain.request_head import RequestHead
from trimtab.clients.langchain.session_cache import (
    AgentKeywords,
    SessionCache,
    session_keywords,
    thread,
)
from trimtab.clients.langchain.state_updates import replaced
from trimtab.clients.sent_fits import SentFits
from trimtab.clients.wrapped_clients import register
from trimtab.errors import InvalidSetting
from trimtab.planning.presets import PresetName

Hook = Callable[[Mapping[str, Any]], dict[str, Any]]


def pre_model_hook(*, persist: bool = False, **keywords: Unpack[AgentKeywords]) -> Hook:
    """A hook for ``create_react_agent(…, pre_model_hook=…)``.

    Keywords are those of ``Session``, and ``summarizer``, ``protected_tools``, ``pins``,
    ``on_event``.

    ``persist``: shrink results and calls in the state too, not only in what is sent.
    """
    preset: PresetName = "in-place" if persist else "balanced"
    fits = SentFits("pre_model_hook")
    ours = session_keywords("pre_model_hook", preset, keywords, ("persist",))
    sessions = SessionCache(ours, fits, "trimtab.of(hook)")

    def hook(state: Mapping[str, Any]) -> dict[str, Any]:
        messages = state["messages"]
        key = thread() or str(messages[0].id if messages else "")
        adapter = RequestHead.from_history(messages).adapter(messages)
        try:
            conversation = sessions.of_key(key)
            body = conversation.with_originals(adapter) if persist else adapter.body
            fitted = conversation.fit(body, format=adapter.format)
            ready = list(adapter.back(fitted.request))
        except InvalidSetting:
            raise
        except Exception as error:
            failed(error)
            return {"llm_input_messages": messages}
        fits.stats.count(fitted, answered=True)
        changes = replaced(messages, ready) if persist else []
        return {"llm_input_messages": ready, **({"messages": changes} if changes else {})}

    return register(hook, fits)
