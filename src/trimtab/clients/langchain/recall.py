"""The recall tool as a LangChain tool: it returns the original that a note's handle names."""

from __future__ import annotations

from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, StructuredTool

from trimtab.clients.langchain.session_cache import SessionCache
from trimtab.journal.excerpts import answer
from trimtab.sessions.recall_tool import DESCRIPTION, NAME


def recall_tool(sessions: SessionCache) -> BaseTool:
    """A tool that answers from the conversation of the agent that calls it."""

    def recall(
        runtime: ToolRuntime,
        search: str | None = None,
        file: str | None = None,
        handle: str | None = None,
        steps: str | None = None,
        lines: str | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> str:
        arguments = {
            "search": search, "file": file, "handle": handle, "steps": steps, "lines": lines,
            "start": start, "end": end,
        }  # fmt: skip
        return answer(sessions.of_state(runtime.state).originals, arguments).text

    # Annotations are text here, and LangChain looks for the injected argument among the types.
    recall.__annotations__["runtime"] = ToolRuntime
    return StructuredTool.from_function(recall, name=NAME, description=DESCRIPTION)
