"""``pre_model_hook`` for LangGraph's prebuilt agent: fits what is sent; the state keeps all of it.

The hook does not see the model, its tools or its prompt: leave room for them in the window, or use
TrimtabMiddleware.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Unpack

from trimtab.clients.langchain.middleware import failed
from trimtab.clients.langchain.request_head import RequestHead
from trimtab.clients.langchain.session_cache import SessionCache, thread, with_preset
from trimtab.clients.langchain.state_updates import replaced
from trimtab.errors import InvalidSetting
from trimtab.session import SessionKeywords

Hook = Callable[[Mapping[str, Any]], dict[str, Any]]


def pre_model_hook(*, persist: bool = False, **keywords: Unpack[SessionKeywords]) -> Hook:
    """A hook for ``create_react_agent(…, pre_model_hook=…)``; keywords are those of ``fit``.

    ``persist``: shrink results and calls in the state too, not only in what is sent.
    """
    sessions = SessionCache(with_preset("in-place" if persist else "balanced", keywords))

    def hook(state: Mapping[str, Any]) -> dict[str, Any]:
        messages = state["messages"]
        key = thread() or str(messages[0].id if messages else "")
        adapter = RequestHead.from_history(messages).adapter(messages)
        try:
            fitted = sessions.of_key(key).fit(adapter.body, format=adapter.format)
            ready = list(adapter.back(fitted.request))
        except InvalidSetting:
            raise
        except Exception as error:
            failed(error)
            return {"llm_input_messages": messages}
        changes = replaced(messages, ready) if persist else []
        return {"llm_input_messages": ready, **({"messages": changes} if changes else {})}

    return hook
