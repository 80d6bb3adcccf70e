"""The recall tool as a LangChain tool: it returns the original that a note's handle names."""

from __future__ import annotations

from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, StructuredTool

from trimtab.clients.langchain.session_cache import SessionCache
from trimtab.journal.excerpts import answer
from trimtab.sessions.recall_tool import DESCRIPTION, NAME


def recall_tool(sessions: SessionCache) -> BaseTool:
    """A tool that answers from the session of the agent that calls it."""

    def recall(
        handle: str,
        runtime: ToolRuntime,
        start: int | None = None,
        end: int | None = None,
        search: str | None = None,
        steps: str | None = None,
    ) -> str:
        arguments = {
            "handle": handle, "start": start, "end": end, "search": search, "steps": steps,
        }  # fmt: skip
        return answer(sessions.of_state(runtime.state).session, arguments).text

    # Annotations are text here, and LangChain looks for the injected argument among the types.
    recall.__annotations__["runtime"] = ToolRuntime
    return StructuredTool.from_function(recall, name=NAME, description=DESCRIPTION)
