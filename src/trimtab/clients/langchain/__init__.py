"""``TrimtabMiddleware`` for LangChain agents, and ``pre_model_hook`` for LangGraph agents.

Needs the extra "langchain"; raises MissingExtra without it.
"""

from __future__ import annotations

from trimtab.errors import MissingExtra

try:
    from trimtab.clients.langchain.hook import pre_model_hook
    from trimtab.clients.langchain.middleware import TrimtabMiddleware
except ImportError as error:
    if (error.name or "").partition(".")[0] not in ("langchain", "langchain_core", "langgraph"):
        raise
    raise MissingExtra(
        f"{error.name} is not installed, or too old: pip install 'trimtab[langchain]'"
    ) from None

__all__ = ["TrimtabMiddleware", "pre_model_hook"]
