"""``pre_model_hook`` for LangGraph's prebuilt agent: what is sent fits, the state keeps everything.

Knows what ``create_react_agent`` takes from a hook.  The hook is not told the model, its tools or
its prompt: leave room for them in the window, or use TrimtabMiddleware.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trimtab.errors import InvalidSetting
from trimtab.integrations.langchain.head import Head
from trimtab.integrations.langchain.keeping import Sessions, thread
from trimtab.integrations.langchain.middleware import failed
from trimtab.integrations.langchain.updates import replaced

Hook = Callable[[Mapping[str, Any]], dict[str, Any]]


def pre_model_hook(*, window: int, persist: bool = False, **keywords: Any) -> Hook:
    """A hook for ``create_react_agent(…, pre_model_hook=…)``; keywords are those of ``fit``.

    ``persist``: shrink results and calls in the state too, else only in what is sent.
    """
    sessions = Sessions(
        {"preset": "in-place" if persist else "balanced", "window": window, **keywords}
    )

    def hook(state: Mapping[str, Any]) -> dict[str, Any]:
        messages = state["messages"]
        key = thread() or str(messages[0].id if messages else "")
        view = Head.from_history(messages).view(messages)
        try:
            fitted = sessions.of_key(key).fit(view.body, format=view.format)
            ready = list(view.back(fitted.request))
        except InvalidSetting:
            raise
        except Exception as error:
            failed(error)
            return {"llm_input_messages": messages}
        changes = replaced(messages, ready) if persist else []
        return {"llm_input_messages": ready, **({"messages": changes} if changes else {})}

    return hook
